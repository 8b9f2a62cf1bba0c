"""A task's verdict in words, shared by the pages and `agent-slo task`. Only spells what the views decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dashboard.format import (
    EVIDENCE_WORDS,
    OUTCOME_WORDS,
    count,
    duration,
    missing,
    one_line,
    usd,
    when,
    words,
)
from metrics.reasons import sentence

Row = Mapping[str, Any]

EVIDENCE_SHOWN = 4
"""Span ids a sentence names; tables show all."""


def reason(rule: Any) -> str:
    """The sentence of a rule with its id behind it, as `The sender states the outcome. [task.stated]`.

    An id that this version has no sentence for stands alone; no rule is empty.
    """
    if missing(rule):
        return ""
    said = sentence(str(rule))
    return f"{said} [{one_line(rule, 80)}]" if said else f"[{one_line(rule, 80)}]"


def verdict_sentence(task: Row) -> str:
    """Outcome, how strong its evidence is, the sentence of the rule that decided, and the spans it rests on."""
    outcome = words(OUTCOME_WORDS, task["outcome"])
    said = f"This task is {outcome}" if task["outcome"] in ("running", "unknown") else f"Outcome: {outcome}"
    if not missing(task["outcome_evidence"]) and task["outcome_evidence"] != "none":
        said += f", {words(EVIDENCE_WORDS, task['outcome_evidence'])}"
    parts = [f"{said}."]
    if not missing(task["rule"]):
        parts.append(reason(task["rule"]))
    spans = evidence_ids(task.get("evidence"))
    if spans:
        shown = ", ".join(spans[:EVIDENCE_SHOWN])
        more = f" and {len(spans) - EVIDENCE_SHOWN} more" if len(spans) > EVIDENCE_SHOWN else ""
        parts.append(f"See span {shown}{more}.")
    return " ".join(parts)


def grave_findings(findings: Sequence[Row]) -> str:
    """`2 high findings`, `1 critical and 2 high findings`: those that a calm outcome must not hide; empty when none."""
    known = [
        (sum(row["severity"] == severity for row in findings), severity) for severity in ("critical", "high")
    ]
    parts = [f"{count(number)} {severity}" for number, severity in known if number]
    total = sum(number for number, _ in known)
    return f"{' and '.join(parts)} {'finding' if total == 1 else 'findings'}" if parts else ""


def findings_note(task: Row, findings: Sequence[Row]) -> str:
    """What a reader of a completed task must know of its grave findings; empty when there is nothing."""
    grave = grave_findings(findings)
    if task["outcome"] != "completed" or not grave:
        return ""
    return (
        f"Not all is well: {grave} below. The outcome says how the task ended; what went wrong on the way does not "
        "change it."
    )


def verdict_notes(task: Row, now: datetime | None = None) -> list[str]:
    """What else a reader must know at `now` (naive UTC; None: this moment): claims, exclusion, what is still due."""
    notes = []
    if not missing(task["claimed"]):
        notes.append(f"The agent claimed {one_line(task['claimed'], 40)}.")
    if not missing(task["excluded_reason"]):
        notes.append(f"Not counted by any objective: {one_line(task['excluded_reason'], 80)}.")
    elif task["eligible"] is False:
        notes.append("Not counted yet: it is still open.")
    if not missing(task["next_due_at"]):
        due = when(task["next_due_at"])
        if task["next_due_at"] > (now or datetime.now(UTC).replace(tzinfo=None)):
            notes.append(f"Will be looked at again {due}.")
        else:
            notes.append(f"Was to be looked at again {due}; the next pass does.")
    if task["frozen"]:
        notes.append("Frozen: some of its spans are past retention, so the verdict no longer changes.")
    if not missing(task["telemetry_duplicates"]) and task["telemetry_duplicates"] > 0:
        times = count(task["telemetry_duplicates"])
        notes.append(f"{times} of its spans arrived more than once; each is counted once.")
    return notes


def task_facts(task: Row) -> list[tuple[str, str]]:
    """Label and value of the figures of a task, in reading order."""
    cost = usd(task["cost_usd"])
    if not missing(task["cost_usd"]) and not task["cost_complete"]:
        cost = f"at least {cost}"
    elif missing(task["cost_usd"]):
        cost = "unpriced"
    return [
        ("Cost", cost),
        ("Wall time", duration(task["wall_s"])),
        ("Active time", duration(task["active_s"])),
        ("Human wait", duration(task["human_wait_s"])),
        ("Interventions", count(task["interventions"])),
        ("Runs / traces", f"{count(task['runs'])} / {count(task['traces'])}"),
        ("Model calls", count(task["model_calls"])),
        ("Tool calls", count(task["tool_calls"])),
        ("Tokens in / out", f"{count(task['input_tokens'])} / {count(task['output_tokens'])}"),
    ]


def run_evidence(runs: Sequence[Row]) -> list[str]:
    """One line a run: verdict, the rule in words, and the span ids that show it."""
    lines = []
    for number, run in enumerate(runs, start=1):
        line = f"run {number}: {words({}, run['verdict'])}"
        if not missing(run["rule"]):
            line += f". {reason(run['rule'])}"
        spans = evidence_ids(run["evidence"])[:EVIDENCE_SHOWN]
        lines.append(line + (f" See span {', '.join(spans)}." if spans else ""))
    return lines


def evidence_ids(evidence: Any) -> list[str]:
    """Span ids of an evidence column (a list, or unknown), each once."""
    return list(dict.fromkeys(one_line(span, 40) for span in evidence or ()))
