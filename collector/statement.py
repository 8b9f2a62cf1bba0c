"""What a statement at the door may be: one SELECT over tables and views, and nothing that reaches a file.

DuckDB decides what a text means, so DuckDB parses it: the check walks the syntax tree that it gives. Functions that
make rows are allowed by name, since most of the others read files, run further SQL from a string or change the
instance.
"""

from __future__ import annotations

import json
import re
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
_COUNTED = {
    "range": None,
    "generate_series": None,
    "repeat": 1,
    "lpad": 1,
    "rpad": 1,
    "list_resize": 1,
    "array_resize": 1,
    "bar": 3,
    "bitstring": 1,
    "equi_width_bins": 2,
    "to_base": 2,
    "reservoir_quantile": 2,
}
"""Functions whose result or state is as long as an argument says: its place, None for the distance between the first
two. They may say up to MOST_ELEMENTS, as a constant: the memory of a long value is not counted by DuckDB's limit."""
MOST_ELEMENTS = 10_000
_FOLDS = frozenset({"list_reduce", "array_reduce", "reduce"})
_FORMATS = frozenset({"printf", "format"})
_JOINING = frozenset(
    {
        *("||", "concat", "concat_ws", "list_concat", "list_cat", "array_concat", "array_cat", "list_value"),
        *(
            "list_pack",
            "replace",
            "regexp_replace",
            "translate",
            "printf",
            "format",
            "string_agg",
            "group_concat",
        ),
        *("listagg", "list", "array_agg", "row", "struct_pack", "json_object", "json_array", "array_value"),
        *("list_transform", "list_apply", "array_transform", "array_apply", "apply", "hex", "to_hex", "bin"),
        *("to_binary", "url_encode", "json_pretty", "overlay", "flatten", "map", "union_value", "list_zip"),
    }
)
"""Functions whose result can be longer than each of their arguments."""
_MOST_LAMBDAS = 2
# A table named by one word is looked for as a file, too, when it looks like one.
_FILE_SIGNS = frozenset("./\\:*?~[")


Params = list[Any] | dict[str, Any] | None


def check_statement(con: duckdb.DuckDBPyConnection, sql: str, params: Params = None) -> None:
    """Raise QueryRefused unless the text is exactly one SELECT that names only tables, views and harmless functions.

    FROM x, DESCRIBE, SUMMARIZE, SHOW and VALUES count as SELECT; COPY, ATTACH, PRAGMA, CALL, SET do not. A scalar that
    makes a value as long as it is told is refused when it is told more than MOST_ELEMENTS, or something that is not
    known before the query runs. Raises duckdb.ParserException for a text that is no SQL.
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
    streams: set[int] = set()
    for node in _nodes(tree["statements"]):
        if node.get("type") == "TABLE_FUNCTION":
            name = str(node["function"]["function_name"]).lower()
            streams.add(id(node["function"]))  # makes rows as they are asked for, not one value
            if name not in TABLE_FUNCTIONS:
                raise QueryRefused(f"{name}() is not answered here; read tables and views")
        elif node.get("class") == "FUNCTION":
            name = str(node["function_name"]).lower()
            if name in _SCALARS_REFUSED:
                raise QueryRefused(f"{name}() is not answered here")
            if id(node) not in streams:
                _check_growth(name, [a["expression"] for a in node["arguments"]], params)
        elif node.get("class") == "LAMBDA":
            _check_lambda(node)
        elif node.get("type") == "RECURSIVE_CTE_NODE":
            _check_recursion(node)
        elif node.get("type") == "BASE_TABLE":
            path = [str(part) for part in node["qualified_name"]["path"]]
            if len(path) == 1 and _FILE_SIGNS.isdisjoint(path[0]):
                continue
            # `door.json` without quotes is a table `json` in a schema `door`, and also a file
            places = _places(con) if places is None else places
            if len(path) == 1 or path[0].lower() not in places:
                raise QueryRefused(f"no table or view {'.'.join(path)!r}; files are not read here")


def _check_growth(name: str, arguments: list[Any], params: Params) -> None:
    """Refuse a scalar whose result may be long out of proportion to what goes in."""
    if name in _FOLDS:
        raise QueryRefused(
            f"{name}() is not answered here; use list_sum, list_aggregate or an aggregate over unnest"
        )
    if name in _FORMATS:
        text = arguments[0].get("literal", {}).get("text") if arguments else None
        # `%*d` and `{:{}}` take a width from an argument
        if not isinstance(text, str) or re.search(r"\d{4}|%[^%a-zA-Z]*\*|\{[^{}]*\{", text):
            raise QueryRefused(
                f"{name}() is answered here with a constant format and widths below 1000; use || for more"
            )
    if name not in _COUNTED:
        return
    place = _COUNTED[name]
    if place is None:
        ends = [_number(a, params) for a in arguments[:2]]
        known = [e for e in ends if e is not None]
        count = (
            max(known) - (min(known) if len(ends) == 2 else 0) if len(known) == len(ends) and ends else None
        )
        step = _number(arguments[2], params) if len(arguments) > 2 else 1
        count = None if count is None or step is None else abs(count)
    elif place >= len(arguments):
        return
    else:
        count = _number(arguments[place], params)
    if name == "repeat" and count is not None:
        # of a text that is in the query: what is repeated could have been repeated before
        text = arguments[0].get("literal", {}).get("text")
        count = count * len(text) if isinstance(text, str) else None
    if count is None or not count <= MOST_ELEMENTS:
        rows = f"; as rows, FROM {name}(...) has no such limit" if place is None else ""
        raise QueryRefused(
            f"{name}() makes at most {MOST_ELEMENTS} characters or elements here, said by a constant{rows}"
        )


def _number(node: Any, params: Params) -> float | None:
    """The value of an expression of constants and parameters, None when it is something else."""
    kind = node.get("class")
    if kind == "CONSTANT":
        return _float(node["literal"].get("text"))
    if kind == "PARAMETER":
        found: Any = None
        name = str(node.get("identifier", ""))
        if isinstance(params, dict):
            found = params.get(name)
        elif isinstance(params, list) and name.isdigit() and 0 < int(name) <= len(params):
            found = params[int(name) - 1]
        return _float(found)
    if kind == "CAST":
        return _number(node["child"], params)
    if kind == "FUNCTION" and node["function_name"] in ("+", "-"):
        values = [_number(a["expression"], params) for a in node["arguments"]]
        known = [v for v in values if v is not None]
        if len(known) != len(values) or not known:
            return None
        if node["function_name"] == "+":
            return sum(known)
        return -known[0] if len(known) == 1 else known[0] - known[1]
    return None


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):  # a text, a date, NULL
        return None


def _check_lambda(node: dict[str, Any]) -> None:
    """Refuse lambdas within lambdas: each level multiplies the length of one value."""
    waiting: list[tuple[Any, int]] = [(node["expr"], 1)]
    while waiting:
        part, depth = waiting.pop()
        if isinstance(part, dict):
            depth += part.get("class") == "LAMBDA"
            if depth > _MOST_LAMBDAS:
                raise QueryRefused(
                    f"lambdas nest at most {_MOST_LAMBDAS} deep here; use unnest and an aggregate"
                )
            waiting += [(p, depth) for p in part.values()]
        elif isinstance(part, list):
            waiting += [(p, depth) for p in part]


def _check_recursion(node: dict[str, Any]) -> None:
    """Refuse a recursion that can double a value at every turn: thirty turns make a billion characters of one."""
    for part in _nodes(node["right"]):
        name = str(part.get("function_name", "")).lower()
        if part.get("class") != "FUNCTION" or name not in _JOINING:
            continue
        columns = [c["column_names"][-1] for c in _nodes(part["arguments"]) if c.get("class") == "COLUMN_REF"]
        # path || '/' || name is what recursion is for
        if name not in ("||", "concat", "concat_ws") or len(set(columns)) < len(columns):
            raise QueryRefused(
                f"{name} is not answered inside the recursive part of WITH RECURSIVE, where it can double a value at "
                "every turn; build the text outside of it"
            )


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
