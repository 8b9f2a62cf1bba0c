"""The verdict of a gate over rows of `slo_status` and `findings`: pure functions over plain values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scipy.stats import hypergeom

from metrics.gate.baseline import Baseline

Result = Literal["passed", "failed", "known", "skipped"]
FailOn = Literal["missed", "at_risk", "firing"]
Row = Mapping[str, Any]

FROM_WORST: tuple[FailOn, ...] = ("missed", "firing", "at_risk")
"""Each implies those after it: a missed objective is also one that an alert would tell of, and at risk."""

WORSE_P = 0.05
"""Chance under "nothing changed" below which a lower share of good events counts as worse."""

_NUMBERS = re.compile(r"\b(?=[0-9a-f-]*\d)[0-9a-f][0-9a-f-]{7,}\b|\d+(?:\.\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Case:
    """One thing that was checked; `known` failed before as well and no worse, `skipped` could not be judged."""

    group: Literal["objective", "finding"]
    name: str
    title: str
    result: Result
    why: str
    rule: str
    """Identifier of what was checked, the same in every run."""
    severity: str = "high"
    tasks: tuple[str, ...] = ()
    """Example task ids, at most a few."""

    @property
    def failed(self) -> bool:
        return self.result == "failed"


@dataclass(frozen=True)
class Rules:
    """What makes the gate fail."""

    fail_on: frozenset[FailOn] = frozenset(("missed",))
    """States an objective fails on, and on those worse than the mildest of them."""
    min_events: int | None = None
    """Events below which an objective is not judged; None: what its state says."""
    require_data: bool = False
    """Whether an objective that cannot be judged fails."""
    forbid: frozenset[str] = frozenset(("severity:high",))
    """Finding kinds, or `severity:<word>`; empty: none."""


def objective_key(row: Row) -> str:
    """Name of an objective that is the same in every run."""
    return f"{row['slo']}/{row['objective']}"


def worse(good: int, n: int, good_before: int, n_before: int) -> float | None:
    """One-sided p value (Fisher's exact test) that the share of good events fell; None without events."""
    if not n or not n_before:
        return None
    return float(hypergeom.cdf(good, n + n_before, good + good_before, n))


def _state(row: Row, rules: Rules) -> str:
    """The worst of `FROM_WORST` that holds, `met`, or why it cannot be judged."""
    state, n, remaining = row["state"], row["n"], row["remaining"]
    if state == "invalid":
        return "invalid"
    if not n or remaining is None:
        return "no_data"
    enough = state != "insufficient_data" if rules.min_events is None else n >= rules.min_events
    if not enough:
        return "insufficient_data"
    if row.get("is_floor"):
        return "missed" if state == "exhausted" else "at_risk" if state == "at_risk" else "met"
    if remaining < 0:
        return "missed"
    if row["firing"] not in (None, "[]"):
        return "firing"
    # `exhausted` without being missed: the budget is spent to the last event.
    return "at_risk" if state in ("at_risk", "exhausted") else "met"


def _fails(state: str, rules: Rules) -> bool:
    """Whether the rules name this state or a milder one."""
    return state in FROM_WORST and any(
        mild in rules.fail_on for mild in FROM_WORST[FROM_WORST.index(state) :]
    )


def judge_objective(row: Row, rules: Rules, before: Baseline | None) -> Case:
    """The case of one row of `slo_status`."""
    key, state = objective_key(row), _state(row, rules)
    said = _said(row)
    old = before.objectives.get(key) if before else None
    result: Result = "passed"
    why = said
    if state == "invalid":
        result, why = "failed", f"cannot be counted: {row['notes']}"
    elif state in ("no_data", "insufficient_data"):
        words = (
            "no events"
            if state == "no_data"
            else f"only {row['n']} event{'s' * (row['n'] != 1)}, too few to judge"
        )
        result, why = ("failed" if rules.require_data else "skipped"), words
    else:
        fell = worse(row["good"], row["n"], old.good, old.n) if old else None
        is_worse = fell is not None and fell < WORSE_P
        if _fails(state, rules):
            heads = {"missed": "the objective is missed", "at_risk": "at risk", "firing": "an alert fires"}
            known = old is not None and old.failed and not is_worse
            result, why = ("known" if known else "failed"), f"{heads[state]}: {said}"
            if known:
                why += "; it failed before and is no worse"
        elif is_worse:
            assert old is not None
            result = "failed"
            why = f"worse than before ({old.good} of {old.n}, p = {fell:.2g}): {said}"
    return Case("objective", key, row["title"] or key, result, why, f"objective/{key}")


def _said(row: Row) -> str:
    if row["sli"] is None:
        left = "unknown" if row["remaining"] is None else f"{row['remaining'] * 100:.0f} %"
        return f"{left} of the error budget left"
    text = f"{row['good']} of {row['n']} good ({row['sli'] * 100:.4g} %), target {row['target'] * 100:.6g} %"
    if row["lower"] is not None:
        text += f", 95 % interval {row['lower'] * 100:.1f} to {row['upper'] * 100:.1f} %"
    if row["unknown"]:
        text += f", {row['unknown']} unknown"
    return text


def shape(detail: str) -> str:
    """A finding's words with ids and numbers taken out, so that two runs can be compared."""
    return _NUMBERS.sub("#", detail)


def finding_key(row: Row) -> str:
    """Name of a group of findings that is the same in every run."""
    return " / ".join((row["kind"], row["agent"] or "unnamed", shape(row["detail"] or "")))


def is_forbidden(row: Row, rules: Rules) -> bool:
    """Whether a finding is of a kind or severity the rules forbid."""
    return row["kind"] in rules.forbid or f"severity:{row['severity']}" in rules.forbid


def judge_findings(rows: Sequence[Row], tasks: int, rules: Rules, before: Baseline | None) -> list[Case]:
    """One case per group of forbidden findings (kind, agent, detail); `tasks` is the number of tasks seen."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if is_forbidden(row, rules):
            groups.setdefault(finding_key(row), []).append(row)
    cases: list[Case] = []
    for key, found in sorted(groups.items()):
        count = len(found)
        old = before.findings.get(key, 0) if before else 0
        # More tasks show more findings: what counts is the number a task.
        known = before is not None and old > 0 and count * max(before.tasks, 1) <= old * max(tasks, 1)
        why = f"{count} in {len({r['task_id'] for r in found})} of {tasks} tasks"
        if before is not None:
            why += f"; before: {old} in {before.tasks} tasks"
        cases.append(
            Case(
                group="finding",
                name=key,
                title=f"{found[0]['kind']}: {found[0]['detail']}",
                result="known" if known else "failed",
                why=why,
                rule=f"finding/{found[0]['kind']}",
                severity=found[0]["severity"],
                tasks=tuple(dict.fromkeys(str(r["task_id"]) for r in found))[:5],
            )
        )
    return cases
