"""Writing result rows: a table's content is replaced in one transaction, so readers see old or new."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from metrics.slo.cube import sql_text

_TARGET = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")


def identifier(target: str) -> str:
    """`target` if it is a plain, possibly qualified table name. Raises ValueError."""
    if not _TARGET.fullmatch(target):
        raise ValueError(f"{target!r} is no table name; use letters, digits and _, as in core.slo_status")
    return target


def create(con: duckdb.DuckDBPyConnection, ddl: str, target: str, package: str = "metrics.slo") -> None:
    """Run `sql/<ddl>.sql` of a package for `target`."""
    con.execute(sql_text(package, ddl).replace("{target}", identifier(target)))


def _columns(con: duckdb.DuckDBPyConnection, name: str) -> list[str]:
    con.execute(f"SELECT * FROM {name} LIMIT 0")
    found = [str(column[0]) for column in con.description or ()]
    con.fetchall()
    return found


def replace_rows(
    con: duckdb.DuckDBPyConnection,
    ddl: str,
    target: str,
    cls: type,
    rows: Sequence[Any],
    package: str = "metrics.slo",
) -> None:
    """Create `target` by the package's `sql/<ddl>.sql` if needed and make `rows` (dataclasses `cls`) its content."""
    name = identifier(target)
    names = [f.name for f in dataclasses.fields(cls)]
    columns = ", ".join(f'"{n}"' for n in names)
    # A cursor of its own: the caller's connection may hold an unfinished result. Registered outside the
    # transaction, because an aborted one cannot unregister.
    cursor = con.cursor()
    try:
        cursor.register("_slo_rows", pa.table({n: [getattr(r, n) for r in rows] for n in names}))
        cursor.execute("BEGIN")
        try:
            create(cursor, ddl, target, package)
            if _columns(cursor, name) != names:
                # Written by another version: nothing in it is worth keeping, all of it is written anew.
                cursor.execute(f"DROP TABLE {name}")
                create(cursor, ddl, target, package)
            cursor.execute(f"DELETE FROM {name}")
            if rows:
                cursor.execute(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM _slo_rows")
            cursor.execute("COMMIT")
        except BaseException:
            cursor.execute("ROLLBACK")
            raise
        finally:
            cursor.unregister("_slo_rows")
    finally:
        cursor.close()
