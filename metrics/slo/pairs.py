"""Which burn-rate pairs an objective gets at its traffic, and whether they fire: pure functions.

The well-known 14.4/6/3/1 table misfires at agent volumes: a healthy agent with 100 tasks a day and a 99 %
target is paged 11.8 times in 30 days by it, 0.05 times with three bad tasks demanded; at a 90 % target its
14.4x page can never fire. So pairs are chosen by volume and gated by an exact binomial test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

from metrics.slo.arithmetic import burn_rate, error_rate_for, exact, factor_for, max_burn
from metrics.slo.confidence import k_min, p_at_least, p_empty
from metrics.slo.objective import AlertPair
from metrics.slo.windows import format_seconds

DAY = 86400
_REFERENCE_WINDOW = 28 * DAY
_MIN_EXPECTED_BAD = 5
_MAX_P_EMPTY = 0.05

_WORKBOOK = (
    # severity, percent of the budget, long, short, largest p value
    ("page", 2, 3600, 300, 0.001),
    ("page", 5, 6 * 3600, 1800, 0.001),
    ("ticket", 10, DAY, 2 * 3600, 0.01),
    ("ticket", 10, 3 * DAY, 6 * 3600, 0.01),
)
"""The SRE workbook's rows, as shares of the budget, so the factors follow the SLO window."""

_WIDE = (
    # severity, factor, long, short for a 28 day SLO window
    ("page", Decimal(3), DAY, 2 * 3600, 0.01),
    ("ticket", Decimal("1.5"), 7 * DAY, DAY, 0.01),
)
"""Pairs for tens to hundreds of tasks a day: 0 to 0.02 false pages in 30 days in the same simulation."""


@dataclass(frozen=True)
class Count:
    """Valid and bad events of one window."""

    n: int
    bad: int


@dataclass(frozen=True)
class Verdict:
    """One pair judged at one moment."""

    pair: AlertPair
    firing: bool
    frozen: bool
    why: str


def cannot_fire(factor: Decimal, target: Decimal) -> str | None:
    """Why a burn alert with this factor makes no sense for the target; None when it does.

    A burn of 1/B means that every event is bad, so a factor there can never be passed; below 1 the alert
    speaks while the SLO is being met.
    """
    if exact(factor) >= max_burn(target):
        top = float(max_burn(target))
        return f"can never fire: at a target of {float(target) * 100:g} % the burn rate cannot pass {top:g}"
    if factor < 1:
        return "fires while the objective is met: a burn rate below 1 does not use up the budget"
    return None


def _widened(short_s: int, long_s: int, per_day: float) -> int:
    """The short window doubled until it is seldom empty, at most half the long one."""
    wide = short_s
    while p_empty(per_day, wide) > _MAX_P_EMPTY and wide * 2 <= long_s // 2:
        wide *= 2
    if p_empty(per_day, wide) > _MAX_P_EMPTY:
        wide = max(wide, long_s // 2)
    return wide


def _rounded(value: Fraction) -> Decimal:
    return (Decimal(value.numerator) / Decimal(value.denominator)).quantize(Decimal("0.001"), ROUND_HALF_UP)


def choose(
    target: Decimal, slo_window_s: int, per_day: float
) -> tuple[tuple[AlertPair, ...], tuple[str, ...]]:
    """(pairs, reasons for pairs left out) for an objective that sees `per_day` valid events a day.

    The wide pairs are always there, scaled to the SLO window; a workbook row joins when it can fire, is
    above 1, and expects at least five bad events in its long window at the rate it alerts on.
    """
    pairs: list[AlertPair] = []
    left_out: list[str] = []
    for severity, percent, long_s, short_s, max_p in _WORKBOOK:
        factor = _rounded(factor_for(percent, long_s, slo_window_s))
        name = f"{severity} {factor.normalize():f}x over {format_seconds(long_s)}"
        problem = cannot_fire(factor, target)
        expected = per_day * long_s / DAY * float(error_rate_for(factor, target))
        if problem is None and expected < _MIN_EXPECTED_BAD:
            problem = (
                f"too little traffic: {per_day:.3g} events a day make {expected:.2g} bad ones at the rate it "
                f"alerts on, {_MIN_EXPECTED_BAD} are needed"
            )
        if problem is not None:
            left_out.append(f"{name}: {problem}")
            continue
        short = _widened(short_s, long_s, per_day)
        why = f"spends {percent} % of the budget in {format_seconds(long_s)}"
        pairs.append(AlertPair(severity, long_s, short, factor, 3, max_p, why + _widening(short_s, short)))
    for severity, wanted, long_28, short_28, max_p in _WIDE:
        long_s = _scaled(long_28, slo_window_s)
        short_s = _scaled(short_28, slo_window_s)
        factor, note = wanted, "wide pair for low traffic"
        if cannot_fire(factor, target):
            # Half way between "just using up the budget" and "everything is bad".
            factor = _rounded((1 + max_burn(target)) / 2)
            top = float(max_burn(target))
            note += f"; factor lowered from {wanted} because the burn rate cannot pass {top:g}"
        short = _widened(short_s, long_s, per_day)
        pairs.append(AlertPair(severity, long_s, short, factor, 3, max_p, note + _widening(short_s, short)))
    return tuple(pairs), tuple(left_out)


def _scaled(seconds: int, slo_window_s: int) -> int:
    """A window for 28 days scaled to the SLO window, in round hours or minutes; a month is near enough."""
    if 0.9 <= slo_window_s / _REFERENCE_WINDOW <= 1.15:
        return seconds
    scaled = seconds * slo_window_s / _REFERENCE_WINDOW
    grain = 3600 if scaled >= 3 * 3600 else 300 if scaled >= 900 else 60
    return max(60, round(scaled / grain) * grain)


def _widening(before: int, after: int) -> str:
    if before == after:
        return ""
    return f"; short window widened from {format_seconds(before)}, which would often be empty"


def judge(
    pair: AlertPair, target: Decimal, long: Count, short: Count, *, was_firing: bool = False
) -> Verdict:
    """Does the pair fire on these counts?

    Strictly above the factor in both windows, at least `min_bad` bad events in the long one, and so many
    that an agent exactly on target would show them with a probability of at most `max_p`. An empty short
    window is no news: an alert that was firing keeps firing (frozen), one that was not stays quiet.
    """
    burn_long = burn_rate(long.bad, long.n, target)
    burn_short = burn_rate(short.bad, short.n, target)
    names = format_seconds(pair.long_s), format_seconds(pair.short_s)
    if burn_short is None or burn_long is None:
        empty = names[1] if burn_short is None else names[0]
        word = "kept as it was" if was_firing else "nothing to judge"
        return Verdict(pair, was_firing, was_firing, f"no events in the last {empty}: {word}")
    said = (
        f"burn {float(burn_long):.3g} over {names[0]} ({long.bad} bad of {long.n}) and "
        f"{float(burn_short):.3g} over {names[1]} ({short.bad} of {short.n}), "
        f"threshold {pair.factor.normalize():f}"
    )
    factor = exact(pair.factor)
    if burn_long <= factor or burn_short <= factor:
        return Verdict(pair, False, False, said)
    if long.bad < pair.min_bad:
        return Verdict(pair, False, False, f"{said}; held back: fewer than {pair.min_bad} bad events")
    p = p_at_least(long.bad, long.n, 1 - exact(target))
    if p > pair.max_p:
        needed = k_min(long.n, target, pair.max_p)
        need = f"{needed} bad of {long.n} would" if needed is not None else f"{long.n} events can never"
        return Verdict(
            pair,
            False,
            False,
            f"{said}; held back: chance alone gives this with p = {p:.2g}, {need} be convincing",
        )
    return Verdict(pair, True, False, f"{said}; p = {p:.2g} if the agent were just on target")


def judge_all(
    pairs: tuple[AlertPair, ...], target: Decimal, counts: Mapping[int, Count], was_firing: frozenset[str]
) -> tuple[Verdict, ...]:
    """Every pair on `counts` (window seconds -> Count); `was_firing` holds `pair_key`s of the last round."""
    return tuple(
        judge(p, target, counts[p.long_s], counts[p.short_s], was_firing=pair_key(p) in was_firing)
        for p in pairs
    )


def pair_key(pair: AlertPair) -> str:
    """Identity of a pair across evaluations: severity and long window (the short one may be widened)."""
    return f"{pair.severity}:{format_seconds(pair.long_s)}"
