"""Derives the cases and holds every verdict against its label."""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metrics.settings import MetricsSettings
from tests.cases.otlp import Case, end, load
from tests.metrics.bench import bench

Row = dict[str, Any]

KINDS = (
    "duplicate_action", "key_reused", "key_not_honoured", "unbounded", "no_backoff", "non_retryable",
    "same_args_after_rejection", "retried_after_success", "amplification", "missed_retry", "blind_retry", "loop",
    "executed_without_approval", "approved_other_args", "approved_not_executed", "lost", "dead_letter",
    "false_success", "vanished_failure", "uncertain_outcome", "not_compensated", "plan_not_kept", "hung_call",
)  # fmt: skip


@dataclass
class Tally:
    """Right, falsely raised and missed, of one detector."""

    right: int = 0
    false: int = 0
    missed: int = 0

    @property
    def precision(self) -> float | None:
        """Of what was raised, the part that is true; None when nothing was raised."""
        return self.right / (self.right + self.false) if self.right + self.false else None

    @property
    def recall(self) -> float | None:
        """Of what is true, the part that was raised; None when there was nothing to raise."""
        return self.right / (self.right + self.missed) if self.right + self.missed else None


@dataclass
class Score:
    """What the cases say of the detectors."""

    cases: int = 0
    traps: int = 0
    attempts: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    findings: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    trapped: list[str] = field(default_factory=list)
    wrongly_completed: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    @property
    def clean_cases(self) -> int:
        """Cases in which every label is met."""
        return self.cases - len({line.split(":", 1)[0] for line in self.differences})


def run() -> Score:
    """Send all cases through decoding, store and derivation, and score them."""
    score = Score()
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in load():
        groups[json.dumps(case.labels.get("settings", {}), sort_keys=True)].append(case)
    for settings, cases in groups.items():
        _group(score, MetricsSettings.model_validate(json.loads(settings)), cases)
    return score


def _group(score: Score, settings: MetricsSettings, cases: Sequence[Case]) -> None:
    with tempfile.TemporaryDirectory() as folder, bench(Path(folder), settings) as one:
        one.send(case.request for case in cases).derive(end())
        of_trace = one.rows(
            "SELECT m.trace_id, t.* FROM core._trace_tasks m JOIN core.tasks t USING (task_id)"
        )
        attempts = one.rows("SELECT * EXCLUDE (leaves) FROM work.attempts")
        findings = one.rows("SELECT task_id, kind FROM core.findings")
        interventions = one.rows("SELECT task_id FROM core.interventions")
    for case in cases:
        tasks = {row["task_id"]: row for row in of_trace if row["trace_id"] in case.traces}
        mine = [row for row in attempts if row["trace_id"] in case.traces]
        raised = {row["kind"] for row in findings if row["task_id"] in tasks}
        humans = sum(row["task_id"] in tasks for row in interventions)
        _judge(score, case, list(tasks.values()), mine, raised, humans)


def _judge(
    score: Score, case: Case, tasks: list[Row], attempts: list[Row], raised: set[str], humans: int
) -> None:
    score.cases += 1
    score.traps += bool(case.labels.get("trap"))

    def differs(what: str, got: Any, wanted: Any) -> None:
        if got != wanted:
            score.differences.append(f"{case.id}: {what} is {got}, true is {wanted}")

    seen = {row["span_id"]: row for row in attempts}
    for span_id, step in case.steps.items():
        row = seen.get(span_id, {})
        for kind in ("unprotected", "protected", "no_op"):
            _count(score.attempts[kind], row.get("duplicate") == kind, step.get("repeat") == kind)
        differs(f"{step['tool']} at {step['at']}", row.get("duplicate"), step.get("repeat"))
        if step.get("repeat"):
            score.attempts["cause"].right += row.get("cause") == step["cause"]
            score.attempts["cause"].missed += row.get("cause") != step["cause"]
            differs("cause", row.get("cause"), step["cause"])
        _count(
            score.attempts["compensated"],
            bool(row.get("compensated") and row.get("duplicate")),
            bool(step.get("undone")),
        )
    if case.labels.get("trap") and any(row["duplicate"] == "unprotected" for row in attempts):
        score.trapped.append(case.id)

    must, may = set(case.labels.get("findings", [])), set(case.labels.get("may", []))
    for kind in KINDS:
        if kind not in may:
            _count(score.findings[kind], kind in raised, kind in must)
    differs("findings", sorted((raised & set(KINDS)) - may), sorted(must))

    wanted = case.labels.get("outcome")
    last = max(tasks, key=lambda row: row["started_at"])["outcome"] if tasks else None
    if wanted:
        differs("outcome", last, wanted)
        if last == "completed" and wanted != "completed":
            score.wrongly_completed.append(case.id)
    if not case.labels.get("may_humans"):
        differs("interventions", humans, case.labels.get("humans", 0))
    differs("suspected", sum(bool(row["suspected"]) for row in attempts), case.labels.get("suspected", 0))
    differs(
        "telemetry duplicates",
        sum(row["telemetry_duplicates"] for row in tasks),
        case.labels.get("telemetry", 0),
    )


def _count(tally: Tally, got: bool, true: bool) -> None:
    tally.right += got and true
    tally.false += got and not true
    tally.missed += true and not got


def lines(score: Score) -> Iterable[str]:
    """The table of docs/accuracy.md, in Markdown."""

    def share(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    yield (
        f"{score.cases} cases, {score.clean_cases} with every label met; "
        f"{score.traps} look-alikes, {len(score.trapped)} of them flagged."
    )
    yield ""
    yield "| per attempt | precision | recall | right | false | missed |"
    yield "|---|---|---|---|---|---|"
    for name, tally in score.attempts.items():
        counted = f"{tally.right} | {tally.false} | {tally.missed}"
        yield f"| {name} | {share(tally.precision)} | {share(tally.recall)} | {counted} |"
    yield ""
    yield "| per case | precision | recall | right | false | missed |"
    yield "|---|---|---|---|---|---|"
    for name in KINDS:
        tally = score.findings[name]
        counted = f"{tally.right} | {tally.false} | {tally.missed}"
        yield f"| {name} | {share(tally.precision)} | {share(tally.recall)} | {counted} |"


def kinds_without_a_case() -> list[str]:
    """Scored kinds that no case demands: their recall would be unknown."""
    demanded = Counter(kind for case in load() for kind in case.labels.get("findings", []))
    return [kind for kind in KINDS if not demanded[kind]]
