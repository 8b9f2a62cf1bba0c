"""What each sender's spans hold and lack, by the queries of `agent-slo doctor`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import streamlit as st

from dashboard.door import Answers
from metrics.conventions import content_setting

Row = dict[str, Any]

NEEDED_VIEWS = {"steps", "runs", "attempts", "tasks"}


@cache
def _sql(name: str) -> str:
    return (files("metrics") / "sql" / "doctor" / f"{name}.sql").read_text(encoding="utf-8")


@st.cache_data(max_entries=4, show_spinner="Looking through the spans of every sender")  # type: ignore[untyped-decorator]
def senders(_reader: Answers, folder: str, mark: object) -> tuple[list[Row], list[Row]]:
    """Senders, and what they lack with what would supply it. `mark` changes when the data does.

    Raises `ReaderError`.
    """
    del folder, mark
    source = _reader.source_of_spans
    found: list[Row] = source.sql(_sql("senders")).to_pylist()
    lacks: list[Row] = source.sql(
        f"WITH senders AS (\n{_sql('senders')}\n)\nSELECT * FROM (\n{_sql('lacks')}\n)"
    ).to_pylist()
    families = {_key(sender): sender["family"] for sender in found}
    for lack in lacks:
        setting = content_setting(families[_key(lack)])
        lack["supply"] = str(lack["supply"]).replace("{setting}", setting)
    return found, lacks


def _key(row: Row) -> tuple[Any, Any, Any]:
    return row["service"], row["scope"], row["version"]
