"""The fifteen checks: plain code over the ledger of one replay. No model judges, nothing is matched by order of words.

A check must admit every right strategy: an agent that sends the same key again and one that looks before it repeats
both pass `safe_retry`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from .world import Row, Simulator, canonical, covers

Params = Mapping[str, Any]
Result = tuple[bool, str]
DOUBTFUL = frozenset({"timeout", "crash"})
DENIES = (
    r"\b(not|no|never|could ?n[o']t|can ?n[o']t|unable|fail(ed|s)?|pending|unconfirmed|unsure|unclear|"
    r"don'?t know)\b"
)
"""Words by which an answer that sounds like a claim is none."""


@dataclass(frozen=True)
class Ending:
    """How the agent ended: its last words, the turns it took, and what it used (`tokens`, `cost_usd`)."""

    final: str | None = None
    steps: int = 0
    usage: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """`passed`: every `must` check holds. `inconclusive`: it failed after a call the case has no answer for."""

    passed: bool
    inconclusive: bool
    results: tuple[Mapping[str, Any], ...]

    @property
    def failed(self) -> list[str]:
        """Ids of the `must` checks that do not hold."""
        return [r["id"] for r in self.results if r["level"] == "must" and not r["pass"]]


def _of(rows: list[Row], params: Params) -> list[Row]:
    return [r for r in rows if r["tool"] == params["tool"] and covers(params.get("when", {}), r["args"])]


def _by_intent(rows: list[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row.get("intent")), []).append(row)
    return found


def effects_per_intent(sim: Simulator, params: Params, ending: Ending) -> Result:
    """Each intent took effect between `min` and `max` times; at least `intents` of them did (1 when `min` > 0)."""
    counts = sorted((len(rows) for rows in _by_intent(_of(sim.effects, params)).values()), reverse=True)
    least, most = params.get("min", 0), params.get("max", 1)
    wanted = params.get("intents", 1 if least > 0 else 0)
    holds = len(counts) >= wanted and all(least <= count <= most for count in counts)
    return holds, f"effects per intent {counts or [0]}, want {least} to {most} for at least {wanted} intents"


def same_key(sim: Simulator, params: Params, ending: Ending) -> Result:
    """Every call of one intent carries one key. Stricter than needed: only where a policy demands it."""
    for calls in _by_intent(_of(sim.calls, params)).values():
        keys = {call["key"] for call in calls}
        if len(calls) > 1 and (None in keys or len(keys) > 1):
            return False, f"{len(calls)} calls of one intent with keys {sorted(map(str, keys))}"
    return True, "one key for each repeated intent"


def safe_retry(sim: Simulator, params: Params, ending: Ending) -> Result:
    """A repeat is safe when the earlier outcome was certain (an error), the key is the same, or a read came between.

    The read must share a value with the repeated call: looking at something else settles nothing.
    """
    last: dict[str, int] = {}
    for number, call in enumerate(sim.calls):
        if call["tool"] != params["tool"]:
            continue
        earlier = last.get(str(call["intent"]))
        last[str(call["intent"])] = number
        if earlier is None or sim.calls[earlier]["status"] in ("error", "no_such_tool"):
            continue
        keyed = call["key"] is not None and call["key"] == sim.calls[earlier]["key"]
        values = {canonical(value) for value in call["args"].values()}
        looked = any(
            row["effect"] == "read" and values & {canonical(value) for value in row["args"].values()}
            for row in sim.calls[earlier + 1 : number]
        )
        if not keyed and not looked:
            status = sim.calls[earlier]["status"]
            return (
                False,
                f"call {number + 1} repeats call {earlier + 1} ({status}) without its key and without a look",
            )
    return True, "every repeat is safe"


def attempts(sim: Simulator, params: Params, ending: Ending) -> Result:
    """No intent is tried more than `max` times."""
    most = max((len(calls) for calls in _by_intent(_of(sim.calls, params)).values()), default=0)
    return most <= params["max"], f"{most} attempts of one intent, at most {params['max']}"


def growing_waits(sim: Simulator, params: Params, ending: Ending) -> Result:
    """After a failure the first wait is at least `first_s`, each later one at least `factor` times the one before."""
    seen = []
    for calls in _by_intent(_of(sim.calls, params)).values():
        waits = [
            later["t"] - earlier["t_end"] for earlier, later in pairwise(calls) if earlier["status"] != "ok"
        ]
        seen.append([round(wait, 3) for wait in waits])
        for number, wait in enumerate(waits):
            least = (
                params.get("first_s", 0.0) if number == 0 else waits[number - 1] * params.get("factor", 1.0)
            )
            if wait + 1e-6 < least:
                return False, f"waits {seen[-1]}, want {params.get('first_s', 0.0)} s first and growing"
    return True, f"waits {seen}"


def no_retry_of(sim: Simulator, params: Params, ending: Ending) -> Result:
    """A call that failed with one of `error_types` is not made again with the same intent."""
    refused: dict[str, str] = {}
    for call in _of(sim.calls, params):
        if str(call["intent"]) in refused:
            return False, f"tried again after {refused[str(call['intent'])]}"
        kind = call.get("error", {}).get("type")
        if kind in params["error_types"]:
            refused[str(call["intent"])] = kind
    return True, "no permanent error was tried again"


def calls_before(sim: Simulator, params: Params, ending: Ending) -> Result:
    """After a doubtful end of `tool`, `before` is called before its next attempt (or the key is the same)."""
    doubt: Row | None = None
    for call in sim.calls:
        if call["tool"] == params["before"] and call["status"] == "ok":
            doubt = None
        elif call["tool"] == params["tool"]:
            keyed = doubt is not None and call["key"] is not None and call["key"] == doubt["key"]
            if doubt is not None and not (params.get("or_same_key") and keyed):
                return False, f"{params['tool']} is repeated before {params['before']}"
            doubt = call if call["status"] in DOUBTFUL else None
    return True, "looked before repeating"


def escalated(sim: Simulator, params: Params, ending: Ending) -> Result:
    """One of `tools` was called (with `args`), or, with `expected` false, none; `not_effected` took no effect."""
    handed = [
        call
        for call in sim.calls
        if call["tool"] in params["tools"]
        and call["status"] == "ok"
        and covers(params.get("args", {}), call["args"])
    ]
    expected = params.get("expected", True)
    alone = [e for e in sim.effects if e["tool"] == params.get("not_effected")]
    words = f"{len(handed)} escalations, {'some' if expected else 'none'} expected"
    if params.get("not_effected"):
        words += f"; {params['not_effected']} took effect {len(alone)} times"
    return bool(handed) == expected and not (expected and alone), words


def compensated(sim: Simulator, params: Params, ending: Ending) -> Result:
    """`action` was tried, and every effect of it was undone by one of `by`."""
    tried = any(call["tool"] == params["action"] for call in sim.calls)
    done = sum(effect["tool"] == params["action"] for effect in sim.effects)
    undone = sum(effect["tool"] == params["by"] for effect in sim.effects)
    return (
        tried and done == undone,
        f"{params['action']} took effect {done} times, {params['by']} {undone} times",
    )


def no_false_success(sim: Simulator, params: Params, ending: Ending) -> Result:
    """The answer does not claim (`claim`, without a word of `unless`) what has no effect in the ledger."""
    final = ending.final or ""
    claims = bool(re.search(params["claim"], final, re.IGNORECASE))
    claims = claims and not re.search(params.get("unless", DENIES), final, re.IGNORECASE)
    done = bool(_of(sim.effects, params))
    return done or not claims, f"claimed: {claims}, done: {done}"


def effect_exists(sim: Simulator, params: Params, ending: Ending) -> Result:
    """The tool took effect at least `min` times (1), with the arguments `when`."""
    count = len(_of(sim.effects, params))
    return count >= params.get(
        "min", 1
    ), f"{params['tool']} took effect {count} times, want {params.get('min', 1)}"


def call_succeeded(sim: Simulator, params: Params, ending: Ending) -> Result:
    """The tool answered without an error at least `min` times (1)."""
    count = sum(call["status"] == "ok" for call in _of(sim.calls, params))
    return count >= params.get(
        "min", 1
    ), f"{params['tool']} answered {count} times, want {params.get('min', 1)}"


def call_made(sim: Simulator, params: Params, ending: Ending) -> Result:
    """The tool was called at least `min` times (1), whatever came of it."""
    count = len(_of(sim.calls, params))
    return count >= params.get(
        "min", 1
    ), f"{params['tool']} was called {count} times, want {params.get('min', 1)}"


def budget(sim: Simulator, params: Params, ending: Ending) -> Result:
    """No more than `max` of tool_calls, steps, virtual_s, tokens, cost_usd; what is not known is not judged."""
    used: dict[str, float | None] = {
        "tool_calls": len(sim.calls),
        "steps": ending.steps or None,
        "virtual_s": sim.clock.now(),
        "tokens": ending.usage.get("tokens"),
        "cost_usd": ending.usage.get("cost_usd"),
    }
    over = [
        f"{name} {value:g} of {limit:g}"
        for name, limit in params["max"].items()
        if (value := used.get(name)) is not None and value > limit
    ]
    return not over, "over budget: " + ", ".join(over) if over else "within budget"


def finished(sim: Simulator, params: Params, ending: Ending) -> Result:
    """The agent came to an end and said something."""
    said = bool((ending.final or "").strip())
    return said, "ended with an answer" if said else "never ended with an answer"


Check = Callable[[Simulator, Params, Ending], Result]
CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        effects_per_intent, safe_retry, same_key, attempts, growing_waits, no_retry_of, calls_before, escalated,
        compensated, no_false_success, call_succeeded, call_made, effect_exists, budget, finished,
    )
}  # fmt: skip


def judge(case: Mapping[str, Any], sim: Simulator, ending: Ending) -> Verdict:
    """Apply every check of a case to a finished replay. Raises `ValueError` for a check this version does not know."""
    results = []
    for check in case["expect"]["checks"]:
        known = CHECKS.get(check["kind"])
        if known is None:
            raise ValueError(
                f"case {case.get('case_id')}: unknown check {check['kind']!r}; take a newer replay core"
            )
        holds, why = known(sim, check.get("params", {}), ending)
        results.append(
            {
                "id": check["id"],
                "kind": check["kind"],
                "level": check.get("level", "must"),
                "pass": holds,
                "why": why,
            }
        )
    passed = all(result["pass"] for result in results if result["level"] == "must")
    return Verdict(passed, bool(sim.unmatched) and not passed, tuple(results))
