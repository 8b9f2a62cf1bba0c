"""One incident as sentences: what happened, in order, and what was wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from incidents.evidence import Call, Evidence
from incidents.replay.world import canonical

_RUN_ENDS = {
    "crashed": "the process fell silent and never ended its run",
    "paused": "the run paused for a person",
    "failed": "the run failed",
    "aborted": "the run ended without an answer",
}
_EFFECTS = {
    "write": "may have changed the world twice",
    "idempotent_write": "changes nothing the second time",
}


@dataclass(frozen=True)
class Line:
    """One moment: when (UTC), what happened, the spans that show it, whether it is the fault or undoes it."""

    at: datetime
    text: str
    span_ids: tuple[str, ...] = ()
    fault: bool = False
    undoes: bool = False


def tell(evidence: Evidence) -> list[Line]:
    """The task of an incident as lines in order of time.

    Names and arguments are text from a trace: whoever shows them must escape them.
    """
    pointed = set(evidence.evidence_span_ids)
    lines = list(_calls(evidence, pointed))
    for number, run in enumerate(evidence.runs):
        again = "the work began again" if number else "the task began"
        how = f" ({run['trigger']})" if number and run["trigger"] else ""
        lines.append(Line(run["started_at"], again + how))
        end = _run_end(evidence, run)
        if end is not None:
            lines.append(end)
    lines.sort(key=lambda line: line.at)
    lines.append(
        Line(lines[-1].at, f"outcome of the task: {str(evidence.task['outcome']).replace('_', ' ')}")
    )
    return lines


def _run_end(evidence: Evidence, run: Mapping[str, Any]) -> Line | None:
    words = _RUN_ENDS.get(str(run["verdict"]))
    if words is None:
        return None
    last = [c.ended_at or c.started_at for c in evidence.calls if c.run_id == run["run_id"]]
    last += [t["ended_at"] or t["started_at"] for t in evidence.turns if t["run_id"] == run["run_id"]]
    at = run["ended_at"] or max([run["started_at"], *last])
    return Line(at, words, fault=run["verdict"] == "crashed")


def _calls(evidence: Evidence, pointed: set[str]) -> list[Line]:
    lines: list[Line] = []
    earlier: dict[str, Call] = {}
    equal = 0
    before: Call | None = None
    for call in evidence.calls:
        same_again = (
            before is not None
            and before.tool == call.tool
            and canonical(before.args) == canonical(call.args)
            and before.outcome == call.outcome == "ok"
            and canonical(before.result) == canonical(call.result)
            and call.duplicate is None
        )
        if same_again and lines:
            equal += 1
            last = lines[-1]
            text = last.text.split(", and ", 1)[0]
            lines[-1] = Line(
                last.at,
                f"{text}, and {equal} more times with the same answer",
                (*last.span_ids, call.span_id),
                last.fault or call.span_id in pointed,
            )
            before = call
            continue
        equal = 0
        if call.span_id in pointed and (undone := _undone_by(evidence, call)) is not None:
            line = _line(call, earlier.get(call.tool), False)
            lines.append(replace(line, text=f"{line.text}; undoes {undone}", undoes=not line.fault))
        else:
            lines.append(_line(call, earlier.get(call.tool), call.span_id in pointed))
        if call.executed:
            earlier[call.tool] = call
        before = call
    return lines


def _undone_by(evidence: Evidence, call: Call) -> str | None:
    """The tool whose act this call undid; a finding points at what undid it too."""
    if not call.executed or call.duplicate or call.compensated:
        return None
    undone = (
        c.tool
        for c in evidence.calls
        if c.compensated
        and call.span_id in c.evidence
        and c.tool != call.tool
        and (c.ended_at or c.started_at) <= call.started_at
    )
    return next(undone, None)


def _line(call: Call, earlier: Call | None, pointed: bool) -> Line:
    words = call.tool
    if call.args:
        words += "(" + ", ".join(f"{key}={_short(value)}" for key, value in list(call.args.items())[:4]) + ")"
    if not call.executed:
        return Line(
            call.started_at, f"{words} was not executed ({call.disposition})", (call.span_id,), pointed
        )
    if earlier is not None and canonical(earlier.args) == canonical(call.args):
        gap = (call.started_at - (earlier.ended_at or earlier.started_at)).total_seconds()
        words += f" again, {_seconds(max(gap, 0.0))} later"
    if call.effect_class in ("write", "idempotent_write"):
        words += f", key {_short(call.key)}" if call.key else ", without a key"
    words += f": {_end(call)}"
    if call.duplicate:
        kind = {"unprotected": "unprotected duplicate", "protected": "repeat protected by its key"}
        words += f"; {kind.get(call.duplicate, 'repeat without effect')}"
        if call.duplicate == "unprotected":
            words += f", {_EFFECTS.get(call.effect_class, '')}".rstrip(", ")
        if call.compensated:
            words += ", undone later"
    return Line(call.started_at, words, (call.span_id,), pointed or call.duplicate == "unprotected")


def _end(call: Call) -> str:
    if not call.seen:
        return "asked for, and its end was never seen"
    seconds = (call.ended_at - call.started_at).total_seconds() if call.ended_at else None
    after = f" after {_seconds(seconds)}" if seconds is not None and seconds >= 1 else ""
    if call.outcome == "ok":
        return "done" + after if call.effect_class != "read" else "answered" + after
    why = call.error_class or (call.result if isinstance(call.result, str) else "") or ""
    if call.outcome == "refused":
        return f"refused ({_short(why)})" if why else "refused"
    if call.outcome == "unknown":
        return f"ended unknown{after}" + (f" ({_short(why)})" if why else "")
    return "no outcome"


def _seconds(value: float) -> str:
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def _short(value: Any, most: int = 40) -> str:
    text = value if isinstance(value, str) else canonical(value)
    text = " ".join(str(text).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def sentence(lines: Sequence[Line]) -> str:
    """The lines that are the fault, in one sentence with times: the short form for a list or a message."""
    told = [line for line in lines if line.fault] or list(lines[-1:])
    return ", ".join(f"{line.at:%H:%M:%S} {line.text}" for line in told[:4])
