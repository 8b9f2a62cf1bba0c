"""Hostile and broken traces cost nobody else their tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from metrics.deriver import Deriver
from metrics.settings import MetricsSettings
from tests.metrics.bench import Bench, MemoryBench, at, bench, request, span

CALL: dict[str, Any] = {
    "gen_ai__operation__name": "execute_tool",
    "gen_ai__tool__name": "send_note",
    "gen_ai__tool__call__id": "call-of-the-poisoned",
}


def good() -> dict[str, Any]:
    answer = '[{"role":"assistant","parts":[{"type":"text","content":"done"}]}]'
    return request(
        [
            span("good", "invoke_agent clerk", 0, 5, id="root", gen_ai__operation__name="invoke_agent"),
            span(
                "good", "chat m", 1, 4, "root", gen_ai__operation__name="chat", gen_ai__request__model="m",
                gen_ai__output__messages=answer, gen_ai__usage__output_tokens=3,
            ),
        ]
    )  # fmt: skip


POISONS: dict[str, dict[str, Any]] = {
    "half_an_emoji": {**CALL, "gen_ai__tool__call__arguments": '{"note":"hi \\ud83d"}'},
    "a_set_of_sets": {**CALL, "gen_ai__tool__call__arguments": "{{}}"},
    "a_list_as_key": {**CALL, "gen_ai__tool__call__arguments": "{[1]: 2}"},
    "a_huge_literal": {**CALL, "gen_ai__tool__call__arguments": "{'a': 0x" + "f" * 5000 + "}"},
    "a_schema_as_result": {**CALL, "gen_ai__tool__call__result": '{"type":["string","null"],"content":"x"}'},
    "one_long_word": {**CALL, "gen_ai__tool__call__result": "a" * 300_000},
    "parts_that_are_none": {
        "gen_ai__operation__name": "chat", "gen_ai__request__model": "m",
        "gen_ai__output__messages": '[{"role":"assistant","parts":7,"tool_calls":3,"response_metadata":"x"}]',
    },
    "no_number_as_deadline": {"gen_ai__operation__name": "invoke_agent", "agent_slo__task__deadline_s": "NaN"},
    "the_end_of_time_as_deadline": {
        "gen_ai__operation__name": "invoke_agent", "agent_slo__task__deadline_s": 1e300,
    },
    "no_number_as_cost": {
        "gen_ai__operation__name": "chat", "gen_ai__request__model": "m", "gen_ai__usage__cost": "nan",
        "gen_ai__usage__input_tokens": -5, "gen_ai__usage__output_tokens": 9 * 10**18,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def memory() -> MemoryBench:
    return MemoryBench()


@pytest.mark.parametrize("name", sorted(POISONS))
def test_a_poisoned_trace_is_derived_as_far_as_it_goes(memory: MemoryBench, name: str) -> None:
    memory.derive_only([request([span("bad", "step", 0, 2, **POISONS[name])]), good()], at(90_000))
    assert memory.rows("SELECT * FROM core.parked_traces") == []
    assert "completed" in {row["outcome"] for row in memory.rows("SELECT outcome FROM core.tasks")}
    costs = [row["cost_usd"] for row in memory.rows("SELECT cost_usd FROM core.tasks")]
    assert all(cost is None or 0 <= cost < 1e9 for cost in costs)


def test_a_trace_that_no_file_can_take_is_set_aside_and_the_rest_goes_on(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Deriver._make

    def choking(deriver: Deriver, model: Any) -> None:
        if (
            model.name == "fields"
            and deriver._con.execute("SELECT 1 FROM touched_spans WHERE name = 'poison'").fetchall()
        ):
            raise duckdb.InvalidInputException("cannot be read")
        make(deriver, model)

    with bench(tmp_path) as one:
        one.send([request([span("bad", "poison", 0, 2, gen_ai__operation__name="invoke_agent")]), good()])
        with monkeypatch.context() as patch:
            patch.setattr(Deriver, "_make", choking)
            one.derive(at(90_000))
        assert [row["outcome"] for row in one.rows("SELECT outcome FROM core.tasks")] == ["completed"]
        (parked,) = one.rows("SELECT trace_id, error FROM core.parked_traces")
        assert "cannot be read" in parked["error"]
        assert parked["trace_id"] == span("bad", "poison", 0, 2)["traceId"]
        # mended, a rebuild tries it again
        one.deriver.rebuild(at(90_000))
        assert one.rows("SELECT * FROM core.parked_traces") == []
        assert len(one.rows("SELECT * FROM core.tasks")) == 2


def test_an_error_that_is_no_traces_fault_is_raised_and_nothing_is_parked(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(deriver: Deriver, model: Any) -> None:
        raise duckdb.IOException("no space left on device")

    with bench(tmp_path) as one:
        one.send([good()])
        with monkeypatch.context() as patch:
            patch.setattr(Deriver, "_make", full)
            with pytest.raises(duckdb.IOException, match="no space left"):
                one.derive(at(90_000))
        one.derive(at(90_000))
        assert one.rows("SELECT * FROM core.parked_traces") == []
        assert [row["outcome"] for row in one.rows("SELECT outcome FROM core.tasks")] == ["completed"]
        # a second deriver on the same instance finds the functions registered
        assert Bench(one.store, None, None, 1000).deriver.derived_seq() > 0


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ('{"isError": true, "content": "x"}', "unknown"),
        ('{"success": false, "reason": "locked"}', "unknown"),
        ('{"error": "locked"}', "unknown"),
        ('{"status": "failed"}', "unknown"),
        ('{"statusCode": 502}', "unknown"),
        ("HTTP 500 from the shop", "unknown"),
        ("Traceback (most recent call last): ...", "unknown"),
        ("ERROR: order is locked", "unknown"),
        ('{"status": "sent", "error": null}', "completed"),
        ('{"id": "n-1", "errors": []}', "completed"),
        ("sent 500 notes", "completed"),
    ],
)
def test_a_write_that_says_it_was_not_done_completes_nothing(
    memory: MemoryBench, result: str, outcome: str
) -> None:
    sent = good()
    spans = sent["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans.append(
        span("good", "execute_tool send_note", 2, 3, "root", **{**CALL, "gen_ai__tool__call__result": result},
             gen_ai__tool__call__arguments={"to": "c-1"})
    )  # fmt: skip
    memory.derive_only([sent], at(90_000))
    assert [row["outcome"] for row in memory.rows("SELECT outcome FROM core.tasks")] == [outcome]


def test_thousands_of_equal_and_of_undone_calls_are_judged_one_by_one(tmp_path: Path) -> None:
    """One agent that loops must not keep the others waiting: what repeats and what undoes is found in linear time."""
    calls, attributes = 6_000, {"gen_ai__operation__name": "execute_tool"}

    def call(tool: str, place: float, result: str, **arguments: Any) -> dict[str, Any]:
        return span(
            "t", f"execute_tool {tool}", place, place + 0.5, "root", id=f"{tool}{place}", **attributes,
            gen_ai__tool__name=tool, gen_ai__tool__call__arguments=arguments, gen_ai__tool__call__result=result,
        )  # fmt: skip

    spans = [
        span("t", "invoke_agent a", 0, 3 * calls, None, id="root", gen_ai__operation__name="invoke_agent"),
        *(call("send_letter", place, f"letter L-{place}", order="A-1") for place in range(1, calls)),
        *(call("set_status", place + 0.25, "ok", order="A-1", status="open") for place in range(1, calls)),
        *(call("create_note", place, f"note N-{place % 50}x", order="B-2") for place in range(1, calls, 2)),
        *(call("delete_note", place, "gone", note=f"N-{(place - 1) % 50}x") for place in range(2, calls, 2)),
    ]
    rules = {"send_letter": {"effect": "write"}, "set_status": {"effect": "idempotent_write"}}
    with bench(tmp_path, MetricsSettings.model_validate({"tools": rules})) as one:
        for first in range(0, len(spans), 5_000):
            one.send([request(spans[first : first + 5_000])])
        one.derive(at(10 * calls))
        (told,) = one.rows(
            "SELECT count(*) FILTER (WHERE tool = 'send_letter' AND duplicate = 'unprotected') AS letters, "
            "count(*) FILTER (WHERE tool = 'set_status' AND duplicate = 'no_op') AS states, "
            "count(*) FILTER (WHERE tool = 'create_note' AND compensated) AS undone FROM work.attempts"
        )
    assert told["letters"] == calls - 2
    assert told["undone"] == calls // 2 - 1  # nothing comes after the last one
    # another write to the order stands between every two of these, so each is new
    assert told["states"] == 0
