"""What alerts say, spelt as the pages spell the same numbers."""

from __future__ import annotations

import re
from typing import Any

from dashboard.format import chance, interval, percent

_OVERSPENT = re.compile(r"budget overspent \(-?([\d.]+) % left\)")
_PERCENT = re.compile(r"([\d.e+-]+) %")


def respelt(key: str, said: Any) -> str:
    """What an alert says, spelt as the pages spell it: chances, intervals, and by how much a budget is overspent.

    `key` is that of an annotation, or `summary`.
    """
    text = _OVERSPENT.sub(lambda found: f"budget overspent by {percent(float(found[1]) / 100, 0)}", str(said))
    shares = [float(share) / 100 for share in _PERCENT.findall(text)]
    if key == "chance_met" and len(shares) == 1:
        return chance(shares[0])
    if key == "interval" and len(shares) == 3:
        return interval(shares[0], shares[1])
    return text
