"""The drift rule: vectors, laws, and its acceptance in a small seeded simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from benchmarks.drift import Cell, simulate
from metrics.drift.detect import (
    BASELINE_DAYS,
    MIN_TASKS,
    Day,
    benjamini_hochberg,
    detectable,
    hits_of_day,
    hodges_lehmann,
    judge_day,
    kitagawa,
    opened,
    pooled_p,
    shift_interval,
    tasks_needed,
)

OLD = np.array([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7])
NEW = np.array([1.25, 1.45, 1.55, 1.65, 1.75, 1.85, 1.95, 2.05])


def days(medians: list[float], first: int = 0, n: int = 20) -> list[Day]:
    return [Day(first + i, m, n) for i, m in enumerate(medians)]


def wobble(number: int, level: float = 0.0) -> list[float]:
    """A healthy stream: alternating medians around a level."""
    return [level + (0.05 if i % 2 else -0.05) for i in range(number)]


def test_the_shift_is_hodges_lehmann() -> None:
    assert math.exp(hodges_lehmann(np.log(OLD), np.log(NEW))) == pytest.approx(1.25, abs=5e-3)


def test_p_is_students_with_pooled_variance() -> None:
    expected = ttest_ind(NEW, OLD, equal_var=True, alternative="greater").pvalue
    assert pooled_p(OLD, NEW)[0] == pytest.approx(float(expected), rel=1e-9)


def test_equal_days_are_no_rise() -> None:
    same = np.full(28, 0.1 + 0.2)
    assert pooled_p(same, np.full(7, 0.3))[0] == 0.5
    assert pooled_p(same, np.full(7, 1.0))[0] == 0.0
    assert pooled_p(same, np.full(7, 0.0))[0] == 1.0


def test_benjamini_hochberg_vector() -> None:
    p = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216]
    assert benjamini_hochberg(p, 0.05) == [True, True] + [False] * 8
    assert benjamini_hochberg(list(reversed(p)), 0.05) == [False] * 8 + [True, True]
    assert benjamini_hochberg([], 0.05) == []


@pytest.mark.parametrize(("shift", "tasks"), [(1.1, 1411), (1.2, 386), (1.5, 78), (2.0, 27)])
def test_tasks_a_window_needs(shift: float, tasks: int) -> None:
    assert tasks_needed(shift) == tasks


def test_a_window_needs_days_and_tasks() -> None:
    healthy = days(wobble(BASELINE_DAYS))
    end = BASELINE_DAYS + 6
    assert judge_day(healthy + days(wobble(7), BASELINE_DAYS), 0, end) is not None
    assert judge_day(healthy + days(wobble(4), BASELINE_DAYS), 0, end) is None
    few = MIN_TASKS // 7
    assert judge_day(healthy + days(wobble(7), BASELINE_DAYS, few), 0, end) is None
    assert judge_day(healthy[:10] + days(wobble(7), BASELINE_DAYS), 0, end) is None


def test_a_large_but_unsure_and_a_sure_but_small_shift_are_no_hits() -> None:
    healthy = days([(-1) ** i * 0.01 for i in range(BASELINE_DAYS)])
    end = BASELINE_DAYS + 6
    small = judge_day(healthy + days([0.05] * 7, BASELINE_DAYS), 0, end)
    large = judge_day(healthy + days([0.5] * 7, BASELINE_DAYS), 0, end)
    assert small is not None
    assert large is not None
    assert (small.p < 0.003, small.is_hit) == (True, False)
    assert (large.p < 0.003, large.is_hit) == (True, True)


def test_two_hits_open_two_clean_days_close_and_silence_says_nothing() -> None:
    assert opened([True]) is None
    assert opened([True, False, True]) is None
    assert opened([False, True, True]) == 2
    assert opened([True, None, True]) == 2
    assert opened([True, True, False, True, False]) == 1
    assert opened([True, True, False, None, False]) is None
    assert opened([True, True, False, False, True, True]) == 5


def test_many_streams_bound_the_false_ones() -> None:
    healthy = days(wobble(BASELINE_DAYS))
    risen = judge_day(healthy + days(wobble(7, 0.13), BASELINE_DAYS), 0, BASELINE_DAYS + 6)
    calm = judge_day(healthy + days(wobble(7), BASELINE_DAYS), 0, BASELINE_DAYS + 6)
    assert risen is not None
    assert 1e-6 < risen.p < 0.003
    assert hits_of_day([risen, None]) == [True, None]
    # One weak hit among very many streams is what chance brings.
    needed = math.ceil(0.05 / risen.p) + 1
    assert hits_of_day([risen] + [calm] * needed)[0] is False


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.01, 10), st.floats(0.01, 10), st.floats(0, 50), st.floats(0, 50)),
        min_size=1,
        max_size=6,
    )
)
def test_mix_and_rate_add_up_to_the_change(groups: list[tuple[float, float, float, float]]) -> None:
    old, new = sum(g[0] for g in groups), sum(g[1] for g in groups)
    before, after = [(g[0] / old, g[2]) for g in groups], [(g[1] / new, g[3]) for g in groups]
    mix, rate = kitagawa(before, after)
    change = sum(s * m for s, m in after) - sum(s * m for s, m in before)
    assert mix + rate == pytest.approx(change, abs=1e-9)


def test_another_mix_at_the_same_prices_is_all_mix() -> None:
    mix, rate = kitagawa([(0.5, 1.0), (0.5, 3.0)], [(0.1, 1.0), (0.9, 3.0)])
    assert (mix, rate) == (pytest.approx(0.8), 0.0)
    assert kitagawa([(1.0, 1.0), (0.0, 0.0)], [(0.5, 1.0), (0.5, 3.0)]) == (1.0, 0.0)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-3, 3), min_size=5, max_size=8), st.floats(-2, 2))
def test_the_unit_does_not_matter(medians: list[float], unit: float) -> None:
    """Cents or dollars: adding a constant to all logs changes neither shift nor p."""
    base = np.array(wobble(28))
    window = np.array(medians)
    assert hodges_lehmann(base + unit, window + unit) == pytest.approx(hodges_lehmann(base, window), abs=1e-9)
    assert pooled_p(base + unit, window + unit)[0] == pytest.approx(pooled_p(base, window)[0], abs=1e-6)


def test_the_interval_is_the_same_every_time_and_holds_the_shift() -> None:
    base, window = np.array(wobble(28)), np.array(wobble(7, 0.3))
    low, high = shift_interval(base, window)
    assert (low, high) == shift_interval(base, window)
    assert low <= math.exp(hodges_lehmann(base, window)) <= high


def test_what_can_be_found_shrinks_with_the_noise() -> None:
    assert detectable(0.0, 28, 7) == 1.10
    assert detectable(0.05, 28, 7) < detectable(0.1, 28, 7) < detectable(0.3, 28, 7)


@pytest.mark.parametrize(
    ("cell", "low", "high"),
    [
        (Cell(100, 0.1, 1.0), 0.0, 0.08),
        (Cell(100, 0.0, 1.2, by_day=14), 0.92, 1.0),
        (Cell(100, 0.1, 1.2, by_day=30), 0.85, 1.0),
        (Cell(100, 0.1, 1.5, by_day=14), 0.95, 1.0),
    ],
)
def test_acceptance_in_simulation(cell: Cell, low: float, high: float) -> None:
    share = simulate(cell, 150, seed=1)["alarms"]
    assert isinstance(share, float)
    assert low <= share <= high
