"""The SQL of this package, one query a file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from metrics.intervals import with_intervals


@cache
def query_text(name: str) -> str:
    """Text of `incidents/sql/<name>.sql`. Raises `FileNotFoundError` for a name without a file."""
    return with_intervals((files("incidents") / "sql" / f"{name}.sql").read_text(encoding="utf-8"))
