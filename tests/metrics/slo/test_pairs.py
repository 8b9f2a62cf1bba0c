from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from metrics.slo.objective import AlertPair
from metrics.slo.pairs import Count, cannot_fire, choose, judge
from metrics.slo.windows import format_seconds

DAY = 86400
MONTH = 28 * DAY


def names(target: str, window: int, per_day: float) -> list[str]:
    pairs, _ = choose(Decimal(target), window, per_day)
    return [f"{p.severity} {format_seconds(p.long_s)}/{format_seconds(p.short_s)}" for p in pairs]


def test_low_traffic_gets_the_wide_pairs_only() -> None:
    assert names("0.99", MONTH, 100) == ["page 1d/2h", "ticket 7d/1d"]
    _, left_out = choose(Decimal("0.99"), MONTH, 100)
    assert len(left_out) == 4
    assert "too little traffic" in left_out[0]


def test_workbook_pairs_join_with_traffic() -> None:
    assert names("0.99", 30 * DAY, 5000) == [
        "page 1h/5m",
        "page 6h/30m",
        "ticket 1d/2h",
        "ticket 3d/6h",
        "page 1d/2h",
        "ticket 7d/1d",
    ]


@pytest.mark.parametrize(
    ("target", "needed"),
    [("0.99", (834, 334, 167)), ("0.95", (167, 67, 34)), ("0.9", (None, 34, 17))],
)
def test_tasks_a_day_a_row_needs(target: str, needed: tuple[int | None, ...]) -> None:
    """Rule (c): five bad events expected in the long window at the rate the row alerts on (30 day SLO)."""
    for long, per_day in zip(("1h", "6h", "1d"), needed, strict=True):

        def has(rate: float, long: str = long) -> bool:
            pairs, _ = choose(Decimal(target), 30 * DAY, rate)
            return any(format_seconds(p.long_s) == long and "spends" in p.why for p in pairs)

        if per_day is None:
            assert not has(1e6)
        else:
            assert has(per_day)
            assert not has(per_day - 2)


def test_a_pair_that_cannot_fire_is_told() -> None:
    assert "can never fire" in (cannot_fire(Decimal("14.4"), Decimal("0.9")) or "")
    assert "while the objective is met" in (cannot_fire(Decimal("0.7"), Decimal("0.9")) or "")
    assert cannot_fire(Decimal("14.4"), Decimal("0.95")) is None
    assert cannot_fire(Decimal(10), Decimal("0.9")) is not None


def test_no_chosen_pair_is_impossible() -> None:
    for target in ("0.3", "0.5", "0.6", "0.8", "0.9", "0.99", "0.9999"):
        for window in (DAY, 7 * DAY, MONTH, 90 * DAY):
            for per_day in (0, 20, 100, 10_000):
                pairs, _ = choose(Decimal(target), window, per_day)
                assert pairs
                for pair in pairs:
                    assert cannot_fire(pair.factor, Decimal(target)) is None
                    assert 0 < pair.short_s < pair.long_s <= window


def test_short_windows_widen_until_seldom_empty() -> None:
    (page, _), _ = choose(Decimal("0.9"), MONTH, 10)[0][-2:], None
    assert format_seconds(page.short_s) == "8h"
    assert "widened from 2h" in page.why


def test_gates() -> None:
    pair = AlertPair("page", DAY, 7200, Decimal(3))
    target = Decimal("0.95")
    fires = judge(pair, target, Count(100, 20), Count(10, 5))
    assert fires.firing
    assert "20 bad of 100" in fires.why
    assert not judge(pair, target, Count(100, 15), Count(10, 5)).firing, (
        "exactly at the factor is not above it"
    )
    assert not judge(pair, target, Count(100, 20), Count(10, 0)).firing, "over already"
    few = judge(pair, target, Count(4, 2), Count(4, 2))
    assert not few.firing
    assert "fewer than 3 bad" in few.why
    chance = judge(pair, target, Count(16, 3), Count(10, 3))
    assert not chance.firing
    assert "chance alone" in chance.why
    assert "4 bad of 16 would" in chance.why


def test_an_empty_short_window_changes_nothing() -> None:
    pair = AlertPair("page", DAY, 7200, Decimal(3))
    for was in (True, False):
        verdict = judge(pair, Decimal("0.95"), Count(100, 20), Count(0, 0), was_firing=was)
        assert (verdict.firing, verdict.frozen) == (was, was)


def test_a_healthy_agent_is_not_paged() -> None:
    """100 tasks a day, 99 %, true error half the budget: gated <= 0.2 pages in 30 days, ungated > 5."""
    random = np.random.default_rng(7)
    target, days, runs, step = Decimal("0.99"), 30, 8, 300
    steps = days * DAY // step
    ungated = AlertPair("page", 3600, 300, Decimal("14.4"), min_bad=1, max_p=1.0)
    pages = {"ungated": 0, "ours": 0}
    for _ in range(runs):
        n = random.poisson(100 * step / DAY, steps)
        bad = random.binomial(n, 0.005)
        sums = {"n": np.concatenate([[0], np.cumsum(n)]), "bad": np.concatenate([[0], np.cumsum(bad)])}

        def count(at: int, seconds: int, sums: dict[str, np.ndarray] = sums) -> Count:
            low = max(0, at - seconds // step)
            return Count(int(sums["n"][at] - sums["n"][low]), int(sums["bad"][at] - sums["bad"][low]))

        chosen = [p for p in choose(target, MONTH, 100)[0] if p.severity == "page"]
        for name, pairs in (("ungated", [ungated]), ("ours", chosen)):
            # An alert can only begin where something bad just happened; those are hours apart here.
            for at in np.flatnonzero(bad) + 1:
                now = any(
                    judge(p, target, count(int(at), p.long_s), count(int(at), p.short_s)).firing
                    for p in pairs
                )
                pages[name] += now
    assert pages["ours"] / runs <= 0.2
    assert pages["ungated"] / runs > 5
