"""The benchmark of false pages counts what the rules say, and its bars hold in a short run."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from benchmarks.false_pages import DAY, STEP, Traffic, begins, firing, healthy, outage
from metrics.slo.objective import AlertPair
from metrics.slo.pairs import Count, judge

PAIR = AlertPair("page", DAY, 7200, Decimal(3), 3, 0.01)


def test_the_quick_look_changes_no_verdict() -> None:
    random = np.random.default_rng(3)
    n = random.poisson(0.3, 4000).astype(np.int64)
    bad = random.binomial(n, np.where(np.arange(4000) % 1500 > 900, 0.5, 0.02)).astype(np.int64)
    one = Traffic(n, bad)
    fires, _ = firing(one, PAIR, Decimal("0.95"))
    assert fires.any()
    assert not fires.all()
    for i in range(0, 4000, 37):
        long, short = slice(max(0, i + 1 - DAY // STEP), i + 1), slice(max(0, i + 1 - 7200 // STEP), i + 1)
        counts = [Count(int(n[s].sum()), int(bad[s].sum())) for s in (long, short)]
        assert fires[i] == judge(PAIR, Decimal("0.95"), *counts).firing


def test_an_alert_begins_once_and_not_again_in_silence() -> None:
    n = np.zeros(3 * DAY // STEP, dtype=np.int64)
    n[:60] = 1
    one = Traffic(n, n)
    assert len(begins(one, [PAIR], Decimal("0.95"), freeze=True)) == 1
    assert len(begins(one, [PAIR], Decimal("0.95"), freeze=False)) == 1


def test_a_healthy_agent_is_quiet_and_an_outage_is_found() -> None:
    quiet = healthy(100, "0.99", 4, 1)
    assert quiet["met"] is True
    assert outage(100, "0.99", 0.5, 4.0, 5, 1)["met"] is True
