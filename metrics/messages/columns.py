"""The readers over columns, as DuckDB calls them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from metrics.canonical import UNREADABLE
from metrics.messages.facts import Facts, read
from metrics.messages.results import event_content, plain_result
from metrics.messages.values import MAX_TEXT

_CALL = pa.struct([("id", pa.string()), ("name", pa.string()), ("arguments", pa.string())])
_ANSWER = pa.struct([("id", pa.string()), ("text", pa.string())])
_APPROVAL = pa.struct([("id", pa.string()), ("decision", pa.string())])

ARROW_TYPE = pa.struct(
    [
        ("user_text", pa.string()),
        ("output_text", pa.string()),
        ("finish", pa.string()),
        ("requested", pa.list_(_CALL)),
        ("deferred", pa.list_(_CALL)),
        ("answered", pa.list_(_ANSWER)),
        ("returned", pa.list_(_ANSWER)),
        ("approvals", pa.list_(_APPROVAL)),
    ]
)
SQL_TYPE = (
    "STRUCT(user_text VARCHAR, output_text VARCHAR, finish VARCHAR, "
    "requested STRUCT(id VARCHAR, name VARCHAR, arguments VARCHAR)[], "
    "deferred STRUCT(id VARCHAR, name VARCHAR, arguments VARCHAR)[], "
    "answered STRUCT(id VARCHAR, text VARCHAR)[], "
    "returned STRUCT(id VARCHAR, text VARCHAR)[], "
    "approvals STRUCT(id VARCHAR, decision VARCHAR)[])"
)
CONTENT_ARROW_TYPE = pa.struct([("arguments", pa.string()), ("result", pa.string())])
CONTENT_SQL_TYPE = "STRUCT(arguments VARCHAR, result VARCHAR)"
RESULT_ARROW_TYPE = pa.struct([("text", pa.string()), ("call_id", pa.string())])
RESULT_SQL_TYPE = "STRUCT(text VARCHAR, call_id VARCHAR)"

_NOTHING = Facts()


def _facts_array(facts: list[Facts | None]) -> pa.Array:
    """Facts as one struct column. Built column by column: a list of dicts costs Arrow three times as much."""
    present = [fact or _NOTHING for fact in facts]
    built = [
        pa.array([fact.user_text and fact.user_text[:MAX_TEXT] for fact in present], pa.string()),
        pa.array([fact.output_text and fact.output_text[:MAX_TEXT] for fact in present], pa.string()),
        pa.array([fact.finish for fact in present], pa.string()),
        pa.array([fact.requested for fact in present], pa.list_(_CALL)),
        pa.array([fact.deferred for fact in present], pa.list_(_CALL)),
        pa.array([fact.answered for fact in present], pa.list_(_ANSWER)),
        pa.array([fact.returned for fact in present], pa.list_(_ANSWER)),
        pa.array([fact.approvals for fact in present], pa.list_(_APPROVAL)),
    ]
    return pa.StructArray.from_arrays(
        built, fields=list(ARROW_TYPE), mask=pa.array([fact is None for fact in facts])
    )


def _fits(fact: Facts | None) -> bool:
    try:
        _facts_array([fact])
    except (*UNREADABLE, pa.ArrowException):
        return False
    return True


def read_column(
    wanted: pa.ChunkedArray,
    inputs: pa.ChunkedArray,
    outputs: pa.ChunkedArray,
    stated: pa.ChunkedArray,
    calls: pa.ChunkedArray,
    attributes: pa.ChunkedArray,
    events: pa.ChunkedArray,
) -> pa.Array:
    """Vectorised `read` for DuckDB: a BOOLEAN (inputs wanted) and six VARCHAR columns -> `SQL_TYPE`.

    NULL where all are NULL.
    """
    columns = (inputs, outputs, stated, calls, attributes, events)
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    facts = [
        read(*row, inputs=bool(want)) if any(row) else None
        for want, row in zip(wanted.to_pylist(), rows, strict=True)
    ]
    try:
        return _facts_array(facts)
    except (*UNREADABLE, pa.ArrowException):  # some value is not of the type its place wants: find whose
        return _facts_array([fact if _fits(fact) else Facts() for fact in facts])


def _each(values: list[str | None], reader: Any, kind: pa.DataType, nothing: Any) -> pa.Array:
    """A reader over a column; the rows it cannot read are `nothing`."""
    try:
        return pa.array([value and reader(value) for value in values], kind)
    except (*UNREADABLE, pa.ArrowException):  # some value cannot be read, or not into the type: find whose
        return pa.array([_one(value, reader, kind, nothing) for value in values], kind)


def _one(value: str | None, reader: Any, kind: pa.DataType, nothing: Any) -> Any:
    try:
        row = value and reader(value)
        pa.array([row], kind)
    except (*UNREADABLE, pa.ArrowException):
        return nothing
    return row


def event_content_column(events: pa.ChunkedArray) -> pa.Array:
    """Vectorised `event_content` for DuckDB: VARCHAR -> `CONTENT_SQL_TYPE`."""
    return _each(events.to_pylist(), event_content, CONTENT_ARROW_TYPE, None)


def plain_result_column(results: pa.ChunkedArray) -> pa.Array:
    """Vectorised `plain_result` for DuckDB: VARCHAR -> `RESULT_SQL_TYPE`."""
    return _each(results.to_pylist(), plain_result, RESULT_ARROW_TYPE, None)
