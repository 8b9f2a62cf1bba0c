"""The events behind an objective's numbers, decided by `metrics.slo` and found where the data is."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import streamlit as st

from dashboard.door import Answers
from metrics.slo.counted import EventClass, counted_events
from metrics.slo.objective import Objective

Row = dict[str, Any]

MOST = 200
"""Rows of one list."""


def counted_rows(
    reader: Answers, objective: Objective, which: EventClass, as_of: datetime, most: int = MOST
) -> list[Row]:
    """The events of one class as evaluated at `as_of` (naive UTC), at most `most`; `matching` counts them all.

    Raises `ReaderError`.
    """
    text, parameters = counted_events(objective, which, as_of, most)
    told = {key: str(value) if isinstance(value, datetime) else value for key, value in parameters.items()}
    rows: list[Row] = reader.ask(text, told).to_pylist()
    return rows


@st.cache_data(max_entries=64, ttl=600, show_spinner=False)  # type: ignore[untyped-decorator]
def kept_rows(
    _reader: Answers, _objective: Objective, said: str, mark: object, which: EventClass, as_of: datetime
) -> list[Row]:
    """`counted_rows`, asked once for what the objective `said` (it cannot be hashed) and a `mark` of the data."""
    del said, mark
    return counted_rows(_reader, _objective, which, as_of)
