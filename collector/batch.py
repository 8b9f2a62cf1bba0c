"""Decoded telemetry on its way into the store: Arrow tables shaped like sql/spans.sql and sql/logs.sql.

`seq` and `received_at` are not here: the store gives them out at the commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from collector.policy import REPAIRS

SPAN_SCHEMA = pa.schema(
    [
        ("trace_id", pa.string()),
        ("span_id", pa.string()),
        ("parent_span_id", pa.string()),
        ("name", pa.string()),
        ("kind", pa.string()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("status", pa.string()),
        ("status_message", pa.string()),
        ("service", pa.string()),
        ("scope", pa.string()),
        ("scope_version", pa.string()),
        ("trace_state", pa.string()),
        ("attributes", pa.string()),
        ("resource", pa.string()),
        ("events", pa.string()),
        ("links", pa.string()),
        ("flags", pa.string()),
    ]
)
LOG_SCHEMA = pa.schema(
    [
        ("trace_id", pa.string()),
        ("span_id", pa.string()),
        ("time_ns", pa.int64()),
        ("observed_ns", pa.int64()),
        ("severity", pa.string()),
        ("event_name", pa.string()),
        ("body", pa.string()),
        ("attributes", pa.string()),
        ("resource", pa.string()),
        ("service", pa.string()),
        ("scope", pa.string()),
    ]
)
SpanRow = tuple[
    str, str, str | None, str, str, int, int | None, str, str, str | None, str, str, str,
    str, str, str | None, str | None, str | None,
]  # fmt: skip
LogRow = tuple[
    str | None, str | None, int | None, int | None, str | None, str | None, str | None,
    str, str, str | None, str,
]  # fmt: skip


@dataclass
class Batch:
    """Spans and log records to commit together; either may be None."""

    spans: pa.Table | None = None
    logs: pa.Table | None = None

    @property
    def rows(self) -> int:
        return (self.spans.num_rows if self.spans is not None else 0) + (
            self.logs.num_rows if self.logs is not None else 0
        )


@dataclass
class Rejected:
    """What one request is told: items that were not taken, by reason, and repairs of those that were, by flag."""

    reasons: dict[str, int] = field(default_factory=dict)
    repairs: dict[str, int] = field(default_factory=dict)
    note: str = ""
    """What else there is to say of it, when nothing in it was recognised."""

    def add(self, reason: str, number: int = 1) -> None:
        self.reasons[reason] = self.reasons.get(reason, 0) + number

    def repaired(self, flags: Iterable[str]) -> None:
        """Count the repairs among the flags of one item."""
        for flag in set(flags):
            if flag in REPAIRS:
                self.repairs[flag] = self.repairs.get(flag, 0) + 1

    @property
    def number(self) -> int:
        return sum(self.reasons.values())

    def __str__(self) -> str:
        return "; ".join(f"{number} x {reason}" for reason, number in self.reasons.items())

    def message(self) -> str:
        """A line for the sender; empty when everything was taken as it came."""
        parts = [f"not stored: {self}"] if self.reasons else []
        if self.repairs:
            told = (f"{number} x {REPAIRS[flag]} ({flag})" for flag, number in sorted(self.repairs.items()))
            parts.append("stored with repairs: " + "; ".join(told))
        if self.note:
            parts.append(self.note)
        return "; ".join(parts)


def span_table(rows: list[SpanRow]) -> pa.Table:
    """Arrow table of SPAN_SCHEMA from row tuples in column order."""
    return _table(rows, SPAN_SCHEMA)


def log_table(rows: list[LogRow]) -> pa.Table:
    """Arrow table of LOG_SCHEMA from row tuples in column order."""
    return _table(rows, LOG_SCHEMA)


def _table(rows: list[SpanRow] | list[LogRow], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
