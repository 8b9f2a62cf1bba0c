"""Tasks: the list, narrowed by filters that live in the address so that a view can be shared."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from typing import Any

import streamlit as st

from dashboard.chrome import open_task, page, rows_height, table
from dashboard.door import Answers
from dashboard.filters import RANGES, SCOPE_KEYS, filter_bar, heed, offered
from dashboard.format import (
    OUTCOME_GLYPHS,
    OUTCOME_WORDS,
    count,
    counted,
    duration,
    markdown_text,
    missing,
    usd,
    when,
    words,
)

PAGE_ROWS = 200
# Pixels: as narrow as the heading allows, which leaves the rest to the texts.
RIGHT_COLUMNS = {
    "Duplicates": 80,
    "Human": 64,
    "Wall time": 84,
    "Active time": 86,
    "Cost": 76,
}

# Parameter of task_list.sql -> key in the address, label; the keys are those of the other pages.
_NARROWED = {
    "services": ("service", "Service"),
    "agents": ("agent", "Agent"),
    "task_types": ("type", "Task type"),
    "environments": ("env", "Environment"),
    "versions": ("version", "Version"),
}


def show(reader: Answers) -> None:
    """Draw the page."""
    choices = reader.row("task_filters")
    if choices is None:
        return
    filters = _filters(choices)
    place = st.container()
    pages = st.session_state.get("task_pages", 1)
    number = min(int(st.session_state.get("page", 1) or 1), pages)
    rows = reader.rows("task_list", **filters, max_rows=PAGE_ROWS, skip_rows=(number - 1) * PAGE_ROWS)
    matching = rows[0]["matching"] if rows else 0
    pages = max(1, -(-matching // PAGE_ROWS))
    st.session_state["task_pages"] = pages
    with place:
        _summary(matching, len(rows), number)
    if not rows:
        st.caption("Widen the time range or clear a filter.")
        return
    picked = table(
        [_shown(row) for row in rows],
        {
            "started_at": "Started",
            "agent": "Agent",
            "task_type": "Type",
            "outcome": "Outcome",
            "evidence": "Evidence",
            "duplicates": "Duplicates",
            "people": "Human",
            "wall": "Wall time",
            "active": "Active time",
            "cost": "Cost",
            "task_id": "Task",
        },
        key="tasks",
        raw=rows,
        selectable=True,
        height=rows_height(len(rows), 640),
        config={
            name: st.column_config.Column(alignment="right", width=width)
            for name, width in RIGHT_COLUMNS.items()
        },
    )
    if pages > 1:
        st.number_input(f"Page (of {pages})", min_value=1, max_value=pages, step=1, key="page", width=160)
    if picked is not None:
        open_task(rows[picked]["task_id"])


def _filters(choices: dict[str, Any]) -> dict[str, Any]:
    """The filter row; returns the parameters of `task_list`."""
    heed("range", "Time range", RANGES)
    heed("outcome", "Outcome", OUTCOME_WORDS, lambda outcome: words(OUTCOME_WORDS, outcome))
    first = _day(choices["first_started"])
    last = _day(choices["last_started"])
    with st.container(border=True, key="filters"):
        with filter_bar("scope_when", border=False):
            span = st.segmented_control(
                "Started in the last",
                list(RANGES),
                default="all",
                required=True,
                key="range",
                bind="query-params",
            )
            days = st.date_input(
                "Or on (UTC)", value=(), min_value=first, max_value=last, key="day", bind="query-params"
            )
            outcomes = st.multiselect(
                "Outcome", list(OUTCOME_WORDS), key="outcome", bind="query-params", placeholder="any",
                format_func=lambda outcome: words(OUTCOME_WORDS, outcome),
            )  # fmt: skip
            text = st.text_input(
                "Id contains", key="q", bind="query-params", placeholder="task, trace or conversation"
            )
        with filter_bar("scope_whose", border=False):
            narrowed = {
                parameter: st.multiselect(
                    label,
                    offered(key, choices[parameter]),
                    key=key,
                    bind="query-params",
                    placeholder="any",
                    format_func=str,
                )
                for parameter, (key, label) in _NARROWED.items()
            }
        narrowed["outcomes"] = outcomes
        with st.container(horizontal=True):
            duplicates = st.checkbox("Has an unprotected duplicate", key="duplicate", bind="query-params")
            interventions = st.checkbox("Has a human intervention", key="human", bind="query-params")
    chosen = [day for day in (days if isinstance(days, (tuple, list)) else [days]) if day is not None]
    return {
        "days": RANGES[span or "all"],
        "since": _midnight(chosen[0]) if chosen else None,
        "until": _midnight(chosen[-1] + timedelta(days=1)) if chosen else None,
        **{name: json.dumps(values) if values else None for name, values in narrowed.items()},
        "duplicates": bool(duplicates),
        "interventions": bool(interventions),
        "text": text.strip() or None if text else None,
    }


def _day(moment: Any) -> date | None:
    return None if missing(moment) else moment.date()


def _midnight(day: date) -> str:
    return datetime.combine(day, time()).isoformat(sep=" ")


def _summary(matching: int, shown: int, number: int) -> None:
    if matching == 0:
        st.info("No task passes these filters.")
        return
    if matching > shown:
        first = (number - 1) * PAGE_ROWS + 1
        line = f"{count(matching)} tasks, newest first; {count(first)} to {count(first + shown - 1)} shown."
    else:
        line = f"{counted(matching, 'task')}, newest first."
    st.caption(markdown_text(f"{line} Click a row to open the task."))


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    cost = usd(row["cost_usd"])
    if not missing(row["cost_usd"]) and not row["cost_complete"]:
        cost = f"≥ {cost}"
    return {
        **row,
        "started_at": when(row["started_at"]).removesuffix(" UTC"),
        "outcome": f"{OUTCOME_GLYPHS.get(row['outcome'], '?')} {words(OUTCOME_WORDS, row['outcome'])}",
        "evidence": None if row["outcome_evidence"] == "none" else row["outcome_evidence"],
        "duplicates": count(row["duplicates_unprotected"]) if row["duplicates_unprotected"] else "",
        "people": count(row["interventions"]) if row["interventions"] else "",
        "wall": duration(row["wall_s"]),
        "active": duration(row["active_s"]),
        "cost": cost,
    }


page("Tasks", show, keys=(*SCOPE_KEYS, "outcome", "day", "q", "duplicate", "human"))
