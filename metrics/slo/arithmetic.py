"""Ratio SLIs, error budgets, burn rates, forecasts, composites and bounds: pure functions, no I/O.

Notation of the docs: target T, budget B = 1 - T, good g, bad b, valid events n = g + b, SLO window W.
Targets are `Decimal` (or decimal text) and the sums are done in `Fraction`, because `1 - 0.999` is
0.0010000000000000009 in floats and a budget that is off by 1e-16 decides a comparison on the edge.
`None` means "not known" (no events), never 0 and never NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

Number = int | float | Decimal | Fraction | str
Op = Literal["lt", "lte", "gt", "gte"]


def exact(value: Number) -> Fraction:
    """`value` as an exact fraction. Floats are read as the decimal a person would write (0.1 -> 1/10).

    Raises ValueError for text that is no number and for NaN or infinity.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, float):
        return Fraction(repr(value)) if math.isfinite(value) else Fraction(str(value))
    return Fraction(value)


def budget(target: Number) -> Fraction:
    """The error budget B = 1 - T as a share of events. Raises ValueError unless 0 < T < 1."""
    share = exact(target)
    if not 0 < share < 1:
        raise ValueError(f"a target is a share between 0 and 1, both excluded; got {target}")
    return 1 - share


@dataclass(frozen=True)
class Budget:
    """What n valid events with `bad` bad ones mean for a target; every share unclamped."""

    n: int
    good: int
    bad: int
    share: Fraction
    """B, the allowed share of bad events."""
    sli: Fraction | None
    error_rate: Fraction | None
    consumed: Fraction | None
    """Share of the budget used; above 1 once the SLO is missed."""
    remaining: Fraction | None
    """1 - consumed, below 0 once the SLO is missed: how far it was missed stays visible."""
    events: Fraction
    """Bad events the n events so far allow."""
    events_left: Fraction

    @property
    def burn(self) -> Fraction | None:
        """Burn rate over the events counted: equal to `consumed`, since both are error rate / B."""
        return self.consumed


def account(good: int, n: int, target: Number) -> Budget:
    """The budget after `n` valid events of which `good` were good. Raises ValueError on impossible counts."""
    if good < 0 or n < 0 or good > n:
        raise ValueError(f"counts must satisfy 0 <= good <= n; got good={good}, n={n}")
    share = budget(target)
    bad = n - good
    events = share * n
    if n == 0:
        return Budget(0, 0, 0, share, None, None, None, None, events, events)
    error_rate = Fraction(bad, n)
    consumed = error_rate / share
    return Budget(
        n, good, bad, share, 1 - error_rate, error_rate, consumed, 1 - consumed, events, events - bad
    )


def ratio(good: int, n: int) -> Fraction | None:
    """g/n; None without events."""
    return Fraction(good, n) if n else None


def meets(value: Number, op: Op, cut: Number) -> bool:
    """Does `value` satisfy `op cut`?"""
    left, right = exact(value), exact(cut)
    match op:
        case "lt":
            return left < right
        case "lte":
            return left <= right
        case "gt":
            return left > right
        case "gte":
            return left >= right


def threshold(values: Iterable[Number | None], op: Op, cut: Number) -> tuple[int, int]:
    """(good, n) of a threshold SLI: a missing value is not a valid event (coverage is another number)."""
    known = [v for v in values if v is not None]
    return sum(meets(v, op, cut) for v in known), len(known)


def burn_rate(bad: int, n: int, target: Number) -> Fraction | None:
    """(b/n)/B over one window: how many times faster than allowed the budget goes. None when n = 0."""
    return Fraction(bad, n) / budget(target) if n else None


def max_burn(target: Number) -> Fraction:
    """1/B, reached when every event is bad: an alert with a factor at or above it can never fire."""
    return 1 / budget(target)


def factor_for(percent: Number, window_s: Number, slo_window_s: Number) -> Fraction:
    """The burn factor that spends `percent` % of the SLO window's budget within `window_s` seconds."""
    return exact(percent) / 100 * exact(slo_window_s) / exact(window_s)


def consumed_by(factor: Number, window_s: Number, slo_window_s: Number) -> Fraction:
    """Share of the budget that burning at `factor` over `window_s` uses (14.4 x 1 h / 720 h = 2 %)."""
    return exact(factor) * exact(window_s) / exact(slo_window_s)


def error_rate_for(factor: Number, target: Number) -> Fraction:
    """The error rate at which the burn rate is `factor`; above 1 it cannot happen."""
    return exact(factor) * budget(target)


def time_to_fire(factor: Number, error_rate: Number, window_s: Number, target: Number) -> Fraction | None:
    """Seconds from a sudden constant `error_rate` until the long window passes `factor`.

    None when it never does. The gates on bad events and p value are not considered.
    """
    rate = exact(error_rate)
    if rate <= 0:
        return None
    seconds = error_rate_for(factor, target) / rate * exact(window_s)
    return seconds if seconds <= exact(window_s) else None


def exhaustion_naive(burn: Number | None, slo_window_s: Number) -> float | None:
    """Seconds a *full* budget lasts at `burn` (W/f); inf at burn 0, None when the burn is unknown."""
    if burn is None:
        return None
    rate = exact(burn)
    return float(exact(slo_window_s) / rate) if rate > 0 else math.inf


def exhaustion_from_now(remaining: Number | None, burn: Number | None, slo_window_s: Number) -> float | None:
    """Seconds the budget that is *left* lasts at `burn`: 0 when nothing is left, inf at burn 0."""
    if remaining is None or burn is None:
        return None
    left, rate = exact(remaining), exact(burn)
    if left <= 0:
        return 0.0
    return float(left * exact(slo_window_s) / rate) if rate > 0 else math.inf


def exhaustion_rolling(
    buckets: Sequence[tuple[int, int]], forecast: tuple[Number, Number], target: Number, bucket_s: Number
) -> float | None:
    """Seconds until a rolling window is out of budget: old buckets leave it, forecast buckets enter it.

    `buckets` are (n, bad), oldest first, and fill the SLO window; `forecast` is the (n, bad) every coming
    bucket of `bucket_s` seconds is expected to hold. 0 when the budget is gone already, inf when it never
    will be, None without buckets or with nothing to forecast from. A forecast that ignores what leaves the
    window is wrong both ways: four bad days about to drop out against four that just came in (same counts)
    last 13 and 5 days.
    """
    if not buckets or exact(forecast[0]) <= 0:
        return None
    share = budget(target)
    n = exact(sum(b[0] for b in buckets))
    bad = exact(sum(b[1] for b in buckets))
    if bad > share * n:
        return 0.0
    new_n, new_bad = exact(forecast[0]), exact(forecast[1])
    for step, (old_n, old_bad) in enumerate(buckets, start=1):
        n += new_n - old_n
        bad += new_bad - old_bad
        if bad > share * n:
            return float(step * exact(bucket_s))
    return math.inf


def expected_budget_events(n: int, elapsed_s: Number, window_s: Number, target: Number) -> Fraction | None:
    """Budget in events at the end of a calendar window if traffic goes on as so far: an estimate."""
    elapsed = exact(elapsed_s)
    return budget(target) * n * exact(window_s) / elapsed if elapsed > 0 else None


def unknown_bounds(
    good: int, bad: int, unknown: int
) -> tuple[Fraction | None, Fraction | None, Fraction | None]:
    """(SLI without the unknown ones, SLI if all were bad, SLI if all were good)."""
    n = good + bad
    return ratio(good, n), ratio(good, n + unknown), ratio(good + unknown, n + unknown)


def composite_burn(parts: Sequence[tuple[Number | None, Number]]) -> Fraction | None:
    """OpenSLO composite, Occurrences: the sum of weight x burn of (burn, weight); None if one is unknown."""
    total = Fraction(0)
    for burn, weight in parts:
        if burn is None:
            return None
        total += exact(burn) * exact(weight)
    return total


def composite_target(targets: Sequence[Number]) -> Fraction:
    """OpenSLO composite, RatioTimeslices: budgets add up (95 % and 95 % leave 90 %)."""
    return 1 - sum((budget(t) for t in targets), Fraction(0))


def weighted_sli(parts: Sequence[tuple[Number, Number]]) -> Fraction | None:
    """Weighted mean of (SLI, weight)."""
    weight = sum((exact(w) for _, w in parts), Fraction(0))
    return sum((exact(s) * exact(w) for s, w in parts), Fraction(0)) / weight if weight else None


def conjunction(tasks: Iterable[Sequence[bool]]) -> tuple[int, int]:
    """(good, n) where a task is good only if all its verdicts are: exact, since the events are ours.

    The product of the single SLIs would assume independence (0.64 where the truth is 0.7).
    """
    verdicts = [all(v) for v in tasks]
    return sum(verdicts), len(verdicts)


def pass_hat_k(n: int, c: int, k: int) -> Fraction | None:
    """pass^k: the unbiased chance that k repeats all pass, C(c,k)/C(n,k), from c of n; None when n < k."""
    return Fraction(math.comb(c, k), math.comb(n, k)) if n >= k else None


def pass_at_k(n: int, c: int, k: int) -> Fraction | None:
    """pass@k: the unbiased chance that at least one of k repeats passes, 1 - C(n-c,k)/C(n,k)."""
    return 1 - Fraction(math.comb(n - c, k), math.comb(n, k)) if n >= k else None
