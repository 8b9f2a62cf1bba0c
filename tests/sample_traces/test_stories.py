"""What a story claims is there to be seen in its spans, by the plainest reading of each kind."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sample_traces.test_sets import WRITES, facts, spans, steps, tasks

Span = dict[str, Any]


def told(story: str) -> Iterator[tuple[str, dict[str, Any]]]:
    found = [(key, task) for key, task in tasks("company") if task["story"] == story]
    assert found, story
    return iter(found)


def tools(task: dict[str, Any], *, writes: bool = False) -> list[Span]:
    rows = steps("company", task, "execute_tool")
    return [s for s in rows if s["plain"]["gen_ai.tool.name"] in WRITES] if writes else rows


def root(trace: str) -> Span:
    (found,) = [s for s in spans("company")[trace].values() if "parentSpanId" not in s]
    return found


def arguments(span: Span) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(span["plain"]["gen_ai.tool.call.arguments"])
    return found


def start(span: Span) -> int:
    return int(span["startTimeUnixNano"])


def end(span: Span) -> int:
    return int(span["endTimeUnixNano"])


def waits(rows: list[Span]) -> list[float]:
    return [(start(b) - end(a)) / 1e9 for a, b in itertools.pairwise(rows)]


def most_retried(task: dict[str, Any]) -> list[Span]:
    chains: dict[str, list[Span]] = defaultdict(list)
    for span in tools(task, writes=True):
        chains[span["plain"]["gen_ai.tool.name"]].append(span)
    return max(chains.values(), key=len)


def test_model_repeat_uses_two_call_ids_in_one_trace_and_makes_two_things() -> None:
    for _, task in told("model_repeat"):
        first, second = most_retried(task)[:2]
        assert first["traceId"] == second["traceId"]
        assert first["plain"]["gen_ai.tool.call.id"] != second["plain"]["gen_ai.tool.call.id"]
        assert arguments(first) == arguments(second)
        assert first["plain"]["gen_ai.tool.call.result"] != second["plain"]["gen_ai.tool.call.result"]


def test_the_refund_desk_repeats_by_itself_only_in_its_bad_release() -> None:
    versions = Counter(t["app_version"] for _, t in told("model_repeat") if t["agent"] == "refund_desk")
    assert set(versions) == {"2.5.0"}
    assert versions["2.5.0"] >= 5


def test_retry_after_timeout_is_unknown_first_and_has_no_key() -> None:
    hidden = 0
    for _, task in told("retry_after_timeout"):
        first, second = most_retried(task)[:2]
        hidden += "error.type" not in first["plain"]
        text = first["plain"].get("gen_ai.tool.call.result") or first["status"]["message"]
        assert "timed out" in text
        assert not text.startswith("Error")  # that would read as refused
        assert arguments(first) == arguments(second)
        assert "agent_slo.action.idempotency_key" not in first["plain"]
    assert hidden > 0


@pytest.mark.parametrize("story", ["retry_with_key", "crash_replay_with_key", "key_not_honoured"])
def test_keyed_repeats_send_one_key(story: str) -> None:
    for _, task in told(story):
        first, second = most_retried(task)[:2]
        keys = {s["plain"]["agent_slo.action.idempotency_key"] for s in (first, second)}
        results = [s["plain"].get("gen_ai.tool.call.result") for s in (first, second)]
        assert len(keys) == 1
        assert (results[0] == results[1]) == (story == "crash_replay_with_key")


def test_key_reused_sends_one_key_for_two_orders() -> None:
    for _, task in told("key_reused"):
        rows = [s for s in tools(task) if "agent_slo.action.idempotency_key" in s["plain"]]
        assert len({s["plain"]["agent_slo.action.idempotency_key"] for s in rows}) == 1
        assert len({arguments(s)["order_id"] for s in rows}) == 2


@pytest.mark.parametrize(
    "story", ["crash_replay", "crash_inside_tool", "crash_before_write", "durable_resume"]
)
def test_crashed_runs_have_no_root_and_are_followed_by_the_same_conversation(story: str) -> None:
    for _, task in told(story):
        first, second = task["traces"]
        assert all("parentSpanId" in s for s in spans("company")[first].values())
        root(second)
        conversations = {
            s["plain"]["gen_ai.conversation.id"]
            for t in (first, second)
            for s in spans("company")[t].values()
        }
        assert conversations == {task["conversation"]}
        effects = Counter(e["tool"] for e in task["side_effects"])
        assert max(effects.values()) == (2 if story in ("crash_replay", "crash_inside_tool") else 1)


def test_crash_inside_tool_leaves_only_the_request() -> None:
    for _, task in told("crash_inside_tool"):
        assert not [s for s in tools(task, writes=True) if s["traceId"] == task["traces"][0]]
        assert len(task["side_effects"]) == task["side_effect_attempts"] + 1


@pytest.mark.parametrize(
    "story", ["approval_granted", "approval_silent", "approval_edited", "approved_other_args"]
)
def test_approvals_pause_fine_and_go_on_under_the_same_call_id(story: str) -> None:
    for _, task in told(story):
        first, second = task["traces"]
        assert root(first).get("status", {}) == {}
        assert not [s for s in tools(task, writes=True) if s["traceId"] == first]
        asked = [s for s in steps("company", task, "chat") if s["traceId"] == first][-1]
        refund = next(s for s in tools(task, writes=True) if s["traceId"] == second)
        assert refund["plain"]["gen_ai.tool.call.id"] in asked["plain"]["gen_ai.output.messages"]
        assert ("agent_slo.human.decision" in refund["plain"]) == (story != "approval_silent")
        approved = refund["plain"].get("agent_slo.human.arguments")
        if story == "approval_edited":
            assert json.loads(approved) == arguments(refund)
        if story == "approved_other_args":
            assert json.loads(approved) != arguments(refund)


def test_a_rejection_executes_nothing() -> None:
    ways = set()
    for _, task in told("approval_rejected"):
        assert "side_effects" not in task
        rows = [s for t in task["traces"] for s in spans("company")[t].values()]
        said = {s["name"] for s in rows if s["plain"].get("agent_slo.human.decision") == "rejected"}
        ways.add(tuple(sorted(said)))
    assert len(ways) == 3


def test_large_refunds_without_a_pause_are_only_those_named() -> None:
    for key, task in tasks("company"):
        large = [s for s in tools(task) if s["plain"]["gen_ai.tool.name"] == "issue_refund"]
        if any(arguments(s)["amount"] > 500 for s in large) and len(task["traces"]) == 1:
            assert task["findings"] == ["executed_without_approval"], key


def test_storm_tasks_retry_in_the_same_second() -> None:
    seconds: Counter[int] = Counter()
    for _, task in told("synchronised"):
        for retry in most_retried(task)[1:]:
            seconds[start(retry) // 10**9] += 1
    storms = facts("company")["totals"]["stories"]["synchronised"] // 8
    assert len(seconds) == 2 * storms
    assert min(seconds.values()) >= 5


def test_no_other_tasks_retry_in_the_same_second() -> None:
    seconds: dict[tuple[str, int], set[str]] = defaultdict(set)
    for key, task in tasks("company"):
        if task["story"] != "synchronised":
            for retry in tools(task, writes=True):
                seconds[retry["plain"]["gen_ai.tool.name"], start(retry) // 10**9].add(key)
    assert max(len(keys) for keys in seconds.values()) < 5


@pytest.mark.parametrize(
    "story", ["patient_retry", "unbounded", "dead_letter", "amplification", "non_retryable"]
)
def test_waits_grow_where_backing_off_is_not_the_fault(story: str) -> None:
    for key, task in told(story):
        pauses = waits(most_retried(task))
        assert all(b >= 0.8 * a for a, b in itertools.pairwise(pauses)), (key, pauses)
        assert (len(pauses) + 1 > 10) == (story == "unbounded")


def test_no_backoff_waits_shrink() -> None:
    for _, task in told("no_backoff"):
        first, second = waits(most_retried(task))[:2]
        assert second < 0.8 * first


@pytest.mark.parametrize("story", ["loop", "stuck_poll"])
def test_loops_repeat_call_and_result_and_polling_does_not(story: str) -> None:
    def most_equal(task: dict[str, Any]) -> int:
        plain = [s["plain"] for s in tools(task)]
        keys = ("gen_ai.tool.name", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result")
        return max(Counter(tuple(p.get(k) for k in keys) for p in plain).values())

    assert min(most_equal(task) for _, task in told(story)) >= 5
    for other in ("polling", "pagination", "success"):
        assert max(most_equal(task) for _, task in told(other)) < 3


def test_only_hung_calls_last_longer_than_a_minute() -> None:
    for key, task in tasks("company"):
        longest = max((end(s) - start(s) for s in tools(task)), default=0)
        assert (longest > 60e9) == (task["story"] == "hung"), key


def test_false_success_claims_it_after_a_write_that_did_not_work() -> None:
    for story in ("false_success", "false_success_after_timeout"):
        for _, task in told(story):
            assert root(task["traces"][0])["plain"]["agent_slo.task.claimed"] == "success"
            assert "side_effects" not in task
            assert task["really_done"] is False


def test_sagas_are_undone_wholly_or_not() -> None:
    for story, whole in (("saga_compensated", True), ("saga_uncompensated", False)):
        for _, task in told(story):
            made = {e["entity"] for e in task["side_effects"] if not e["tool"].startswith("cancel")}
            undone = {s["plain"].get("agent_slo.action.compensates") for s in tools(task)} - {None}
            assert undone <= made
            assert (undone == made) == whole
            assert task.get("uncompensated_effects", 0) == len(made) - len(undone)


def test_a_redelivery_has_one_input_id_and_a_dropped_one_does_nothing() -> None:
    for story in ("redelivery", "redelivery_dropped"):
        for _, task in told(story):
            first, second = map(root, task["traces"])
            assert first["plain"]["agent_slo.task.input_id"] == second["plain"]["agent_slo.task.input_id"]
            again = [s for s in tools(task, writes=True) if s["traceId"] == task["traces"][1]]
            assert bool(again) == (story == "redelivery")


def test_asking_again_is_two_tasks_in_one_conversation() -> None:
    for story in ("second_request", "second_request_with_history"):
        conversations = Counter(task["conversation"] for _, task in told(story))
        assert set(conversations.values()) == {2}


def test_seen_twice_is_one_call_with_two_spans() -> None:
    for _, task in told("seen_twice"):
        rows = most_retried(task)
        same = Counter((s["plain"]["gen_ai.tool.call.id"], start(s), end(s)) for s in rows)
        assert max(same.values()) == 2


def test_waiting_tasks_paused_shortly_before_the_end() -> None:
    for _, task in told("waiting"):
        assert root(task["traces"][0]).get("status", {}) == {}
        assert 0 < facts("company")["end_ns"] - task["ended_ns"] < 3600 * 10**9


def test_running_tasks_spoke_within_the_quiet_period() -> None:
    for _, task in told("running"):
        assert facts("company")["end_ns"] - task["ended_ns"] < 600 * 10**9


def test_the_first_light_has_the_kinds_a_first_look_needs() -> None:
    stories = {task["story"] for _, task in tasks("first_light")}
    assert stories >= {
        "success", "model_repeat", "retry_after_timeout", "retry_with_key", "crash_replay",
        "approval_granted", "approval_silent", "approval_rejected", "lost", "model_down",
    }  # fmt: skip
    lost = next(task for _, task in tasks("first_light") if task["story"] == "lost")
    names = {s["name"] for s in spans("first_light")[lost["traces"][0]].values()}
    assert "agent_slo.run.started" in names
