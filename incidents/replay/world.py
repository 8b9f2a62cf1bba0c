"""The simulated world of one case: tools answer by rules, writes go into a ledger, faults strike once.

Every call is a row of `calls`; only what changed the world is a row of `effects`. Whoever judges a run looks at
these two lists, never at what the agent says it did.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any, Protocol

Args = Mapping[str, Any]
Row = dict[str, Any]


class ToolTimeout(Exception):
    """The caller sees a timeout. Whether the effect took place, only the ledger knows."""


class ToolError(Exception):
    """The caller sees an error; `error` is an object with `type` and, where recorded, status, message, retryable."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(json.dumps(error, sort_keys=True, default=str))
        self.error = dict(error)


class ProcessCrash(BaseException):
    """The agent's process dies inside this call. Not an `Exception`, so that no agent can catch it by accident."""


class Clock(Protocol):
    """Seconds since the start of the replay."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class VirtualClock:
    """A clock that moves only when somebody waits: an hour of backoff costs nothing."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def now(self) -> float:
        return self._seconds

    def sleep(self, seconds: float) -> None:
        self._seconds += max(0.0, float(seconds))


class LiveClock:
    """For an agent that really waits: `scale` seconds of the replay a second, plus what a fault or a wait skipped.

    Nobody sits through the thirty seconds of a recorded timeout: they are added, not slept.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self._scale = scale
        self._began = time.monotonic()
        self._skipped = 0.0

    def now(self) -> float:
        return (time.monotonic() - self._began) * self._scale + self._skipped

    def sleep(self, seconds: float) -> None:
        self._skipped += max(0.0, float(seconds))


def same(wanted: Any, given: Any) -> bool:
    """Equal as arguments are equal: 10 is 10.0, text is trimmed, True is not 1."""
    if isinstance(wanted, bool) or isinstance(given, bool):
        return wanted is given
    if isinstance(wanted, Mapping):
        return isinstance(given, Mapping) and wanted.keys() == given.keys() and covers(wanted, given)
    if isinstance(wanted, list):
        return (
            isinstance(given, list)
            and len(wanted) == len(given)
            and all(same(one, other) for one, other in zip(wanted, given, strict=True))
        )
    if isinstance(wanted, str) and isinstance(given, str):
        return wanted.strip() == given.strip()
    return bool(wanted == given)


def covers(wanted: Args, given: Args) -> bool:
    """Whether `given` has every entry of `wanted`."""
    return all(key in given and same(value, given[key]) for key, value in wanted.items())


def canonical(value: Any) -> str:
    """One text for values that are `same`."""

    def plain(item: Any) -> Any:
        if isinstance(item, Mapping):
            return {str(key): plain(inner) for key, inner in item.items()}
        if isinstance(item, (list, tuple)):
            return [plain(inner) for inner in item]
        if isinstance(item, float) and item.is_integer():
            return int(item)
        return item.strip() if isinstance(item, str) else item

    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), default=str)


class Simulator:
    """One replay of one case.

    `calls`: every call with its arguments, status (`ok`, `timeout`, `error`, `crash`), answer or error, start and end
    (seconds of the clock), intent, key and run number. `effects`: what changed the world, in order. `unmatched`: calls
    for which the case has no answer, so that a verdict can say inconclusive instead of failed.
    """

    def __init__(self, case: Mapping[str, Any], clock: Clock | None = None) -> None:
        self.case = case
        self.clock: Clock = clock or VirtualClock()
        self.tools: dict[str, Mapping[str, Any]] = {tool["name"]: tool for tool in case["tools"]}
        self.calls: list[Row] = []
        self.effects: list[Row] = []
        self.unmatched: list[Row] = []
        self.run = 0
        """Number of the agent's process: 0, then one more after each crash and each new delivery."""
        self.restarts = 0
        self.final: str | None = None
        world = case["world"]
        self._rules: list[Row] = [{**rule, "left": rule.get("times")} for rule in world["rules"]]
        self._on_unmatched = world.get("on_unmatched", "error")
        self._faults: list[Row] = [
            {**fault, "left": fault.get("times", 1), "seen": 0} for fault in case.get("faults", [])
        ]
        self._answers: dict[tuple[str, str], Any] = {}

    # ---- what a call means ------------------------------------------------------------------------------------

    def writes(self, tool: str) -> bool:
        """Whether the tool changes the world."""
        return bool(self.tools[tool].get("effect") == "write")

    def key_of(self, tool: str, args: Args) -> str | None:
        """The idempotency key a call carries."""
        name = self.tools[tool].get("key_arg")
        value = args.get(name) if name else None
        return None if value in (None, "") else str(value)

    def intent_of(self, tool: str, args: Args) -> str:
        """What the caller wants done once: the business arguments, without key and prose."""
        spec = self.tools[tool]
        fields = spec.get("intent_args")
        if fields is None:
            fields = sorted(name for name in args if name != spec.get("key_arg"))
        chosen = {name: args.get(name) for name in fields}
        return f"{tool}:{hashlib.sha256(canonical(chosen).encode()).hexdigest()[:12]}"

    # ---- calling ----------------------------------------------------------------------------------------------

    def call(self, tool: str, args: Args) -> Any:
        """Call a tool and return its answer. Raises `ToolTimeout`, `ToolError` or `ProcessCrash`."""
        began = self.clock.now()
        row: Row = {
            "tool": tool, "args": dict(args), "t": began, "t_end": began, "status": "ok", "run": self.run,
            "intent": None, "key": None, "effect": None,
        }  # fmt: skip
        self.calls.append(row)
        if tool not in self.tools:
            row["status"] = "no_such_tool"
            raise ToolError(
                {"type": "no_such_tool", "message": f"there is no tool {tool}", "retryable": False}
            )
        row.update(
            intent=self.intent_of(tool, args),
            key=self.key_of(tool, args),
            effect=self.tools[tool].get("effect"),
        )
        fault = self._strikes(tool, args)
        if fault is not None:
            return self._fail(fault, row, tool, args)
        try:
            answer = (
                self._act(tool, args, len(self.calls) - 1) if self.writes(tool) else self._answer(tool, args)
            )
        except ToolError as error:
            row.update(status="error", error=error.error)
            raise
        self.clock.sleep(self.tools[tool].get("latency_s", 0.0))
        row.update(t_end=self.clock.now(), answer=answer)
        return answer

    def _strikes(self, tool: str, args: Args) -> Row | None:
        struck = None
        for fault in self._faults:
            if fault["tool"] != tool or not covers(fault.get("when", {}), args):
                continue
            fault["seen"] += 1
            if struck is None and fault["left"] > 0 and fault["seen"] >= fault.get("from_call", 1):
                struck = fault
        if struck is not None:
            struck["left"] -= 1
        return struck

    def _fail(self, fault: Row, row: Row, tool: str, args: Args) -> Any:
        kind = fault["kind"]
        row["fault"] = fault["id"]
        if fault.get("effect") == "applied" and self.writes(tool):
            self._act(tool, args, len(self.calls) - 1)
        self.clock.sleep(fault.get("delay_s", 0.0))
        row["t_end"] = self.clock.now()
        if kind == "timeout":
            row["status"] = "timeout"
            raise ToolTimeout(fault.get("message", "timed out"))
        if kind == "crash":
            row["status"] = "crash"
            raise ProcessCrash(fault["id"])
        if kind == "error":
            row.update(status="error", error=dict(fault.get("error", {"type": "error"})))
            raise ToolError(row["error"])
        if kind == "false_success":
            return fault.get("result")
        raise ValueError(f"fault {fault['id']!r} is of an unknown kind {kind!r}")

    def _act(self, tool: str, args: Args, call: int) -> Any:
        """Change the world, unless the key or the nature of the tool says that it is done already."""
        spec, key, intent = self.tools[tool], self.key_of(tool, args), self.intent_of(tool, args)
        if key is not None and spec.get("honours_key") and (tool, key) in self._answers:
            return self._answers[(tool, key)]
        answer = self._answer(tool, args)
        earlier = [effect for effect in self.effects if effect["tool"] == tool]
        if not (spec.get("idempotent") and earlier and earlier[-1]["intent"] == intent):
            self.effects.append(
                {"tool": tool, "args": dict(args), "intent": intent, "key": key, "t": self.clock.now(),
                 "call": call, "result": answer}
            )  # fmt: skip
        if key is not None:
            self._answers[(tool, key)] = answer
        return answer

    def _answer(self, tool: str, args: Args) -> Any:
        for rule in self._rules:
            if rule["tool"] != tool or rule["left"] == 0 or not covers(rule.get("when", {}), args):
                continue
            if rule["left"] is not None:
                rule["left"] -= 1
            if "result_from" in rule:
                return self._ledger(rule["result_from"], args)
            return rule.get("result")
        if self._on_unmatched != "error":
            return self._on_unmatched
        error = {
            "type": "replay_unmatched",
            "message": f"the recorded incident has no answer for {tool} {canonical(dict(args))}",
            "retryable": False,
        }
        self.unmatched.append({"tool": tool, "args": dict(args)})
        raise ToolError(error)

    def _ledger(self, source: Mapping[str, Any], args: Args) -> Any:
        """A read of what the writes did: right in both twins, which no recorded answer can be."""
        match = source.get("match", [])
        found = [
            effect["result"]
            for effect in self.effects
            if effect["tool"] == source["effects_of"]
            and all(same(effect["args"].get(name), args.get(name)) for name in match)
        ]
        return {source["as"]: found}
