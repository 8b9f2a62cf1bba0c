"""The SQL files of the derivation, in their order, and where each result is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from metrics.conventions import Compiled
from metrics.conventions.logs import CompiledLogs
from metrics.intervals import with_intervals

Kept = Literal["core", "work"]


@dataclass(frozen=True)
class Model:
    """One SQL file: its result becomes a temporary table of its name, and is kept in a file if `kept` says so.

    `replaced_by`: rows of the touched traces (`trace`) or tasks (`task`) are replaced.
    """

    name: str
    kept: Kept | None
    replaced_by: Literal["trace", "task"] | None
    sql: str


@cache
def models() -> tuple[Model, ...]:
    """Read the manifest `metrics/sql/_order`. A file without a line, or a line without a file, is an error."""
    folder = files("metrics") / "sql"
    found: list[Model] = []
    for line in folder.joinpath("_order").read_text(encoding="utf-8").splitlines():
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        name, kept, replaced_by = (*words, None, None)[:3]
        sql = folder.joinpath(f"{name}.sql").read_text(encoding="utf-8")
        found.append(Model(name, kept, replaced_by, sql))  # type: ignore[arg-type]
    listed = {model.name for model in found}
    present = {entry.name.removesuffix(".sql") for entry in folder.iterdir() if entry.name.endswith(".sql")}
    if listed != present:
        raise RuntimeError(f"metrics/sql and its _order differ: {sorted(listed ^ present)}")
    return tuple(found)


@cache
def views() -> tuple[tuple[str, str], ...]:
    """Read the views over what is kept, (name, SELECT), in the order of `metrics/sql/views/_order`."""
    folder = files("metrics") / "sql" / "views"
    lines = folder.joinpath("_order").read_text(encoding="utf-8").splitlines()
    names = [name for line in lines if (name := line.split("#", 1)[0].strip())]
    present = {entry.name.removesuffix(".sql") for entry in folder.iterdir() if entry.name.endswith(".sql")}
    if set(names) != present:
        raise RuntimeError(f"metrics/sql/views and its _order differ: {sorted(set(names) ^ present)}")
    texts = (folder.joinpath(f"{name}.sql").read_text(encoding="utf-8") for name in names)
    return tuple((name, with_intervals(text)) for name, text in zip(names, texts, strict=True))


@cache
def pass_sql(name: str) -> str:
    """Return one file of `metrics/sql/passes`: what a pass does besides running the models."""
    return (files("metrics") / "sql" / "passes" / f"{name}.sql").read_text(encoding="utf-8")


def log_sql(compiled: CompiledLogs) -> str:
    """Return `logs.sql` with the compiled families in place of its `{{...}}` marks."""
    return _marked(pass_sql("logs"), vars(compiled))


def filled(model: Model, compiled: Compiled) -> str:
    """Return the SQL of a model with the compiled conventions in place of its `{{...}}` marks."""
    return _marked(model.sql, vars(compiled))


def _marked(sql: str, pieces: Mapping[str, str]) -> str:
    for mark, piece in pieces.items():
        sql = sql.replace("{{" + mark + "}}", piece)
    return sql
