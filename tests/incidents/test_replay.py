"""The replay core: ledger, faults, restarts, and every check both ways."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.replay import (
    AGENTS,
    CHECKS,
    TRIVIAL,
    ProcessCrash,
    Simulator,
    ToolError,
    ToolTimeout,
    judge,
    prove,
    replay_recorded,
    run_agent,
)
from incidents.replay.checks import Ending
from incidents.replay.drive import Act
from incidents.replay.plug import load_agent, play
from incidents.replay.world import canonical, covers, same

Json = dict[str, Any]


def case(**more: Any) -> Json:
    """A payment world: pay (keyed write), refund (undoes it), look (computed), read (recorded), person."""
    found: Json = {
        "case_id": "inc-0000000000000000",
        "task": {"messages": [{"role": "user", "content": "Pay 40 to Ada."}]},
        "tools": [
            {"name": "pay", "effect": "write", "intent_args": ["to", "amount"], "key_arg": "key", "honours_key": True,
             "parameters": {}, "description": ""},
            {"name": "refund", "effect": "write", "intent_args": ["id"], "parameters": {}, "description": ""},
            {"name": "look", "effect": "read", "parameters": {}, "description": ""},
            {"name": "read", "effect": "read", "parameters": {}, "description": ""},
            {"name": "set", "effect": "write", "idempotent": True, "parameters": {}, "description": ""},
            {"name": "person", "effect": "write", "escalates": True, "parameters": {}, "description": ""},
        ],
        "world": {
            "on_unmatched": "error",
            "rules": [
                {"tool": "pay", "when": {"to": "Ada"}, "result": {"id": "P-1"}, "times": 1},
                {"tool": "pay", "when": {"to": "Ada"}, "result": {"id": "P-2"}},
                {"tool": "refund", "result": {"ok": True}},
                {"tool": "look", "result_from": {"effects_of": "pay", "match": ["to"], "as": "payments"}},
                {"tool": "read", "when": {"q": 1}, "result": "one"},
                {"tool": "set", "result": "set"},
                {"tool": "person", "result": {"ticket": "T"}},
            ],
        },
        "faults": [],
        "expect": {"checks": []},
        "observed": {"calls": [], "final": "", "failed_checks": []},
        "role": "incident",
    }  # fmt: skip
    found.update(more)
    return found


PAY = {"to": "Ada", "amount": 40}


def fault(kind: str, **more: Any) -> Json:
    return {"id": "f1", "tool": "pay", "kind": kind, "from_call": 1, "times": 1, **more}


# ---- the world ----------------------------------------------------------------------------------------------------


def test_rules_answer_in_turn_and_a_read_is_computed_from_the_ledger() -> None:
    sim = Simulator(case())
    assert sim.call("look", {"to": "Ada"}) == {"payments": []}
    assert sim.call("pay", PAY) == {"id": "P-1"}
    assert sim.call("pay", PAY) == {"id": "P-2"}
    assert sim.call("look", {"to": "Ada"}) == {"payments": [{"id": "P-1"}, {"id": "P-2"}]}
    assert sim.call("look", {"to": "Bob"}) == {"payments": []}
    assert len(sim.effects) == 2


def test_a_key_that_is_honoured_makes_it_once() -> None:
    sim = Simulator(case())
    assert sim.call("pay", {**PAY, "key": "k"}) == sim.call("pay", {**PAY, "key": "k"})
    assert len(sim.effects) == 1
    ignoring = case()
    ignoring["tools"][0]["honours_key"] = False
    sim = Simulator(ignoring)
    sim.call("pay", {**PAY, "key": "k"})
    sim.call("pay", {**PAY, "key": "k"})
    assert len(sim.effects) == 2


def test_an_idempotent_write_twice_in_a_row_changes_the_world_once() -> None:
    sim = Simulator(case())
    for value in ("on", "on", "off", "on"):
        sim.call("set", {"state": value})
    assert [effect["args"]["state"] for effect in sim.effects] == ["on", "off", "on"]


@pytest.mark.parametrize(("effect", "done"), [("applied", 1), ("not_applied", 0)])
def test_a_timeout_carries_its_hidden_effect(effect: str, done: int) -> None:
    sim = Simulator(case(faults=[fault("timeout", effect=effect, delay_s=30, message="read timed out")]))
    with pytest.raises(ToolTimeout, match="read timed out"):
        sim.call("pay", PAY)
    assert len(sim.effects) == done
    assert sim.clock.now() == 30
    assert sim.calls[0]["status"] == "timeout"
    sim.call("pay", PAY)
    assert len(sim.effects) == done + 1


def test_an_error_a_crash_and_a_false_success() -> None:
    sim = Simulator(case(faults=[fault("error", error={"type": "429", "retryable": True})]))
    with pytest.raises(ToolError) as told:
        sim.call("pay", PAY)
    assert told.value.error == {"type": "429", "retryable": True}
    sim = Simulator(case(faults=[fault("crash", effect="applied")]))
    with pytest.raises(ProcessCrash):
        sim.call("pay", PAY)
    assert len(sim.effects) == 1
    assert not isinstance(ProcessCrash("x"), Exception)
    sim = Simulator(case(faults=[fault("false_success", result={"id": "never"})]))
    assert sim.call("pay", PAY) == {"id": "never"}
    assert sim.effects == []


def test_a_fault_strikes_at_its_call_with_its_arguments() -> None:
    sim = Simulator(case(faults=[fault("error", from_call=2, times=2, when={"amount": 40})]))
    sim.call("pay", {"to": "Ada", "amount": 7})
    sim.call("pay", PAY)
    for _ in range(2):
        with pytest.raises(ToolError):
            sim.call("pay", PAY)
    sim.call("pay", PAY)
    assert [call["status"] for call in sim.calls] == ["ok", "ok", "error", "error", "ok"]


def test_what_the_incident_has_no_answer_for_is_said_and_makes_a_failure_inconclusive() -> None:
    told = case(expect={"checks": [{"id": "x", "kind": "effect_exists", "params": {"tool": "pay"}}]})
    sim = Simulator(told)
    with pytest.raises(ToolError, match="replay_unmatched"):
        sim.call("pay", {"to": "Bob", "amount": 1})
    with pytest.raises(ToolError, match="no_such_tool"):
        sim.call("nonsense", {})
    verdict = judge(told, sim, Ending("done"))
    assert not verdict.passed
    assert verdict.inconclusive
    assert sim.effects == []


JSON_VALUES = st.recursive(
    st.integers(-99, 99) | st.booleans() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON_VALUES)
def test_values_are_the_same_as_themselves_and_so_is_their_text(value: Any) -> None:
    again = copy.deepcopy(value)
    assert same(value, again)
    assert canonical(value) == canonical(again)


def test_sameness_of_arguments() -> None:
    assert same(10, 10.0)
    assert same(" a ", "a")
    assert not same(True, 1)
    assert not same([1, 2], [2, 1])
    assert covers({"a": 1}, {"a": 1.0, "b": 2})
    assert not covers({"a": 1}, {"b": 1})
    assert canonical({"a": 10.0, "b": " x "}) == canonical({"b": "x", "a": 10})


@given(st.lists(st.sampled_from(["k1", "k2", ""]), max_size=12), st.booleans())
def test_effects_never_exceed_calls_and_keys_bound_them(keys: list[str], honours: bool) -> None:
    told = case()
    told["tools"][0]["honours_key"] = honours
    sim = Simulator(told)
    for key in keys:
        sim.call("pay", {**PAY, "key": key} if key else PAY)
    expected = len({k for k in keys if k}) + keys.count("") if honours else len(keys)
    assert len(sim.effects) == expected
    assert len(sim.calls) == len(keys)


# ---- the checks ---------------------------------------------------------------------------------------------------


def run(*calls: Any, faults: list[Json] | None = None) -> Simulator:
    """Make calls `(tool, args)`; a number waits."""
    sim = Simulator(case(faults=faults or []))
    for step in calls:
        if isinstance(step, (int, float)):
            sim.clock.sleep(step)
            continue
        try:
            sim.call(*step)
        except (ToolError, ToolTimeout):
            continue
        except ProcessCrash:
            sim.restarts += 1
            sim.run += 1
    return sim


KEYED = {**PAY, "key": "k"}
TIMEOUT = [fault("timeout", effect="applied")]
ERRORS = [fault("error", times=9, error={"type": "429"})]
GROWING = {"tool": "pay", "first_s": 1, "factor": 1.5}
LOOK_OR_KEY = {"tool": "pay", "before": "look", "or_same_key": True}
pay, keyed, look = ("pay", PAY), ("pay", KEYED), ("look", {"to": "Ada"})

VERDICTS: list[tuple[str, Json, Simulator, str | None, bool]] = [
    ("effects_per_intent", {"tool": "pay", "min": 1, "max": 1}, run(pay), None, True),
    ("effects_per_intent", {"tool": "pay", "min": 1, "max": 1}, run(pay, pay), None, False),
    ("effects_per_intent", {"tool": "pay", "min": 1, "max": 1}, run(), None, False),
    ("effects_per_intent", {"tool": "pay", "max": 1}, run(), None, True),
    ("effects_per_intent", {"tool": "pay", "min": 1, "max": 1, "intents": 2}, run(pay), None, False),
    ("safe_retry", {"tool": "pay"}, run(keyed, keyed, faults=TIMEOUT), None, True),
    ("safe_retry", {"tool": "pay"}, run(pay, look, pay, faults=TIMEOUT), None, True),
    ("safe_retry", {"tool": "pay"}, run(pay, ("read", {"q": 1}), pay, faults=TIMEOUT), None, False),
    ("safe_retry", {"tool": "pay"}, run(pay, pay, faults=TIMEOUT), None, False),
    ("safe_retry", {"tool": "pay"}, run(pay, pay, faults=ERRORS), None, True),
    ("safe_retry", {"tool": "pay"}, run(pay, pay), None, False),
    ("same_key", {"tool": "pay"}, run(keyed, keyed), None, True),
    ("same_key", {"tool": "pay"}, run(keyed, pay), None, False),
    ("same_key", {"tool": "pay"}, run(pay), None, True),
    ("attempts", {"tool": "pay", "max": 2}, run(keyed, keyed), None, True),
    ("attempts", {"tool": "pay", "max": 2}, run(keyed, keyed, keyed), None, False),
    ("growing_waits", GROWING, run(pay, 1, pay, 2, pay, faults=ERRORS), None, True),
    ("growing_waits", GROWING, run(pay, 1, pay, 1, pay, faults=ERRORS), None, False),
    ("growing_waits", {"tool": "pay", "first_s": 2}, run(pay, 1, pay, faults=ERRORS), None, False),
    ("growing_waits", {"tool": "pay", "first_s": 2}, run(pay, pay), None, True),
    ("no_retry_of", {"tool": "pay", "error_types": ["429"]}, run(pay, faults=ERRORS), None, True),
    ("no_retry_of", {"tool": "pay", "error_types": ["429"]}, run(pay, look, pay, faults=ERRORS), None, False),
    ("no_retry_of", {"tool": "pay", "error_types": ["401"]}, run(pay, pay, faults=ERRORS), None, True),
    ("calls_before", {"tool": "pay", "before": "look"}, run(pay, look, pay, faults=TIMEOUT), None, True),
    ("calls_before", {"tool": "pay", "before": "look"}, run(keyed, keyed, faults=TIMEOUT), None, False),
    ("calls_before", LOOK_OR_KEY, run(keyed, keyed, faults=TIMEOUT), None, True),
    ("escalated", {"tools": ["person"]}, run(("person", {"level": "L2"})), None, True),
    ("escalated", {"tools": ["person"], "args": {"level": "L1"}}, run(("person", {"level": "L2"})), None, False),
    ("escalated", {"tools": ["person"]}, run(pay), None, False),
    ("escalated", {"tools": ["person"], "expected": False}, run(pay), None, True),
    ("escalated", {"tools": ["person"], "expected": False}, run(("person", {})), None, False),
    ("escalated", {"tools": ["person"], "not_effected": "pay"}, run(("person", {}), pay), None, False),
    ("compensated", {"action": "pay", "by": "refund"}, run(pay, ("refund", {"id": 1})), None, True),
    ("compensated", {"action": "pay", "by": "refund"}, run(pay), None, False),
    ("compensated", {"action": "pay", "by": "refund"}, run(), None, False),
    ("no_false_success", {"tool": "pay", "claim": r"\bpaid\b"}, run(pay), "Paid.", True),
    ("no_false_success", {"tool": "pay", "claim": r"\bpaid\b"}, run(), "Paid.", False),
    ("no_false_success", {"tool": "pay", "claim": r"\bpaid\b"}, run(), "It was not paid.", True),
    ("no_false_success", {"tool": "pay", "claim": r"\bpaid\b"}, run(), None, True),
    ("call_succeeded", {"tool": "read"}, run(("read", {"q": 1})), None, True),
    ("call_succeeded", {"tool": "read"}, run(("read", {"q": 2})), None, False),
    ("call_made", {"tool": "read"}, run(("read", {"q": 2})), None, True),
    ("call_made", {"tool": "read"}, run(), None, False),
    ("effect_exists", {"tool": "pay", "when": {"amount": 40}}, run(pay), None, True),
    ("effect_exists", {"tool": "pay", "when": {"amount": 41}}, run(pay), None, False),
    ("budget", {"max": {"tool_calls": 2, "virtual_s": 5}}, run(pay, 4, look), None, True),
    ("budget", {"max": {"tool_calls": 1}}, run(pay, look), None, False),
    ("budget", {"max": {"tokens": 1, "cost_usd": 0.1}}, run(pay), None, True),
    ("finished", {}, run(), "here it is", True),
    ("finished", {}, run(), "  ", False),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "params", "sim", "final", "holds"), VERDICTS)
def test_a_check_tells_right_from_wrong(
    kind: str, params: Json, sim: Simulator, final: str | None, holds: bool
) -> None:
    found, why = CHECKS[kind](sim, params, Ending(final))
    assert found is holds, why
    assert why


def test_there_are_fifteen_checks_and_each_is_seen_to_hold_and_to_fail() -> None:
    assert len(CHECKS) == 15
    assert {(kind, holds) for kind, *_, holds in VERDICTS} == {(k, h) for k in CHECKS for h in (True, False)}


def test_should_checks_inform_and_must_checks_decide() -> None:
    checks = [
        {"id": "a", "kind": "call_made", "params": {"tool": "pay"}, "level": "must"},
        {"id": "b", "kind": "budget", "params": {"max": {"tool_calls": 0}}, "level": "should"},
    ]
    told = case(expect={"checks": checks})
    verdict = judge(told, run(pay), Ending("x"))
    assert verdict.passed
    assert [r["pass"] for r in verdict.results] == [True, False]
    with pytest.raises(ValueError, match="unknown check"):
        judge(case(expect={"checks": [{"id": "x", "kind": "vibes"}]}), run(), Ending())


# ---- driving ------------------------------------------------------------------------------------------------------


class Forgetful:
    """Counts what a fresh process remembers: nothing but the conversation."""

    seen: list[int]

    def __init__(self, seen: list[int]) -> None:
        self.seen = seen

    def act(self, messages: Any) -> Act:
        self.seen.append(len(messages))
        done = sum(message.get("role") == "tool" for message in messages)
        return Act(final="done") if done >= 2 else Act(tool=("read", "pay")[done], args=({"q": 1}, PAY)[done])


@pytest.mark.parametrize(("kept", "remembered"), [(0, 1), (1, 3)])
def test_a_crash_restarts_with_what_the_checkpoint_held(kept: int, remembered: int) -> None:
    told = case(faults=[fault("crash", effect="applied")], resume={"keep_tool_results": kept})
    seen: list[int] = []
    outcome = run_agent(told, lambda: Forgetful(seen))
    assert seen[2] == remembered
    assert outcome.sim.restarts == 1
    assert len(outcome.sim.effects) == 2
    assert outcome.ending.final == "done"


def test_a_task_delivered_twice_runs_twice_in_one_world() -> None:
    outcome = run_agent(case(resume={"deliveries": 2}), lambda: Forgetful([]))
    assert len(outcome.sim.effects) == 2
    assert {call["run"] for call in outcome.sim.calls} == {0, 1}


def test_an_agent_that_never_ends_is_stopped() -> None:
    class Endless:
        def act(self, messages: Any) -> Act:
            return Act(tool="read", args={"q": 1})

    outcome = run_agent(case(), Endless, max_steps=25)
    assert len(outcome.sim.calls) == 25
    assert outcome.ending.final is None


def doubled() -> Json:
    checks = [
        {"id": "once", "kind": "effects_per_intent", "params": {"tool": "pay", "min": 1, "max": 1}},
        {"id": "key", "kind": "safe_retry", "params": {"tool": "pay"}},
    ]
    calls = [{"tool": "pay", "args": PAY}, {"tool": "pay", "args": PAY, "wait_s": 0.2}]
    return case(
        faults=[fault("timeout", effect="applied", delay_s=30)],
        expect={"checks": checks},
        observed={"calls": calls, "final": "Paid.", "failed_checks": ["once", "key"]},
    )


def group() -> list[Json]:
    incident = doubled()
    twin = copy.deepcopy(incident)
    twin["faults"][0]["effect"] = "not_applied"
    control = copy.deepcopy(incident)
    control["faults"] = []
    return [incident, twin, control]


def test_the_recorded_calls_fail_what_the_incident_failed() -> None:
    outcome = replay_recorded(doubled())
    assert outcome.verdict.failed == ["once", "key"]
    assert outcome.sim.clock.now() == pytest.approx(30.2)


def test_a_good_group_is_proven_and_no_trivial_agent_passes_it() -> None:
    assert prove(group()).reasons == ()
    for name, make in TRIVIAL.items():
        assert not all(run_agent(c, make(c)).verdict.passed for c in group()), name
    assert all(run_agent(c, AGENTS["careful"](c)).verdict.passed for c in group())


def test_a_careful_agent_without_a_working_key_looks_before_it_repeats() -> None:
    for member in group():
        member["tools"][0]["honours_key"] = False
        outcome = run_agent(member, AGENTS["careful"](member))
        assert outcome.verdict.passed, outcome.verdict.results
        assert "look" in [call["tool"] for call in outcome.sim.calls]


def test_a_group_that_cannot_tell_is_a_draft_with_the_reason() -> None:
    weak = group()
    for member in weak:
        member["expect"] = {
            "checks": [{"id": "any", "kind": "attempts", "params": {"tool": "pay", "max": 99}}]
        }
    assert "the recorded calls pass every check when they are replayed" in prove(weak).reasons
    alone = prove(group()[:1]).reasons
    assert alone == ("an agent that can only act once passes the whole group",)
    impossible = group()
    impossible[2]["expect"] = {"checks": [{"id": "x", "kind": "call_made", "params": {"tool": "nothing"}}]}
    assert any("careful agent fails x" in reason for reason in prove(impossible).reasons)
    other = group()
    other[0]["observed"]["failed_checks"] = ["key"]
    assert any("and not key" in reason for reason in prove(other).reasons)
    unanswered = group()
    unanswered[0]["observed"]["calls"].append({"tool": "read", "args": {"q": 5}})
    assert any("no answer for recorded calls of read" in reason for reason in prove(unanswered).reasons)


def test_agents_are_plugged_in_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    played = play(doubled(), "careful")
    assert played["verdict"]["pass"] is True
    assert len(played["effects"]) == 1
    assert play(doubled(), "incidents.replay.agents:recorded")["verdict"]["pass"] is False
    with pytest.raises(ValueError, match="module:factory"):
        load_agent("nonsense")
