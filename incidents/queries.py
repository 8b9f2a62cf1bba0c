"""The SQL of this package, one query a file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def query_text(name: str) -> str:
    """Text of `incidents/sql/<name>.sql`. Raises `FileNotFoundError` for a name without a file."""
    return (files("incidents") / "sql" / f"{name}.sql").read_text(encoding="utf-8")
