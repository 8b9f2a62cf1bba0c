"""Questions about money over the public views: what is priced, what one task cost, why costs changed.

Each question is one SQL file in `metrics/costs/sql`, with its grain and its parameters in the first lines.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

CURRENCY = "USD"
"""Every amount anywhere is in this currency: price lists are, and overrides have to be."""


@cache
def query(name: str) -> str:
    """The text of one question. Raises `FileNotFoundError` for a name without a file."""
    return (files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")
