"""Drift over a real data base: streams, states, what single tasks say, new baselines, alerts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import duckdb
import pytest

from metrics.alerts.conditions import drift_signals
from metrics.drift.baselines import BaselineError, begin_anew
from metrics.drift.evaluate import DriftRow, drifts, write_drift
from tests.metrics.slo.conftest import EVENTS, event, insert

START = datetime(2026, 9, 1)


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(":memory:")
    connection.execute("ATTACH ':memory:' AS core")
    connection.execute(EVENTS)
    yield connection
    connection.close()


def stream(
    con: duckdb.DuckDBPyConnection,
    days: range,
    factor: float = 1.0,
    per_day: int = 8,
    **other: str | None,
) -> None:
    """Tasks between 0.8 and 1.2 (times `factor`) on each of the days."""
    rows = []
    for day in days:
        for i in range(per_day):
            value = factor * (0.8 + 0.4 * ((i * 7 + day * 3) % 10) / 9)
            at = START + timedelta(days=day, hours=i)
            rows.append(event(at, "good", sli="cost", value=value, **other))
    insert(con, "sli_events", rows)


def at(con: duckdb.DuckDBPyConnection, day: int) -> DriftRow:
    (row,) = drifts(con, START + timedelta(days=day, hours=1))
    return row


def at_hour(con: duckdb.DuckDBPyConnection, day: int, hour: int) -> DriftRow:
    (row,) = drifts(con, START + timedelta(days=day, hours=hour))
    return row


def test_a_rise_opens_after_two_days_and_closes_when_it_is_over(con: duckdb.DuckDBPyConnection) -> None:
    stream(con, range(0, 40))
    stream(con, range(40, 55), factor=1.5)
    stream(con, range(55, 75))
    assert at(con, 20).state == "learning"
    assert at(con, 40).state == "steady"
    row = at(con, 55)
    assert row.state == "rising"
    assert row.opened_on is not None
    assert (row.opened_on - (START + timedelta(days=40)).date()).days <= 8
    assert row.shift == pytest.approx(1.5, rel=0.02)
    assert row.typical == pytest.approx(1.5 * (row.baseline_typical or 0), rel=0.05)
    assert (row.n, row.window_days, row.baseline_days) == (56, 7, 28)
    assert at(con, 74).state == "steady"


def test_only_whole_days_count(con: duckdb.DuckDBPyConnection) -> None:
    stream(con, range(0, 41))
    early, late = (at_hour(con, 40, hour) for hour in (2, 23))
    assert (early.n, early.window_end, early.p, early.shift) == (late.n, late.window_end, late.p, late.shift)
    assert early.window_end == START + timedelta(days=40)


def test_too_little_traffic_is_said(con: duckdb.DuckDBPyConnection) -> None:
    stream(con, range(0, 28))
    stream(con, range(28, 60), factor=3.0, per_day=1)
    row = at(con, 60)
    assert (row.state, row.p, row.shift) == ("insufficient", None, None)


def test_streams_are_told_apart_and_other_slis_ignored(con: duckdb.DuckDBPyConnection) -> None:
    stream(con, range(0, 40), agent="a", task_type="x")
    stream(con, range(0, 40), agent="a", task_type=None)
    insert(con, "sli_events", [event(START, "good", sli="task_completion", value=1.0)])
    insert(con, "sli_events", [event(START, "good", sli="cost", value=0.0, agent="free")])
    insert(con, "sli_events", [event(START, "unknown", sli="cost", value=None, agent="unpriced")])
    rows = drifts(con, START + timedelta(days=40))
    assert {r.stream for r in rows} == {("cost", "a", "x"), ("cost", "a", None)}


def test_what_single_tasks_say(con: duckdb.DuckDBPyConnection) -> None:
    """P(new > old) is U/(n*m), with ties counted half: the vector of the rank test."""
    old = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]
    new = [1.25, 1.45, 1.55, 1.65, 1.75, 1.85, 1.95, 2.05]
    rows = [
        event(START + timedelta(days=d, minutes=i), "good", sli="cost", value=v)
        for days, values in ((range(0, 28), old), (range(33, 40), new))
        for d in days
        for i, v in enumerate(values)
    ]
    insert(con, "sli_events", rows)
    row = at(con, 40)
    assert row.p_dearer == pytest.approx(0.828125)
    assert row.p90_ratio is not None
    assert row.p90_ratio > 1


def test_the_rise_of_an_agent_divides_into_mix_and_rate(con: duckdb.DuckDBPyConnection) -> None:
    stream(con, range(0, 40), agent="a", task_type="cheap")
    stream(con, range(0, 28), agent="a", task_type="dear", factor=5)
    stream(con, range(28, 40), agent="a", task_type="dear", factor=5, per_day=24)
    rows = drifts(con, START + timedelta(days=40))
    assert {r.state for r in rows} == {"steady"}
    (means,) = {(r.agent_mean_before, r.agent_mean, r.agent_mix, r.agent_rate) for r in rows}
    before, after, mix, rate = (m or 0.0 for m in means)
    assert after - before == pytest.approx(mix + rate)
    assert mix > 10 * abs(rate)


def test_a_new_baseline_by_an_operators_word(con: duckdb.DuckDBPyConnection) -> None:
    stream(con, range(0, 30))
    stream(con, range(30, 70), factor=1.5)
    now = START + timedelta(days=70, hours=1)
    assert at(con, 70).state == "rising"
    with pytest.raises(BaselineError, match="future"):
        begin_anew(con, now, since=now + timedelta(days=1), reason="x")
    with pytest.raises(BaselineError, match="reason"):
        begin_anew(con, now, since=now, reason="")
    begin_anew(con, now, since=START + timedelta(days=30), reason="a better model", agent="other")
    assert at(con, 70).state == "rising"
    begin_anew(con, now, since=START + timedelta(days=30), reason="a better model", agent="a")
    row = at(con, 70)
    assert (row.state, row.baseline_start) == ("steady", START + timedelta(days=30))


def test_a_rise_is_a_ticket_that_says_how_much(con: duckdb.DuckDBPyConnection) -> None:
    stream(con, range(0, 40))
    stream(con, range(40, 55), factor=1.5)
    (signal,) = drift_signals([at(con, 55)])
    assert (signal.condition, signal.identity.severity, signal.identity.slo) == (
        "firing",
        "ticket",
        "cost-drift",
    )
    assert signal.summary.startswith("a / x: cost is 1.5")
    assert {"typical", "tasks", "p", "detectable", "agent_mean"} <= set(signal.annotations)
    assert [s.condition for s in drift_signals([at(con, 40)])] == ["clear"]
    assert [s.condition for s in drift_signals([at(con, 10)])] == ["frozen"]


def test_rows_are_kept(con: duckdb.DuckDBPyConnection) -> None:
    stream(con, range(0, 40))
    rows = drifts(con, START + timedelta(days=40))
    write_drift(con, rows)
    write_drift(con, rows)
    assert con.execute("SELECT metric, agent, state, streams FROM core.drift").fetchall() == [
        ("cost", "a", "steady", 1)
    ]


def test_nothing_yet(con: duckdb.DuckDBPyConnection) -> None:
    assert drifts(con, START) == []
