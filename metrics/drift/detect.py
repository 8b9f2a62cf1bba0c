"""Has a stream of tasks become dearer or slower? Pure functions over day medians of log values.

Tasks of one day are not independent (model version, traffic mix, provider weather): a test on single tasks
becomes a false-alarm machine with a mere 10 % day effect (Mann-Whitney p < .001: 52 % of healthy streams within
60 days). So days are tested, tasks are reported. In simulation (`benchmarks/drift.py`) this rule raises an alarm in
2 % of healthy streams within 60 days with a 10 % day effect, and finds +20 % at 100 tasks a day by day 30 in 92 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

BASELINE_DAYS = 28
WINDOW_DAYS = 7
P_VALUE = 0.003
LEAST_SHIFT = 1.10
RUNNING_DAYS = 2
CLEAN_DAYS = 2
MIN_TASKS = 30
MIN_DAYS = 5
MIN_BASELINE_DAYS = 14
MANY_STREAMS = 15
FALSE_DISCOVERY = 0.05
POWER = 0.9

State = Literal["learning", "insufficient", "steady", "rising"]


@dataclass(frozen=True)
class Day:
    """One day of a stream: its number (days since 1970), the median of log values, and the tasks behind it."""

    number: int
    median: float
    n: int


@dataclass(frozen=True)
class Tested:
    """Window against baseline: one-sided p value of a rise, and the shift as a ratio (1.2: 20 % more)."""

    p: float
    shift: float
    baseline_days: int
    window_days: int
    baseline_n: int
    n: int
    spread: float
    """Pooled standard deviation of the day medians (log)."""

    @property
    def is_hit(self) -> bool:
        """Significant and large enough to matter."""
        return self.p < P_VALUE and self.shift >= LEAST_SHIFT


def pooled_p(baseline: NDArray[np.float64], window: NDArray[np.float64]) -> tuple[float, float]:
    """(one-sided p that the window's mean is not above the baseline's, pooled standard deviation)."""
    n, m = len(baseline), len(window)
    df = n + m - 2
    squares = float(((baseline - baseline.mean()) ** 2).sum() + ((window - window.mean()) ** 2).sum())
    spread = math.sqrt(squares / df)
    rise = float(window.mean() - baseline.mean())
    error = spread * math.sqrt(1 / n + 1 / m)
    # A relative bound: means of equal values differ by rounding, and that is no rise.
    tiny = 1e-12 * (1 + abs(rise) + float(np.abs(baseline).max()))
    if error <= tiny:
        return (0.0 if rise > tiny else 0.5 if rise > -tiny else 1.0), spread
    return float(stdtr(df, -rise / error)), spread


def hodges_lehmann(baseline: NDArray[np.float64], window: NDArray[np.float64]) -> float:
    """Median of all differences window - baseline."""
    return float(np.median(np.subtract.outer(window, baseline)))


def arrays(days: Sequence[Day]) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """(numbers, medians, task counts) of days in order."""
    return (
        np.array([d.number for d in days], dtype=np.int64),
        np.array([d.median for d in days], dtype=np.float64),
        np.array([d.n for d in days], dtype=np.int64),
    )


def judge_day(days: Sequence[Day], start: int, day: int) -> Tested | None:
    """The window that ends with `day` against the 28 days from `start`; None with too little in either."""
    first = start + BASELINE_DAYS
    low = max(first, day - WINDOW_DAYS + 1)
    baseline = [d for d in days if start <= d.number < first]
    window = [d for d in days if low <= d.number <= day]
    tasks = sum(d.n for d in window)
    if len(baseline) < MIN_BASELINE_DAYS or len(window) < MIN_DAYS or tasks < MIN_TASKS:
        return None
    _, before, _ = arrays(baseline)
    _, after, _ = arrays(window)
    p, spread = pooled_p(before, after)
    return Tested(
        p=p,
        shift=math.exp(hodges_lehmann(before, after)),
        baseline_days=len(baseline),
        window_days=len(window),
        baseline_n=sum(d.n for d in baseline),
        n=tasks,
        spread=spread,
    )


def benjamini_hochberg(p_values: Sequence[float], q: float = FALSE_DISCOVERY) -> list[bool]:
    """Which of the p values are discoveries at a false discovery rate of `q`, in the given order."""
    m = len(p_values)
    order = sorted(range(m), key=lambda i: p_values[i])
    last = max((rank for rank, i in enumerate(order, start=1) if p_values[i] <= rank / m * q), default=0)
    found = [False] * m
    for i in order[:last]:
        found[i] = True
    return found


def hits_of_day(tested: Sequence[Tested | None]) -> list[bool | None]:
    """Which streams are hit on one day; None: not testable. With many streams the false ones are bounded."""
    known = [t for t in tested if t is not None]
    allowed = iter(
        benjamini_hochberg([t.p for t in known]) if len(known) > MANY_STREAMS else [True] * len(known)
    )
    return [None if t is None else next(allowed) and t.is_hit for t in tested]


def opened(hits: Sequence[bool | None]) -> int | None:
    """Index of the day a rise that still lasts was opened; None: none does.

    It opens on the second hit in a row and closes on the second clean day in a row; days that cannot be
    tested say nothing.
    """
    start: int | None = None
    hit = clean = 0
    for i, value in enumerate(hits):
        if value is None:
            continue
        hit, clean = (hit + 1, 0) if value else (0, clean + 1)
        if start is None and hit >= RUNNING_DAYS:
            start = i
        elif start is not None and clean >= CLEAN_DAYS:
            start = None
    return start


def detectable(spread: float, baseline_days: int, window_days: int) -> float:
    """Smallest shift (ratio) that one day's test finds with a probability of 90 %."""
    df = baseline_days + window_days - 2
    needed = float(stdtrit(df, 1 - P_VALUE) + stdtrit(df, POWER))
    return max(LEAST_SHIFT, math.exp(needed * spread * math.sqrt(1 / baseline_days + 1 / window_days)))


def tasks_needed(shift: float, spread: float = 0.8, p: float = 0.001, power: float = POWER) -> int:
    """Tasks a window needs to find a shift of independent tasks with log spread `spread`, by rank test.

    The rank test's efficiency against the t test is 3/pi for normal (log) values.
    """
    z = float(ndtri(1 - p) + ndtri(power))
    return math.ceil((z * spread / math.log(shift)) ** 2 * math.pi / 3)


def shift_interval(
    baseline: NDArray[np.float64], window: NDArray[np.float64], draws: int = 1000
) -> tuple[float, float]:
    """95 % interval of the shift (ratio) by resampling days; the same every time it is asked."""
    random = np.random.default_rng(0)
    first = random.choice(baseline, (draws, len(baseline)))
    second = random.choice(window, (draws, len(window)))
    differences = np.median(second[:, :, None] - first[:, None, :], axis=(1, 2))
    low, high = np.quantile(differences, (0.025, 0.975))
    return math.exp(low), math.exp(high)


def kitagawa(
    before: Sequence[tuple[float, float]], after: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """(mix, rate): how a change of the mean divides into other groups and the same groups dearer.

    Groups are (share, mean) in the same order; the two parts add up to the change exactly. The mean of a
    group without tasks on one side is taken from the other side.
    Source: Kitagawa, Components of a difference between two rates, 1955.
    """
    mix = rate = 0.0
    for (s0, m0), (s1, m1) in zip(before, after, strict=True):
        mean0, mean1 = (m0 if s0 else m1), (m1 if s1 else m0)
        mix += (s1 - s0) * (mean0 + mean1) / 2
        rate += (mean1 - mean0) * (s0 + s1) / 2
    return mix, rate
