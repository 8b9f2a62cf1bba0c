"""The world and the faults of a case: what the tools answered, and where and how a call went wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from incidents.evidence import Call, Evidence
from incidents.notes import Notes
from incidents.replay.world import canonical
from incidents.toolbox import Tool, nouns

Json = dict[str, Any]
_STATUS = re.compile(r"(?<!\d)([45]\d\d)(?!\d)")
_RETRY_AFTER = re.compile(r"retry[- _]?after\D{0,12}(\d+(?:\.\d+)?)", re.IGNORECASE)
_PASSES = re.compile(
    r"connection.?refused|econnrefused|unavailable|overloaded|too many requests|rate.?limit|throttl|try again|temporar",
    re.IGNORECASE,
)
MOST_FAULTS = 3
"""A fault that passes strikes so often at most, so that a patient agent can get through."""
FOR_GOOD = 99


@dataclass
class Scene:
    """Rules, faults, restarts and recorded calls, before any check is chosen."""

    rules: list[Json] = field(default_factory=list)
    faults: list[Json] = field(default_factory=list)
    calls: list[Json] = field(default_factory=list)
    deliveries: int = 1
    keep_tool_results: int = 0
    restarts: bool = False
    doubtful: list[str] = field(default_factory=list)
    """Ids of faults whose effect the trace does not tell."""

    def resume(self) -> Json:
        found: Json = {}
        if self.restarts:
            found["keep_tool_results"] = self.keep_tool_results
        if self.deliveries > 1:
            found["deliveries"] = self.deliveries
        return found


def error_of(call: Call) -> Json:
    """What the caller saw of a failed call: type, status, message, whether it may pass, and after how long."""
    body = call.result if isinstance(call.result, Mapping) else {}
    inner = body.get("error", body)
    inner = inner if isinstance(inner, Mapping) else {}
    text = call.message or (call.result if isinstance(call.result, str) else "") or ""
    said = f"{call.error_class or ''} {text}"
    status = inner.get("status") if isinstance(inner.get("status"), int) else None
    if status is None and (found := _STATUS.search(said)):
        status = int(found[1])
    kind = inner.get("type") or call.error_class or (str(status) if status else "error")
    error: Json = {"type": str(kind), "message": str(inner.get("message") or text or kind)}
    if status is not None:
        error["status"] = status
    passes = status in (408, 425, 429) or (status is not None and status >= 500) or bool(_PASSES.search(said))
    stated = inner.get("retryable")
    error["retryable"] = stated if isinstance(stated, bool) else passes
    wait = inner.get("retry_after_s")
    if wait is None and (found := _RETRY_AFTER.search(said)):
        wait = float(found[1])
    if isinstance(wait, (int, float)) and not isinstance(wait, bool):
        error["retry_after_s"] = wait
    return error


def stage(evidence: Evidence, tools: Mapping[str, Tool], notes: Notes) -> Scene:
    """Turn the recorded calls into rules, faults and restarts."""
    scene = Scene()
    done = [call for call in evidence.calls if call.executed]
    _answers(scene, done, tools, notes)
    _failures(scene, done, tools, notes)
    _processes(scene, evidence, done, tools, notes)
    _recorded(scene, evidence, done, tools)
    _reads_of_writes(scene, done, tools, notes)
    _never_answered(scene, done, tools, notes)
    return scene


def _when(tool: Tool, args: Mapping[str, Any]) -> Json:
    return tool.intent(args) if tool.writes else tool.without_key(args)


def _answers(scene: Scene, calls: Sequence[Call], tools: Mapping[str, Tool], notes: Notes) -> None:
    last: dict[str, Json] = {}
    for call in calls:
        if call.outcome != "ok":
            continue
        when = _when(tools[call.tool], call.args)
        place = call.tool + canonical(when)
        result = call.result
        if call.compensated is False and call.result is None:
            result = {"ok": True}
            notes.ask(f"answer of {call.tool}: not captured; the replay says ok")
        before = last.get(place)
        if before is not None and canonical(before["result"]) == canonical(result):
            before["asked"] += 1
            continue
        rule: Json = {"tool": call.tool, "when": when, "result": result, "span": call.span_id, "asked": 1}
        if before is not None:
            # another answer to the same question: the first so often as it was given, then this one
            before["times"] = before["asked"]
            notes.infer(f"answers of {call.tool} change from call to call, as recorded")
        last[place] = rule
        scene.rules.append(rule)
        notes.sure(f"answer of {call.tool}")
    for rule in scene.rules:
        rule.pop("asked", None)


def _failures(scene: Scene, calls: Sequence[Call], tools: Mapping[str, Tool], notes: Notes) -> None:
    intents: dict[str, set[str]] = {}
    for call in calls:
        intents.setdefault(call.tool, set()).add(canonical(_when(tools[call.tool], call.args)))
    seen: dict[str, int] = {}
    open_faults: dict[str, Json] = {}
    for call in calls:
        tool = tools[call.tool]
        when = _when(tool, call.args)
        place = call.tool + canonical(when)
        seen[place] = seen.get(place, 0) + 1
        if call.outcome == "ok" or call.outcome is None:
            open_faults.pop(place, None)
            continue
        fault: Json = {"tool": call.tool, "from_call": seen[place], "times": 1, "span": call.span_id}
        if len(intents[call.tool]) > 1:
            fault["when"] = when
        if not call.seen:
            notes.infer(
                f"{call.tool} was asked for and its span never came: taken as begun when the process died"
            )
            continue  # the crash says all of it
        seconds = _seconds(call.started_at, call.ended_at)
        if call.outcome == "unknown":
            fault.update(kind="timeout", effect="applied", delay_s=seconds, message=_message(call))
            if not tool.writes:
                fault["effect"] = "not_applied"
        else:
            fault.update(kind="error", effect="not_applied", error=error_of(call))
            if seconds >= 1:
                fault["delay_s"] = seconds
        before = open_faults.get(place)
        if (
            before is not None
            and before["kind"] == fault["kind"]
            and before.get("error") == fault.get("error")
        ):
            before["times"] += 1
            continue
        open_faults[place] = fault
        scene.faults.append(fault)
    for number, fault in enumerate(scene.faults, start=1):
        fault["id"] = f"f{number}"
        if fault["kind"] == "error" and not fault["error"]["retryable"]:
            fault["times"] = FOR_GOOD
            notes.infer(f"{fault['id']}: {fault['error']['type']} does not pass by itself")
        elif fault["times"] > MOST_FAULTS:
            notes.infer(
                f"{fault['id']}: struck {fault['times']} times, trimmed to {MOST_FAULTS} so that patience helps"
            )
            fault["times"] = MOST_FAULTS
        if fault["kind"] == "timeout" and tools[fault["tool"]].writes:
            scene.doubtful.append(fault["id"])
            notes.infer(
                f"effect of {fault['span']}: the trace does not tell; the incident and its twin take one each"
            )


def _seconds(start: datetime, end: datetime | None) -> float:
    return round((end - start).total_seconds(), 3) if end is not None else 0.0


def _message(call: Call) -> str:
    text = call.message or (call.result if isinstance(call.result, str) else None)
    return str(text or call.error_class or "timed out")


def _processes(
    scene: Scene, evidence: Evidence, calls: Sequence[Call], tools: Mapping[str, Tool], notes: Notes
) -> None:
    """Runs that ended in the middle become crashes, runs that ended and began anew become deliveries."""
    verdicts = {run["run_id"]: run["verdict"] for run in evidence.runs}
    acted = list(dict.fromkeys(call.run_id for call in calls))
    if any(not call.captured for call in calls):
        return  # a draft in any case: without arguments no call can be told from another
    for position, run_id in enumerate(acted[:-1]):
        if verdicts.get(run_id) == "ended":
            scene.deliveries += 1
            notes.infer("the task came again after it had ended: the replay delivers it again")
            continue
        last = [call for call in calls if call.run_id == run_id][-1]
        _crash(scene, last, calls, tools, notes)
        verdict = verdicts.get(run_id)
        if verdict == "crashed":
            notes.sure("the process died after its last recorded call")
        else:
            notes.infer(f"the first run was {verdict}: replayed as a restart after its last call")
        following = acted[position + 1]
        scene.keep_tool_results = _kept(evidence, calls, following)
    unfinished = [run for run in evidence.runs if run["verdict"] == "crashed"]
    if acted and unfinished and verdicts.get(acted[-1]) == "crashed":
        # nobody took the work up again; the replay starts a process that can
        last = [call for call in calls if call.run_id == acted[-1]][-1]
        _crash(scene, last, calls, tools, notes)
        notes.sure("the process died after its last recorded call and nobody took the work up")


def _crash(scene: Scene, last: Call, calls: Sequence[Call], tools: Mapping[str, Tool], notes: Notes) -> None:
    tool = tools[last.tool]
    when = _when(tool, last.args)
    place = [c for c in calls if c.tool == last.tool and canonical(_when(tool, c.args)) == canonical(when)]
    scene.restarts = True
    fault: Json = {
        "id": f"f{len(scene.faults) + 1}",
        "tool": last.tool,
        "when": when,
        "from_call": place.index(last) + 1,
        "times": 1,
        "kind": "crash",
        "effect": "applied" if tool.writes and last.outcome == "ok" else "not_applied",
        "span": last.span_id,
    }
    # a call both failed and was the last: the crash takes the place of the failure
    scene.faults = [
        f
        for f in scene.faults
        if not (f["tool"] == last.tool and f.get("span") == last.span_id and f["times"] == 1)
    ]
    scene.faults.append(fault)


def _kept(evidence: Evidence, calls: Sequence[Call], run_id: str) -> int:
    """Tool results a run began with: those its first model call had before it made any call itself."""
    first_call = next(call.started_at for call in calls if call.run_id == run_id)
    first = next((t for t in evidence.turns if t["run_id"] == run_id and t["role"] == "model"), None)
    if first is None or first["started_at"] > first_call:
        return 0
    return len(first["answered_ids"] or [])


def _recorded(scene: Scene, evidence: Evidence, calls: Sequence[Call], tools: Mapping[str, Tool]) -> None:
    numbers = {run: n for n, run in enumerate(dict.fromkeys(call.run_id for call in calls))}
    before: Call | None = None
    for call in calls:
        tool = tools[call.tool]
        args = dict(call.args)
        if call.key and tool.key_arg and tool.key_arg not in args:
            args[tool.key_arg] = call.key
        row: Json = {"tool": call.tool, "args": args}
        if before is not None and before.ended_at is not None:
            gap = _seconds(before.ended_at, call.started_at)
            if gap >= 0.002:
                row["wait_s"] = gap
        if numbers[call.run_id]:
            row["run"] = numbers[call.run_id]
        if call.repairs:
            row["repair"] = True
        scene.calls.append(row)
        before = call


def _reads_of_writes(scene: Scene, calls: Sequence[Call], tools: Mapping[str, Tool], notes: Notes) -> None:
    """A read that looks at what a write made is computed from the ledger: a recorded answer is wrong in one twin."""
    for read in tools.values():
        if read.writes:
            continue
        first_read = next((c.started_at for c in calls if c.tool == read.name), None)
        for write in tools.values():
            if not write.writes or write.escalates or not nouns(read.name) & nouns(write.name):
                continue
            shared = [
                name
                for name in read.parameters.get("properties", {})
                if name in write.parameters.get("properties", {}) and name != write.key_arg
            ]
            first_write = next((c.started_at for c in calls if c.tool == write.name), None)
            if not shared or first_write is None or (first_read is not None and first_read < first_write):
                continue
            shape = next((r["result"] for r in scene.rules if r["tool"] == read.name), None)
            listed = (
                next((k for k, v in shape.items() if isinstance(v, list)), None)
                if isinstance(shape, Mapping)
                else None
            )
            noun = sorted(nouns(read.name) & nouns(write.name))[0]
            scene.rules = [rule for rule in scene.rules if rule["tool"] != read.name]
            scene.rules.append(
                {
                    "tool": read.name,
                    "result_from": {"effects_of": write.name, "match": shared, "as": listed or noun + "s"},
                    "synthesised": True,
                }
            )
            notes.infer(f"answer of {read.name}: computed from the effects of {write.name}")
            break


def _never_answered(scene: Scene, calls: Sequence[Call], tools: Mapping[str, Tool], notes: Notes) -> None:
    answered = {(rule["tool"], canonical(rule.get("when", {}))) for rule in scene.rules}
    computed = {rule["tool"] for rule in scene.rules if "result_from" in rule}
    for call in calls:
        when = _when(tools[call.tool], call.args)
        if call.tool in computed or (call.tool, canonical(when)) in answered:
            continue
        answered.add((call.tool, canonical(when)))
        scene.rules.append({"tool": call.tool, "when": when, "result": {"ok": True}, "synthesised": True})
        notes.ask(f"answer of {call.tool} when it goes well (never seen)")
    for tool in tools.values():
        if not any(rule["tool"] == tool.name for rule in scene.rules):
            scene.rules.append({"tool": tool.name, "result": {"ok": True}, "synthesised": True})
            notes.ask(f"answer of {tool.name} (never called)")
