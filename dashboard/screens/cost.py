"""Cost and latency: what tasks cost, how long they take, how that spreads, and how it moves."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from dashboard import charts, colours
from dashboard.chrome import open_task, page, table
from dashboard.days import drawn
from dashboard.door import Answers
from dashboard.facts import Fact, Here, facts, listed
from dashboard.filters import SCOPE_KEYS, Scope, go, narrowed, scope_filters
from dashboard.format import (
    OUTCOME_WORDS,
    count,
    counted,
    duration,
    markdown_text,
    missing,
    percent,
    plotly_text,
    short,
    usd,
    when,
    words,
)
from dashboard.unpriced import unpriced_line

Row = dict[str, Any]

MEASURES = {"Cost": "cost", "Active time": "active", "Wall time": "wall", "Tokens": "tokens"}
_SPELT = {"cost": usd, "active": duration, "wall": duration, "tokens": short}
_UNIT = {"cost": "USD", "active": "seconds", "wall": "seconds", "tokens": "tokens"}
_MOST = {"cost": "dearest", "active": "slowest", "wall": "slowest", "tokens": "largest"}
FAILED = ("failed", "lost", "dead_letter", "cancelled_system")
"""The outcomes that `cost_totals` counts as failed."""
_AGENT_COLOURS = (
    (colours.BLUE, ""),
    (colours.ORANGE, "/"),
    (colours.GREEN, "."),
    (colours.PURPLE, "x"),
    (colours.SKY, "\\"),
    (colours.YELLOW, "-"),
    (colours.GREY, "+"),
)

# Query -> the view it needs; folders of older versions lack some.
_STANDS_ON = {"cost_models": "task_costs", "cost_times": "task_times", "cost_waste": "waste"}


def show(reader: Answers) -> None:
    """Draw the page."""
    views = reader.views()
    scope = scope_filters(reader)
    asked = [name for name, view in _STANDS_ON.items() if view in views]
    reader.ahead("cost_totals", "cost_by", *asked, **scope)
    totals = reader.row("cost_totals", **scope)
    if totals is None or totals["tasks"] == 0:
        st.info("No task in this time. Widen the filters.")
        return
    _figures(reader, scope, totals)
    place = st.container()
    measure = _measure()
    reader.ahead("cost_daily", "cost_distribution", "cost_tasks", **scope, by=measure)
    days = reader.rows("cost_daily", **scope, by=measure)
    with place:
        days = drawn(reader, days, scope["days"])
        _spent(days)
    _trend(days, measure)
    _distribution(reader.rows("cost_distribution", **scope, by=measure), measure)
    _breakdown(reader.rows("cost_by", **scope))
    if "task_costs" in views:
        _models(reader.rows("cost_models", **scope))
    if "task_times" in views:
        _times(reader.rows("cost_times", **scope))
    if "waste" in views:
        _waste(reader, scope)
    if "drift" in views:
        _drift(reader.rows("cost_drift", agents=scope["agents"], task_types=scope["task_types"]))
    _tasks(reader, scope, measure)


def _figures(reader: Answers, scope: Scope, row: Row) -> None:
    tasks = partial(go, "screens/tasks.py", time_range=str(st.session_state["range"]))
    cost, active, wall, tokens = (Here("most", {"measure": measure}) for measure in MEASURES)
    facts(
        "facts",
        [
            Fact("Cost of model calls", usd(row["cost_usd"]), tasks),
            Fact("Per completed task", usd(row["cost_per_completed"]), partial(tasks, outcome=["completed"])),
            Fact(
                "Spent on what failed",
                usd(row["cost_of_failed"]),
                partial(tasks, outcome=[words(OUTCOME_WORDS, outcome) for outcome in FAILED]),
            ),
            Fact("Cost, median", usd(row["cost_median"]), cost),
            Fact("Cost, dearest 5%", usd(row["cost_p95"]), cost),
            Fact("Active, median", duration(row["active_median_s"]), active),
            Fact("Active, slowest 5%", duration(row["active_p95_s"]), active),
            Fact("Wall, slowest 5%", duration(row["wall_p95_s"]), wall),
            Fact("Tokens in / out", f"{short(row['input_tokens'])} / {short(row['output_tokens'])}", tokens),
        ],
    )
    st.caption("A name leads to what it counts: the tasks, or those with most of it at the end of this page.")
    if row["unpriced"]:
        line = unpriced_line(reader, scope)
        if line is None:
            line = f"{counted(row['unpriced'], 'task')} with a model call whose cost is unknown."
        st.caption(
            markdown_text(f"{line} What is shown is the least that the {count(row['tasks'])} tasks cost.")
        )


def _spent(days: list[Row]) -> None:
    rows = [row for row in days if not row["whole"]]
    chart = charts.chart(
        "Cost of model calls by day of the task's start (UTC) and agent", "USD", stacked=True
    )
    agents = sorted({str(row["agent"]) for row in rows if not missing(row["cost_usd"])})
    for place, agent in enumerate(agents):
        of = [row for row in rows if str(row["agent"]) == agent]
        colour, pattern = _AGENT_COLOURS[place % len(_AGENT_COLOURS)]
        chart.add_bar(
            name=plotly_text("unnamed" if agent == "None" else agent),
            x=[row["day"] for row in of],
            y=[row["cost_usd"] for row in of],
            width=charts.DAY_WIDTH,
            marker={"color": colour, "pattern": {"shape": pattern, "size": 6}},
            customdata=[[usd(row["cost_usd"]), count(row["tasks"])] for row in of],
            hovertemplate="%{customdata[0]} for %{customdata[1]} tasks of %{fullData.name}<br>"
            "%{x|%Y-%m-%d} UTC<extra></extra>",
        )
    if not agents:
        st.caption("No model call has a price.")
        return
    charts.days_axis(chart, charts.span(rows))
    charts.draw(chart, "spent")


def _measure() -> str:
    chosen = st.segmented_control(
        "Show", list(MEASURES), default="Active time", required=True, key="measure", bind="query-params"
    )
    return MEASURES[chosen or "Active time"]


def _trend(days: list[Row], measure: str) -> None:
    rows = [row for row in days if row["whole"]]
    chart = charts.chart(f"{_title(measure)} of tasks by day of start (UTC)", _UNIT[measure])
    for column, name, colour, dash in (
        ("median", "median", charts.accent(), "solid"),
        ("p95", f"{_MOST[measure]} 5%", colours.ORANGE, "dot"),
    ):
        charts.line(
            chart, rows, "day", column, name, line={"color": colour, "width": 2, "dash": dash},
            customdata=[[_SPELT[measure](row[column]), count(row["tasks"])] for row in rows],
            hovertemplate=f"{name}: %{{customdata[0]}} (%{{customdata[1]}} tasks)<br>"
            "%{x|%Y-%m-%d} UTC<extra></extra>",
        )  # fmt: skip
    charts.days_axis(chart, charts.span(rows))
    charts.draw(chart, "trend")


def _title(measure: str) -> str:
    return next(name for name, key in MEASURES.items() if key == measure)


def _distribution(rows: list[Row], measure: str) -> None:
    if not rows:
        return
    spell = _SPELT[measure]
    chart = charts.chart(f"{_title(measure)}: how many tasks, by value (each bar a factor of 1.6)", "tasks")
    chart.add_bar(
        x=[spell(row["low"]) for row in rows],
        y=[row["tasks"] for row in rows],
        marker={"color": charts.accent()},
        customdata=[f"{spell(row['low'])} to {spell(row['high'])}" for row in rows],
        hovertemplate="%{y:,} tasks: %{customdata}<extra></extra>",
    )
    chart.update_xaxes(type="category", title={"text": "from"})
    charts.draw(chart, "distribution")


def _breakdown(rows: list[Row]) -> None:
    for dimension, heading, column in (
        ("type", "By agent and task type", "Task type"),
        ("version", "By agent and version, the newest first", "Version"),
    ):
        of = [row for row in rows if row["dimension"] == dimension]
        if not of:
            continue
        st.subheader(heading, anchor=False)
        st.caption("Click a row to list its tasks.")
        picked = table(
            [
                {
                    "agent": row["agent"],
                    "name": row["name"],
                    "tasks": count(row["tasks"]),
                    "first": when(row["first_seen"], seconds=False).removesuffix(" UTC"),
                    "cost": usd(row["cost_usd"]),
                    "each": usd(row["cost_per_completed"]),
                    "median": usd(row["cost_median"]),
                    "p95": usd(row["cost_p95"]),
                    "active": duration(row["active_median_s"]),
                    "active95": duration(row["active_p95_s"]),
                    "wall95": duration(row["wall_p95_s"]),
                }
                for row in of
            ],
            {
                "agent": "Agent",
                "name": column,
                "tasks": "Tasks",
                **({"first": "First seen"} if dimension == "version" else {}),
                "cost": "Cost",
                "each": "Per completed",
                "median": "Cost, median",
                "p95": "Dearest 5%",
                "active": "Active, median",
                "active95": "Slowest 5%",
                "wall95": "Wall, slowest 5%",
            },
            key=f"by_{dimension}",
            raw=of,
            selectable=True,
        )
        if picked is not None:
            _list_tasks(of[picked], dimension)


def _list_tasks(row: Row, key: str) -> None:
    """Go to the tasks of one agent and task type or version (`key` in the address), in the same time."""
    chosen = {
        name: [str(row[column])]
        for name, column in (("agent", "agent"), (key, "name"))
        if not missing(row[column])
    }
    go("screens/tasks.py", time_range=str(st.session_state["range"]), narrowed=chosen)


def _tasks(reader: Answers, scope: Scope, measure: str) -> None:
    rows = reader.rows("cost_tasks", **scope, by=measure)
    listed("most")
    st.subheader(f"The {_MOST[measure]} tasks", anchor=False)
    st.caption(f"By {_title(measure).lower()}; the first {count(len(rows))}. Click a row to open the task.")
    picked = table(
        [
            {
                **row,
                "started": when(row["started_at"], seconds=False).removesuffix(" UTC"),
                "outcome": words(OUTCOME_WORDS, row["outcome"]),
                "cost": usd(row["cost_usd"]),
                "active": duration(row["active_s"]),
                "wall": duration(row["wall_s"]),
                "wait": duration(row["human_wait_s"]) if row["human_wait_s"] else "",
                "calls": f"{count(row['model_calls'])} / {count(row['tool_calls'])}",
                "tokens": f"{short(row['input_tokens'])} / {short(row['output_tokens'])}",
            }
            for row in rows
        ],
        {
            "started": "Started (UTC)",
            "agent": "Agent",
            "task_type": "Type",
            "outcome": "Outcome",
            "cost": "Cost",
            "active": "Active time",
            "wall": "Wall time",
            "wait": "Human wait",
            "calls": "Model / tool calls",
            "tokens": "Tokens in / out",
            "task_id": "Task",
        },
        key="dearest",
        raw=rows,
        selectable=True,
        drop_empty=True,
    )
    if picked is not None:
        open_task(rows[picked]["task_id"])


def _models(rows: list[Row]) -> None:
    if not rows:
        return
    st.subheader("By model", anchor=False)
    table(
        [
            {
                "model": row["model"],
                "provider": row["provider"],
                "calls": count(row["calls"]),
                "cost": "no price" if row["unpriced_calls"] == row["calls"] else usd(row["cost_usd"]),
                "unpriced": count(row["unpriced_calls"]) if row["unpriced_calls"] else "",
                "fresh": count(row["fresh_tokens"]),
                "cached": percent(row["cached_share"]),
                "written": count(row["cache_write_tokens"]) if row["cache_write_tokens"] else "",
                "output": count(row["output_tokens"]),
            }
            for row in rows
        ],
        {
            "model": "Model",
            "provider": "Provider",
            "cost": "Cost",
            "calls": "Calls",
            "unpriced": "Calls without a price",
            "fresh": "Input tokens, fresh",
            "cached": "Of input, read from cache",
            "written": "Input tokens, written to cache",
            "output": "Output tokens",
        },
        key="by_model",
        raw=rows,
        drop_empty=True,
    )


_PARTS = (
    ("model_s", "model calls", colours.BLUE, ""),
    ("tool_s", "tool calls", colours.GREEN, "/"),
    ("own_s", "the agent itself", colours.GREY, "."),
    ("human_wait_s", "waiting for a human", colours.ORANGE, "x"),
)


_LONGEST_LABEL = 30


def _times(rows: list[Row]) -> None:
    if not rows:
        return
    chart = charts.chart(
        "Where the time of a task goes, by agent (mean)", "", height=110 + 42 * len(rows), stacked=True
    )
    names = [plotly_text("unnamed" if missing(row["agent"]) else row["agent"]) for row in rows]
    for column, name, colour, pattern in _PARTS:
        chart.add_bar(
            name=name,
            orientation="h",
            y=names,
            x=[row[column] for row in rows],
            marker={"color": colour, "pattern": {"shape": pattern, "size": 6}},
            customdata=[[duration(row[column]), count(row["tasks"])] for row in rows],
            hovertemplate="%{customdata[0]} of %{fullData.name}<br>%{y}, %{customdata[1]} tasks<extra></extra>",
        )
    chart.update_xaxes(title={"text": "seconds per task"}, rangemode="tozero")
    # one long name must not take the room of all bars; the hover has it whole
    short = [name if len(name) <= _LONGEST_LABEL else f"{name[:_LONGEST_LABEL]}…" for name in names]
    chart.update_yaxes(type="category", autorange="reversed", tickvals=names, ticktext=short)
    charts.draw(chart, "times")


WASTE_WORDS = {
    "failed_task": "tasks that failed",
    "abandoned_task": "tasks that were lost or given up",
    "duplicate": "done twice",
    "loop": "loops",
    "retry": "retries",
}
_WASTE_PARTS = (
    ("failed_tasks_usd", "tasks that failed", colours.VERMILION, ""),
    ("abandoned_tasks_usd", "lost or given up", colours.PURPLE, "/"),
    ("duplicates_usd", "done twice", colours.ORANGE, "x"),
    ("loops_usd", "loops", colours.BLUE, "."),
    ("retries_usd", "retries", colours.SKY, "-"),
)


def _waste(reader: Answers, scope: Scope) -> None:
    st.subheader("Money lost to unreliability", anchor=False)
    st.caption(
        "Model calls that served nothing: each cent is in one row. Tools and people cost more; no trace says it."
    )
    weeks = reader.rows("waste_weeks", **{**scope, "days": None})
    if len(weeks) > 1:
        whose = "these filters" if narrowed(scope) else "all agents"
        chart = charts.chart(
            f"Lost in seven days each, {whose}, the last twelve weeks whatever time is chosen",
            "USD",
            stacked=True,
        )
        for column, name, colour, pattern in _WASTE_PARTS:
            chart.add_bar(
                name=name,
                x=[week["week_end"] for week in weeks],
                y=[week[column] for week in weeks],
                marker={"color": colour, "pattern": {"shape": pattern, "size": 6}},
                customdata=[[usd(week[column]), usd(week["cost_usd"])] for week in weeks],
                hovertemplate="%{customdata[0]} of %{customdata[1]}: %{fullData.name}<br>"
                "seven days to %{x|%Y-%m-%d} UTC<extra></extra>",
            )
        chart.update_xaxes(type="date", tickformat="%b %-d", title={"text": "seven days up to"})
        charts.draw(chart, "waste_weeks")
    rows = reader.rows("cost_waste", **scope)
    if not rows:
        unpriced = bool(weeks) and all(missing(week["waste_usd"]) for week in weeks)
        st.caption("Unknown: no model call has a price." if unpriced else "Nothing was wasted in this time.")
        return
    for dimension, heading in (("kind", "What"), ("agent", "Agent")):
        of = [row for row in rows if row["dimension"] == dimension]
        picked = table(
            [
                {
                    "name": words(WASTE_WORDS, row["name"]) if dimension == "kind" else row["name"],
                    "cost": usd(row["cost_usd"]),
                    "share": percent(row["share"]),
                    "tasks": count(row["tasks"]),
                    "calls": count(row["calls"]),
                    "dearest": row["dearest_task"],
                }
                for row in of
            ],
            {
                "name": heading,
                "cost": "Lost",
                "share": "Of all cost",
                "tasks": "Tasks",
                "calls": "Calls",
                "dearest": "Dearest task",
            },
            key=f"waste_{dimension}",
            raw=of,
            selectable=True,
        )
        if picked is not None and not missing(of[picked]["dearest_task"]):
            open_task(of[picked]["dearest_task"])


DRIFT_WORDS = {
    "rising": "rising",
    "steady": "steady",
    "learning": "learning: too few days yet",
    "insufficient": "too few tasks to tell",
}


def _drift(rows: list[Row]) -> None:
    if not rows:
        return
    st.subheader("Drift", anchor=False)
    st.caption(
        "The typical task of the last days against the days before. The change of an agent's mean is divided into "
        "other work (mix) and the same work at another price or speed (rate)."
    )
    table(
        [
            {
                "metric": words({}, row["metric"]),
                "agent": row["agent"],
                "type": row["task_type"],
                "state": words(DRIFT_WORDS, row["state"]),
                "since": None if missing(row["opened_on"]) else str(row["opened_on"]),
                "before": _drifted(row, "baseline_typical"),
                "now": _drifted(row, "typical"),
                "shift": _ratio(row["shift"]),
                "interval": None
                if missing(row["shift_lower"])
                else f"{_ratio(row['shift_lower'])} to {_ratio(row['shift_upper'])}",
                "mix": _drifted(row, "agent_mix"),
                "rate": _drifted(row, "agent_rate"),
                "least": _ratio(row["detectable"]),
            }
            for row in rows
        ],
        {
            "metric": "Measure",
            "agent": "Agent",
            "type": "Task type",
            "state": "State",
            "since": "Since",
            "before": "Before",
            "now": "Now",
            "shift": "Shift",
            "interval": "95% interval",
            "mix": "By other work",
            "rate": "By the same work",
            "least": "Least it can find",
        },
        key="drift",
        drop_empty=True,
    )


def _drifted(row: Row, column: str) -> str:
    return (usd if row["metric"] == "cost" else duration)(row[column])


def _ratio(value: Any) -> str | None:
    """A ratio as `×1.21`."""
    return None if missing(value) else f"×{float(value):.2f}"


page("Cost and latency", show, keys=(*SCOPE_KEYS, "measure"))
