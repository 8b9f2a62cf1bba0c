from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pytest

from metrics.openslo import default_objectives, load
from metrics.slo.evaluate import evaluate, firing_now, write_status
from metrics.slo.history import history
from metrics.slo.objective import (
    RATIO_SLIS,
    AlertPair,
    ConjunctionSource,
    EventSource,
    Objective,
    Part,
    SloWindow,
    TaskSource,
    UnknownPolicy,
)
from metrics.slo.predicate import EVENT_COLUMNS, TASK_COLUMNS, parse
from metrics.slo.status import StatusRow
from metrics.slo.windows import Duration, parse_duration
from tests.metrics.slo.conftest import AS_OF, ago, event, insert, objective, task

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors.json").read_text())
Add = Callable[..., None]


def one(con: duckdb.DuckDBPyConnection, wanted: Objective, **kw: Any) -> StatusRow:
    (row,) = evaluate(con, [wanted], AS_OF, **kw)
    return row


def counted(row: StatusRow) -> tuple[int, int, int, int]:
    return row.good, row.bad, row.unknown, row.excluded


def test_r1_through_sql(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(*[event(ago(hours=i % 600), "good" if i % 34 else "bad") for i in range(1000)])
    row = one(con, objective(target=Decimal("0.95")))
    assert (row.n, row.good, row.bad) == (1000, 970, 30)
    assert row.sli == pytest.approx(0.97)
    assert row.remaining == pytest.approx(0.4)
    assert row.budget_events == pytest.approx(50)
    assert (row.lower, row.upper) == pytest.approx((0.957497, 0.978906), abs=1e-6)
    assert row.p_met == pytest.approx(0.9990, abs=5e-5)
    assert json.loads(row.burn)["28d"] == {"value": pytest.approx(0.6), "n": 1000, "bad": 30}
    assert row.state == "ok"


def test_b5_timeline_and_which_pairs_fire(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    vector = VECTORS["B5 timeline T=0.99, 12 tasks/h, bad at now, now-10m, now-20m"]
    con.execute(
        """INSERT INTO sli_events BY NAME
           SELECT 'task_completion' AS sli, ? - to_minutes(5 * i) AS event_time,
                  CASE WHEN i IN (0, 2, 4) THEN 'bad' ELSE 'good' END AS verdict, 'stated' AS evidence
           FROM range(8640) t(i)""",
        [AS_OF],
    )
    hour, day = 3600, 86400
    pairs = (
        AlertPair("page", hour, 300, Decimal("14.4")),
        AlertPair("page", 6 * hour, 1800, Decimal(6)),
        AlertPair("ticket", day, 2 * hour, Decimal(3)),
        AlertPair("ticket", 3 * day, 6 * hour, Decimal(1)),
    )
    wanted = objective(target=Decimal("0.99"), window=SloWindow(parse_duration("30d")), alerts=pairs)
    row = one(con, wanted)
    burn = json.loads(row.burn)
    for window in ("5m", "30m", "1h", "2h", "6h", "1d", "3d", "30d"):
        expected = vector[window]
        assert burn[window]["n"] == expected["total"]
        assert burn[window]["bad"] == expected["total"] - expected["good"]
        assert burn[window]["value"] == pytest.approx(expected["burn"])
    fires = [p["firing"] for p in json.loads(row.pairs)]
    assert fires == [vector[k] for k in ("page_quick", "page_slow", "ticket_quick", "ticket_slow")]
    (firing,) = json.loads(row.firing)
    assert (firing["severity"], firing["long"], firing["short"], firing["factor"]) == (
        "page",
        "1h",
        "5m",
        14.4,
    )
    assert "3 bad of 12" in firing["why"]
    assert row.state == "at_risk"


def test_no_data_is_unknown_not_zero(con: duckdb.DuckDBPyConnection) -> None:
    row = one(con, objective())
    assert row.state == "no_data"
    assert (row.n, row.sli, row.lower, row.upper, row.p_met, row.remaining) == (
        0,
        None,
        None,
        None,
        None,
        None,
    )
    assert json.loads(row.burn)["28d"] == {"value": None, "n": 0, "bad": 0}
    assert json.loads(row.firing) == []
    assert row.inferred_share is None


def test_edges_start_excluded_end_included(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    tick = timedelta(microseconds=1)
    add(
        event(ago(days=28), "bad"),
        event(ago(days=28) + tick, "good"),
        event(AS_OF, "good"),
        event(AS_OF + tick, "bad"),
    )
    assert counted(one(con, objective())) == (2, 0, 0, 0)


def test_burns_wait_for_the_settle_delay_and_the_sli_does_not(
    con: duckdb.DuckDBPyConnection, add: Add
) -> None:
    add(*[event(ago(minutes=5), "bad")] * 4, *[event(ago(minutes=30), "good")] * 36)
    row = one(con, objective(settle_s=900))
    assert counted(row) == (36, 4, 0, 0)
    assert row.settled_until == ago(minutes=15)
    burn = json.loads(row.burn)
    assert (burn["1h"]["n"], burn["1h"]["bad"]) == (36, 0)
    assert burn["28d"]["bad"] == 4
    assert row.remaining == pytest.approx(1 - burn["28d"]["value"])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (UnknownPolicy("exclude"), (1, 0, 3, 0)),
        (UnknownPolicy("bad"), (1, 3, 0, 0)),
        (UnknownPolicy("bad-after", 86400), (1, 2, 1, 0)),
        (UnknownPolicy("bad-after", 3600), (1, 3, 0, 0)),
    ],
)
def test_unknown_policies(
    con: duckdb.DuckDBPyConnection, add: Add, policy: UnknownPolicy, expected: tuple[int, int, int, int]
) -> None:
    add(
        event(ago(hours=2), "good"),
        event(ago(hours=2), "unknown"),
        event(ago(hours=30), "unknown"),
        event(ago(days=27), "unknown"),
    )
    row = one(con, objective(unknown=policy))
    assert counted(row) == expected
    assert row.sli_unknown_bad == pytest.approx(1 / 4)
    assert row.sli_unknown_good == pytest.approx((1 + row.unknown) / 4)


def test_a_late_verdict_counts_when_it_falls_due(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    """An unknown task of 25 h ago became bad an hour ago: it must be in the 6 h window, not out of all."""
    add(event(ago(hours=25), "unknown"), event(ago(hours=3), "good"))
    burn = json.loads(one(con, objective(unknown=UnknownPolicy("bad-after", 86400))).burn)
    assert burn["6h"]["bad"] == 1
    assert burn["1h"]["bad"] == 0
    late = event(ago(days=28, hours=1), "unknown")
    add(late)
    row = one(con, objective(unknown=UnknownPolicy("bad-after", 86400)))
    assert counted(row) == (1, 2, 0, 0)


def test_exclusions_are_counted_by_reason(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(
        *[event(ago(hours=1), "good")] * 30,
        *[event(ago(hours=1), "excluded")] * 2,
        event(ago(hours=1), "excluded", excluded_reason="environment"),
        *[event(ago(hours=1), "bad", environment="staging")] * 3,
        *[event(ago(hours=1), "good", evidence="inferred")] * 4,
    )
    plain = one(con, objective())
    assert counted(plain) == (34, 3, 0, 3)
    assert json.loads(plain.excluded_by) == {"maintenance": 2, "environment": 1}
    assert plain.inferred_share == pytest.approx(4 / 37)
    strict = one(con, objective(exclude=("staging", "eval"), verified_only=True))
    assert counted(strict) == (30, 0, 0, 10)
    assert json.loads(strict.excluded_by) == {"environment": 4, "evidence_inferred": 4, "maintenance": 2}
    assert strict.state == "at_risk"
    assert "25 % of the events are excluded" in json.loads(strict.notes)[0]
    assert strict.inferred_share == 0


@pytest.mark.parametrize(("op", "good"), [("lt", 1), ("lte", 3), ("gt", 2), ("gte", 4)])
def test_t1_cuts_in_sql(con: duckdb.DuckDBPyConnection, add: Add, op: Any, good: int) -> None:
    values = [0.12, 0.50, 0.50, 0.51, 2.0, None]
    add(*[event(ago(hours=1), "good", sli="cost", value=v) for v in values])
    add(event(ago(hours=1), "bad", sli="cost", value=0.5), event(ago(hours=1), "unknown", sli="cost"))
    cost = objective(source=EventSource("cost"), op=op, cut=Decimal("0.5"))
    assert counted(one(con, cost)) == (good, 5 - good + 1, 2, 0)


def test_several_cuts_of_one_sli_share_the_scan(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(*[event(ago(hours=1), "good", sli="latency", value=float(v)) for v in range(100)])
    cuts = [
        objective(slo=f"l{c}", source=EventSource("latency"), op="lte", cut=Decimal(c)) for c in (10, 50, 98)
    ]
    assert [r.good for r in evaluate(con, cuts, AS_OF)] == [11, 51, 99]


def test_where_narrows(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(event(ago(hours=1), "good"), event(ago(hours=1), "bad", agent="it's b"))
    where = parse("agent = 'it''s b' OR agent IS NULL", EVENT_COLUMNS)
    rows = evaluate(
        con, [objective(), objective(slo="b", source=EventSource("task_completion", where))], AS_OF
    )
    assert [counted(r) for r in rows] == [(1, 1, 0, 0), (0, 1, 0, 0)]


def test_states(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(*[event(ago(hours=1), "good")] * 18, event(ago(hours=1), "bad"))
    assert one(con, objective()).state == "insufficient_data"
    assert one(con, objective(min_events=19)).state == "ok"
    add(event(ago(hours=1), "bad"))
    exhausted = one(con, objective())
    assert (exhausted.state, exhausted.remaining) == ("exhausted", 0)
    add(event(ago(hours=1), "good"), event(ago(hours=1), "good"))
    low = one(con, objective())
    assert low.state == "at_risk"
    assert json.loads(low.notes)[0] == "9 % of the error budget is left"


def test_task_conditions(con: duckdb.DuckDBPyConnection) -> None:
    insert(
        con,
        "tasks",
        [
            task(ago(hours=1), "completed"),
            task(ago(hours=1), "completed", interventions=1),
            task(ago(hours=1), "failed"),
            task(ago(hours=1), "unknown"),
            task(ago(hours=1), "completed", eligible=False, excluded_reason="maintenance"),
            task(ago(hours=1), "completed", agent="other"),
            task(None, "running"),
        ],
    )
    total = parse("eligible AND agent = 'a'", TASK_COLUMNS)
    good = parse("outcome = 'completed' AND interventions = 0", TASK_COLUMNS)
    row = one(con, objective(source=TaskSource(total=total, good=good)))
    assert counted(row) == (1, 2, 1, 1)
    assert json.loads(row.excluded_by) == {"maintenance": 1}
    bad = parse("outcome = 'failed'", TASK_COLUMNS)
    assert counted(one(con, objective(source=TaskSource(total=total, bad=bad)))) == (2, 1, 1, 1)


def test_task_values_and_unpriced_tasks(con: duckdb.DuckDBPyConnection) -> None:
    insert(
        con,
        "tasks",
        [
            task(ago(hours=1), "completed", cost_usd=c, cost_complete=k)
            for c, k in [(0.1, True), (0.9, True), (0.1, False)]
        ],
    )
    total = parse("eligible", TASK_COLUMNS)
    cost = objective(source=TaskSource(total=total, value="cost_usd"), op="lte", cut=Decimal("0.5"))
    assert counted(one(con, cost)) == (1, 1, 1, 0)


def test_a_missing_column_is_one_invalid_row(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(event(ago(hours=1), "good"))
    broken = objective(slo="broken", source=TaskSource(total=parse("runs > 1", TASK_COLUMNS), value="wall_s"))
    rows = evaluate(con, [broken, objective()], AS_OF)
    assert [r.state for r in rows] == ["invalid", "insufficient_data"]
    assert "runs" in json.loads(rows[0].notes)[0]


def test_calendar_window_owns_its_first_moment(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    window = SloWindow(Duration(1, "M"), datetime(2026, 1, 1), ZoneInfo("Europe/Berlin"))
    start = datetime(2026, 10, 31, 23)
    add(event(start - timedelta(microseconds=1), "bad"), event(start, "good"), event(AS_OF, "good"))
    row = one(con, objective(window=window))
    assert counted(row) == (2, 0, 0, 0)
    assert (row.window_start, row.window_end) == (start, datetime(2026, 11, 30, 23))
    assert row.evaluated_at == AS_OF
    assert json.loads(row.exhaustion)["rolling_s"] is None


def test_s1_timeslices_in_sql(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    hour = [
        *[event(ago(minutes=190), "good")] * 10,
        *[event(ago(minutes=130), "good")] * 9,
        event(ago(minutes=130), "bad"),
        *[event(ago(minutes=70), "bad")] * 2,
    ]
    add(*hour)
    wanted = objective(
        method="Timeslices", slice_s=3600, slice_target=Decimal("0.9"), window=SloWindow(parse_duration("4h"))
    )
    row = one(con, wanted)
    assert (row.good, row.n) == (2, 3)
    ratio = one(con, replace(wanted, method="RatioTimeslices"))
    assert ratio.sli == pytest.approx(0.633333, abs=1e-6)
    assert ratio.lower is None
    assert ratio.remaining == pytest.approx(1 - (1 - 0.633333) / 0.1, abs=1e-4)
    for empty in ("good", "bad"):
        row = one(con, replace(wanted, empty_slices=empty))
        assert [row.good, row.n] == VECTORS["S1 slices"][f"ts_{empty}"]


def test_composite_is_the_weighted_sum(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(*[event(ago(hours=1), "good")] * 94, *[event(ago(hours=1), "bad")] * 6)
    add(
        *[event(ago(hours=1), "good", sli="lost_task")] * 98,
        *[event(ago(hours=1), "bad", sli="lost_task")] * 2,
    )
    parts = [
        objective(slo="c", objective="a", composite=True, weight=Decimal("0.5")),
        objective(slo="c", objective="b", composite=True, weight=Decimal(2), source=EventSource("lost_task")),
    ]
    *_, row = evaluate(con, parts, AS_OF)
    assert (row.slo, row.objective, row.sli) == ("c", "composite", None)
    assert row.remaining == pytest.approx(1 - VECTORS["C1 composite"]["openslo_occ_w"])
    assert json.loads(row.burn)["28d"]["value"] == pytest.approx(0.7)


def test_c2_conjunction_counts_tasks(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    """Seven all good, one slow, one failed, one both: 7 of 10, where the product of the SLIs says 6.4."""
    vector = VECTORS["C2 per-task conjunction"]
    for i in range(10):
        done = "bad" if i >= 8 else "good"
        slow = 90.0 if i in (7, 9) else 10.0
        add(
            event(ago(hours=i + 1), done, task_id=f"t{i}"),
            event(ago(hours=i + 1), "good", sli="latency", value=slow, task_id=f"t{i}"),
        )
    add(
        event(ago(hours=1), "excluded", task_id="maintained"),
        event(ago(hours=1), "good", task_id="unmeasured"),
        event(ago(hours=1), "good", sli="latency", task_id="unmeasured"),
    )
    parts = (
        Part(EventSource("task_completion", parse("agent = 'a'", EVENT_COLUMNS))),
        Part(EventSource("latency"), "lte", Decimal(60)),
    )
    wanted = objective(source=ConjunctionSource(parts), target=Decimal("0.6"))
    row = one(con, wanted)
    assert counted(row) == (vector["all3"], vector["n"] - vector["all3"], 1, 1)
    assert json.loads(row.excluded_by) == {"maintenance": 1}
    last = history(con, wanted, AS_OF, points=2)[-1]
    assert (last.n, last.good) == (row.n, row.good)


def test_empty_short_window_freezes_an_alert(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    pair = AlertPair("page", 86400, 7200, Decimal(3))
    wanted = objective(alerts=(pair,))
    add(*[event(ago(hours=1), "bad")] * 10, *[event(ago(hours=1), "good")] * 10)
    first = evaluate(con, [wanted], AS_OF)
    assert [f["frozen"] for f in json.loads(first[0].firing)] == [False]
    write_status(con, first)
    was = firing_now(con, "core.slo_status")
    later = AS_OF + timedelta(hours=5)
    kept = evaluate(con, [wanted], later, was_firing=was)
    assert [f["frozen"] for f in json.loads(kept[0].firing)] == [True]
    assert json.loads(evaluate(con, [wanted], later)[0].firing) == []
    add(*[event(later, "good")] * 3)
    assert json.loads(evaluate(con, [wanted], later, was_firing=was)[0].firing) == []


def test_nothing_fired_before_the_first_evaluation(con: duckdb.DuckDBPyConnection) -> None:
    assert firing_now(con, "core.slo_status") == {}


def test_write_replaces_everything_or_nothing(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(event(ago(hours=1), "good"))
    rows = evaluate(con, [objective(), objective(slo="second")], AS_OF)
    write_status(con, rows)
    write_status(con, rows[:1])
    assert con.execute("SELECT slo, n, state FROM core.slo_status").fetchall() == [
        ("completion", 1, "insufficient_data")
    ]
    broken = replace(rows[0], n="many")  # type: ignore[arg-type]
    with pytest.raises(duckdb.ConversionException):
        write_status(con, [broken])
    assert con.execute("SELECT count(*) FROM core.slo_status").fetchone() == (1,)
    write_status(con, [])
    assert con.execute("SELECT count(*) FROM core.slo_status").fetchone() == (0,)


def test_a_table_of_another_version_is_made_anew(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(event(ago(hours=1), "good"))
    con.execute("CREATE TABLE core.slo_status (slo VARCHAR, colour VARCHAR)")
    con.execute("INSERT INTO core.slo_status VALUES ('old', 'green')")
    write_status(con, evaluate(con, [objective()], AS_OF))
    assert con.execute("SELECT slo, state FROM core.slo_status").fetchall() == [
        ("completion", "insufficient_data")
    ]


@pytest.mark.parametrize("target", ["core.slo_status; DROP TABLE tasks", "", "a.b.c.d", "x y"])
def test_only_table_names_are_written_to(con: duckdb.DuckDBPyConnection, target: str) -> None:
    with pytest.raises(ValueError, match="no table name"):
        write_status(con, [], target)


def test_nothing_to_evaluate(con: duckdb.DuckDBPyConnection) -> None:
    assert evaluate(con, [], AS_OF) == []


def test_as_of_with_a_zone_is_the_same_moment(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(event(AS_OF, "good"))
    there = AS_OF.replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo("Asia/Tokyo"))
    (row,) = evaluate(con, [objective()], there)
    assert (row.window_end, row.n) == (AS_OF, 1)


def test_revision_follows_meaning_not_words() -> None:
    base = objective()
    assert replace(base, title="Other", description="words").revision == base.revision
    assert replace(base, target=Decimal("0.90")).revision == base.revision
    changed = [
        replace(base, target=Decimal("0.95")),
        replace(base, unknown=UnknownPolicy("bad")),
        replace(base, source=EventSource("task_completion", parse("agent = 'b'", EVENT_COLUMNS))),
    ]
    assert len({o.revision for o in [base, *changed]}) == 4


def test_the_pack_and_every_example_can_be_counted(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(*[event(ago(hours=1), "good", sli="human_intervention", agent="refund_agent", task_type="refund")])
    add(*[event(ago(hours=1), "bad", sli="human_intervention", agent="other_agent", task_type="refund")])
    slis = [s for s in RATIO_SLIS if s != "human_intervention"]
    add(*[event(ago(hours=1), "good", sli=s, agent="refund_agent", task_type="checkout") for s in slis])
    asked = [s for s in slis if s.startswith("escalation_")]
    add(*[event(ago(hours=1), "good", sli=s, agent="refund_agent", task_type="refund") for s in asked])
    add(
        *[
            event(ago(hours=1), "good", sli=s, value=0.1, agent="refund_agent")
            for s in ("latency", "active_latency", "cost")
        ]
    )
    insert(con, "tasks", [task(ago(hours=1), "completed", agent="refund_agent")])
    root = Path(__file__).parents[3]
    rows = evaluate(con, default_objectives() + load(root / "examples" / "slo"), AS_OF)
    assert [(r.slo, r.objective) for r in rows if r.state != "insufficient_data" or r.n not in (1, 2)] == []
    write_status(con, rows)
    assert con.execute("SELECT count(*) FROM core.slo_status").fetchall() == [(len(rows),)]
