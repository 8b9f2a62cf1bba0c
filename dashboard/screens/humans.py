"""Humans: where people step in, what they decide, how long work waits for them, and whether they were needed."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import streamlit as st

from dashboard import charts, colours
from dashboard.chrome import open_task, page, table
from dashboard.days import drawn
from dashboard.door import Answers
from dashboard.facts import Fact, Here, facts, listed, turn
from dashboard.filters import SCOPE_KEYS, Scope, go, scope_filters
from dashboard.format import (
    OUTCOME_WORDS,
    UNKNOWN,
    count,
    counted,
    duration,
    interval,
    markdown_text,
    missing,
    one_line,
    percent,
    when,
    words,
)
from dashboard.labelling import label_control

Row = dict[str, Any]

KIND_STYLE = {
    "approval": (colours.BLUE, ""),
    "answer": (colours.SKY, "."),
    "escalation": (colours.ORANGE, "/"),
    "take_over": (colours.PURPLE, "x"),
}
# Days over which `escalation_quality` counts.
WINDOWS = (7, 28, 90)
LABEL_VIEWS = {"human_labels", "escalation_quality"}
OPEN_FIRST, LONGEST_FIRST = "open ones first", "longest wait first"
DECISIONS = ("approved", "edited", "rejected", "answered", "took over", "open")


def show(reader: Answers) -> None:
    """Draw the page."""
    scope = scope_filters(reader)
    reader.ahead("humans_totals", "humans_daily", "humans_waits", "humans_by", **scope)
    if reader.views() >= LABEL_VIEWS:
        reader.ahead("humans_unlabelled", **scope)
        reader.ahead("humans_labels", **_label_question(scope))
    totals = reader.row("humans_totals", **scope)
    if totals is None or totals["interventions"] == 0:
        st.info("No human took part in any task of this time, as far as the traces tell.")
        st.caption(
            "Approvals and pauses of frameworks are recognised; your own can be stated with "
            "`agent_slo.human.decision` on a span."
        )
        return
    _figures(totals)
    _days(drawn(reader, reader.rows("humans_daily", **scope), scope["days"]))
    _waits(reader.rows("humans_waits", **scope))
    narrowed = _breakdown(reader.rows("humans_by", **scope))
    _labels(reader, scope)
    _list(reader, scope, narrowed)


def _figures(row: Row) -> None:
    tasks = partial(go, "screens/tasks.py", time_range=str(st.session_state["range"]), human="true")
    longest = _here(order=LONGEST_FIRST)
    facts(
        "facts",
        [
            Fact("Interventions", count(row["interventions"]), _here()),
            Fact("Tasks with one", f"{count(row['tasks_with'])} of {count(row['tasks'])}", tasks),
            Fact("Share of tasks", percent(row["share_with"]), tasks),
            Fact("Approved", count(row["approved"]), _here("approved")),
            Fact("Edited", count(row["edited"]), _here("edited")),
            Fact("Rejected", count(row["rejected"]), _here("rejected")),
            Fact("Share rejected", percent(row["rejected_share"]), _here("approved", "edited", "rejected")),
            Fact("Waiting, median", duration(row["wait_median_s"]), longest),
            Fact("Waiting, slowest 5%", duration(row["wait_p95_s"]), longest),
            Fact("Waited in all", duration(row["wait_total_s"]), longest),
            Fact("Still open", count(row["open"]), _here("open")),
        ],
    )
    st.caption("A name leads to what it counts: the list at the end of this page, or the tasks.")
    if row["open"] and not missing(row["oldest_open"]):
        st.caption(
            markdown_text(f"The oldest open one waits since {when(row['oldest_open'], seconds=False)}.")
        )


def _here(*decisions: str, order: str = OPEN_FIRST) -> Here:
    """The list at the end of the page with these decisions of every kind; without any, all of them."""
    return Here("interventions", {"kind": [], "decision": list(decisions), "order": order})


def _kinds(chart: Any, rows: list[Row], x: str, hover: str) -> None:
    """One series a kind, known ones first."""
    kinds = [*KIND_STYLE, *sorted({str(r["kind"]) for r in rows} - set(KIND_STYLE))]
    for kind in kinds:
        of = [row for row in rows if str(row["kind"]) == kind]
        charts.bars(
            chart, of, x, "interventions", words({}, kind), KIND_STYLE.get(kind, (colours.GREY, "")), hover
        )


def _days(rows: list[Row]) -> None:
    if not rows:
        return
    chart = charts.chart(
        "Interventions by day of the request (UTC)", "interventions", stacked=True, height=240
    )
    _kinds(chart, rows, "day", charts.DAY_HOVER)
    charts.days_axis(chart, charts.span(rows))
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


def _breakdown(rows: list[Row]) -> Row:
    """Interventions by kind and level, tool and agent; returns what the clicked rows narrow the list to."""
    narrowed: Row = {"kind": None, "level": None, "tool": None, "agent": None}
    for dimension, (heading, column) in _HEADINGS.items():
        of = [row for row in rows if row["dimension"] == dimension]
        if not of:
            continue
        st.subheader(heading, anchor=False)
        st.caption("Click a row to list its interventions below.")
        picked = table(
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
            key=f"by_{dimension}_{turn()}",
            selectable=True,
            drop_empty=True,
        )  # fmt: skip
        if picked is not None and not missing(of[picked]["name"]):
            narrowed[dimension] = of[picked]["name"]
            if dimension == "kind":
                narrowed["level"] = of[picked]["level"]
    return narrowed


def _label_question(scope: Scope) -> Row:
    """The parameters of `humans_labels`: its windows are fixed, so the shortest one that holds the time range."""
    wide_enough = (window for window in WINDOWS if scope["days"] is not None and scope["days"] <= window)
    return {
        "days": next(wide_enough, WINDOWS[-1]),
        "agents": scope["agents"],
        "task_types": scope["task_types"],
    }


def _labels(reader: Answers, scope: Scope) -> None:
    """Precision and recall of labelled tasks, and the tasks that wait for a label."""
    st.subheader("Were they needed?", anchor=False)
    if not reader.views() >= LABEL_VIEWS:
        st.caption("Labels are counted after the next pass of the collector.")
        return
    asked = _label_question(scope)
    rows = reader.rows("humans_labels", **asked)
    st.caption(
        f"Tasks that objectives count and that were decided in the last {asked['days']} days; only agent and task type "
        "narrow this table. Precision: of the labelled tasks that asked, those that needed a human. Recall: of the "
        "tasks labelled as needing one, those that asked."
    )
    if any(row["labelled"] for row in rows):
        _quality(rows)
    else:
        st.caption(
            "Nobody has said of any task whether it needed a human. Label some below, set "
            "`agent_slo.human.required_level` on a span (`none`: nobody was needed), or "
            "state rules under `policies: escalations:` in agent-slo.yaml."
        )
    _next_label(reader, reader.rows("humans_unlabelled", **scope))


def _quality(rows: list[Row]) -> None:
    table(
        [
            {
                "agent": row["agent"],
                "type": row["task_type"],
                "labelled": f"{count(row['labelled'])} of {count(row['tasks'])} ({percent(row['label_coverage'], 0)})",
                "asked": f"{count(row['labelled_asked'])} of {count(row['asked'])}",
                "precision": _share(row, "precision", row["needed_asked"], row["labelled_asked"]),
                "recall": _share(row, "recall", row["needed_asked"], row["needed"]),
                "missed": count(row["missed"]),
                "suspected": count(row["suspected_missed"]) if row["suspected_missed"] else "",
                "level": f"{count(row['right_level'])} of {count(row['level_known'])}"
                if row["level_known"]
                else "",
            }
            for row in rows
        ],
        {
            "agent": "Agent",
            "type": "Task type",
            "labelled": "Tasks labelled",
            "asked": "Of those that asked",
            "precision": "Precision",
            "recall": "Recall",
            "missed": "Missed",
            "suspected": "Perhaps missed",
            "level": "At the right level",
        },
        key="labels",
        drop_empty=True,
    )


def _share(row: Row, name: str, part: Any, of: Any) -> str:
    """`75.0% (3 of 4; 30.1–95.4%)`."""
    if missing(row[name]):
        return UNKNOWN
    bounds = interval(row[f"{name}_lower"], row[f"{name}_upper"])
    return f"{percent(row[name])} ({count(part)} of {count(of)}; {bounds})"


def _next_label(reader: Answers, rows: list[Row]) -> None:
    """One task at a time, the newest first; those put aside in this session come last."""
    if not rows:
        st.caption("Every task of this time that asked a human is labelled.")
        return
    later: list[str] = st.session_state.setdefault("label_later", [])
    row = min(rows, key=lambda r: later.index(r["task_id"]) if r["task_id"] in later else -1)
    with st.container(border=True, key="card_label"):
        facts = [
            ("agent", row["agent"]),
            ("type", row["task_type"]),
            ("asked", when(row["asked_at"], seconds=False)),
            ("for", None if missing(row["kind"]) else words({}, row["kind"])),
            ("tool", row["tool"]),
            ("decision", None if missing(row["decision"]) else words({}, row["decision"])),
            ("waited", None if missing(row["wait_s"]) else duration(row["wait_s"])),
            ("outcome", words(OUTCOME_WORDS, row["outcome"])),
        ]
        st.text(f"Was a human needed for {one_line(row['task_id'])}?")
        told = " · ".join(f"{name} {one_line(value, 80)}" for name, value in facts if not missing(value))
        st.caption(markdown_text(f"{told}. {counted(row['matching'], 'task')} of this time without a label."))
        label_control(reader, row["task_id"], "next")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.page_link(
                "screens/task.py", label="Look at the task first", icon=":material/timeline:",
                query_params={"id": row["task_id"]},
            )  # fmt: skip
            if len(rows) > 1 and st.button("Later", key="label_skip", type="tertiary"):
                later[:] = [task for task in later if task != row["task_id"]] + [row["task_id"]]
                st.rerun()


def _list(reader: Answers, scope: Scope, narrowed: Row) -> None:
    listed("interventions")
    st.subheader("Interventions", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kinds = st.multiselect(
            "Kind", [words({}, kind) for kind in KIND_STYLE], key="kind", bind="query-params", placeholder="any",
            width=320,
        )  # fmt: skip
        decisions = st.multiselect(
            "Decision", DECISIONS, key="decision", bind="query-params", placeholder="any", width=420
        )
        order = st.segmented_control(
            "Order", [OPEN_FIRST, LONGEST_FIRST], default=OPEN_FIRST, required=True, key="order",
            bind="query-params",
        )  # fmt: skip
    rows = reader.rows(
        "humans_list", **scope, **narrowed,
        kinds=json.dumps([kind.replace(" ", "_") for kind in kinds]) if kinds else None,
        decisions=json.dumps([decision.replace(" ", "_") for decision in decisions]) if decisions else None,
        longest_first=order == LONGEST_FIRST,
    )  # fmt: skip
    only = [words({}, v) if k == "kind" else str(v) for k, v in narrowed.items() if v is not None]
    where = f" of {', '.join(only)}" if only else ""
    if kinds or decisions:
        where += f" ({'; '.join(', '.join(chosen) for chosen in (kinds, decisions) if chosen)})"
    if not rows:
        st.caption(markdown_text(f"None{where}."))
        return
    more = "" if rows[0]["matching"] == len(rows) else f"; {count(len(rows))} are shown"
    line = f"{counted(rows[0]['matching'], 'intervention')}{where}{more}, {order}."
    st.caption(markdown_text(f"{line} Click a row to open its task."))
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
        raw=rows,
        selectable=True,
        drop_empty=True,
    )
    if picked is not None:
        open_task(rows[picked]["task_id"])


page("Humans", show, keys=(*SCOPE_KEYS, "kind", "decision", "order"))
