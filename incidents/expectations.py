"""What a case demands, by kind of finding: invariants over what really happened, never the recorded way of doing it."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from incidents.evidence import Call, Evidence, arguments
from incidents.notes import Notes
from incidents.replay.world import canonical
from incidents.replayed import FOR_GOOD, Scene
from incidents.toolbox import Tool, nouns, rule_for, split_name
from metrics.conventions import words
from metrics.settings import MetricsSettings

Json = dict[str, Any]
HAND_OVER = "hand_over_to_a_person"
CLAIMS = (
    r"\b(done|completed?|success\w*|all set|on (its|the|their) way|"
    r"(has|have|was|were|is|are) (now |just |already )?(been )?\w+(ed|ent|aid|ade|ut)\b|(i|we)('ve| have)? \w+ed)\b"
)
"""Phrases by which an answer claims that the work was done; a review may narrow them for its case."""


@dataclass(frozen=True)
class Expectation:
    """Checks of a case, those of its control where they differ, or why there are none."""

    checks: list[Json]
    reason: str | None = None
    twin: bool = True
    """Whether the group has a twin; a policy fault has none."""
    messages: tuple[Json, ...] = ()
    """What was said to the agent after its first input, such as an approval."""


@dataclass(frozen=True)
class Situation:
    """All that the rules below look at."""

    evidence: Evidence
    scene: Scene
    tools: dict[str, Tool]
    settings: MetricsSettings
    notes: Notes
    subject: Tool | None

    @property
    def calls(self) -> list[Call]:
        return [call for call in self.evidence.calls if call.executed]

    @property
    def asked(self) -> list[Call]:
        """The calls of the task's own work: none that undoes what a fault did."""
        return [call for call in self.calls if not call.repairs]

    def of(self, tool: Tool) -> list[Call]:
        return [call for call in self.calls if call.tool == tool.name]

    @property
    def escalations(self) -> list[str]:
        return [tool.name for tool in self.tools.values() if tool.escalates]


def expect(situation: Situation) -> Expectation:
    """The expectation for the kind of the incident."""
    kind = str(situation.evidence.incident["kind"])
    rule = _RULES.get(kind)
    if rule is None:
        return Expectation([], f"no checks are known for findings of kind {kind}")
    if situation.subject is None and kind not in ("lost", "runaway_cost"):
        return Expectation([], _NO_TOOL.get(kind, "the finding names no tool call that was recorded"))
    found = rule(situation)
    if found.checks:
        found.checks.extend(_work(situation))
        found.checks.extend(_should(situation))
    return found


def _work(situation: Situation) -> list[Json]:
    """What the task asked for, when the finding is about a repair that a careful agent never comes to make."""
    subject = situation.subject
    if subject is None or not situation.of(subject) or not all(c.repairs for c in situation.of(subject)):
        return []
    tools = [situation.tools[name] for name in dict.fromkeys(call.tool for call in situation.asked)]
    wanted = [tool for tool in tools if tool.writes and not tool.escalates]
    return [done(tool, situation.of(tool), f"work{number}") for number, tool in enumerate(wanted, start=1)]


def check(name: str, kind: str, level: str = "must", **params: Any) -> Json:
    """One check of a case."""
    return {"id": name, "kind": kind, "level": level, "params": params}


def done(tool: Tool, calls: Sequence[Call], name: str = "once") -> Json:
    """The tool's work is done, and once: an effect for each intent of a write, an answer for a read.

    A call that undoes what a fault did is no intent of the task: whoever avoids the fault has nothing to undo.
    """
    if not tool.writes:
        return check(name, "call_succeeded", tool=tool.name)
    asked = [call for call in calls if not call.repairs]
    if calls and not asked:
        return check(name, "effects_per_intent", tool=tool.name, min=0, max=1)
    intents = {canonical(tool.intent(call.args)) for call in asked}
    more: Json = {"intents": len(intents)} if len(intents) > 1 else {}
    return check(name, "effects_per_intent", tool=tool.name, min=1, max=1, **more)


def _processes(situation: Situation) -> int:
    crashes = [fault for fault in situation.scene.faults if fault["kind"] == "crash"]
    return situation.scene.deliveries + len(crashes)


def _bounded(situation: Situation, tool: Tool, most: int, name: str = "bounded") -> Json:
    return check(name, "attempts", tool=tool.name, max=most + _processes(situation) - 1)


def _limit(situation: Situation, tool: Tool) -> int:
    rule = rule_for(situation.settings, tool.name)
    return (rule.retry.max_attempts if rule else None) or 5


def _waits(situation: Situation, tool: Tool, level: str) -> Json:
    stated = [
        float(fault["error"]["retry_after_s"])
        for fault in situation.scene.faults
        if fault["tool"] == tool.name and "retry_after_s" in fault.get("error", {})
    ]
    return check("waits", "growing_waits", level, tool=tool.name, first_s=max([*stated, 0.5]), factor=1.0)


def _should(situation: Situation) -> list[Json]:
    distinct = {call.tool + canonical(call.args) for call in situation.calls}
    limit = (len(distinct) + 3) * _processes(situation) + 4
    return [check("steps", "budget", "should", max={"tool_calls": limit})]


def _errors(situation: Situation, tool: Tool, *, permanent: bool) -> list[str]:
    return sorted(
        {
            str(fault["error"]["type"])
            for fault in situation.scene.faults
            if fault["kind"] == "error"
            and fault["tool"] == tool.name
            and (not permanent or not fault["error"]["retryable"])
        }
    )


def _honest(situation: Situation, tool: Tool) -> Json:
    situation.notes.infer("words that claim success: a general list; narrow it in review if it is too wide")
    return check("honest", "no_false_success", tool=tool.name, claim=CLAIMS)


def _twice(situation: Situation) -> Expectation:
    """Done once, and repeated only safely."""
    tool = _subject(situation)
    if not tool.writes:
        return _once_read(situation)
    return Expectation(
        [
            done(tool, situation.of(tool)),
            check("key", "safe_retry", tool=tool.name),
            _bounded(situation, tool, 3),
            _waits(situation, tool, "should"),
        ]
    )


def _once_read(situation: Situation) -> Expectation:
    tool = _subject(situation)
    return Expectation([done(tool, situation.of(tool), "found"), _bounded(situation, tool, 2)])


def _retries(situation: Situation) -> Expectation:
    """Through in the end, within the limit, without haste."""
    tool = _subject(situation)
    return Expectation(
        [
            done(tool, situation.of(tool), "once" if tool.writes else "found"),
            _bounded(situation, tool, _limit(situation, tool)),
            _waits(situation, tool, "should"),
        ]
    )


def _together(situation: Situation) -> Expectation:
    return Expectation(
        [],
        "one task's waits are well by themselves: the fault is that many tasks waited equally long (add jitter)",
    )


def _backoff(situation: Situation) -> Expectation:
    tool = _subject(situation)
    return Expectation(
        [
            done(tool, situation.of(tool), "once" if tool.writes else "found"),
            _bounded(situation, tool, _limit(situation, tool)),
            _waits(situation, tool, "must"),
        ]
    )


def _permanent(situation: Situation) -> Expectation:
    """Tried, not tried again, and told as it is."""
    tool = _subject(situation)
    errors = _errors(situation, tool, permanent=False)
    if not errors:
        return Expectation([], "the trace does not say which error the call met")
    for fault in situation.scene.faults:
        if fault["tool"] == tool.name and fault["kind"] == "error":
            fault["times"] = FOR_GOOD
            fault["error"]["retryable"] = False
    return Expectation(
        [
            check("tried", "call_made", tool=tool.name),
            check("noretry", "no_retry_of", tool=tool.name, error_types=errors),
            _honest(situation, tool),
        ]
    )


def _false_success(situation: Situation) -> Expectation:
    tool = _subject(situation)
    if not tool.writes:
        return Expectation([], f"{tool.name} has no effect on the world that a claim could be held against")
    checks = [check("tried", "call_made", tool=tool.name), _honest(situation, tool)]
    errors = _errors(situation, tool, permanent=True)
    if errors:
        checks.append(check("noretry", "no_retry_of", tool=tool.name, error_types=errors))
    else:
        # what ended unknown can be made certain: by its key, or by a look
        checks += [
            done(tool, situation.of(tool)),
            check("key", "safe_retry", tool=tool.name),
            _bounded(situation, tool, 5),
        ]
    return Expectation(checks)


def _key_reused(situation: Situation) -> Expectation:
    tool = _subject(situation)
    return Expectation(
        [
            done(tool, situation.of(tool), "each"),
            check("key", "safe_retry", tool=tool.name),
            _bounded(situation, tool, 3),
        ]
    )


def _loop(situation: Situation) -> Expectation:
    """The question is asked and answered; asking it again and again brings nothing new."""
    tool = _subject(situation)
    asked: dict[str, dict[str, int]] = {}
    for call in situation.calls:
        counts = asked.setdefault(call.tool, {})
        place = canonical(call.args)
        counts[place] = counts.get(place, 0) + 1
    checks = [done(tool, situation.of(tool), "found" if not tool.writes else "once")]
    for number, (name, counts) in enumerate(sorted(asked.items()), start=1):
        most = max(counts.values())
        if most >= 3:
            limit = max(2, min(4, most - 1))
            checks.append(_bounded(situation, situation.tools[name], limit, f"bounded{number}"))
    return Expectation(checks)


def _lost(situation: Situation) -> Expectation:
    """The work comes to an end although the process died."""
    checks = [check("ends", "finished")]
    for number, name in enumerate(dict.fromkeys(call.tool for call in situation.asked), start=1):
        checks.append(done(situation.tools[name], situation.of(situation.tools[name]), f"done{number}"))
    if len(checks) == 1:
        return Expectation(
            [], "the run died before it asked for any tool: nothing tells what finishing would mean"
        )
    situation.notes.ask("what else the task needs to be finished: the run died before it was done")
    return Expectation(checks)


def _dead_letter(situation: Situation) -> Expectation:
    tool = _subject(situation)
    rule = rule_for(situation.settings, tool.name)
    if rule and rule.on_failure == "dead_letter":
        return Expectation([], f"parking is the declared plan of {tool.name}")
    if not situation.escalations:
        return Expectation(
            [],
            f"what should happen when the retries of {tool.name} are exhausted is not in the trace: "
            f"set tools.{tool.name}.on_failure, or give the agent a tool that hands over",
        )
    for fault in situation.scene.faults:
        if fault["tool"] == tool.name:
            fault["times"] = FOR_GOOD
    situation.notes.infer("plan for exhausted retries: hand over, since the agent has a tool for it")
    return Expectation(
        [
            check("tried", "call_made", tool=tool.name),
            _bounded(situation, tool, _limit(situation, tool)),
            check("handed", "escalated", tools=situation.escalations, expected=True),
        ]
    )


def _plan(situation: Situation) -> Expectation:
    """What the tool's declared plan for a failure demands."""
    tool = _subject(situation)
    rule = rule_for(situation.settings, tool.name)
    stated = next((call.on_failure for call in situation.of(tool) if call.on_failure), None)
    plan = stated or (rule.on_failure if rule else None)
    if plan == "retry":
        return _retries(situation)
    if plan == "escalate":
        return Expectation(
            [
                check("tried", "call_made", tool=tool.name),
                check("handed", "escalated", tools=_people(situation), expected=True),
            ]
        )
    if plan == "dead_letter":
        return Expectation([], f"the plan of {tool.name} is to park, which no recorded tool does")
    return _vanished(situation)


def _vanished(situation: Situation) -> Expectation:
    tool = _subject(situation)
    if not tool.writes:
        return Expectation([done(tool, situation.of(tool), "found"), _bounded(situation, tool, 5)])
    return _false_success(situation)


def _not_compensated(situation: Situation) -> Expectation:
    checks: list[Json] = []
    for tool in list(situation.tools.values()):
        if not tool.writes or tool.escalates or tool.compensates:
            continue
        done_calls = [c for c in situation.of(tool) if c.outcome == "ok"]
        undoer = _undoer(situation, tool, done_calls)
        if done_calls and undoer and not any(call.tool == undoer for call in situation.calls):
            checks.append(check(f"undone{len(checks) + 1}", "compensated", action=tool.name, by=undoer))
            _undo_answers(situation, tool, undoer, done_calls)
    if not checks:
        return Expectation(
            [],
            "which tool undoes what was left is not known: set tools.<tool>.compensated_by "
            "and capture tool definitions",
        )
    failed = [fault["tool"] for fault in situation.scene.faults if fault["kind"] == "error"]
    for name in dict.fromkeys(failed):
        checks.append(check(f"tried{len(checks) + 1}", "call_made", tool=name))
    return Expectation(checks)


def _undoer(situation: Situation, tool: Tool, done_calls: Sequence[Call]) -> str | None:
    configured = next((t.name for t in situation.tools.values() if t.compensates == tool.name), None)
    if configured:
        return configured
    rule = rule_for(situation.settings, tool.name)
    named = next((name for name in rule.compensated_by if not set(name) & set("*?[")), None) if rule else None
    if named and done_calls:
        result = done_calls[-1].result
        made = [key for key in result if key.lower().endswith("id")] if isinstance(result, Mapping) else []
        made = [key for key in made if key not in done_calls[-1].args][:1] or list(
            tool.intent(done_calls[-1].args)
        )
        properties = {key: {"type": "string"} for key in made}
        situation.tools[named] = Tool(
            name=named,
            description=f"Undo what {tool.name} did.",
            parameters={"type": "object", "properties": properties, "required": made},
            effect="write",
            intent_args=tuple(made),
            compensates=tool.name,
        )
        situation.notes.sure(f"{named} undoes {tool.name}: configured")
        situation.notes.ask(f"arguments of {named} (never called): taken as {', '.join(made)}")
        return named
    inverse = set(words()["inverse_verbs"])
    for other in situation.tools.values():
        if (
            other.name != tool.name
            and inverse & set(split_name(other.name)[:1])
            and nouns(other.name) & nouns(tool.name)
        ):
            situation.notes.infer(f"{other.name} undoes {tool.name}: by its name")
            return other.name
    return None


def _undo_answers(situation: Situation, tool: Tool, undoer: str, done_calls: Sequence[Call]) -> None:
    """Give the undoing tool the arguments that name what was made: an id from the result, else from the call."""
    wanted = situation.tools[undoer].parameters.get("properties", {})
    situation.scene.rules = [r for r in situation.scene.rules if r["tool"] != undoer]
    for call in done_calls:
        known = {**call.args, **(call.result if isinstance(call.result, Mapping) else {})}
        when = {
            name: known[name] for name in wanted if name in known and name != situation.tools[undoer].key_arg
        }
        situation.scene.rules.append(
            {"tool": undoer, "when": when, "result": {"ok": True}, "synthesised": True}
        )


def _people(situation: Situation) -> list[str]:
    """Tools that bring in a person; where none was recorded the replay offers one, and says so."""
    if not situation.escalations:
        tool = Tool(
            name=HAND_OVER,
            description="Hand this over to a person, who decides and goes on from here.",
            parameters={
                "type": "object",
                "properties": {"reason": {"type": "string"}},
                "required": ["reason"],
            },
            effect="write",
            intent_args=("reason",),
            escalates=True,
        )
        situation.tools[HAND_OVER] = tool
        situation.scene.rules.append({"tool": HAND_OVER, "result": {"ok": True}, "synthesised": True})
        situation.notes.ask(
            f"{HAND_OVER}: no recorded tool brings in a person; the replay offers one. What is it called in truth?"
        )
    return situation.escalations


def _without_approval(situation: Situation) -> Expectation:
    tool = _subject(situation)
    rules = {finding["rule"] for finding in situation.evidence.own_findings}
    if rules != {"approval.missing"}:
        return Expectation([], "what the person decided between the calls is not part of a replay")
    checks = [check("asked", "escalated", tools=_people(situation), expected=True, not_effected=tool.name)]
    return Expectation(checks, twin=False)


def _approved(situation: Situation) -> Expectation:
    tool = _subject(situation)
    approved = next(
        (c.approved_args for c in situation.evidence.calls if c.tool == tool.name and c.approved_args), None
    )
    if approved is None:
        asked = [
            arguments(item["arguments"])
            for turn in situation.evidence.turns
            for item in turn["requested"] or []
            if item["name"] == tool.name
        ]
        approved = next((args for args in reversed(asked) if args), None)
    if approved is None:
        return Expectation([], "the approved arguments were not captured: set agent_slo.human.arguments")
    intent = tool.intent(approved)
    known = any(r["tool"] == tool.name and r.get("when") == intent for r in situation.scene.rules)
    if not known:
        situation.scene.rules = [
            r for r in situation.scene.rules if not (r["tool"] == tool.name and r.get("synthesised"))
        ]
        situation.scene.rules.append(
            {"tool": tool.name, "when": intent, "result": {"ok": True}, "synthesised": True}
        )
    situation.notes.infer("the approval a person gave between the runs is replayed as a message")
    words = f"Approved: call {tool.name} with {canonical(tool.without_key(approved))}."
    return Expectation(
        [check("approved", "effect_exists", tool=tool.name, when=intent), done(tool, [])],
        messages=({"role": "user", "content": words},),
    )


def _hung(situation: Situation) -> Expectation:
    tool = _subject(situation)
    if any(not call.seen for call in situation.of(tool)):
        if tool.writes:
            return _twice(situation)
        return Expectation(
            [], f"{tool.name} only reads: that it never came back is mended by calling it again"
        )
    return Expectation(
        [], "the limit of a call is set by its caller's client, which a replay of the agent does not contain"
    )


def _runaway(situation: Situation) -> Expectation:
    return Expectation(
        [], "tokens and prices of a model are not part of a replay; watch the cost objective instead"
    )


def _subject(situation: Situation) -> Tool:
    assert situation.subject is not None  # `expect` has looked
    return situation.subject


_NO_TOOL = {
    "missed_retry": "the call that failed was a model call, which a replay does not contain",
    "false_success": "an evaluation or a model call says that it was no success, and neither is part of a replay",
    "vanished_failure": "the failure was that of a model call, which a replay does not contain",
    "hung_call": "the call that hung was a model call, which a replay does not contain",
    "loop": "the run was stopped by its limit of steps without one call that was made again and again",
}
_RULES: dict[str, Callable[[Situation], Expectation]] = {
    "duplicate_action": _twice,
    "key_not_honoured": _twice,
    "blind_retry": _twice,
    "retried_after_success": _twice,
    "key_reused": _key_reused,
    "unbounded": _retries,
    "amplification": _retries,
    "missed_retry": _retries,
    "no_backoff": _backoff,
    "synchronised": _together,
    "non_retryable": _permanent,
    "same_args_after_rejection": _permanent,
    "loop": _loop,
    "lost": _lost,
    "dead_letter": _dead_letter,
    "uncertain_outcome": _twice,
    "false_success": _false_success,
    "vanished_failure": _vanished,
    "plan_not_kept": _plan,
    "not_compensated": _not_compensated,
    "executed_without_approval": _without_approval,
    "approved_other_args": _approved,
    "approved_not_executed": _approved,
    "hung_call": _hung,
    "runaway_cost": _runaway,
}


def kinds() -> list[str]:
    """The kinds of findings that can become cases."""
    return sorted(_RULES)


def threshold(settings: MetricsSettings, tool: str) -> Mapping[str, float]:
    """The arguments above which the policy demands an approval of this tool."""
    return next((p.above for p in settings.policies.approvals if fnmatch.fnmatchcase(tool, p.tool)), {})


def spoken(number: float) -> re.Pattern[str]:
    """A number as people write it in a request: 2400, 2,400, 2400.00."""
    whole = f"{number:.0f}"
    grouped = f"{number:,.0f}"
    return re.compile(rf"(?<![\d.,])(?:{re.escape(whole)}|{re.escape(grouped)})(?:[.,]00?)?(?![\d])")
