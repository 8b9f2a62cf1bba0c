"""The one sentence that says the numbers leave something out: a derivation that stands still, traces set aside."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from dashboard.format import count, counted, duration, missing, one_line, when

if TYPE_CHECKING:
    from dashboard.door import Answers

PATIENCE = timedelta(minutes=1)
"""A pass a second is usual, and a burst takes some; spans that wait longer are worth a warning."""


def lag_line(row: Mapping[str, Any], now: datetime) -> str | None:
    """What the numbers leave out, for people; None when nothing. `row` is that of `lag.sql`, `now` naive UTC.

    Spans count as waiting from a minute on, by the time they were received.
    """
    parts: list[str] = []
    waited = now - row["waiting_since"] if not missing(row["waiting_since"]) else timedelta(0)
    if row["waiting"] and waited >= PATIENCE:
        last = "never" if missing(row["last_pass_at"]) else when(row["last_pass_at"])
        parts.append(
            f"{counted(row['waiting'], 'span')} received up to {duration(waited.total_seconds())} ago "
            f"{'is' if row['waiting'] == 1 else 'are'} not derived yet (last pass: {last})"
        )
    if row["parked"]:
        one = row["parked"] == 1
        why = "" if missing(row["parked_error"]) else f" ({one_line(row['parked_error'], 120)})"
        parts.append(
            f"{count(row['parked'])} {'trace' if one else 'traces'} could not be derived and "
            f"{'is' if one else 'are'} set aside{why}: view parked_traces"
        )
    return "the numbers leave something out: " + "; ".join(parts) if parts else None


def behind(reader: Answers) -> str | None:
    """`lag_line` of an open folder as of now; None also for one that was never derived. Raises `ReaderError`."""
    if not reader.views() >= {"pipeline", "parked_traces"}:
        return None
    row = reader.row("lag")
    return None if row is None else lag_line(row, datetime.now(UTC).replace(tzinfo=None))
