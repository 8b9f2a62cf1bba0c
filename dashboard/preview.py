"""What another target, window or cut would have said. Counted and judged by `metrics.slo`, never here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import streamlit as st

from dashboard.door import Answers
from metrics.slo.evaluate import evaluate
from metrics.slo.history import DAILY, HistoryRow, history
from metrics.slo.objective import ConjunctionSource, EventSource, Objective, TaskSource
from metrics.slo.status import StatusRow

DAYS_BACK = 28
"""Days a preview looks back; each of them has a window of its own behind it."""

LONGEST_WINDOW = 90
"""Days."""

_AT_ONCE = timedelta(days=7)
"""Events are fetched a week at a time: the door gives at most a million rows."""

_EMPTY_EVENTS = """
CREATE TABLE sli_events (sli VARCHAR, task_id VARCHAR, event_time TIMESTAMP, verdict VARCHAR, value DOUBLE,
    agent VARCHAR, task_type VARCHAR, service VARCHAR, environment VARCHAR, app_version VARCHAR,
    excluded_reason VARCHAR, evidence VARCHAR)
"""


def back_test(
    reader: Answers, data: Path, objective: Objective, as_of: datetime, mark: object
) -> tuple[StatusRow, list[HistoryRow]]:
    """Status at `as_of` (naive UTC) and one point a day before it, `DAYS_BACK` of them.

    `mark` changes when the data does: events are fetched once a mark. Raises `ReaderError`.
    """
    con = _events(reader, str(data), objective.slo, _slis(objective), as_of, mark, objective).cursor()
    try:
        status = evaluate(con, [objective], as_of)[0]
        return status, history(con, objective, as_of, DAILY, DAYS_BACK + 1)
    finally:
        con.close()


@st.cache_resource(  # type: ignore[untyped-decorator]
    max_entries=2, show_spinner="Reading the events", on_release=lambda con: con.close()
)
def _events(
    _reader: Answers,
    folder: str,
    slo: str,
    slis: tuple[str, ...],
    as_of: datetime,
    mark: object,
    _objective: Objective,
) -> duckdb.DuckDBPyConnection:
    del folder, slo, slis, mark
    since = as_of - timedelta(days=DAYS_BACK + LONGEST_WINDOW + 1)
    return _store(_reader, _objective, since, as_of)


def _store(
    reader: Answers, objective: Objective, since: datetime, until: datetime
) -> duckdb.DuckDBPyConnection:
    """A database of its own with what the objective reads, which `metrics.slo` counts as it counts ours."""
    con = duckdb.connect(":memory:")
    con.execute("SET TimeZone = 'UTC'")
    con.execute(_EMPTY_EVENTS)
    needs_ids = isinstance(objective.source, ConjunctionSource)
    slis = json.dumps(list(_slis(objective)))
    for low, high in _weeks(since, until):
        if slis != "[]":
            events = reader.table(
                "objective_events", slis=slis, since=str(low), until=str(high), with_tasks=needs_ids
            )
            _add(con, "sli_events", events)
        if _reads_tasks(objective):
            _add(con, "tasks", reader.table("objective_tasks", since=str(low), until=str(high)))
    return con


def _add(con: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    con.register("_rows", rows)
    try:
        con.execute(f"CREATE TABLE IF NOT EXISTS {table} AS FROM _rows LIMIT 0")
        con.execute(f"INSERT INTO {table} BY NAME FROM _rows")
    finally:
        con.unregister("_rows")


def _weeks(since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    low = since
    while low < until:
        high = min(low + _AT_ONCE, until)
        yield low, high
        low = high


def _sources(objective: Objective) -> list[EventSource | TaskSource]:
    if isinstance(objective.source, ConjunctionSource):
        return [part.source for part in objective.source.parts]
    return [objective.source]


def _slis(objective: Objective) -> tuple[str, ...]:
    return tuple(s.sli for s in _sources(objective) if isinstance(s, EventSource))


def _reads_tasks(objective: Objective) -> bool:
    return any(isinstance(s, TaskSource) for s in _sources(objective))
