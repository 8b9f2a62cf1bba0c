"""The pages' SQL files. SQL decides, pages show."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def query_text(name: str) -> str:
    """The text of `dashboard/sql/<name>.sql`. Raises `FileNotFoundError` for a name without a file."""
    return (resources.files("dashboard") / "sql" / f"{name}.sql").read_text(encoding="utf-8")
