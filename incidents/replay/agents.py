"""Scripted agents: the recorded one, one that behaves, and six that no good case may be passed by.

They stand in for a model: a case whose checks they cannot tell apart tells nothing about a real agent either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .drive import Act, Agent, Message, Start
from .world import canonical, covers

Case = Mapping[str, Any]
DONE = "Done: everything you asked for is completed."
NOT_DONE = "I could not finish this; it is not done."
HANDED = "A person will take this over; nothing more was done."


class _Tape:
    """Plays the recorded calls in order, with their waits, over all processes of the recorded run."""

    def __init__(self, case: Case) -> None:
        self._calls = list(case["observed"]["calls"])
        self._final = case["observed"].get("final")
        self._next = 0
        self._run = -1
        self._waited = False

    def start(self) -> Agent:
        self._run += 1
        return self

    def act(self, messages: Sequence[Message]) -> Act:
        if self._next >= len(self._calls):
            return Act(final=self._final)
        call = self._calls[self._next]
        if call.get("run", self._run) > self._run:
            return Act(final=self._final)
        if call.get("wait_s") and not self._waited:
            self._waited = True
            return Act(wait=call["wait_s"])
        self._next += 1
        self._waited = False
        return Act(tool=call["tool"], args=call["args"])


def recorded(case: Case) -> Start:
    """The agent that makes the recorded calls again."""
    return _Tape(case).start


class _Careful:
    """Does the recorded work once each: same key on every attempt, a look where no key helps, patience, honesty.

    It decides from the conversation alone, so a restart loses nothing it relies on.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._tools: dict[str, Mapping[str, Any]] = {tool["name"]: tool for tool in case["tools"]}
        self._checks = [c for c in case["expect"]["checks"] if c.get("level", "must") == "must"]
        self._waited_for = -1

    def act(self, messages: Sequence[Message]) -> Act:
        turns = _turns(messages)
        handed = next((c["params"] for c in self._checks if self._must_hand_over(c)), None)
        blocked = handed.get("not_effected") if handed else None
        for tool, args in self._plan():
            if tool == blocked:
                continue
            act = self._do(tool, args, turns)
            if act is not None:
                return act
            if not self._worked(tool, args, turns):
                return self._after_failure(turns, handed)
        if handed:
            return self._hand_over(turns, handed)
        return Act(final=DONE)

    def _must_hand_over(self, check: Mapping[str, Any]) -> bool:
        return check["kind"] == "escalated" and bool(check["params"].get("expected", True))

    def _plan(self) -> list[tuple[str, dict[str, Any]]]:
        """The distinct recorded calls, each in the arguments it was last made with."""
        approved = [
            (c["params"]["tool"], dict(c["params"]["when"]))
            for c in self._checks
            if c["kind"] == "effect_exists" and c["params"].get("when")
        ]
        settled = {tool for tool, _ in approved}
        escalations = {tool["name"] for tool in self._case["tools"] if tool.get("escalates")}
        plan: dict[str, tuple[str, dict[str, Any]]] = {}
        for call in self._case["observed"]["calls"]:
            tool = call["tool"]
            if call.get("repair") or tool in escalations or tool in settled or tool not in self._tools:
                continue
            intent = self._without_key(tool, call["args"])
            plan.setdefault(tool + canonical(intent), (tool, dict(intent)))
        for tool, args in approved:
            plan.setdefault(tool + canonical(args), (tool, args))
        return list(plan.values())

    def _without_key(self, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in args.items() if name != self._tools[tool].get("key_arg")}

    def _keyed(self, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
        name = self._tools[tool].get("key_arg")
        if not name or self._tools[tool].get("effect") != "write":
            return dict(args)
        return {**args, name: f"{tool}/{canonical(dict(args))}"}

    def _mine(self, tool: str, args: Mapping[str, Any], turns: Sequence[_Turn]) -> list[tuple[int, _Turn]]:
        return [(n, turn) for n, turn in enumerate(turns) if turn.tool == tool and covers(args, turn.args)]

    def _do(self, tool: str, args: dict[str, Any], turns: Sequence[_Turn]) -> Act | None:
        """The next turn for one piece of work, or None when it is done or given up."""
        mine = self._mine(tool, args, turns)
        if any(turn.error is None for _, turn in mine):
            return None
        keyed = bool(self._tools[tool].get("honours_key"))
        look = None if keyed or self._tools[tool].get("effect") != "write" else self._look(tool, args)
        if look is not None:
            since = mine[-1][0] if mine else -1
            looked = [t for n, t in self._mine(*look, turns) if n > since and t.error is None]
            if not looked:
                if len(self._mine(*look, turns)) > 8:
                    return None
                return Act(tool=look[0], args=look[1])
            if looked[-1].shows_something():
                return None
        if mine and (not mine[-1][1].may_be_tried_again() or len(mine) >= self._most(tool)):
            return None
        if mine and mine[-1][1].doubtful() and not keyed and look is None and self._writes(tool):
            return None
        if mine and self._waited_for != mine[-1][0]:
            self._waited_for = mine[-1][0]
            return Act(wait=self._first_wait(tool, mine[0][1]) * 2.0 ** (len(mine) - 1))
        return Act(tool=tool, args=self._keyed(tool, args))

    def _writes(self, tool: str) -> bool:
        return bool(self._tools[tool].get("effect") == "write")

    def _worked(self, tool: str, args: dict[str, Any], turns: Sequence[_Turn]) -> bool:
        if any(turn.error is None for _, turn in self._mine(tool, args, turns)):
            return True
        look = self._look(tool, args)
        return look is not None and any(
            t.error is None and t.shows_something() for _, t in self._mine(*look, turns)
        )

    def _look(self, tool: str, args: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
        """A read whose answer is computed from the effects of this tool."""
        for rule in self._case["world"]["rules"]:
            source = rule.get("result_from")
            if source and source["effects_of"] == tool:
                wanted = {name: args.get(name) for name in source.get("match", [])}
                return rule["tool"], {**rule.get("when", {}), **wanted}
        return None

    def _most(self, tool: str) -> int:
        limits = [
            c["params"]["max"]
            for c in self._checks
            if c["kind"] == "attempts" and c["params"].get("tool") == tool
        ]
        return int(min([*limits, 4]))

    def _first_wait(self, tool: str, first: _Turn) -> float:
        stated = [
            float(c["params"].get("first_s", 0))
            for c in self._case["expect"]["checks"]
            if c["kind"] == "growing_waits" and c["params"].get("tool") == tool
        ]
        return max([*stated, float(first.body.get("retry_after_s") or 0), 1.0])

    def _after_failure(self, turns: Sequence[_Turn], handed: Mapping[str, Any] | None) -> Act:
        for check in self._checks:
            if check["kind"] != "compensated":
                continue
            action, by = check["params"]["action"], check["params"]["by"]
            done = any(t.tool == action and t.error is None for t in turns)
            undone = [t for t in turns if t.tool == by]
            if done and not undone:
                rule: Mapping[str, Any] = next(
                    (r for r in self._case["world"]["rules"] if r["tool"] == by), {}
                )
                return Act(tool=by, args=self._keyed(by, rule.get("when", {})))
        able = [tool["name"] for tool in self._case["tools"] if tool.get("escalates")]
        refused = any(
            c["kind"] == "escalated" and not c["params"].get("expected", True) for c in self._checks
        )
        if handed or (able and not refused):
            return self._hand_over(turns, handed or {"tools": able})
        return Act(final=NOT_DONE)

    def _hand_over(self, turns: Sequence[_Turn], params: Mapping[str, Any]) -> Act:
        if any(t.tool in params["tools"] and t.error is None for t in turns):
            return Act(final=HANDED + " It is not done yet.")
        tool = params["tools"][0]
        return Act(tool=tool, args=handover_args(self._case, tool, params.get("args", {})))


class _Turn:
    """One call in the conversation with what came back."""

    def __init__(self, tool: str, args: Mapping[str, Any], content: str, error: str | None) -> None:
        self.tool, self.args, self.error = tool, args, error
        try:
            value = json.loads(content)
        except ValueError:
            value = content
        self.value = value
        inner = value.get("error", {}) if error and isinstance(value, dict) else {}
        self.body: Mapping[str, Any] = inner if isinstance(inner, dict) else {}

    def doubtful(self) -> bool:
        return self.error == "timeout"

    def may_be_tried_again(self) -> bool:
        return self.error == "timeout" or (self.error is not None and bool(self.body.get("retryable")))

    def shows_something(self) -> bool:
        return isinstance(self.value, dict) and any(self.value.values())


def _answers(messages: Sequence[Message]) -> int:
    return sum(message.get("role") == "tool" for message in messages)


def _turns(messages: Sequence[Message]) -> list[_Turn]:
    asked = {
        call["id"]: call for message in messages for call in message.get("tool_calls") or [] if "id" in call
    }
    found = []
    for message in messages:
        call = asked.get(message.get("tool_call_id"))
        if message.get("role") == "tool" and call is not None:
            found.append(_Turn(call["name"], call["arguments"], message["content"], message.get("error")))
    return found


def handover_args(case: Case, tool: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments for an escalation: what a check demands, else what was recorded, else words for what is required."""
    spec: Mapping[str, Any] = next((t for t in case["tools"] if t["name"] == tool), {})
    rule: Mapping[str, Any] = next((r for r in case["world"]["rules"] if r["tool"] == tool), {})
    schema = spec.get("parameters", {})
    filled = dict.fromkeys(schema.get("required", []), "needs a person")
    return {**filled, **rule.get("when", {}), **wanted}


def careful(case: Case) -> Start:
    """An agent that behaves. A case it cannot pass asks for the impossible."""
    return lambda: _Careful(case)


class _Says:
    def __init__(self, text: str) -> None:
        self._text = text

    def act(self, messages: Sequence[Message]) -> Act:
        return Act(final=self._text)


def _own(case: Case) -> list[Mapping[str, Any]]:
    """The recorded calls without those that undid what the fault had done: the simplest agent makes only these."""
    return [call for call in case["observed"]["calls"] if not call.get("repair")]


class _Once:
    """Makes each recorded call once, never again, whatever comes back."""

    def __init__(self, case: Case) -> None:
        calls: dict[str, Mapping[str, Any]] = {}
        for call in _own(case):
            calls.setdefault(call["tool"], call)
        self._calls = list(calls.values())

    def act(self, messages: Sequence[Message]) -> Act:
        turns = _answers(messages)
        if turns >= len(self._calls):
            return Act(final="I tried everything once; I am not sure of the outcome.")
        return Act(tool=self._calls[turns]["tool"], args=self._calls[turns]["args"])


class _Forever:
    """Makes the last recorded call again and again without a pause."""

    def __init__(self, case: Case) -> None:
        calls = _own(case)
        self._call = calls[-1] if calls else None

    def act(self, messages: Sequence[Message]) -> Act:
        if self._call is None or _answers(messages) >= 30:
            return Act(final="I gave up after thirty tries.")
        return Act(tool=self._call["tool"], args=self._call["args"])


class _HandsOver:
    """Gives everything to a person at once."""

    def __init__(self, case: Case) -> None:
        asked = [
            tool
            for check in case["expect"]["checks"]
            if check["kind"] == "escalated"
            for tool in check["params"]["tools"]
        ]
        able = [tool["name"] for tool in case["tools"] if tool.get("escalates")]
        named = asked or able
        self._tool = named[0] if named else None
        self._args = handover_args(case, self._tool, {}) if self._tool else {}
        for check in case["expect"]["checks"]:
            if check["kind"] == "escalated" and check["params"].get("expected", True):
                self._args.update(check["params"].get("args", {}))

    def act(self, messages: Sequence[Message]) -> Act:
        if self._tool is None or _answers(messages):
            return Act(final="A person will help you with this.")
        return Act(tool=self._tool, args=self._args)


TRIVIAL: dict[str, Callable[[Case], Start]] = {
    "do_nothing": lambda case: lambda: _Says(""),
    "claim_success": lambda case: (
        lambda: _Says(
            "Done, completed successfully: issued, refunded, booked, sent, paid, created, updated and on its way."
        )
    ),
    "refuse": lambda case: lambda: _Says("I cannot do this."),
    "act_once": lambda case: lambda: _Once(case),
    "retry_for_ever": lambda case: lambda: _Forever(case),
    "escalate_everything": lambda case: lambda: _HandsOver(case),
}
AGENTS: dict[str, Callable[[Case], Start]] = {"recorded": recorded, "careful": careful, **TRIVIAL}
