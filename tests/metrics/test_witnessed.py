"""Calls that no span shows: what the messages around a model say of tools that send nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.bench import PUBLIC, Bench, MemoryBench, at, bench, request, span

Span = dict[str, Any]
CHAT = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "m", "gen_ai__usage__output_tokens": 3}
SEEN = "tool, outcome, duplicate, seen_by"


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryBench]:
    with MemoryBench() as one:
        yield one


def asks(*calls: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "role": "assistant",
        "tool_calls": [
            {"id": id, "function": {"name": name, "arguments": json.dumps(given)}}
            for id, name, given in calls
        ],
    }


def answers(id: str | None, text: str) -> dict[str, Any]:
    return {"role": "tool", "content": text} | ({"tool_call_id": id} if id else {})


def talk(trace: str, turns: list[dict[str, Any]], ask: str = "Refund A-1", start: float = 0) -> list[Span]:
    """An application's span around model calls, each of which is given all that was said before."""
    said: list[dict[str, Any]] = [{"role": "user", "content": ask}]
    spans = [span(trace, "handle", start, start + 60, id="app")]
    for place, turn in enumerate(turns):
        if turn["role"] == "assistant":
            spans.append(
                span(trace, "chat m", start + place + 1, start + place + 1.5, "app", id=f"chat{place}", **CHAT,
                     gen_ai__input__messages={"messages": list(said)},
                     gen_ai__output__messages={"messages": [turn]})
            )  # fmt: skip
        said.append(turn)
    return spans


REFUND = ("refund", {"order": "A-1", "amount": 5})
DONE = {"role": "assistant", "content": "Refunded."}


def seen(one: Bench | MemoryBench) -> list[tuple[Any, ...]]:
    return [
        tuple(row.values())
        for row in one.rows(f"SELECT {SEEN} FROM work.attempts ORDER BY start_ns, attempt_id")
    ]


def test_a_call_that_was_answered_was_carried_out(memory: MemoryBench) -> None:
    turns = [asks(("k1a", "get_order", {"order": "A-1"})), answers("k1a", "open"),
             asks(("k2b", *REFUND)), answers("k2b", "refund r-77 made"), DONE]  # fmt: skip
    memory.derive_only([request(talk("t1", turns))], at(90_000))
    assert seen(memory) == [("get_order", "ok", None, "messages"), ("refund", "ok", None, "messages")]
    (refund,) = memory.rows("SELECT * FROM work.attempts WHERE tool = 'refund'")
    (asked,) = memory.rows(
        "SELECT span_id FROM work.steps WHERE is_model_call ORDER BY start_ns LIMIT 1 OFFSET 1"
    )
    # after the model asked, before it was told: the evidence is the span that asked
    assert refund["evidence"] == [asked["span_id"]]
    assert refund["span_id"] == asked["span_id"] + ".1"
    assert (refund["started_at"], refund["ended_at"]) == (at(3.5), at(5))
    assert (refund["arguments"], refund["result"]) == ('{"amount":5,"order":"A-1"}', "refund r-77 made")
    assert [row["outcome"] for row in memory.rows("SELECT outcome FROM core.tasks")] == ["completed"]
    # what lies between two model calls is no measure of the tool
    assert memory.rows("SELECT * FROM core.baselines WHERE series LIKE 'tool:%'") == []


@pytest.mark.parametrize("ids", [("k1a", "k2b"), ("call_0", "call_0"), (None, None)])
def test_twice_asked_and_twice_answered_is_a_duplicate(
    memory: MemoryBench, ids: tuple[str | None, str | None]
) -> None:
    """Also where ids only count, or an exporter leaves them off the answers."""
    first, second = ids
    turns = [asks((first or "k1a", *REFUND)), answers(first, "refund made"),
             asks((second or "k2b", *REFUND)), answers(second, "refund made"), DONE]  # fmt: skip
    memory.derive_only([request(talk("t1", turns))], at(90_000))
    assert seen(memory) == [("refund", "ok", None, "messages"), ("refund", "ok", "unprotected", "messages")]
    (finding,) = memory.rows("SELECT kind, evidence FROM core.findings")
    spans = {row["span_id"] for row in memory.rows("SELECT span_id FROM work.steps")}
    assert finding["kind"] == "duplicate_action"
    assert set(finding["evidence"]) <= spans


def test_what_an_answer_says_decides_how_the_call_ended(memory: MemoryBench) -> None:
    turns = [asks(("k1a", *REFUND)), answers("k1a", "Error: order is locked"),
             asks(("k2b", *REFUND)), answers("k2b", "timed out after 30 s"),
             asks(("k3c", *REFUND)), answers("k3c", "refund made"), DONE]  # fmt: skip
    memory.derive_only([request(talk("t1", turns))], at(90_000))
    assert [row[:3] for row in seen(memory)] == [
        ("refund", "refused", None),
        ("refund", "unknown", None),
        ("refund", "ok", "unprotected"),
    ]
    (repeat,) = memory.rows("SELECT cause FROM work.attempts WHERE duplicate IS NOT NULL")
    assert repeat["cause"] == "retry_after_timeout"


def test_calls_asked_for_together_are_each_seen_once(memory: MemoryBench) -> None:
    turns = [asks(("k1a", *REFUND), ("k2b", "send_mail", {"to": "a"}), ("k3c", "send_mail", {"to": "b"})),
             answers("k1a", "made"), answers("k2b", "sent"), answers("k3c", "sent"), DONE]  # fmt: skip
    memory.derive_only([request(talk("t1", turns))], at(90_000))
    assert [row[0] for row in seen(memory)] == ["refund", "send_mail", "send_mail"]
    (task,) = memory.rows("SELECT tool_calls, telemetry_duplicates FROM core.tasks")
    assert (task["tool_calls"], task["telemetry_duplicates"]) == (3, 0)


def test_a_call_without_an_answer_is_no_attempt(memory: MemoryBench) -> None:
    memory.derive_only([request(talk("t1", [asks(("k1a", *REFUND))]))], at(90_000))
    assert seen(memory) == []
    assert [row["outcome"] for row in memory.rows("SELECT outcome FROM core.tasks")] != ["completed"]


def test_what_a_history_tells_of_earlier_work_is_not_done_again(memory: MemoryBench) -> None:
    """A chat sends its whole past with every turn, also the calls of earlier tasks."""
    past = [asks(("k1a", *REFUND)), answers("k1a", "made"), DONE]
    first = talk("t1", past)
    said = [{"role": "user", "content": "Refund A-1"}, *past, {"role": "user", "content": "Thanks, and A-2?"}]
    second = [
        span("t2", "handle", 100, 160, id="app"),
        span("t2", "chat m", 101, 102, "app", **CHAT, gen_ai__input__messages={"messages": said},
             gen_ai__output__messages={"messages": [asks(("k2b", "refund", {"order": "A-2"}))]}),
        span("t2", "chat m", 103, 104, "app", id="last", **CHAT, gen_ai__input__messages={"messages": [
                *said, asks(("k2b", "refund", {"order": "A-2"})), answers("k2b", "made")]},
             gen_ai__output__messages={"messages": [DONE]}),
    ]  # fmt: skip
    memory.derive_only([request(first), request(second)], at(90_000))
    assert memory.rows("SELECT arguments FROM work.attempts ORDER BY start_ns") == [
        {"arguments": '{"amount":5,"order":"A-1"}'},
        {"arguments": '{"order":"A-2"}'},
    ]
    assert memory.rows("SELECT * FROM core.findings") == []


def test_a_span_of_a_tool_ends_the_witness_of_messages(tmp_path: Path) -> None:
    """Where some tools send spans, one that sends none may as well not have run; the span may come last."""
    turns = [asks(("k1a", *REFUND)), answers("k1a", "made"), DONE]
    tool = span("t1", "execute_tool refund", 2, 2.2, "app", gen_ai__operation__name="execute_tool",
                gen_ai__tool__name="refund", gen_ai__tool__call__id="k1a", gen_ai__tool__call__result="made",
                gen_ai__tool__call__arguments={"order": "A-1", "amount": 5})  # fmt: skip
    with bench(tmp_path / "late") as late, bench(tmp_path / "whole") as whole:
        late.send([request(talk("t1", turns))]).derive(at(90_000))
        assert seen(late) == [("refund", "ok", None, "messages")]
        late.send([request([tool])]).derive(at(90_000))
        assert seen(late) == [("refund", "ok", None, "span")]
        whole.send([request([*talk("t1", turns), tool])]).derive(at(90_000))
        for name in PUBLIC:
            unlike = ("revision", "found_at")
            assert late.view(name, without=unlike) == whole.view(name, without=unlike), name


def test_an_escalation_that_only_messages_show_is_an_intervention(memory: MemoryBench) -> None:
    turns = [asks(("k1a", "transfer_to_human", {"why": "angry"})), answers("k1a", "queued"), DONE]
    memory.derive_only([request(talk("t1", turns))], at(90_000))
    (moment,) = memory.rows("SELECT kind, evidence FROM core.interventions")
    spans = {row["span_id"] for row in memory.rows("SELECT span_id FROM work.steps")}
    assert moment["kind"] == "escalation"
    assert set(moment["evidence"]) <= spans


def test_an_agent_whose_output_is_its_whole_conversation_shows_its_calls(memory: MemoryBench) -> None:
    """Also as Python prints it, with objects of classes nobody here knows."""
    output = (
        "[TaskOutput(description='x', raw='Refunded.', output_format=<OutputFormat.RAW: 'raw'>, "
        "agent=<desk.Agent object at 0x7f2a>, messages=[{'role': 'user', 'content': \"Refund A-1, it's broken\"}, "
        "{'role': 'assistant', 'content': '', 'tool_calls': [{'id': 'call_1', 'type': 'function', "
        "'function': {'name': 'refund', 'arguments': '{\"order\": 1}'}}]}, "
        "{'role': 'tool', 'content': 'made', 'tool_call_id': 'call_1'}, "
        "{'role': 'assistant', 'content': 'Refunded.'}])]"
    )
    root = span("t1", "invoke_agent desk", 0, 9, gen_ai__operation__name="invoke_agent", gen_ai__agent__name="desk",
                gen_ai__output__messages=output)  # fmt: skip
    memory.derive_only([request([root])], at(90_000))
    assert seen(memory) == [("refund", "ok", None, "messages")]
    (task,) = memory.rows("SELECT outcome FROM core.tasks")
    (step,) = memory.rows("SELECT user_text, output_text FROM work.steps")
    assert (task["outcome"], step) == (
        "completed",
        {"user_text": "Refund A-1, it's broken", "output_text": "Refunded."},
    )


@pytest.mark.parametrize("missing", [{}, {"id": None}])
def test_calls_without_any_id_are_answered_in_their_order(
    memory: MemoryBench, missing: dict[str, Any]
) -> None:
    def call() -> dict[str, Any]:
        function = {"name": "refund", "arguments": '{"order": "A-1"}'}
        return {"role": "assistant", "tool_calls": [{**missing, "function": function}]}

    turns = [call(), answers(None, "made"), call(), answers(None, "made"), DONE]
    memory.derive_only([request(talk("t1", turns))], at(90_000))
    assert [row[2] for row in seen(memory)] == [None, "unprotected"]


def test_a_client_whose_every_call_is_a_trace_of_its_own_is_one_task(memory: MemoryBench) -> None:
    """Nothing around the calls: what one asked for, the next was told."""
    turns = [
        asks(("k1a", *REFUND)),
        answers("k1a", "made"),
        asks(("k2b", *REFUND)),
        answers("k2b", "made"),
        DONE,
    ]
    calls = [one for one in talk("t1", turns) if one["name"] == "chat m"]
    sent = []
    for number, one in enumerate(calls):
        sent.append(request([{**one, "traceId": f"{number + 1:032x}", "parentSpanId": ""}]))
    memory.derive_only(sent, at(90_000))
    assert memory.rows("SELECT outcome, runs FROM core.tasks") == [{"outcome": "completed", "runs": 3}]
    assert [row[2] for row in seen(memory)] == [None, "unprotected"]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Error: order is locked", "refused"),
        ("Error: Request timed out after 30s", "unknown"),
        ("Error executing tool: ReadTimeout", "unknown"),
        ('{"error":"timeout"}', "unknown"),
        ("Error: 504 Gateway Timeout", "unknown"),
        ("Error: Connection reset by peer", "unknown"),
        ("Error: connection refused", "refused"),
        ('{"error":"no such order"}', "refused"),
    ],
)
def test_an_answer_that_begins_like_an_error_may_tell_of_a_timeout(
    memory: MemoryBench, text: str, outcome: str
) -> None:
    turns = [
        asks(("k1a", *REFUND)),
        answers("k1a", text),
        asks(("k2b", *REFUND)),
        answers("k2b", "made"),
        DONE,
    ]
    memory.derive_only([request(talk("t1", turns))], at(90_000))
    repeated = "unprotected" if outcome == "unknown" else None
    assert [row[1:3] for row in seen(memory)] == [(outcome, None), ("ok", repeated)]
