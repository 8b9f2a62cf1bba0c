"""Where a task's time goes, and percentiles out of hourly sketches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from metrics.manifest import pass_sql
from tests.metrics.bench import Bench, at, bench, request, span

Span = dict[str, Any]
LATER = at(86_400)


def root(end: float = 20, trace: str = "a", start: float = 0) -> Span:
    attributes = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "clerk"}
    return span(trace, "invoke_agent clerk", start, end, id="root", **attributes)


def model(start: float, end: float, parent: str = "root", trace: str = "a", **more: Any) -> Span:
    attributes = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "m", **more}
    return span(trace, "chat m", start, end, parent, gen_ai__response__finish_reasons=["stop"], **attributes)


def tool(start: float, end: float, name: str = "get_order", parent: str = "root", **more: Any) -> Span:
    attributes = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": name, **more}
    return span("a", f"execute_tool {name}", start, end, parent, **attributes)


def times(folder: Path, *spans: Span) -> dict[str, Any]:
    with bench(folder) as one:
        one.send([request(spans)]).derive(LATER)
        (row,) = one.rows("SELECT wall_s, human_wait_s, model_s, tool_s, own_s FROM core.task_times")
        (task,) = one.rows("SELECT wall_s, human_wait_s, active_s FROM core.tasks")
    assert (row["wall_s"], row["human_wait_s"]) == (task["wall_s"], task["human_wait_s"])
    if row["wall_s"] is not None:
        assert task["active_s"] == pytest.approx(row["wall_s"] - row["human_wait_s"], abs=1e-9)
    return row


def parts(wall: float | None, human: float, model: float, tool: float, own: float | None) -> dict[str, Any]:
    return {"wall_s": wall, "human_wait_s": human, "model_s": model, "tool_s": tool, "own_s": own}


def test_one_after_the_other(tmp_path: Path) -> None:
    assert times(tmp_path, root(), model(1, 4), tool(4, 9), model(10, 12)) == parts(20, 0, 5, 5, 10)


def test_calls_side_by_side_are_their_union(tmp_path: Path) -> None:
    """Three tools of five seconds at once are five seconds of tool time, not fifteen."""
    spans = [
        root(),
        model(1, 4),
        tool(4, 9),
        tool(4, 9, "get_customer"),
        tool(6, 9, "get_stock"),
        model(9, 11),
    ]
    assert times(tmp_path, *spans) == parts(20, 0, 5, 5, 10)


def test_a_model_call_beside_a_tool_is_model_time(tmp_path: Path) -> None:
    assert times(tmp_path, root(), model(1, 5), tool(3, 8)) == parts(20, 0, 4, 3, 13)


def test_an_agent_called_as_a_tool_is_told_by_its_calls(tmp_path: Path) -> None:
    inner = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "expert"}
    outer = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "ask_expert"}
    spans = [
        root(),
        span("a", "execute_tool ask_expert", 2, 12, "root", id="tool", **outer),
        span("a", "invoke_agent expert", 2, 12, "tool", id="expert", **inner),
        model(3, 7, "expert"),
        model(8, 11, "expert"),
    ]
    assert times(tmp_path, *spans) == parts(20, 0, 7, 3, 10)


def test_a_person_s_time_within_a_tool_is_no_tool_time(tmp_path: Path) -> None:
    """briancaffey/hermes-otel PR 44: the wait for an approval dominates wall time unless it is taken out."""
    asked = tool(2, 18, "transfer_to_human", agent_slo__human__decision="answered")
    assert times(tmp_path, root(), model(0.5, 1.5), asked, model(18, 19)) == parts(20, 16, 2, 0, 2)


def test_two_questions_at_once_are_one_wait(tmp_path: Path) -> None:
    first = tool(
        2, 12, "ask_human", agent_slo__human__decision="answered", gen_ai__tool__call__arguments='{"q":1}'
    )
    second = tool(
        4, 15, "ask_human", agent_slo__human__decision="answered", gen_ai__tool__call__arguments='{"q":2}'
    )
    assert times(tmp_path, root(), first, second) == parts(20, 13, 0, 0, 7)


def test_an_open_task_has_no_own_time_yet(tmp_path: Path) -> None:
    assert times(tmp_path, model(1, 4), tool(4, 9)) == parts(None, 0, 3, 5, None)


def test_what_reaches_beyond_the_task_is_cut_off(tmp_path: Path) -> None:
    """A stream that is closed after its root has ended."""
    assert times(tmp_path, root(10), model(8, 14)) == parts(10, 0, 2, 0, 8)


def test_the_parts_of_every_sample_task_sum_to_its_wall_time(derived_company: Bench) -> None:
    (row,) = derived_company.rows(
        """
        SELECT
          count(*) AS n,
          max(abs(x.wall_s - (x.human_wait_s + x.model_s + x.tool_s + x.own_s))) AS off,
          min(least(x.human_wait_s, x.model_s, x.tool_s, x.own_s)) AS least,
          count(*) FILTER (WHERE t.human_wait_s IS DISTINCT FROM x.human_wait_s) AS other_waits
        FROM core.task_times x JOIN core.tasks t USING (task_id)
        WHERE t.ended_at IS NOT NULL
        """
    )
    assert row["n"] > 2_500
    assert row["off"] < 1e-6
    assert row["least"] >= 0
    assert row["other_waits"] == 0


def test_percentiles_of_the_samples_are_within_two_percent(derived_company: Bench) -> None:
    exact = derived_company.rows(
        """
        SELECT e.sli, e.agent, e.task_type, w.days, count(*) AS n,
          quantile_cont(e.value, 0.5) AS p50, quantile_cont(e.value, 0.9) AS p90, quantile_cont(e.value, 0.99) AS p99
        FROM core.sli_events e, core.pipeline p, (SELECT unnest([1, 7, 30]) AS days) w
        WHERE e.sli IN ('latency', 'active_latency', 'cost') AND e.verdict IN ('good', 'bad') AND e.value IS NOT NULL
          AND date_trunc('hour', e.event_time) > p.as_of - to_days(w.days)
        GROUP BY ALL
        """
    )
    got = {
        (r["sli"], r["agent"], r["task_type"], r["days"]): r
        for r in derived_company.rows("SELECT * FROM core.latency_percentiles")
    }
    assert len(exact) > 20
    assert len(got) == len(exact)
    for wanted in exact:
        found = got[wanted["sli"], wanted["agent"], wanted["task_type"], wanted["days"]]
        assert found["n"] == wanted["n"]
        for name in ("p50", "p90", "p99"):
            assert found[name] == pytest.approx(wanted[name], rel=0.0101), (found, name)


# A quarter of the values within a second, a tail without a mean, and waits of days: nine orders of magnitude.
HEAVY = {
    "pareto": "0.2 * pow(1 - random(), -1 / 0.9)",
    "lognormal": "exp(2.5 * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()))",
    "two kinds": "CASE WHEN random() < 0.95 THEN 0.5 + random() ELSE 3600 * pow(1 - random(), -1 / 1.5) END",
}


@pytest.mark.parametrize("shape", sorted(HEAVY))
def test_percentiles_of_a_heavy_tailed_million(tmp_path: Path, shape: str) -> None:
    with bench(tmp_path) as one:
        con = one.con
        con.execute("SELECT setseed(0.42)")
        con.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE sli_events AS
            SELECT * REPLACE (
              'latency' AS sli, 'good' AS verdict, TIMESTAMP '2026-11-01' + to_hours((i % 24)::INTEGER) AS event_time,
              {HEAVY[shape]} AS value, 'clerk' AS agent, 'refund' AS task_type)
            FROM (SELECT * FROM (VALUES (1)) x LEFT JOIN core.sli_events ON false), (SELECT unnest(range(1000000)) AS i)
            """.replace("SELECT * REPLACE", "SELECT * EXCLUDE (col0, i) REPLACE")
        )
        con.execute("CREATE OR REPLACE TEMP TABLE old_events AS SELECT * FROM core.sli_events LIMIT 0")
        con.execute("INSERT INTO core.sli_events BY NAME SELECT * FROM sli_events")
        con.execute(pass_sql("hours"))
        con.execute("UPDATE core.pipeline SET as_of = TIMESTAMP '2026-11-02'")
        (wanted,) = one.rows(
            "SELECT quantile_cont(value, 0.5) AS p50, quantile_cont(value, 0.9) AS p90, "
            "quantile_cont(value, 0.99) AS p99 FROM core.sli_events"
        )
        (found,) = one.rows("SELECT * FROM core.latency_percentiles WHERE days = 30")
        sketches = one.rows("SELECT max(length(histogram)) AS longest, count(*) AS n FROM core.sli_hourly")
    assert found["n"] == 1_000_000
    for name in ("p50", "p90", "p99"):
        assert found[name] == pytest.approx(wanted[name], rel=0.0101)
    # what is kept of forty thousand values is a few kilobytes
    assert sketches[0]["n"] == 24
    assert sketches[0]["longest"] < 20_000


def test_nothing_is_a_value_of_its_own(tmp_path: Path) -> None:
    """Tasks that cost nothing: the logarithm of 0 is no bucket, and the median may be 0."""
    with bench(tmp_path) as one:
        one.con.execute(
            """
            CREATE OR REPLACE TEMP TABLE sli_events AS
            SELECT s.* REPLACE ('cost' AS sli, 'good' AS verdict, TIMESTAMP '2026-11-01' AS event_time, v AS value)
            FROM (SELECT unnest([0.0, 0.0, 0.0, 8.0]) AS v) LEFT JOIN core.sli_events s ON false
            """
        )
        one.con.execute("CREATE OR REPLACE TEMP TABLE old_events AS SELECT * FROM core.sli_events LIMIT 0")
        one.con.execute("INSERT INTO core.sli_events BY NAME SELECT * FROM sli_events")
        one.con.execute(pass_sql("hours"))
        one.con.execute("UPDATE core.pipeline SET as_of = TIMESTAMP '2026-11-02'")
        (found,) = one.rows("SELECT n, p50, p99 FROM core.latency_percentiles WHERE days = 7")
    assert (found["n"], found["p50"]) == (4, 0)
    assert found["p99"] == pytest.approx(0.97 * 8, rel=0.0101)
