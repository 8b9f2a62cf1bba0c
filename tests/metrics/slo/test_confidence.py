from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from metrics.slo.confidence import k_min, p_at_least, p_empty, p_met, wilson


@pytest.mark.parametrize(
    ("good", "n", "low", "high", "met"),
    [
        (0, 10, 0.0, 0.277533, 0.0),
        (10, 10, 0.722467, 1.0, 0.6949),
        (19, 20, 0.763869, 0.991119, 0.4329),
        (48, 50, 0.865399, 0.988961, 0.5904),
        (95, 100, 0.888250, 0.978456, 0.4719),
        (100, 100, 0.963007, 1.0, 0.9987),
        (288, 300, 0.931396, 0.976973, 0.7824),
        (970, 1000, 0.957497, 0.978906, 0.9990),
    ],
)
def test_interval_table(good: int, n: int, low: float, high: float, met: float) -> None:
    assert wilson(good, n) == pytest.approx((low, high), abs=1e-6)
    assert p_met(good, n, "0.95") == pytest.approx(met, abs=5e-5)


def test_nothing_seen_nothing_known() -> None:
    assert wilson(0, 0) is None
    assert p_met(0, 0, "0.95") is None


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_and_stays_inside(pair: tuple[int, int]) -> None:
    good, n = pair
    band = wilson(good, n)
    assert band is not None
    assert 0 <= band[0] <= good / n <= band[1] <= 1
    assert band[0] < band[1]


@pytest.mark.parametrize(
    ("target", "table"),
    [
        ("0.95", {10: 4, 20: 5, 50: 8, 100: 12, 200: 19}),
        ("0.99", {10: 2, 20: 3, 50: 4, 100: 5}),
        ("0.9", {10: 5, 20: 7, 50: 11, 100: 19}),
    ],
)
def test_k_min_table(target: str, table: dict[int, int]) -> None:
    assert {n: k_min(n, target, 0.01) for n in table} == table
    assert k_min(1, target, 0.0001) is None


@given(st.integers(1, 300), st.integers(0, 300), st.floats(0.001, 0.5))
def test_binomial_tail_is_scipys(n: int, k: int, share: float) -> None:
    assert p_at_least(k, n, share) == pytest.approx(float(binom.sf(k - 1, n, share)), abs=1e-9)


def test_one_failure_of_four_is_no_evidence() -> None:
    assert p_at_least(1, 4, "0.005") == pytest.approx(0.0199, abs=5e-5)


@pytest.mark.parametrize(
    ("per_day", "window", "chance"),
    [(100, 300, 0.70665), (100, 1800, 0.12451), (100, 7200, 0.00024), (20, 300, 0.93291)],
)
def test_x1_empty_windows(per_day: float, window: float, chance: float) -> None:
    assert p_empty(per_day, window) == pytest.approx(chance, abs=5e-6)
