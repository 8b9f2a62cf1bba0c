"""Overview: are the objectives met, what happened lately, and what was done twice."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dashboard import colours
from dashboard.chrome import badge, dark, open_task, page, table
from dashboard.door import Answers
from dashboard.format import (
    CAUSE_WORDS,
    OUTCOME_WORDS,
    STATE_WORDS,
    burn_line,
    count,
    counted,
    duration,
    interval,
    json_list,
    json_object,
    markdown_text,
    missing,
    number,
    percent,
    target_percent,
    usd,
    when,
    words,
)

CARDS_PER_ROW = 3
_SIGNS = {"lt": "<", "lte": "≤", "gt": ">", "gte": "≥"}


def show(reader: Answers) -> None:
    """Draw the page."""
    views = reader.views()
    status = reader.rows("overview_status") if "slo_status" in views else []
    history = reader.rows("overview_history") if "slo_history" in views else []
    if not status:
        st.info("No objective has been evaluated yet.")
    for start in range(0, len(status), CARDS_PER_ROW):
        columns = st.columns(CARDS_PER_ROW, gap="small")
        for column, row in zip(columns, status[start : start + CARDS_PER_ROW], strict=False):
            with column:
                _card(
                    row, [h for h in history if (h["slo"], h["objective"]) == (row["slo"], row["objective"])]
                )
    _outcomes(reader)
    _duplicates(reader)


def _card(row: dict[str, Any], history: list[dict[str, Any]]) -> None:
    name = f"card_{row['slo']}_{row['objective']}"
    with st.container(border=True, key=name, height="stretch"):
        colour, icon = colours.STATE_BADGE.get(row["state"], ("gray", ":material/help:"))
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{markdown_text(row['title'] or row['slo'])}**", width="content")
            badge(words(STATE_WORDS, row["state"]), colour, icon)
        left, right = st.columns([1.3, 1], gap="small", vertical_alignment="bottom")
        left.metric(
            f"{count(row['good'])} of {count(row['n'])} {_unit(row)}",
            markdown_text(percent(row["sli"])),
            help=markdown_text(row["description"]) if not missing(row["description"]) else None,
        )
        trend = [h for h in history if not missing(h["sli"])]
        if len(trend) > 1:
            right.plotly_chart(_sparkline(row, trend), key=f"{name}_trend", config={"displayModeBar": False})
        _budget(row)
        lines = [_target_line(row), f"Burn {burn_line(row['burn'])}{_exhaustion(row)}"]
        notes = _notes(row)
        if notes:
            lines.append(" · ".join(notes))
        # Two spaces before a newline are Markdown's line break.
        st.caption("  \n".join(markdown_text(line) for line in lines))
        for alert in json_list(row["firing"]):
            severity = markdown_text(words({}, alert.get("severity")).capitalize())
            st.caption(
                f":material/notifications_active: **{severity} alert:** {markdown_text(alert.get('why'))}"
            )


def _sparkline(row: dict[str, Any], trend: list[dict[str, Any]]) -> go.Figure:
    """The SLI over the kept evaluations, with the target as a dashed line."""
    chart = go.Figure()
    chart.add_scatter(
        x=[point["at"] for point in trend],
        y=[point["sli"] * 100 for point in trend],
        customdata=[
            [percent(p["sli"]), count(p["good"]), count(p["n"]), when(p["at"], seconds=False)] for p in trend
        ],
        mode="lines",
        line={"color": colours.SKY if dark() else colours.BLUE, "width": 2},
        hovertemplate="%{customdata[0]} (%{customdata[1]} of %{customdata[2]})<br>"
        "%{customdata[3]}<extra></extra>",
    )
    if not missing(row["target"]):
        chart.add_hline(y=row["target"] * 100, line={"color": colours.GREY, "width": 1, "dash": "dash"})
    chart.update_layout(
        height=64,
        margin={"l": 0, "r": 0, "t": 4, "b": 4},
        showlegend=False,
        xaxis={"visible": False, "fixedrange": True},
        yaxis={"visible": False, "fixedrange": True},
    )
    return chart


def _unit(row: dict[str, Any]) -> str:
    """What is counted: with a cut, `unit` belongs to the measured value and tasks are counted."""
    if not missing(row["cut"]):
        return "tasks"
    return markdown_text("events" if missing(row["unit"]) else row["unit"])


def _target_line(row: dict[str, Any]) -> str:
    cut = "" if missing(row["cut"]) else f" {_SIGNS.get(row['op'], row['op'])} {_cut(row)}"
    return (
        f"Target {target_percent(row['target'])}{cut} · 95% interval {interval(row['lower'], row['upper'])}"
    )


def _cut(row: dict[str, Any]) -> str:
    if row["unit"] == "s":
        return duration(row["cut"])
    if row["unit"] == "USD":
        return f"${row['cut']:,.2f}" if row["cut"] == round(row["cut"], 2) else usd(row["cut"])
    return f"{number(row['cut'], 3)} {'' if missing(row['unit']) else row['unit']}".strip()


def _budget(row: dict[str, Any]) -> None:
    remaining = row["remaining"]
    if missing(remaining):
        st.progress(0.0, text="Budget left —")
        return
    allowed = (
        ""
        if missing(row["budget_events"])
        else f" · {count(row['bad'])} bad, {_allowed(row['budget_events'])} allowed"
    )
    label = (
        f"Budget left {percent(remaining, 0)}"
        if remaining >= 0
        else f"Budget overspent by {percent(-remaining, 0)}"
    )
    st.progress(min(max(float(remaining), 0.0), 1.0), text=markdown_text(label + allowed))


def _allowed(events: float) -> str:
    """Budgets are fractions of events; the fraction only matters while the budget is small."""
    return number(events, 0 if events >= 100 else 1)


def _exhaustion(row: dict[str, Any]) -> str:
    value = json_object(row["exhaustion"]).get("rolling_s")
    if missing(value) or row["state"] == "exhausted":
        return ""
    return f" · spent in {duration(value)} at this rate"


def _notes(row: dict[str, Any]) -> list[str]:
    notes = []
    if not missing(row["unknown"]) and row["unknown"] > 0:
        bounds = interval(row["sli_unknown_bad"], row["sli_unknown_good"])
        notes.append(f"{count(row['unknown'])} unknown: between {bounds}")
    if not missing(row["excluded"]) and row["excluded"] > 0:
        notes.append(f"{count(row['excluded'])} excluded")
    if not missing(row["inferred_share"]) and row["inferred_share"] > 0:
        notes.append(f"{percent(row['inferred_share'], 0)} of outcomes inferred")
    return notes


def _outcomes(reader: Answers) -> None:
    rows = reader.rows("overview_outcomes")
    totals = reader.row("overview_counts") or {}
    st.subheader("Tasks by outcome", anchor=False)
    line = f"{counted(totals.get('tasks'), 'task')} · {count(totals.get('running'))} running"
    line += f" · {count(totals.get('waiting_human'))} waiting for a human"
    if not missing(totals.get("oldest_waiting_since")):
        line += f" (the oldest since {when(totals['oldest_waiting_since'], seconds=False)})"
    st.caption(markdown_text(line))
    chart = go.Figure()
    for outcome, (colour, pattern) in colours.OUTCOME_STYLE.items():
        days = [row for row in rows if row["outcome"] == outcome]
        if days:
            chart.add_bar(
                name=words(OUTCOME_WORDS, outcome),
                x=[row["day"] for row in days],
                y=[row["tasks"] for row in days],
                marker={"color": colour, "pattern": {"shape": pattern, "size": 6}},
                hovertemplate="%{y:,} %{fullData.name}<br>%{x|%Y-%m-%d} UTC<extra></extra>",
            )
    chart.update_layout(
        barmode="stack",
        bargap=0.25,
        height=260,
        title={"text": "Tasks started per day (UTC), by outcome", "font": {"size": 14}},
        margin={"l": 10, "r": 10, "t": 60, "b": 10},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "traceorder": "normal"},
        yaxis={"title": {"text": "tasks"}, "rangemode": "tozero"},
        xaxis={"type": "date", "tickformat": "%b %-d", "dtick": 86_400_000 if _days(rows) <= 10 else None},
    )
    st.plotly_chart(chart, key="outcomes", config={"displayModeBar": False})


def _days(rows: list[dict[str, Any]]) -> int:
    return len({row["day"] for row in rows})


def _duplicates(reader: Answers) -> None:
    totals = reader.row("duplicate_totals") or {}
    rows = reader.rows("overview_duplicates")
    st.subheader("Done twice", anchor=False)
    unprotected = counted(totals.get("unprotected"), "unprotected duplicate")
    line = f"{unprotected} in {counted(totals.get('tasks'), 'task')}"
    line += f" · {count(totals.get('protected'))} protected by a key"
    line += f" · {counted(totals.get('no_op'), 'repeat')} without effect"
    if rows:
        line += ". The newest below; click a row to open its task."
    st.caption(markdown_text(line))
    if not rows:
        return
    shown = [
        {
            **row,
            "started_at": when(row["started_at"]),
            "cause": words(CAUSE_WORDS, row["cause"]),
            "undone": _undone(row["compensated"]),
        }
        for row in rows
    ]
    picked = table(
        shown,
        {
            "started_at": "When",
            "agent": "Agent",
            "tool": "Tool",
            "cause": "Cause",
            "effect": "Second effect",
            "undone": "Undone",
            "task_id": "Task",
            "arguments": "Arguments",
        },
        key="duplicates",
        selectable=True,
    )
    if picked is not None:
        open_task(rows[picked]["task_id"])


def _undone(compensated: Any) -> str | None:
    if missing(compensated):
        return None
    return "yes" if compensated else "no"


page("Overview", show)
