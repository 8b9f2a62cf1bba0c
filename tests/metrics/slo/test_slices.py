from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from metrics.slo.arithmetic import ratio
from metrics.slo.evaluate import evaluate
from metrics.slo.objective import UnknownPolicy
from metrics.slo.slices import EmptySlices, expected_slices_burn, ratio_timeslices, timeslices
from metrics.slo.worst import worst_tasks
from tests.metrics.slo.conftest import AS_OF, ago, event, insert, objective

VECTOR = json.loads((Path(__file__).parent / "vectors.json").read_text())["S1 slices"]
SLICES = [(good, n) for good, n in VECTOR["slices"]]


@pytest.mark.parametrize("empty", ["ignore", "good", "bad"])
def test_s1_timeslices(empty: EmptySlices) -> None:
    assert list(timeslices(SLICES, "0.9", empty)) == VECTOR[f"ts_{empty}"]


def test_s1_ratio_timeslices() -> None:
    assert float(ratio_timeslices(SLICES) or 0) == pytest.approx(VECTOR["rts_ignore"])
    assert float(ratio_timeslices(SLICES, "good") or 0) == pytest.approx(VECTOR["rts_good"])
    assert ratio_timeslices(SLICES, "bad") == Fraction(19, 40)
    assert ratio_timeslices([(0, 0)]) is None


def test_s1_occurrences_weigh_events() -> None:
    good, n, share = VECTOR["occurrences"]
    assert (sum(s[0] for s in SLICES), sum(s[1] for s in SLICES)) == (good, n)
    assert float(ratio(good, n) or 0) == pytest.approx(share)


def test_x2_expected_slices() -> None:
    assert float(expected_slices_burn(1, 60, "0.99") or 0) == pytest.approx(1.666667, abs=1e-6)
    assert expected_slices_burn(0, 0, "0.99") is None


@pytest.mark.parametrize(
    "method",
    [{}, {"method": "Timeslices", "slice_s": 3600, "slice_target": Decimal("0.9")}],
    ids=["events", "slices"],
)
def test_an_unknown_event_of_an_excluded_environment_is_excluded_however_it_is_counted(
    con: duckdb.DuckDBPyConnection, method: dict[str, object]
) -> None:
    seen = [event(ago(hours=5), "unknown", environment="test"), event(ago(hours=5), "good")]
    insert(con, "sli_events", seen)
    wanted = objective(exclude=("test",), unknown=UnknownPolicy("bad"), **method)
    (row,) = evaluate(con, [wanted], AS_OF)
    assert (row.good, row.bad, row.unknown, row.excluded) == (1, 0, 0, 1)
    assert worst_tasks(con, wanted, ago(days=28), AS_OF) == []
