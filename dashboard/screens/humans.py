"""Humans: where people step in, what they decide, how long work waits for them, and whether they were needed."""

from __future__ import annotations

import json
from typing import Any

import streamlit as st

from dashboard import charts, colours
from dashboard.chrome import open_task, page, table
from dashboard.door import Answers
from dashboard.filters import Scope, scope_filters
from dashboard.format import (
    count,
    counted,
    duration,
    markdown_text,
    missing,
    percent,
    when,
    words,
)

Row = dict[str, Any]

KIND_STYLE = {
    "approval": (colours.BLUE, ""),
    "answer": (colours.SKY, "."),
    "escalation": (colours.ORANGE, "/"),
    "take_over": (colours.PURPLE, "x"),
}
DECISIONS = ("approved", "edited", "rejected", "answered", "took over", "open")


def show(reader: Answers) -> None:
    """Draw the page."""
    scope = scope_filters(reader)
    reader.ahead("humans_totals", "humans_daily", "humans_waits", "humans_by", "humans_labels", **scope)
    totals = reader.row("humans_totals", **scope)
    if totals is None or totals["interventions"] == 0:
        st.info("No human took part in any task of this time, as far as the traces tell.")
        st.caption(
            "Approvals and pauses of frameworks are recognised; your own can be stated with "
            "`agent_slo.human.decision` on a span."
        )
        return
    _figures(totals)
    _days(reader.rows("humans_daily", **scope))
    _waits(reader.rows("humans_waits", **scope))
    _breakdown(reader.rows("humans_by", **scope))
    _labels(reader.rows("humans_labels", **scope))
    _list(reader, scope)


def _figures(row: Row) -> None:
    with st.container(key="facts", horizontal=True, gap="medium", border=True):
        for label, value in (
            ("Interventions", count(row["interventions"])),
            ("Tasks with one", f"{count(row['tasks_with'])} of {count(row['tasks'])}"),
            ("Share of tasks", percent(row["share_with"])),
            (
                "Approved / edited / rejected",
                f"{count(row['approved'])} / {count(row['edited'])} / {count(row['rejected'])}",
            ),
            ("Rejected", percent(row["rejected_share"])),
            ("Waiting, median", duration(row["wait_median_s"])),
            ("Waiting, slowest 5%", duration(row["wait_p95_s"])),
            ("Waited in all", duration(row["wait_total_s"])),
            ("Still open", count(row["open"])),
        ):
            st.metric(label, markdown_text(value), width="content")
    if row["open"] and not missing(row["oldest_open"]):
        st.caption(
            markdown_text(f"The oldest open one waits since {when(row['oldest_open'], seconds=False)}.")
        )


def _kinds(chart: Any, rows: list[Row], x: str, hover: str) -> None:
    """One series a kind, known ones first."""
    kinds = [*KIND_STYLE, *sorted({str(r["kind"]) for r in rows} - set(KIND_STYLE))]
    for kind in kinds:
        of = [row for row in rows if str(row["kind"]) == kind]
        if of:
            colour, pattern = KIND_STYLE.get(kind, (colours.GREY, ""))
            chart.add_bar(
                name=words({}, kind),
                x=[row[x] for row in of],
                y=[row["interventions"] for row in of],
                marker={"color": colour, "pattern": {"shape": pattern, "size": 6}},
                hovertemplate=f"%{{y:,}} %{{fullData.name}}<br>{hover}<extra></extra>",
            )


def _days(rows: list[Row]) -> None:
    if not rows:
        return
    chart = charts.chart(
        "Interventions by day of the request (UTC)", "interventions", stacked=True, height=240
    )
    _kinds(chart, rows, "day", "%{x|%Y-%m-%d} UTC")
    charts.days_axis(chart, len({row["day"] for row in rows}))
    charts.draw(chart, "days")


def _waits(rows: list[Row]) -> None:
    if not rows:
        return
    chart = charts.chart("How long the work waited for a human", "interventions", stacked=True, height=240)
    _kinds(chart, rows, "label", "%{x}")
    order = list(dict.fromkeys(row["label"] for row in rows))
    chart.update_xaxes(type="category", categoryorder="array", categoryarray=order)
    charts.draw(chart, "waits")


_HEADINGS = {
    "kind": ("By kind and level", "Kind"),
    "tool": ("By tool asked about", "Tool"),
    "agent": ("By agent", "Agent"),
}


def _breakdown(rows: list[Row]) -> None:
    for dimension, (heading, column) in _HEADINGS.items():
        of = [row for row in rows if row["dimension"] == dimension]
        if not of:
            continue
        st.subheader(heading, anchor=False)
        table(
            [
                {
                    "name": words({}, row["name"]) if dimension == "kind" else row["name"],
                    "level": row["level"],
                    **{
                        name: count(row[name]) if row[name] else ""
                        for name in (
                            "interventions", "tasks", "approved", "edited", "rejected", "answered_or_took_over", "open",
                        )
                    },
                    "median": duration(row["wait_median_s"]),
                    "p95": duration(row["wait_p95_s"]),
                }
                for row in of
            ],
            {
                "name": column,
                "level": "Level",
                "interventions": "Interventions",
                "tasks": "Tasks",
                "approved": "Approved",
                "edited": "Edited",
                "rejected": "Rejected",
                "answered_or_took_over": "Answered or took over",
                "open": "Open",
                "median": "Wait, median",
                "p95": "Wait, slowest 5%",
            },
            key=f"by_{dimension}",
            drop_empty=True,
        )  # fmt: skip


def _labels(rows: list[Row]) -> None:
    st.subheader("Were they needed?", anchor=False)
    if not rows:
        st.caption(
            "No intervention says who should have decided. Set `agent_slo.human.required_level` on it (`none`: nobody "
            "was needed), beside `agent_slo.human.level`, and precision and recall appear here."
        )
        return
    st.caption(
        "Of the labelled interventions only. Precision: a human was needed. Recall: of the tasks that needed one, "
        "those that asked; missed ones are known where a policy demands an approval."
    )
    table(
        [
            {
                "agent": row["agent"],
                "labelled": f"{count(row['labelled'])} of {count(row['interventions'])}"
                f" ({percent(row['coverage'], 0)})",
                "precision": f"{percent(row['precision'])} ({count(row['needed'])} of {count(row['labelled'])})",
                "recall": percent(row["recall"]),
                "missed": count(row["missed"]),
                "level": f"{percent(row['right_level_share'])} ({count(row['right_level'])})",
            }
            for row in rows
        ],
        {
            "agent": "Agent",
            "labelled": "Labelled",
            "precision": "Precision",
            "recall": "Recall",
            "missed": "Missed",
            "level": "At the right level",
        },
        key="labels",
    )


def _list(reader: Answers, scope: Scope) -> None:
    st.subheader("Interventions", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kinds = st.multiselect(
            "Kind", [words({}, kind) for kind in KIND_STYLE], key="kind", bind="query-params", placeholder="any",
            width=320,
        )  # fmt: skip
        decisions = st.multiselect(
            "Decision", DECISIONS, key="decision", bind="query-params", placeholder="any", width=420
        )
    rows = reader.rows(
        "humans_list", **scope,
        kinds=json.dumps([kind.replace(" ", "_") for kind in kinds]) if kinds else None,
        decisions=json.dumps([decision.replace(" ", "_") for decision in decisions]) if decisions else None,
    )  # fmt: skip
    if not rows:
        st.caption("None.")
        return
    more = "" if rows[0]["matching"] == len(rows) else f"; {count(len(rows))} are shown"
    line = f"{counted(rows[0]['matching'], 'intervention')}{more}, open ones first. Click a row to open its task."
    st.caption(markdown_text(line))
    picked = table(
        [
            {
                **row,
                "requested": when(row["requested_at"]),
                "kind": words({}, row["kind"]),
                "decision": "open" if row["is_open"] else words({}, row["decision"]),
                "wait": duration(row["wait_s"]),
            }
            for row in rows
        ],
        {
            "requested": "Requested",
            "agent": "Agent",
            "kind": "Kind",
            "decision": "Decision",
            "tool": "Tool",
            "level": "Level",
            "required_level": "Required level",
            "wait": "Waited",
            "task_id": "Task",
        },
        key="interventions",
        selectable=True,
        drop_empty=True,
    )
    if picked is not None:
        open_task(rows[picked]["task_id"])


page("Humans", show)
