"""What a statement at the door may be: one SELECT over tables and views, and nothing that reaches a file.

DuckDB decides what a text means, so DuckDB parses it: the check walks the syntax tree that it gives. Functions that
make rows are allowed by name, since most of the others read files, run further SQL from a string or change the
instance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb


class QueryRefused(Exception):
    """The query is not run or not finished; the message says why."""


TABLE_FUNCTIONS = frozenset(
    {
        *("range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "summary"),
        *("duckdb_columns", "duckdb_tables", "duckdb_views", "duckdb_schemas", "duckdb_databases"),
        *("duckdb_functions", "duckdb_types", "duckdb_keywords", "duckdb_constraints", "duckdb_indexes"),
        *("duckdb_memory", "pragma_table_info", "pragma_show", "pragma_version", "pragma_platform"),
        *("pragma_database_size", "pragma_storage_info", "icu_calendar_names", "pg_timezone_names"),
    }
)
"""Table functions that read nothing but the catalogue and their arguments."""
_SCALARS_REFUSED = frozenset(
    {
        # of the process, not of the data
        *("getenv", "current_setting", "set_config"),
        # change something, or keep a place at the door without work
        *("nextval", "setval", "currval", "setseed", "write_log", "sleep_ms", "pg_sleep"),
    }
)
# A table named by one word is looked for as a file, too, when it looks like one.
_FILE_SIGNS = frozenset("./\\:*?~[")


def check_statement(con: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Raise QueryRefused unless the text is exactly one SELECT that names only tables, views and harmless functions.

    FROM x, DESCRIBE, SUMMARIZE, SHOW and VALUES count as SELECT; COPY, ATTACH, PRAGMA, CALL, SET do not. Raises
    duckdb.ParserException for a text that is no SQL.
    """
    statements = con.extract_statements(sql)
    if len(statements) != 1:
        raise QueryRefused(f"one SELECT at a time, this text holds {len(statements)} statements")
    kind = statements[0].type
    if kind != duckdb.StatementType.SELECT:
        raise QueryRefused(f"only SELECT is answered here, not {str(kind).rsplit('.', 1)[-1]}")
    ((text,),) = con.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    try:
        tree = json.loads(text)
    except RecursionError as e:
        raise QueryRefused("this statement nests too deep to be checked") from e
    if tree["error"]:
        raise QueryRefused(f"this statement cannot be checked: {tree['error_message']}")
    places: set[str] | None = None
    for node in _nodes(tree["statements"]):
        if node.get("type") == "TABLE_FUNCTION":
            name = str(node["function"]["function_name"]).lower()
            if name not in TABLE_FUNCTIONS:
                raise QueryRefused(f"{name}() is not answered here; read tables and views")
        elif node.get("class") == "FUNCTION":
            name = str(node["function_name"]).lower()
            if name in _SCALARS_REFUSED:
                raise QueryRefused(f"{name}() is not answered here")
        elif node.get("type") == "BASE_TABLE":
            path = [str(part) for part in node["qualified_name"]["path"]]
            if len(path) == 1 and _FILE_SIGNS.isdisjoint(path[0]):
                continue
            # `door.json` without quotes is a table `json` in a schema `door`, and also a file
            places = _places(con) if places is None else places
            if len(path) == 1 or path[0].lower() not in places:
                raise QueryRefused(f"no table or view {'.'.join(path)!r}; files are not read here")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object in the tree. Not recursive: a statement may nest as deep as its sender likes."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _places(con: duckdb.DuckDBPyConnection) -> set[str]:
    """Names of the databases and schemas there are."""
    rows = con.execute(
        "SELECT database_name FROM duckdb_databases() UNION SELECT schema_name FROM duckdb_schemas()"
    ).fetchall()
    return {str(name).lower() for (name,) in rows}
