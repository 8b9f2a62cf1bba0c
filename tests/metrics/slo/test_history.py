from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import duckdb
import pytest

from metrics.slo.evaluate import evaluate
from metrics.slo.history import histories, history, write_history
from metrics.slo.objective import SloWindow, TaskSource
from metrics.slo.predicate import TASK_COLUMNS, parse
from metrics.slo.windows import Duration, parse_duration
from tests.metrics.slo.conftest import AS_OF, ago, event, objective

Add = Callable[..., None]


def test_daily_points_over_the_window(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(*[event(ago(days=d, hours=1), "bad" if d == 3 else "good") for d in range(40)])
    points = history(con, objective(), AS_OF)
    assert len(points) == 29
    assert (points[0].at, points[-1].at) == (ago(days=28), AS_OF)
    assert (points[-1].n, points[-1].bad) == (28, 1)
    assert points[-1].sli == pytest.approx(27 / 28)
    assert [p.burn for p in points[-5:]] == [0, pytest.approx(10), 0, 0, 0]
    assert points[-1].remaining == pytest.approx(1 - (1 / 28) / 0.1)


def test_a_day_without_events_is_unknown(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(event(ago(hours=30), "good"))
    first, second, last = history(con, objective(), AS_OF, points=3)
    assert (first.n, first.sli, first.remaining, first.burn) == (0, None, None, None)
    assert (second.n, second.burn) == (1, 0)
    assert (last.n, last.sli, last.burn, last.step_n) == (1, 1, None, 0)


def test_calendar_windows_start_again(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    window = SloWindow(Duration(1, "M"), datetime(2026, 1, 1), ZoneInfo("UTC"))
    add(*[event(datetime(2026, 10, 25) + timedelta(days=d), "good") for d in range(14)])
    points = history(con, objective(window=window), datetime(2026, 11, 3), points=4)
    assert [(p.at.day, p.n) for p in points] == [(31, 31 - 24), (1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("method", ["Timeslices", "RatioTimeslices"])
def test_slices_over_time(con: duckdb.DuckDBPyConnection, add: Add, method: str) -> None:
    add(*[event(ago(hours=h, minutes=30), "bad" if h in (5, 50) else "good") for h in range(96)])
    wanted = objective(
        method=method, slice_s=3600, slice_target=Decimal("0.9"), window=SloWindow(parse_duration("2d"))
    )
    points = history(con, wanted, AS_OF, points=2)
    assert [p.at for p in points] == [ago(days=1), AS_OF]
    for point in points:
        (row,) = evaluate(con, [wanted], point.at)
        assert (point.n, point.good) == (row.n, row.good)
        assert (point.sli, point.remaining) == pytest.approx((row.sli, row.remaining))


def test_written_and_replaced(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(event(ago(hours=1), "good"))
    rows = histories(con, [objective(slo="b"), objective(slo="a")], AS_OF, points=3)
    assert [r.slo for r in rows] == ["b"] * 3 + ["a"] * 3
    write_history(con, rows)
    write_history(con, rows[:3])
    found = con.execute('SELECT slo, "at", n FROM core.slo_history ORDER BY "at"').fetchall()
    assert found == [("b", ago(days=2), 0), ("b", ago(days=1), 0), ("b", AS_OF, 1)]


def test_what_cannot_be_counted_has_no_points(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(event(ago(hours=1), "good"))
    broken = objective(slo="broken", source=TaskSource(total=parse("runs > 1", TASK_COLUMNS), value="wall_s"))
    assert {r.slo for r in histories(con, [broken, objective()], AS_OF)} == {"completion"}


def test_impossible_histories(con: duckdb.DuckDBPyConnection) -> None:
    for step, points in ((timedelta(0), 3), (timedelta(days=1), 0)):
        with pytest.raises(ValueError, match="step above 0"):
            history(con, objective(), AS_OF, step, points)
