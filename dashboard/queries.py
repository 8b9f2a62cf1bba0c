"""The pages' SQL files. SQL decides, pages show."""

from __future__ import annotations

from functools import cache
from importlib import resources

SCOPE = "{scope}"
"""Stands in a file for the tasks that pass the page's filters: `sql/scope.sql`."""


@cache
def stands_on_scope(name: str) -> bool:
    """Whether a file reads the tasks that pass the filters, and so changes with the derived data alone."""
    return SCOPE in (resources.files("dashboard") / "sql" / f"{name}.sql").read_text(encoding="utf-8")


@cache
def query_text(name: str) -> str:
    """The text of `dashboard/sql/<name>.sql`. Raises `FileNotFoundError` for a name without a file."""
    text = (resources.files("dashboard") / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    return text.replace(SCOPE, query_text("scope")) if SCOPE in text and name != "scope" else text
