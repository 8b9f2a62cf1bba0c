"""False alarms and found rises of the drift rule in simulation: `python -m benchmarks.drift`.

Streams of lognormal tasks (log spread 0.8), a Poisson number a day, each day as a whole up or down by a lognormal
day effect. 28 days of baseline, then 60 days. A healthy stream counts as a false alarm when the rule opens on any of
them; in a rise all values go up by a factor from the first day after the baseline on, and the delay is counted in days.
Prints one JSON line per cell; exit code 1 when one misses its bar.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metrics.drift.detect import BASELINE_DAYS, Day, hits_of_day, judge_day, opened

SPREAD = 0.8
DAYS = 60


@dataclass(frozen=True)
class Cell:
    """One setting: tasks a day, day effect (log standard deviation), factor of the rise, and its bar."""

    per_day: int
    day_effect: float
    factor: float
    bar: str = ""
    by_day: int = DAYS
    least: float | None = None
    most: float | None = None


CELLS = (
    Cell(100, 0.0, 1.0, "healthy: alarms <= 8 %", most=0.08),
    Cell(100, 0.1, 1.0, "healthy, day effect: alarms <= 8 %", most=0.08),
    Cell(20, 0.1, 1.0, "healthy, day effect: alarms <= 8 %", most=0.08),
    Cell(100, 0.0, 1.2, "found by day 14 >= 92 %", 14, least=0.92),
    Cell(100, 0.1, 1.2, "found by day 30 >= 85 %", 30, least=0.85),
    Cell(100, 0.1, 1.5, "found by day 14 >= 95 %", 14, least=0.95),
    Cell(20, 0.1, 1.5, "", 14),
)


def stream(random: np.random.Generator, cell: Cell) -> list[Day]:
    """Day medians of one stream."""
    days: list[Day] = []
    for number in range(BASELINE_DAYS + DAYS):
        n = int(random.poisson(cell.per_day))
        effect = random.normal(0, cell.day_effect) if cell.day_effect else 0.0
        rise = np.log(cell.factor) if number >= BASELINE_DAYS else 0.0
        values: NDArray[np.float64] = random.normal(effect + rise, SPREAD, n)
        if n:
            days.append(Day(number, float(np.median(values)), n))
    return days


def first_alarm(days: list[Day]) -> int | None:
    """Days after the baseline until the rule opens for the first time; None: never."""
    hits: list[bool | None] = []
    for day in range(BASELINE_DAYS, BASELINE_DAYS + DAYS):
        hits += hits_of_day([judge_day(days, 0, day)])
        if opened(hits) is not None:
            return day - BASELINE_DAYS + 1
    return None


def simulate(cell: Cell, streams: int, seed: int) -> dict[str, object]:
    """Share of streams that alarm (by `by_day`), and the median delay of those that do."""
    random = np.random.default_rng(seed)
    began = time.perf_counter()
    delays = [first_alarm(stream(random, cell)) for _ in range(streams)]
    found = [d for d in delays if d is not None]
    share = sum(d <= cell.by_day for d in found) / streams
    met = (cell.least is None or share >= cell.least) and (cell.most is None or share <= cell.most)
    return {
        "per_day": cell.per_day,
        "day_effect": cell.day_effect,
        "factor": cell.factor,
        "by_day": cell.by_day,
        "alarms": round(share, 4),
        "median_delay_days": statistics.median(found) if found else None,
        "bar": cell.bar,
        "met": met,
        "seconds": round(time.perf_counter() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    met = True
    for cell in CELLS:
        result = simulate(cell, options.streams, options.seed)
        met = met and bool(result["met"])
        print(json.dumps(result), flush=True)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
