"""Laws of counting, against a brute-force reading of the definitions in plain Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metrics.slo.evaluate import evaluate
from metrics.slo.history import history
from metrics.slo.objective import EventSource, Objective, UnknownPolicy
from metrics.slo.predicate import EVENT_COLUMNS, TRUE, parse
from tests.metrics.slo.conftest import AS_OF, EVENTS, TASKS, event, insert, objective

HOUR = 3600
policies = st.sampled_from(
    [
        UnknownPolicy("exclude"),
        UnknownPolicy("bad"),
        UnknownPolicy("bad-after", 86400),
        UnknownPolicy("bad-after", 60),
    ]
)
moments = st.one_of(
    st.integers(-3600, 40 * 86400).map(lambda s: AS_OF - timedelta(seconds=s)),
    st.sampled_from([0, 3600, 86400, 7 * 86400, 28 * 86400]).map(lambda s: AS_OF - timedelta(seconds=s)),
)
rows = st.builds(
    event,
    moments,
    st.sampled_from(["good", "good", "good", "bad", "unknown", "excluded"]),
    agent=st.sampled_from(["a", "b", None]),
    evidence=st.sampled_from(["stated", "inferred", None]),
    environment=st.sampled_from(["prod", "staging", None]),
    sli=st.sampled_from(["task_completion", "cost"]),
    value=st.sampled_from([None, 0.1, 0.5, 0.9]),
)
events = st.lists(rows, max_size=60)


@pytest.fixture(scope="module")
def shared() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(":memory:")
    connection.execute(EVENTS)
    connection.execute(TASKS)
    yield connection
    connection.close()


def filled(con: duckdb.DuckDBPyConnection, given_rows: list[dict[str, Any]]) -> duckdb.DuckDBPyConnection:
    con.execute("DELETE FROM sli_events")
    insert(con, "sli_events", given_rows)
    return con


def reference(
    given_rows: list[dict[str, Any]], wanted: Objective, start: datetime, end: datetime
) -> dict[str, int]:
    """Counts of (start, end] by the words of the definitions, one event after another."""
    assert isinstance(wanted.source, EventSource)
    found = dict.fromkeys(("good", "bad", "unknown", "excluded"), 0)
    for row in given_rows:
        if row["sli"] != wanted.source.sli or (wanted.source.where != TRUE and row["agent"] != "a"):
            continue
        verdict, at = row["verdict"], row["event_time"]
        if verdict == "good" and wanted.cut is not None:
            if row["value"] is None:
                verdict = "unknown"
            elif row["value"] > float(wanted.cut):
                verdict = "bad"
        excluded = row["environment"] in wanted.exclude or (
            wanted.verified_only and row["evidence"] == "inferred" and verdict in ("good", "bad")
        )
        if excluded:
            verdict = "excluded"
        if verdict == "unknown" and wanted.unknown.due_s is not None:
            due = at + timedelta(seconds=wanted.unknown.due_s)
            if due <= end:
                verdict, at = "bad", due
        if start < at <= end:
            found[verdict] += 1
    return found


objectives = st.builds(
    objective,
    source=st.sampled_from(
        [
            EventSource("task_completion"),
            EventSource("task_completion", parse("agent = 'a'", EVENT_COLUMNS)),
        ]
    ),
    unknown=policies,
    exclude=st.sampled_from([(), ("staging",)]),
    verified_only=st.booleans(),
) | st.builds(
    objective,
    source=st.just(EventSource("cost")),
    unknown=policies,
    op=st.just("lte"),
    cut=st.just(Decimal("0.5")),
)
lawful = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@lawful
@given(events, objectives)
def test_sql_counts_what_the_definitions_say(
    shared: duckdb.DuckDBPyConnection, given_rows: list[dict[str, Any]], wanted: Objective
) -> None:
    (row,) = evaluate(filled(shared, given_rows), [wanted], AS_OF)
    expected = reference(given_rows, wanted, AS_OF - timedelta(days=28), AS_OF)
    assert {k: getattr(row, k) for k in expected} == expected
    burn = json.loads(row.burn)
    for name, seconds in (("1h", HOUR), ("1d", 24 * HOUR), ("3d", 72 * HOUR)):
        part = reference(given_rows, wanted, AS_OF - timedelta(seconds=seconds), AS_OF)
        assert (burn[name]["n"], burn[name]["bad"]) == (part["good"] + part["bad"], part["bad"])
    if row.n:
        assert row.remaining == pytest.approx(1 - burn["28d"]["value"])
        assert sum(json.loads(row.excluded_by).values()) == row.excluded


@lawful
@given(events, objectives, st.randoms(), st.integers(0, 60))
def test_order_and_shards_do_not_matter(
    shared: duckdb.DuckDBPyConnection,
    given_rows: list[dict[str, Any]],
    wanted: Objective,
    random: Any,
    cut_at: int,
) -> None:
    (whole,) = evaluate(filled(shared, given_rows), [wanted], AS_OF)
    mixed = list(given_rows)
    random.shuffle(mixed)
    assert evaluate(filled(shared, mixed), [wanted], AS_OF) == [whole]
    parts = [evaluate(filled(shared, p), [wanted], AS_OF)[0] for p in (mixed[:cut_at], mixed[cut_at:])]
    for name in ("good", "bad", "unknown", "excluded"):
        assert sum(getattr(p, name) for p in parts) == getattr(whole, name)


@lawful
@given(events, objectives)
def test_excluded_events_change_nothing(
    shared: duckdb.DuckDBPyConnection, given_rows: list[dict[str, Any]], wanted: Objective
) -> None:
    (before,) = evaluate(filled(shared, given_rows), [wanted], AS_OF)
    assert isinstance(wanted.source, EventSource)
    more = [event(AS_OF - timedelta(hours=h), "excluded", sli=wanted.source.sli) for h in range(5)]
    (after,) = evaluate(filled(shared, given_rows + more), [wanted], AS_OF)
    assert after.excluded == before.excluded + 5
    for name in (
        "n",
        "good",
        "bad",
        "sli",
        "lower",
        "upper",
        "remaining",
        "p_met",
        "burn",
        "firing",
        "exhaustion",
    ):
        assert getattr(after, name) == getattr(before, name)


@lawful
@given(events, policies)
def test_a_good_event_never_lowers_the_sli(
    shared: duckdb.DuckDBPyConnection, given_rows: list[dict[str, Any]], policy: UnknownPolicy
) -> None:
    wanted = objective(unknown=policy)
    (before,) = evaluate(filled(shared, given_rows), [wanted], AS_OF)
    (after,) = evaluate(filled(shared, [*given_rows, event(AS_OF, "good")]), [wanted], AS_OF)
    assert after.sli is not None
    assert before.sli is None or after.sli >= before.sli


@lawful
@given(events, objectives)
def test_history_points_are_evaluations_of_their_time(
    shared: duckdb.DuckDBPyConnection, given_rows: list[dict[str, Any]], wanted: Objective
) -> None:
    con = filled(shared, given_rows)
    points = history(con, wanted, AS_OF, timedelta(days=2), 5)
    assert [p.at for p in points] == [AS_OF - timedelta(days=2 * i) for i in (4, 3, 2, 1, 0)]
    for point in points:
        (row,) = evaluate(con, [wanted], point.at)
        assert (point.n, point.good, point.bad) == (row.n, row.good, row.bad)
        assert (point.sli, point.remaining) == (row.sli, row.remaining)
        step = reference(given_rows, wanted, point.at - timedelta(days=2), point.at)
        assert (point.step_n, point.step_bad) == (step["good"] + step["bad"], step["bad"])


@lawful
@given(events, st.lists(objectives, min_size=2, max_size=5))
def test_objectives_do_not_disturb_each_other(
    shared: duckdb.DuckDBPyConnection, given_rows: list[dict[str, Any]], wanted: list[Objective]
) -> None:
    named = [replace(o, slo=f"slo-{i}") for i, o in enumerate(wanted)]
    con = filled(shared, given_rows)
    together = evaluate(con, named, AS_OF)
    assert together == [evaluate(con, [o], AS_OF)[0] for o in named]
