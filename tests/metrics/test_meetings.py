"""Runs that nothing but their words or a counting call id could join: found when one was left open, left alone else."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.metrics.bench import PUBLIC, Bench, MemoryBench, at, bench, request, span

Span = dict[str, Any]


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryBench]:
    with MemoryBench() as one:
        yield one


def run(
    trace: str, start: float, words: str = "clear the queue", call_id: str = "call_0", *, calls: bool = True
) -> tuple[Span, list[Span]]:
    """A run without a conversation: its root, and what is below it."""
    root = span(
        trace, "invoke_agent desk", start, start + 9, id="run", gen_ai__operation__name="invoke_agent",
        gen_ai__agent__name="desk",
    )  # fmt: skip
    asked = {"role": "assistant", "tool_calls": [
        {"id": call_id, "function": {"name": "refund", "arguments": '{"order": 5}'}}]}  # fmt: skip
    below = [
        span(trace, "chat m", start + 1, start + 2, "run", id="first", gen_ai__operation__name="chat",
             gen_ai__request__model="m", gen_ai__usage__output_tokens=3,
             gen_ai__input__messages={"messages": [{"role": "user", "content": words}]},
             gen_ai__output__messages={"messages": [asked]}),
    ]  # fmt: skip
    if calls:
        below += [
            span(trace, "execute_tool refund", start + 3, start + 4, "run", gen_ai__operation__name="execute_tool",
                 gen_ai__tool__name="refund", gen_ai__tool__call__id=call_id,
                 gen_ai__tool__call__arguments={"order": 5}, gen_ai__tool__call__result="ok"),
            span(trace, "chat m", start + 5, start + 6, "run", id="last", gen_ai__operation__name="chat",
                 gen_ai__request__model="m", gen_ai__usage__output_tokens=3,
                 gen_ai__output__messages={"messages": [{"role": "assistant", "content": "done"}]}),
        ]  # fmt: skip
    return root, below


def whole(trace: str, start: float, **more: Any) -> dict[str, Any]:
    root, below = run(trace, start, **more)
    return request([root, *below])


def test_a_schedule_that_says_the_same_words_costs_a_pass_no_more_each_time(tmp_path: Path) -> None:
    with bench(tmp_path) as one:
        decided = []
        for n in range(6):
            one.send([whole(f"t{n}", 60 * n)])
            decided.append(one.deriver.run(at(10_000 + n)).tasks)
        assert decided == [1] * 6
        assert len(one.rows("SELECT * FROM core.tasks")) == 6


def test_one_left_open_is_found_by_the_next_of_the_same_words(tmp_path: Path) -> None:
    with bench(tmp_path) as one:
        one.send([whole("t0", 0)]).derive(at(10_000))
        _, crashed = run("t1", 60)
        one.send([request(crashed)]).derive(at(10_001))
        one.send([whole("t2", 120)]).derive(at(10_002))
        assert sorted(row["runs"] for row in one.rows("SELECT runs FROM core.tasks")) == [1, 2]
        # its root comes late: nothing was left open, and each run stands alone again
        root, _ = run("t1", 60)
        one.send([request([root])]).derive(at(10_003))
        assert [row["runs"] for row in one.rows("SELECT runs FROM core.tasks")] == [1, 1, 1]


@pytest.mark.parametrize("call_id", ["call_0", "functions.refund:0", "refund_1", "refund-12", "0"])
def test_a_call_id_that_counts_joins_no_unrelated_runs(memory: MemoryBench, call_id: str) -> None:
    sent = [whole(f"t{n}", 100 * n, words=f"customer {n}", call_id=call_id) for n in range(3)]
    memory.derive_only(sent, at(90_000))
    assert [row["runs"] for row in memory.rows("SELECT runs FROM core.tasks")] == [1, 1, 1]
    assert memory.rows("SELECT * FROM core.findings") == []


@pytest.mark.parametrize("call_id", ["call_8Qz1bTaXo2", "toolu_01A09q90qw90", "chatcmpl-tool-9f8e7d6c5b4a"])
def test_a_call_id_of_its_own_joins_the_runs_that_show_it(memory: MemoryBench, call_id: str) -> None:
    sent = [whole(f"t{n}", 100 * n, words=f"turn {n}", call_id=call_id) for n in range(2)]
    memory.derive_only(sent, at(90_000))
    assert [row["runs"] for row in memory.rows("SELECT runs FROM core.tasks")] == [2]


@st.composite
def meeting(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Two to six runs of few words and few counting ids, some left open, as pieces in any order of arrival."""
    pieces = []
    for n in range(draw(st.integers(2, 6))):
        root, below = run(
            f"t{n}",
            draw(st.sampled_from([0, 50, 1800, 3590, 3700, 7300])) + n,
            draw(st.sampled_from(["clear the queue", "sum it up"])),
            draw(st.sampled_from(["call_0", "functions.refund:1"])),
            calls=draw(st.booleans()),
        )
        pieces.append(request(below))
        if draw(st.booleans()):
            pieces.append(request([root]))
    return draw(st.permutations(pieces))


def everything(one: Bench) -> dict[str, list[tuple[Any, ...]]]:
    return {name: one.view(name, without=("revision", "found_at")) for name in PUBLIC}


@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@pytest.mark.timeout(600)
@given(pieces=meeting())
def test_arriving_piece_by_piece_equals_arriving_at_once(pieces: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder, bench(Path(folder)) as one:
        for number, piece in enumerate(pieces):
            one.send([piece]).derive(at(50_000 + number))
        got = everything(one.derive(at(90_000)))
        one.deriver.rebuild(at(90_000))
        assert everything(one) == got


def test_an_id_that_begins_anew_with_every_answer_is_no_retry_of_the_call_before(memory: MemoryBench) -> None:
    """The second refund is the model's, not a client's that sends the same call again."""
    root, below = run("t1", 0)
    _, again = run("t1", 5.5)
    memory.derive_only([request([root, *below, *again])], at(90_000))
    assert memory.rows("SELECT kind, detail FROM core.findings") == [
        {"kind": "duplicate_action", "detail": "refund: model_repeat, effect possible"}
    ]


def test_a_call_left_open_under_an_id_that_counts_is_not_answered_by_an_earlier_one(
    memory: MemoryBench,
) -> None:
    root, below = run("t1", 0)
    _, open_again = run("t1", 5.5, calls=False)
    memory.derive_only([request([root, *below[:2], *open_again])], at(90_000))
    assert memory.rows("SELECT outcome FROM core.tasks") == [{"outcome": "waiting_human"}]


def test_a_schedule_whose_roots_never_arrive_is_not_one_task_without_end(memory: MemoryBench) -> None:
    """Crashed runs of the same words follow each other for a day: no task holds more than a quarter of it."""
    sent = [request(run(f"t{n}", 1800 * n)[1]) for n in range(48)]
    memory.derive_only(sent, at(300_000))
    tasks = memory.rows("SELECT runs, started_at, ended_at FROM core.tasks")
    assert sum(task["runs"] for task in tasks) == 48
    assert max(task["runs"] for task in tasks) <= 12
