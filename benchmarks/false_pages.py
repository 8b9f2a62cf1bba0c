"""Pages of a healthy agent, and how fast an outage is found: `python -m benchmarks.false_pages`.

Tasks arrive at random (Poisson) minute by minute. A healthy agent fails half as often as its budget allows; pages are
counted as alerts that begin within 30 days, by the rules of the collector (pairs chosen by traffic, gates, freezing,
an end only on enough events) and by the well-known table without gates (14.4x over 1 h / 5 min, 6x over 6 h / 30 min).
For detection the error rate jumps after 28 healthy days, and the hours to the first page are taken.
Prints one JSON line per setting; exit code 1 when one misses its bar.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from metrics.alerts.settings import AlertSettings
from metrics.slo.objective import AlertPair
from metrics.slo.pairs import Count, choose, judge

DAY = 86400
WINDOW = 28 * DAY
STEP = 60
WARM_UP = WINDOW // STEP
MONTH = 30 * DAY // STEP
RESOLVE_EVENTS = AlertSettings().resolve_events

WORKBOOK = (
    AlertPair("page", 3600, 300, Decimal("14.4"), min_bad=1, max_p=1.0),
    AlertPair("page", 6 * 3600, 1800, Decimal(6), min_bad=1, max_p=1.0),
)
HEALTHY = (
    (20, "0.99"),
    (50, "0.99"),
    (100, "0.99"),
    (300, "0.99"),
    (20, "0.95"),
    (50, "0.95"),
    (100, "0.95"),
    (50, "0.9"),
)
OUTAGES = (
    (100, "0.99", 0.5, 4.0),
    (100, "0.99", 0.1, None),
    (100, "0.95", 0.5, None),
    (300, "0.9", 0.3, None),
)
MOST_PAGES = 0.2
LEAST_UNGATED = 5.0


class Traffic:
    """Counts of tasks and bad tasks a minute, summed so that any window is one subtraction."""

    def __init__(self, n: NDArray[np.int64], bad: NDArray[np.int64]) -> None:
        self.n = np.concatenate([[0], np.cumsum(n)])
        self.bad = np.concatenate([[0], np.cumsum(bad)])

    def window(self, seconds: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(tasks, bad tasks) of the window that ends with each minute."""
        end = np.arange(1, len(self.n))
        start = np.maximum(0, end - seconds // STEP)
        return self.n[end] - self.n[start], self.bad[end] - self.bad[start]


def firing(traffic: Traffic, pair: AlertPair, target: Decimal) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(the pair fires, its short window holds enough to end an alert) at each minute."""
    n_long, bad_long = traffic.window(pair.long_s)
    n_short, bad_short = traffic.window(pair.short_s)
    bound = float(pair.factor) * (1 - float(target))
    # A quick look first, with a little room for rounding; the rule itself decides.
    maybe = (bad_long >= bound * n_long * 0.999) & (bad_short >= bound * n_short * 0.999)
    maybe &= (bad_long >= pair.min_bad) & (n_short > 0)
    fires = np.zeros(len(n_long), dtype=np.bool_)
    known: dict[tuple[int, int, int, int], bool] = {}
    for i in np.flatnonzero(maybe):
        key = (int(n_long[i]), int(bad_long[i]), int(n_short[i]), int(bad_short[i]))
        if key not in known:
            known[key] = judge(pair, target, Count(key[0], key[1]), Count(key[2], key[3])).firing
        fires[i] = known[key]
    return fires, n_short >= RESOLVE_EVENTS


def begins(traffic: Traffic, pairs: Sequence[AlertPair], target: Decimal, *, freeze: bool) -> list[int]:
    """Minutes at which an alert over the pairs begins."""
    judged = [firing(traffic, p, target) for p in pairs]
    fires = np.any([f for f, _ in judged], axis=0)
    ends = ~fires & (np.all([e for _, e in judged], axis=0) if freeze else np.True_)
    found: list[int] = []
    active = False
    for i in np.flatnonzero(fires | ends):
        if fires[i] and not active:
            found.append(int(i))
            active = True
        elif ends[i]:
            active = False
    return found


def traffic(random: np.random.Generator, per_day: int, error: NDArray[np.float64]) -> Traffic:
    """Random traffic with an error rate for each minute."""
    n = random.poisson(per_day * STEP / DAY, len(error)).astype(np.int64)
    return Traffic(n, random.binomial(n, error).astype(np.int64))


def pages_of(pairs: Sequence[AlertPair]) -> list[AlertPair]:
    return [p for p in pairs if p.severity == "page"]


def healthy(per_day: int, target_text: str, runs: int, seed: int) -> dict[str, object]:
    """Pages and tickets of a healthy agent in 30 days."""
    target = Decimal(target_text)
    random = np.random.default_rng(seed)
    ours, _ = choose(target, WINDOW, per_day)
    tickets = [p for p in ours if p.severity == "ticket"]
    counts = {"pages": 0, "tickets": 0, "workbook_pages": 0}
    began = time.perf_counter()
    for _ in range(runs):
        error = np.full(WARM_UP + MONTH, (1 - float(target)) / 2)
        one = traffic(random, per_day, error)
        for name, pairs, freeze in (
            ("pages", pages_of(ours), True),
            ("tickets", tickets, True),
            ("workbook_pages", list(WORKBOOK), False),
        ):
            counts[name] += sum(b >= WARM_UP for b in begins(one, pairs, target, freeze=freeze))
    result: dict[str, object] = {"per_day": per_day, "target": target_text}
    result |= {f"{name}_30d": round(number / runs, 3) for name, number in counts.items()}
    met = counts["pages"] / runs <= MOST_PAGES
    if (per_day, target_text) == (100, "0.99"):
        met = met and counts["workbook_pages"] / runs > LEAST_UNGATED
    return result | {"met": met, "seconds": round(time.perf_counter() - began, 1)}


def outage(
    per_day: int, target_text: str, error: float, most_hours: float | None, runs: int, seed: int
) -> dict[str, object]:
    """Hours from a jump of the error rate to the first page, and the share found within five days."""
    target = Decimal(target_text)
    random = np.random.default_rng(seed)
    pairs = pages_of(choose(target, WINDOW, per_day)[0])
    delays: list[float] = []
    for _ in range(runs):
        rates = np.full(WARM_UP + 5 * DAY // STEP, (1 - float(target)) / 2)
        rates[WARM_UP:] = error
        found = [
            b for b in begins(traffic(random, per_day, rates), pairs, target, freeze=True) if b >= WARM_UP
        ]
        if found:
            delays.append((found[0] - WARM_UP) * STEP / 3600)
    median = statistics.median(delays) if delays else None
    return {
        "per_day": per_day,
        "target": target_text,
        "error": error,
        "median_hours": None if median is None else round(median, 1),
        "found_5d": round(len(delays) / runs, 3),
        "met": most_hours is None or (median is not None and median <= most_hours),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    met = True
    for setting in HEALTHY:
        result = healthy(*setting, options.runs, options.seed)
        met = met and bool(result["met"])
        print(json.dumps(result), flush=True)
    for per_day, target, error, bar in OUTAGES:
        result = outage(per_day, target, error, bar, options.runs, options.seed)
        met = met and bool(result["met"])
        print(json.dumps(result), flush=True)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
