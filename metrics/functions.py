"""The vectorised functions that SQL calls where it cannot do the work itself."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from duckdb.sqltypes import BOOLEAN, VARCHAR

from metrics import canonical, messages
from metrics.conventions import words


def register(con: duckdb.DuckDBPyConnection) -> None:
    """Register the functions of `metrics.canonical` and `metrics.messages` on the instance, under their SQL names."""
    free_text = frozenset(words()["free_text"])

    def without_free_text(column: pa.ChunkedArray) -> pa.Array:
        return pa.array([canonical.without(text, free_text) for text in column.to_pylist()], pa.string())

    texts = duckdb.list_type(VARCHAR)
    listed = [
        ("canonical_arguments", canonical.canonical_column, [VARCHAR], VARCHAR),
        ("argument_leaves", canonical.leaves_column, [VARCHAR], texts),
        ("result_entities", canonical.entities_column, [VARCHAR, VARCHAR], texts),
        ("without_free_text", without_free_text, [VARCHAR], VARCHAR),
        ("read_messages", messages.read_column, [BOOLEAN, *[VARCHAR] * 6], duckdb.type(messages.SQL_TYPE)),
        ("event_content", messages.event_content_column, [VARCHAR], duckdb.type(messages.CONTENT_SQL_TYPE)),
        ("plain_result", messages.plain_result_column, [VARCHAR], duckdb.type(messages.RESULT_SQL_TYPE)),
    ]
    con.execute(
        "CREATE OR REPLACE TEMP MACRO whole_number(text) AS try_cast(try_cast(text AS DOUBLE) AS BIGINT)"
    )
    present = {
        name
        for (name,) in con.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal"
        ).fetchall()
    }
    for name, function, arguments, returns in listed:
        if name not in present:
            con.create_function(name, function, arguments, returns, type="arrow", null_handling="special")
