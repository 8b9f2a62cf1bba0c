"""A real DuckDB with the two tables objectives read, and builders for events and objectives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from metrics.slo.objective import EventSource, Objective, SloWindow, UnknownPolicy
from metrics.slo.windows import parse_duration

AS_OF = datetime(2026, 11, 29, 12)

EVENTS = """
CREATE TABLE sli_events (
    sli VARCHAR, task_id VARCHAR, subject_id VARCHAR, event_time TIMESTAMP, verdict VARCHAR, value DOUBLE,
    agent VARCHAR, task_type VARCHAR, service VARCHAR, environment VARCHAR, app_version VARCHAR,
    excluded_reason VARCHAR, settled BOOLEAN, evidence VARCHAR)
"""
TASKS = """
CREATE TABLE tasks (
    task_id VARCHAR, task_type VARCHAR, agent VARCHAR, service VARCHAR, environment VARCHAR,
    app_version VARCHAR, outcome VARCHAR, outcome_evidence VARCHAR, interventions BIGINT, eligible BOOLEAN,
    excluded_reason VARCHAR, decided_at TIMESTAMP, cost_usd DOUBLE, cost_complete BOOLEAN, wall_s DOUBLE,
    active_s DOUBLE)
"""


def event(at: datetime, verdict: str, **other: Any) -> dict[str, Any]:
    """A row of `sli_events`."""
    return {
        "sli": "task_completion", "task_id": "t", "subject_id": "t", "event_time": at, "verdict": verdict,
        "value": None, "agent": "a", "task_type": "x", "service": "s", "environment": "prod",
        "app_version": "1", "excluded_reason": "maintenance" if verdict == "excluded" else None,
        "settled": True, "evidence": "stated", **other,
    }  # fmt: skip


def task(at: datetime | None, outcome: str, **other: Any) -> dict[str, Any]:
    """A row of `tasks`."""
    return {
        "task_id": "t", "task_type": "x", "agent": "a", "service": "s", "environment": "prod",
        "app_version": "1", "outcome": outcome, "outcome_evidence": "stated", "interventions": 0,
        "eligible": True, "excluded_reason": None, "decided_at": at, "cost_usd": 0.1, "cost_complete": True,
        "wall_s": 10.0, "active_s": 8.0, **other,
    }  # fmt: skip


def ago(**parts: float) -> datetime:
    """A moment before AS_OF."""
    return AS_OF - timedelta(**parts)


def objective(**changes: Any) -> Objective:
    """A 28 day objective of 90 % on task completion without settle delay."""
    settings: dict[str, Any] = {
        "slo": "completion", "objective": "o", "source": EventSource("task_completion"),
        "target": Decimal("0.9"),
        "window": SloWindow(parse_duration("28d")), "sli_name": "task_completion", "title": "Completion",
        "service": "s", "settle_s": 0, "unknown": UnknownPolicy("exclude"), **changes,
    }  # fmt: skip
    return Objective(**settings)


def insert(con: duckdb.DuckDBPyConnection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        names = list(rows[0])
        marks = ", ".join("?" for _ in names)
        con.executemany(
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", [list(r.values()) for r in rows]
        )


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(":memory:")
    connection.execute("ATTACH ':memory:' AS core")
    connection.execute(EVENTS)
    connection.execute(TASKS)
    yield connection
    connection.close()


@pytest.fixture
def add(con: duckdb.DuckDBPyConnection) -> Callable[..., None]:
    """Insert events given as keyword-less rows."""

    def insert_events(*rows: dict[str, Any]) -> None:
        insert(con, "sli_events", rows)

    return insert_events
