"""The kinds of findings there are, so that a misspelt one is refused instead of never matching."""

from __future__ import annotations

import difflib
from functools import cache

from incidents.case import taxonomy

SEVERITIES = ("high", "medium", "low")


@cache
def finding_kinds() -> tuple[str, ...]:
    """Every kind a finding may have."""
    return tuple(dict.fromkeys(name.split(".")[0] for name in taxonomy()))


def check_kind(kind: str) -> str:
    """`kind` if it is one. Raises ValueError naming the nearest."""
    if kind in finding_kinds():
        return kind
    near = difflib.get_close_matches(kind, finding_kinds(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(finding_kinds())}"
    raise ValueError(f"{kind!r} is no kind of finding; {hint}")
