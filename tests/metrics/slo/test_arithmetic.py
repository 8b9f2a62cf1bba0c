"""The published vectors, number by number, and the laws that hold for any counts."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.slo import arithmetic as a

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors.json").read_text())
DAY = 86400

targets = st.decimals(min_value="0.5", max_value="0.9999", places=4)
counts = st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)).map(lambda p: (min(p), max(p)))


def close(actual: Fraction | float | None, expected: float | None) -> bool:
    if actual is None or expected is None:
        return actual is None and expected is None
    return math.isclose(float(actual), expected, rel_tol=1e-12, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("name", "good", "n", "target"),
    [
        ("R1", 970, 1000, "0.95"),
        ("R2", 920, 1000, "0.95"),
        ("R3", 0, 0, "0.95"),
        ("R4", 1000, 1000, "0.99"),
        ("R5 workbook low traffic: 1 bad of 10/h, 99.9%", 9, 10, "0.999"),
    ],
)
def test_ratio_vectors(name: str, good: int, n: int, target: str) -> None:
    out = VECTORS[name]["out"]
    result = a.account(good, n, target)
    assert close(result.sli, out["sli"])
    assert close(result.error_rate, out["error_rate"])
    assert close(result.share, out["budget"])
    assert close(result.consumed, out["consumed"])
    assert close(result.remaining, out["remaining"])
    assert close(result.events, out["budget_events"])
    assert close(result.events_left, out["remaining_events"])
    assert close(result.burn, out["burn_rate"])
    assert result.bad == out["bad"]


def test_r5_month() -> None:
    vector = VECTORS["R5 workbook low traffic: 1 bad of 10/h, 99.9%"]
    month = a.budget("0.999") * 10 * 24 * 30
    assert close(month, vector["month_budget_events"])
    assert close(1 / month, vector["share"])


def test_r6_the_budget_is_exact() -> None:
    vector = VECTORS["R6 float trap: target 0.999 budget"]
    assert vector["naive"] == 1 - 0.999
    for given_as in ("0.999", Decimal("0.999"), 0.999):
        assert a.budget(given_as) == Fraction(1, 1000)


@pytest.mark.parametrize("op", ["lt", "lte", "gt", "gte"])
def test_t1_threshold(op: a.Op) -> None:
    values = [0.12, 0.50, 0.50, 0.51, 2.0, None]
    assert list(a.threshold(values, op, 0.5)) == VECTORS["T1"][op]


def test_b1_factors_follow_the_window() -> None:
    rows = [(2, 3600), (5, 6 * 3600), (10, DAY), (10, 3 * DAY)]
    for name, expected in VECTORS["B1 factors"].items():
        window = int(name.removesuffix("d")) * DAY
        found = [float(a.factor_for(p, w, window)) for p, w in rows]
        assert found == pytest.approx(expected, abs=1e-6)
    kept = [a.consumed_by(f, w, 7 * DAY) for f, (_, w) in zip(["14.4", "6", "3", "1"], rows, strict=True)]
    assert [float(k) for k in kept] == pytest.approx(
        VECTORS["B1b consumed if 30d factors kept on 7d"], abs=1e-12
    )
    assert a.consumed_by("14.4", 3600, 30 * DAY) == Fraction(2, 100)


def test_b2_b3_what_an_alert_can_see() -> None:
    for target, expected in VECTORS["B2 max burn"].items():
        assert close(a.max_burn(target), expected)
    for target, expected in VECTORS["B3 error rate needed"].items():
        found = [float(a.error_rate_for(f, target)) for f in ("14.4", "6", "3", "1")]
        assert found == pytest.approx(expected, abs=1e-12)


def test_b4_minutes_to_fire() -> None:
    for name, expected in VECTORS["B4 minutes to detect"].items():
        target, error = (part.split("=")[1] for part in name.split())
        rows = [("14.4", 3600), ("6", 6 * 3600), ("3", DAY), ("1", 3 * DAY)]
        found = [a.time_to_fire(f, error, w, target) for f, w in rows]
        assert all(close(None if f is None else f / 60, e) for f, e in zip(found, expected, strict=True))
    assert a.time_to_fire(3, 0, DAY, "0.9") is None


def test_e1_exhaustion() -> None:
    vector = VECTORS["E1 exhaustion"]
    hours = 3600
    assert a.exhaustion_naive("14.4", 30 * DAY) == vector["naive_30d_burn14_4_h"] * hours
    assert a.exhaustion_naive(14, 28 * DAY) == vector["pyrra_28d_factor14_h"] * hours
    assert a.exhaustion_from_now("0.4", 2, 30 * DAY) == vector["rem0_4_burn2_h"] * hours
    assert a.exhaustion_from_now(1, "0.5", 30 * DAY) == vector["rem1_burn0_5_h"] * hours
    assert a.exhaustion_from_now("-0.6", 2, 30 * DAY) == vector["rem_neg"]
    assert a.exhaustion_from_now(1, 0, 30 * DAY) == math.inf == a.exhaustion_naive(0, 30 * DAY)
    assert a.exhaustion_from_now(None, 1, DAY) is None
    assert a.exhaustion_naive(None, DAY) is None


@pytest.mark.parametrize(
    ("bad", "ahead", "day"),
    [
        ([20] * 4 + [1] * 24, 10, 13),
        ([20] * 4 + [1] * 24, 6, 23),
        ([1] * 24 + [20] * 4, 10, 5),
    ],
)
def test_e2_what_leaves_the_window_matters(bad: list[int], ahead: int, day: int) -> None:
    buckets = [(100, b) for b in bad]
    result = a.account(2800 - sum(bad), 2800, "0.95")
    assert sum(bad) == 104
    assert close(result.remaining, 0.2571428571428571)
    assert a.exhaustion_rolling(buckets, (100, ahead), "0.95", DAY) == day * DAY
    if ahead == 10:
        assert a.exhaustion_from_now(result.remaining, 2, 28 * DAY) == pytest.approx(3.6 * DAY)


def test_rolling_forecast_at_its_ends() -> None:
    assert a.exhaustion_rolling([(100, 6)] * 28, (100, 0), "0.95", DAY) == 0
    assert a.exhaustion_rolling([(100, 0)] * 28, (100, 5), "0.95", DAY) == math.inf
    assert a.exhaustion_rolling([], (100, 5), "0.95", DAY) is None
    assert a.exhaustion_rolling([(100, 1)], (0, 0), "0.95", DAY) is None


def test_c1_composites() -> None:
    vector = VECTORS["C1 composite"]
    assert close(a.composite_burn([("0.6", 1), ("0.2", 1)]), vector["openslo_occ_sum"])
    assert close(a.composite_burn([("0.6", "0.5"), ("0.2", 2)]), vector["openslo_occ_w"])
    assert close(a.composite_target(["0.95", "0.95"]), vector["openslo_rts"])
    assert close(a.weighted_sli([("0.97", 3), ("0.99", 1)]), vector["weighted_avg_sli"])
    assert a.composite_burn([("0.6", 1), (None, 1)]) is None
    assert a.weighted_sli([]) is None


def test_c2_conjunction_is_no_product() -> None:
    vector = VECTORS["C2 per-task conjunction"]
    tasks = [(True, True)] * 7 + [(True, False), (False, True), (False, False)]
    assert sum(t[0] for t in tasks) == vector["completed"] == vector["latency"]
    assert a.conjunction(tasks) == (vector["all3"], vector["n"])
    assert close(Fraction(8, 10) ** 2, vector["product_of_marginals"])


def test_u1_bounds_of_unknown() -> None:
    without, worst, best = a.unknown_bounds(90, 4, 6)
    assert float(without or 0) == pytest.approx(0.957447, abs=1e-6)
    assert (worst, best) == (Fraction(9, 10), Fraction(96, 100))
    assert a.unknown_bounds(0, 0, 0) == (None, None, None)


def test_p1_pass_k() -> None:
    vector = VECTORS["K1 pass^k"]
    for k, expected in vector["n=8 c=6"].items():
        assert close(a.pass_hat_k(8, 6, int(k)), expected)
    for k, expected in vector["pass@k n=8 c=6"].items():
        assert close(a.pass_at_k(8, 6, int(k)), expected)
    assert a.pass_hat_k(3, 3, 4) is None


def test_s2_budgets_in_events_and_minutes() -> None:
    vector = VECTORS["S2 OpenSLO README DDoS"]
    events = a.budget("0.95") * vector["total_events"]
    assert close(events, vector["budget_events"])
    left = events - Fraction(1, 100) * vector["total_events"]
    assert close(left, vector["left_with_1pct_baseline"])
    assert close(a.budget("0.95") * vector["minutes"], vector["ts_budget_min"])
    week = VECTORS["S3 OpenSLO low traffic README: 1w 99.95%"]
    assert close(a.budget("0.9995") * week["minutes"] * 60, week["seconds"])


@pytest.mark.parametrize("target", ["0", "1", "1.5", "-0.1"])
def test_a_target_is_a_share(target: str) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        a.budget(target)


@pytest.mark.parametrize(("good", "n"), [(-1, 3), (4, 3), (0, -1)])
def test_impossible_counts(good: int, n: int) -> None:
    with pytest.raises(ValueError, match="0 <= good <= n"):
        a.account(good, n, "0.9")


@given(counts, targets)
def test_remaining_is_one_minus_burn(pair: tuple[int, int], target: Decimal) -> None:
    good, n = pair
    result = a.account(good, n, target)
    burn = a.burn_rate(n - good, n, target)
    assert result.remaining == (None if burn is None else 1 - burn)


@given(counts, targets)
def test_a_good_event_never_lowers_the_sli(pair: tuple[int, int], target: Decimal) -> None:
    good, n = pair
    before, after = a.account(good, n, target), a.account(good + 1, n + 1, target)
    assert after.sli is not None
    assert before.sli is None or after.sli >= before.sli
    assert before.remaining is None or (after.remaining or 0) >= before.remaining


@given(st.lists(st.one_of(st.none(), st.integers(0, 100)), max_size=50), st.randoms(), st.integers(0, 50))
def test_order_and_shards_do_not_matter(values: list[int | None], random: Any, cut_at: int) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    whole = a.threshold(values, "lte", 50)
    left, right = a.threshold(shuffled[:cut_at], "lte", 50), a.threshold(shuffled[cut_at:], "lte", 50)
    assert (left[0] + right[0], left[1] + right[1]) == whole


@given(counts, st.integers(0, 1000))
def test_bounds_enclose_the_sli(pair: tuple[int, int], unknown: int) -> None:
    good, n = pair
    sli, worst, best = a.unknown_bounds(good, n - good, unknown)
    if sli is not None and worst is not None and best is not None:
        assert worst <= sli <= best
