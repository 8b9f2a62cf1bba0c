"""The public views: the same names over the store's own instance and over files opened read-only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import duckdb


@cache
def table_sql(name: str) -> str:
    """CREATE TABLE text of one table of a span file, with `{database}` to fill in."""
    return (files("collector") / "sql" / f"{name}.sql").read_text()


@cache
def table_names() -> tuple[str, ...]:
    """Tables of a span file in creation order."""
    return tuple((files("collector") / "sql" / "_order").read_text().split())


def create_tables(con: duckdb.DuckDBPyConnection, database: str) -> None:
    for name in table_names():
        con.execute(table_sql(name).replace("{database}", database))


def span_views(databases: Sequence[str]) -> list[str]:
    """Statements that put `spans` and `logs` over these attached span files."""
    out = []
    for name in table_names():
        union = " UNION ALL ".join(f"SELECT * FROM {database}.{name}" for database in databases)
        out.append(f'CREATE OR REPLACE VIEW memory.main."{name}" AS {union}')
    return out


def derived_views(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Statements that make `main` show every public table and view of the attached core and work files.

    A name that begins with `_` is private. Views whose table has gone are dropped.
    """
    rows = con.execute(
        """
        SELECT database_name, name FROM (
            SELECT database_name, schema_name, table_name AS name FROM duckdb_tables() WHERE NOT internal
            UNION ALL
            SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal)
        WHERE database_name IN ('core', 'work') AND schema_name = 'main' AND name NOT LIKE '\\_%' ESCAPE '\\'
        ORDER BY database_name, name
        """
    ).fetchall()
    wanted = {name: database for database, name in rows if name not in table_names()}
    present = con.execute(
        "SELECT view_name FROM duckdb_views() "
        "WHERE database_name = 'memory' AND schema_name = 'main' AND NOT internal"
    ).fetchall()
    out = [
        f'DROP VIEW IF EXISTS memory.main."{name}"'
        for (name,) in present
        if name not in wanted and name not in table_names()
    ]
    for name, database in wanted.items():
        quoted = name.replace('"', '""')
        out.append(
            f'CREATE OR REPLACE VIEW memory.main."{quoted}" AS SELECT * FROM {database}.main."{quoted}"'
        )
    return out
