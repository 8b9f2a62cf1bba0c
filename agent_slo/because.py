"""The chain of reasons behind a task's verdicts, as lines of text. Only spells the rules that the views name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dashboard.format import missing, one_line, when, words
from dashboard.verdict import evidence_ids
from metrics.reasons import sentence

Row = Mapping[str, Any]
Parts = Mapping[str, Sequence[Row]]


def chain_of_reasons(task: Row, parts: Parts) -> Iterator[str]:
    """Yield the lines: the task's outcome, its runs, its actions attempt by attempt, its findings.

    `parts`: rows of `runs`, `attempts`, `actions` and `findings` of the task.
    """
    yield f"Task {one_line(task['task_id'])} is {task['outcome']}"
    yield from _because(task["rule"], task["evidence"])
    for number, run in enumerate(parts["runs"], start=1):
        yield f"Run {number} ({when(run['started_at'])}, trace {run['trace_id']}) {run['verdict']}"
        yield from _because(run["rule"], run["evidence"])
        for rule in run["joined_by"] or []:
            yield from _because(rule, None, "same task as an earlier run")
    for action in parts["actions"]:
        yield from _action(action, [a for a in parts["attempts"] if a["action_id"] == action["action_id"]])
    for attempt in parts["attempts"]:
        if missing(attempt["action_id"]) and attempt["disposition"] != "executed":
            yield f"{one_line(attempt['tool'], 60)}: not executed ({words({}, attempt['disposition'])})"
    for finding in parts["findings"]:
        yield f"Finding {words({}, finding['kind'])}: {one_line(finding['detail'])}"
        yield from _because(finding["rule"], finding["evidence"])


def _action(action: Row, attempts: Sequence[Row]) -> Iterator[str]:
    yield f"Action {one_line(action['tool'], 60)} {one_line(action['arguments'], 80)}"
    yield f"  story: {one_line(action['story'], 400)}"
    if attempts:
        source = f"class.{attempts[0]['class_source']}"
        yield f"  counted as {words({}, attempts[0]['effect_class'])}: {sentence(source)}"
    for number, attempt in enumerate(attempts, start=1):
        if missing(attempt["duplicate"]):
            if attempt["suspected"]:
                yield f"  attempt {number} may be a repeat"
                yield from _because(attempt["rule"], attempt["evidence"], indent=4)
            continue
        yield f"  attempt {number} is {words({}, attempt['duplicate'])} repeat"
        yield from _because(attempt["rule"], attempt["evidence"], indent=4)
        for part in (f"effect.{attempt['effect']}", f"cause.{attempt['cause']}"):
            yield f"    {sentence(part)}"
        if attempt["compensated"]:
            yield "    It was undone later."


def _because(rule: str | None, evidence: Any, what: str = "because", indent: int = 2) -> Iterator[str]:
    if missing(rule):
        return
    seen = ", ".join(evidence_ids(evidence))
    said = sentence(rule) or "This version has no words for that rule."
    yield f"{' ' * indent}{what}: {said} [{rule}]" + (f" see span {seen}" if seen else "")
