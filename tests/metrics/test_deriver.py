"""The deriver as a machine: what it keeps, repeats, explains and never loses."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from metrics.deriver import Deriver
from metrics.prices import Price, cost
from tests.metrics import worlds
from tests.metrics.bench import Bench, ListPrices, at, bench, request, span

CONVERSATION = {"gen_ai__conversation__id": "talk-1"}


def chat(trace: str, start: float, parent: str | None, text: str, **more: Any) -> dict[str, Any]:
    """A model call that answers."""
    attributes: dict[str, Any] = {
        "gen_ai__operation__name": "chat",
        "gen_ai__request__model": "gpt-4o-mini",
        "gen_ai__provider__name": "openai",
        "gen_ai__usage__input_tokens": 1000,
        "gen_ai__usage__output_tokens": 100,
        "gen_ai__response__finish_reasons": ["stop"],
        "gen_ai__input__messages": [],
        "gen_ai__output__messages": [],
        **CONVERSATION,
        **more,
    }
    attributes["gen_ai__input__messages"] = (
        '[{"role":"user","parts":[{"type":"text","content":"%s"}]}]' % text  # noqa: UP031
    )
    attributes["gen_ai__output__messages"] = (
        '[{"role":"assistant","parts":[{"type":"text","content":"done"}]}]'
    )
    return span(trace, "chat m", start, start + 1, parent, **attributes)


def agent(trace: str, start: float, end: float | None, **more: Any) -> dict[str, Any]:
    """The root of a run."""
    attributes = {
        "gen_ai__operation__name": "invoke_agent",
        "gen_ai__agent__name": "clerk",
        **CONVERSATION,
        **more,
    }
    return span(trace, "invoke_agent clerk", start, end, id="root", **attributes)


def one_task(bench_: Bench) -> dict[str, Any]:
    (task,) = bench_.rows("SELECT * FROM core.tasks")
    return task


def test_a_lost_root_is_running_then_crashed_then_lost_by_the_clock_alone(tmp_path: Path) -> None:
    with bench(tmp_path) as one:
        one.send([request([chat("a", 0, "root", "hello")])])
        seen = []
        for seconds in (60, 601, 602, 3600, 3601):
            one.derive(at(seconds))
            (run,) = one.rows("SELECT verdict FROM core.runs")
            seen.append((run["verdict"], one_task(one)["outcome"]))
        assert seen == [
            ("running", "running"),
            ("crashed", "running"),
            ("crashed", "running"),
            ("crashed", "running"),
            ("crashed", "lost"),
        ]
        task = one_task(one)
        # the verdict is dated when it became due, not when somebody looked
        assert task["decided_at"] == task["deadline_at"] == at(3601)
        assert one.rows("SELECT kind FROM core.findings") == [{"kind": "lost"}]


def test_a_late_root_decides_again_and_leaves_a_revision(tmp_path: Path) -> None:
    with bench(tmp_path) as one:
        one.send([request([chat("a", 0, "root", "hello")])]).derive(at(7200))
        assert one_task(one)["outcome"] == "lost"
        one.send([request([agent("a", 0, 2)])]).derive(at(7300))
        task = one_task(one)
        assert (task["outcome"], task["revision"]) == ("completed", 0)
        revised = one.rows(
            "SELECT sli, from_verdict, to_verdict, changed_at FROM core.revisions ORDER BY sli"
        )
        assert {
            "sli": "task_completion",
            "from_verdict": "bad",
            "to_verdict": "good",
            "changed_at": at(7300),
        } in revised
        assert one.rows("SELECT kind FROM core.findings") == []


def test_a_pass_that_dies_before_core_is_simply_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench(tmp_path) as one:
        one.send([request([agent("a", 0, 2), chat("a", 0, "root", "hello")])])
        with monkeypatch.context() as patch:
            patch.setattr(Deriver, "_mark", lambda *_: (_ for _ in ()).throw(RuntimeError("the power went")))
            with pytest.raises(RuntimeError, match="the power went"):
                one.derive(at(100))
        assert one.rows("SELECT count(*) AS n FROM work.steps") == [{"n": 2}]
        assert one.rows("SELECT count(*) AS n FROM core.tasks") == [{"n": 0}]
        assert one.deriver.derived_seq() == 0
        one.derive(at(100))
        assert one.rows("SELECT count(*) AS n FROM work.steps") == [{"n": 2}]
        assert one_task(one)["outcome"] == "completed"


def test_other_columns_than_before_derive_everything_again(tmp_path: Path) -> None:
    with bench(tmp_path) as one:
        one.send([request([agent("a", 0, 2), chat("a", 0, "root", "hello")])]).derive(at(100))
        assert one.deriver.migrate() is False
        one.con.execute("UPDATE core._layout SET signature = 'of an older release'")
        one.con.execute("ALTER TABLE core.tasks DROP COLUMN rule")
        assert one.deriver.migrate() is True
        assert (one.deriver.derived_seq(), one.rows("SELECT count(*) AS n FROM core.tasks")) == (
            0,
            [{"n": 0}],
        )
        one.derive(at(100))
        assert one_task(one)["rule"] == "task.completed.clean_end"


def test_explain_runs_one_file_for_one_task_and_keeps_nothing(tmp_path: Path) -> None:
    with bench(tmp_path) as one:
        for trace, start in (("a", 0), ("b", 5000)):
            one.send([request([agent(trace, start, start + 2), chat(trace, start, "root", f"task {trace}")])])
        one.derive(at(9000))
        before = {name: one.view(name) for name in ("tasks", "steps")}
        first = one.rows("SELECT task_id FROM core.tasks ORDER BY started_at")[0]["task_id"]
        found = one.deriver.explain("run_verdicts", first, at(9000)).fetchall()
        assert len(found) == 1
        assert {name: one.view(name) for name in ("tasks", "steps")} == before
        with pytest.raises(ValueError, match=r"no SQL file is named nonsense; there are deliveries, fields"):
            one.deriver.explain("nonsense", first)


def test_cost_is_the_price_books_to_the_ninth_decimal_and_a_model_is_asked_once(tmp_path: Path) -> None:
    prices = ListPrices()
    with bench(tmp_path, prices=prices) as one:
        for trace in "abc":
            call = chat(trace, 0, "root", f"task {trace}", gen_ai__usage__cache_read__input_tokens=400)
            one.send([request([agent(trace, 0, 2), call])]).derive(at(100))
        price = prices.book.resolve("openai", "gpt-4o-mini", at(0))
        assert isinstance(price, Price)
        wanted = cost(price, 1000, 100, 400)
        assert isinstance(wanted, Decimal)
        costs = one.rows("SELECT cost_usd, cost_complete FROM core.tasks")
        assert [c["cost_usd"] for c in costs] == [pytest.approx(float(wanted), abs=1e-9)] * 3
        assert all(c["cost_complete"] for c in costs)
    assert prices.asked == [("openai", "gpt-4o-mini")]


def test_a_model_without_a_price_is_unknown_and_visible_never_free(tmp_path: Path) -> None:
    with bench(tmp_path, prices=ListPrices()) as one:
        call = chat("a", 0, "root", "hello", gen_ai__request__model="house-model-7")
        one.send([request([agent("a", 0, 2), call])]).derive(at(100))
        task = one_task(one)
        assert (task["cost_usd"], task["cost_complete"], task["input_tokens"]) == (None, False, 1000)
        assert one.rows("SELECT verdict, value FROM core.sli_events WHERE sli = 'cost'") == [
            {"verdict": "unknown", "value": None}
        ]
        assert one.rows("SELECT model, source FROM core.model_prices") == [
            {"model": "house-model-7", "source": "unpriced"}
        ]


def test_hourly_rollup_equals_the_events(tmp_path: Path) -> None:
    with bench(tmp_path, worlds.settings()) as one:
        for spans in list(worlds.spans_by_trace().values())[:30]:
            one.send(spans)
        one.derive(worlds.end() - timedelta(days=10)).derive(worlds.end())
        columns = "good, bad, unknown, excluded"
        rolled = one.rows(
            f"SELECT sli, hour, {', '.join(f'sum({c}) AS {c}' for c in columns.split(', '))} "
            "FROM core.sli_hourly GROUP BY ALL ORDER BY ALL"
        )
        counted = one.rows(
            "SELECT sli, date_trunc('hour', event_time) AS hour, "
            + ", ".join(f"count(*) FILTER (WHERE verdict = '{c}') AS {c}" for c in columns.split(", "))
            + " FROM core.sli_events GROUP BY ALL ORDER BY ALL"
        )
        assert rolled == counted
        assert len(rolled) > 30


def test_excluded_traffic_and_maintenance_are_counted_by_reason(tmp_path: Path) -> None:
    with bench(tmp_path) as one:
        test_traffic = {"deployment__environment__name": "test"}
        one.send([request([agent("a", 0, 2), chat("a", 0, "root", "hello")], **test_traffic)]).derive(at(100))
        task = one_task(one)
        assert (task["eligible"], task["excluded_reason"]) == (False, "environment:test")
        verdicts = one.rows("SELECT DISTINCT verdict, excluded_reason FROM core.sli_events")
        assert verdicts == [{"verdict": "excluded", "excluded_reason": "environment:test"}]


def test_a_parent_in_another_process_is_no_crash(tmp_path: Path) -> None:
    """An agent called by a service that sends its spans elsewhere: its own span is the root we can have."""
    called = {**agent("a", 0, 2), "parentSpanId": "00000000000000aa"}
    with bench(tmp_path / "unsaid") as one:
        one.send([request([called, chat("a", 0, "root", "hello")])]).derive(at(100_000))
        assert one_task(one)["outcome"] == "lost"
    with bench(tmp_path / "said") as one:
        one.send([request([{**called, "flags": 0x300}, chat("a", 0, "root", "hello")])]).derive(at(100_000))
        assert one_task(one)["outcome"] == "completed"


def test_a_folder_made_before_traces_had_numbers_goes_on(tmp_path: Path) -> None:
    with bench(tmp_path) as one:
        one.send([request([agent("a", 0, 2), chat("a", 0, "root", "hello")])]).derive(at(100))
        for table, columns in (("_join_keys", "key"), ("_trace_tasks", "trace_id, task_id")):
            one.con.execute(f"CREATE TABLE core.made AS SELECT {columns} FROM core.{table}")
            one.con.execute(f"DROP TABLE core.{table}")
            one.con.execute(f"ALTER TABLE core.made RENAME TO {table}")
        one.con.execute("ALTER TABLE core._join_keys ADD COLUMN trace_id VARCHAR")
        one.con.execute(
            "UPDATE core._join_keys SET trace_id = (SELECT any_value(trace_id) FROM core._trace_tasks)"
        )
        one.deriver.migrate()
        (known,) = one.rows("SELECT * FROM core._trace_tasks")
        assert known["trace"] == one.rows("SELECT DISTINCT trace FROM core._join_keys")[0]["trace"]
        one.send([request([chat("a", 1, "root", "again")])]).derive(at(200))
        assert one.rows("SELECT count(*) AS n FROM core._trace_tasks") == [{"n": 1}]
        assert one_task(one)["model_calls"] == 2
