"""The vectorised functions that SQL calls where it cannot do the work itself."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from duckdb.sqltypes import BOOLEAN, VARCHAR

from metrics import canonical, messages
from metrics.conventions import words


def _without_free_text(column: pa.ChunkedArray) -> pa.Array:
    free_text = frozenset(words()["free_text"])
    return pa.array([canonical.without(text, free_text) for text in column.to_pylist()], pa.string())


def _without_key(column: pa.ChunkedArray) -> pa.Array:
    names = frozenset(name.lower() for name in words()["key_arguments"])
    return pa.array([canonical.without(text, names) for text in column.to_pylist()], pa.string())


_TEXTS = duckdb.list_type(VARCHAR)
_FUNCTIONS = (
    ("canonical_arguments", canonical.canonical_column, [VARCHAR], VARCHAR),
    ("argument_leaves", canonical.leaves_column, [VARCHAR], _TEXTS),
    ("result_entities", canonical.entities_column, [VARCHAR, VARCHAR], _TEXTS),
    ("without_key", _without_key, [VARCHAR], VARCHAR),
    ("without_free_text", _without_free_text, [VARCHAR], VARCHAR),
    ("read_messages", messages.read_column, [BOOLEAN, *[VARCHAR] * 6], duckdb.type(messages.SQL_TYPE)),
    ("event_content", messages.event_content_column, [VARCHAR], duckdb.type(messages.CONTENT_SQL_TYPE)),
    ("plain_result", messages.plain_result_column, [VARCHAR], duckdb.type(messages.RESULT_SQL_TYPE)),
)
"""Kept for ever: the instance goes on calling a function after the connection that registered it has closed, and
DuckDB holds a reference only as long as that connection. One that is gone by then crashes in somebody else's code."""


def register(con: duckdb.DuckDBPyConnection) -> None:
    """Register the functions of `metrics.canonical` and `metrics.messages` on the instance, under their SQL names."""
    con.execute(
        # a count of tokens: what is negative or beyond any model is no count
        "CREATE OR REPLACE TEMP MACRO whole_number(text) AS "
        "CASE WHEN try_cast(text AS DOUBLE) BETWEEN 0 AND 1e12 THEN try_cast(try_cast(text AS DOUBLE) AS BIGINT) END"
    )
    con.execute(
        # a stated number within 0 and a bound; NaN, infinities and nonsense are not stated
        "CREATE OR REPLACE TEMP MACRO sane_number(text, most) AS "
        "CASE WHEN try_cast(text AS DOUBLE) BETWEEN 0 AND most THEN try_cast(text AS DOUBLE) END"
    )
    con.execute(
        # a stated word of a closed list, however it is spelled; any other word is not stated
        "CREATE OR REPLACE TEMP MACRO one_of(text, words) AS "
        "CASE WHEN list_contains(words, lower(trim(text))) THEN lower(trim(text)) END"
    )
    con.execute(
        # `a1b2.3` is a call that only messages show, by the span that asked for it: that span is the evidence
        "CREATE OR REPLACE TEMP MACRO spans_of(ids) AS list_transform(ids, lambda id: split_part(id, '.', 1))"
    )
    con.execute(
        # one id may count the calls of every answer anew: two tools under it are two calls
        "CREATE OR REPLACE TEMP MACRO same_call(id, tool, other_id, other_tool) AS "
        "id = other_id AND coalesce(tool = other_tool, true)"
    )
    present = {
        name
        for (name,) in con.execute(
            # not only those that are not internal: DuckDB calls functions made in Python internal
            "SELECT DISTINCT function_name FROM duckdb_functions()"
        ).fetchall()
    }
    for name, function, arguments, returns in _FUNCTIONS:
        if name not in present:
            con.create_function(name, function, arguments, returns, type="arrow", null_handling="special")
