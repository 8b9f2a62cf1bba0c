"""The interval in SQL is the interval in Python."""

from __future__ import annotations

import duckdb
import pytest

from metrics.intervals import with_intervals
from metrics.slo.confidence import wilson

SQL = with_intervals("SELECT {{wilson_lower(k, n)}}, {{wilson_upper(k, n)}} FROM (SELECT $k AS k, $n AS n)")


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 20), (3, 20), (20, 20), (997, 1000), (7, 9)])
def test_sql_and_python_agree(k: int, n: int) -> None:
    (found,) = duckdb.sql(SQL, params={"k": k, "n": n}).fetchall()
    assert found == pytest.approx(wilson(k, n), abs=1e-12)
    if k in (0, n):
        assert found[0 if k == 0 else 1] == k / n


def test_without_events_there_is_none() -> None:
    assert duckdb.sql(SQL, params={"k": 0, "n": 0}).fetchall() == [(None, None)]
