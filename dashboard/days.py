"""Which days a chart by day draws: those asked for, of a number that a browser can draw."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import streamlit as st

from dashboard.door import Answers
from dashboard.format import count, counted, markdown_text

Row = dict[str, Any]

MOST_DAYS = 731
"""Two years: what a chart with a bar a day can still show."""


def clipped(rows: list[Row], days: int | None, as_of: datetime) -> list[Row]:
    """The rows whose `day` (naive UTC) a chart shows that was asked for the last `days` before `as_of` (None: all).

    A sender's clock may say any year between 1970 and 2262, and a browser stands still over an axis that long. So the
    days end a day after `as_of`, and at most `MOST_DAYS` are shown, counted back from the newest that is left.
    """
    known = [row for row in rows if row["day"] <= as_of + timedelta(days=1)]
    if not known:
        return []
    first = max(row["day"] for row in known) - timedelta(days=MOST_DAYS - 1)
    if days is not None:
        # The oldest day of a range is one that it holds a part of.
        asked = (as_of - timedelta(days=days)).replace(hour=0, minute=0, second=0, microsecond=0)
        first = max(first, asked)
    return [row for row in known if row["day"] >= first]


def drawn(reader: Answers, rows: list[Row], days: int | None) -> list[Row]:
    """The rows that a chart by day shows; says how many days it leaves out, if any."""
    known = reader.row("as_of")
    as_of = known["as_of"] if known and known["as_of"] else datetime.now(UTC).replace(tzinfo=None)
    kept = clipped(rows, days, as_of)
    left_out = sorted({row["day"] for row in rows} - {row["day"] for row in kept})
    if left_out:
        span = " to ".join(f"{day:%Y-%m-%d}" for day in dict.fromkeys((left_out[0], left_out[-1])))
        st.caption(
            markdown_text(
                f"Not drawn: {counted(len(left_out), 'day')} ({span}) before or after what a chart shows, which ends a "
                f"day after now and holds {count(MOST_DAYS)} days at most. The tables count them."
            )
        )
    return kept
