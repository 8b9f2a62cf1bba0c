"""What an alert says: k of n, what is left of the budget, when it runs out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from metrics.slo.status import StatusRow


def share(value: float | None) -> str:
    """A share as a percentage; unknown is said."""
    return "unknown" if value is None else f"{value * 100:.4g}%"


def chance(value: float) -> str:
    """A probability as a percentage; near the ends only that it is nearly certain."""
    return share(value) if 0.001 <= value <= 0.999 else ">99.9%" if value > 0.5 else "<0.1%"


def length(seconds: float) -> str:
    """A length of time in the largest unit that leaves a number of two digits: 5 h, 3.6 d."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.0f} s"


def short_length(value: timedelta) -> str:
    """A configured length as it is written: 24h, 90s."""
    seconds = int(value.total_seconds())
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def budget_words(row: StatusRow) -> str:
    """What is left of the budget, and until when."""
    if row.remaining is None:
        return "budget unknown"
    if row.remaining <= 0:
        return f"budget overspent by {abs(row.remaining) * 100:.0f}%"
    text = f"{row.remaining * 100:.0f}% of the budget left"
    forecast: Mapping[str, Any] = json.loads(row.exhaustion)
    seconds = forecast.get("rolling_s")
    if seconds is None:
        seconds = forecast.get("from_now_s")
    if seconds:
        text += f", gone in {length(seconds)} at the rate of the last {forecast['window']}"
    elif forecast.get("never"):
        text += f", which holds at the rate of the last {forecast['window']}"
    return text


def k_of_n(row: StatusRow) -> str:
    """The window's events in words."""
    days = length((row.window_end - row.window_start).total_seconds())
    return f"{row.bad} bad of {row.n} in {days}"


def burn_summary(row: StatusRow, pair: Mapping[str, Any]) -> str:
    """One line: who, how fast, k of n in the long window, budget."""
    long = json.loads(row.burn)[pair["long"]]
    return (
        f"{row.title}: {long['bad']} of {long['n']} bad in the last {pair['long']}, "
        f"burning {long['value']:.3g} times too fast; {budget_words(row)}"
    )


def burn_annotations(row: StatusRow, pairs: list[Mapping[str, Any]]) -> dict[str, str]:
    """Everything with a number in it: labels hold none, or the alert would change its identity."""
    burn = json.loads(row.burn)
    found = {
        "description": row.description,
        "sli": f"{share(row.sli)} (target {share(row.target)})",
        "window": k_of_n(row),
        "budget": budget_words(row),
        "unknown": str(row.unknown),
        "excluded": str(row.excluded),
    }
    if row.lower is not None and row.upper is not None:
        found["interval"] = f"{row.lower * 100:.3g}–{row.upper * 100:.3g}%"
    if row.p_met is not None:
        found["chance_met"] = chance(row.p_met)
    for number, pair in enumerate(pairs):
        end = "" if number == 0 else f"_{number + 1}"
        long, short = burn[pair["long"]], burn[pair["short"]]
        found |= {
            f"window_pair{end}": f"{pair['long']}/{pair['short']}",
            f"burn_long{end}": f"{long['value']:.3g} ({long['bad']} of {long['n']} bad)",
            f"burn_short{end}": f"{short['value']:.3g} ({short['bad']} of {short['n']} bad)",
            f"threshold{end}": f"{pair['factor']:g}",
            f"why{end}": pair["why"],
        }
    if row.runbook:
        found["runbook"] = row.runbook
    return {k: v for k, v in found.items() if v}
