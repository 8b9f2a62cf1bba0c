"""The one interval that views state beside a share, written once for all SQL."""

from __future__ import annotations

import re

Z95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""

_MARK = re.compile(r"\{\{wilson_(lower|upper)\((\w+), (\w+)\)\}\}")


def with_intervals(sql: str) -> str:
    """Fill the marks `{{wilson_lower(k, n)}}` and `{{wilson_upper(k, n)}}`: ends of the Wilson 95 % interval of k of n.

    `k`, `n`: columns with counts. NULL without events; exactly 0 at k = 0 and exactly 1 at k = n, as
    `metrics.slo.confidence.wilson` gives them.
    """
    return _MARK.sub(lambda found: _end(*found.groups()), sql)


def _end(side: str, k: str, n: str) -> str:
    z2 = Z95 * Z95
    sign, at, end = ("-", "0", "0.0") if side == "lower" else ("+", n, "1.0")
    half = f"{Z95} * sqrt({k} / {n} * (1 - {k} / {n}) / {n} + {z2} / (4 * {n} * {n}))"
    return (
        f"CASE WHEN {n} > 0 THEN CASE WHEN {k} = {at} THEN {end} "
        f"ELSE ({k} / {n} + {z2} / (2 * {n}) {sign} {half}) / (1 + {z2} / {n}) END END"
    )
