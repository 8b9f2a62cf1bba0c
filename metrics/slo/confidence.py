"""How sure the numbers are: intervals, probabilities and the gates against noise at low traffic."""

from __future__ import annotations

import math

from scipy.special import betainc

from metrics.intervals import Z95
from metrics.slo.arithmetic import Number, budget, exact


def wilson(good: int, n: int, z: float = Z95) -> tuple[float, float] | None:
    """Wilson score interval of a share; None without events. Inside [0, 1] and not degenerate at 0 and n.

    Coverage averaged over p in [.85, .995]: n=20 0.957, n=100 0.953 (the textbook interval: 0.705, 0.894).
    """
    if n == 0:
        return None
    p, z2 = good / n, z * z
    centre = p + z2 / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    scale = 1 + z2 / n
    # The ends are exact at 0 and n; float noise must not push them out of [0, 1].
    low = 0.0 if good == 0 else (centre - half) / scale
    high = 1.0 if good == n else (centre + half) / scale
    return low, high


def p_met(good: int, n: int, target: Number) -> float | None:
    """Probability that the true share is at least the target: Jeffreys posterior, 1 - I_T(g + .5, b + .5)."""
    if n == 0:
        return None
    return float(1 - betainc(good + 0.5, n - good + 0.5, float(exact(target))))


def p_at_least(k: int, n: int, share: Number) -> float:
    """Exact P(X >= k) for X ~ Binomial(n, share)."""
    if k <= 0:
        return 1.0
    if k > n:
        return 0.0
    return float(betainc(k, n - k + 1, float(exact(share))))


def k_min(n: int, target: Number, alpha: float) -> int | None:
    """Fewest bad events of n that an agent exactly on target shows with probability <= alpha; None: never."""
    share = budget(target)
    for k in range(n + 1):
        if p_at_least(k, n, share) <= alpha:
            return k
    return None


def p_empty(per_day: float, window_s: float) -> float:
    """Chance that a window of `window_s` seconds holds no event at a steady rate (Poisson)."""
    return math.exp(-per_day * window_s / 86400)
