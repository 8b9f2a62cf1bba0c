"""Timeslices and RatioTimeslices: SLIs over slices of time instead of events.

A slice is (good, n). What an empty slice means must be said: `ignore` it, count it `good`, or `bad`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Literal

from metrics.slo.arithmetic import Number, exact

EmptySlices = Literal["ignore", "good", "bad"]


def timeslices(
    slices: Iterable[tuple[int, int]], slice_target: Number, empty: EmptySlices = "ignore"
) -> tuple[int, int]:
    """(good slices, slices): a slice is good when its ratio is at least `slice_target`."""
    wanted = exact(slice_target)
    good = count = 0
    for ok, n in slices:
        if n == 0:
            if empty == "ignore":
                continue
            good += empty == "good"
        else:
            good += Fraction(ok, n) >= wanted
        count += 1
    return good, count


def ratio_timeslices(slices: Iterable[tuple[int, int]], empty: EmptySlices = "ignore") -> Fraction | None:
    """Mean of the slice ratios; None without a slice that counts.

    A lone failed task at night weighs as much as a busy slice: that is what the method means.
    """
    ratios: list[Fraction] = []
    for ok, n in slices:
        if n:
            ratios.append(Fraction(ok, n))
        elif empty != "ignore":
            ratios.append(Fraction(empty == "good"))
    return sum(ratios, Fraction(0)) / len(ratios) if ratios else None


def expected_slices_burn(bad: int, expected: int, target: Number) -> Fraction | None:
    """Burn with the slices a window *should* hold as denominator, for slices that mostly stay empty.

    1 bad slice of 60 expected one-minute slices burns 1.67 at 99 %, not the 100 of 1 bad in 1 seen.
    Source: Elastic's low-traffic rule for timeslice SLOs.
    """
    return Fraction(bad, expected) / (1 - exact(target)) if expected else None
