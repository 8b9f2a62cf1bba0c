"""Overview: are the objectives met, what changed since yesterday, what went wrong, and what was done twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from dashboard import charts, colours
from dashboard.cards import cards
from dashboard.chrome import page, table
from dashboard.days import drawn
from dashboard.door import Answers
from dashboard.facts import Fact, facts
from dashboard.filters import SCOPE_KEYS, Scope, go, narrowed, scope_address, scope_filters
from dashboard.format import (
    OUTCOME_WORDS,
    STATE_WORDS,
    count,
    counted,
    duration,
    markdown_text,
    missing,
    one_line,
    percent,
    signed,
    usd,
    when,
    words,
)
from dashboard.incident_words import incident_title
from dashboard.lag import behind
from dashboard.repeats import repeats_table

Row = dict[str, Any]


def show(reader: Answers) -> None:
    """Draw the page."""
    views = reader.views()
    scope = scope_filters(reader)
    reader.ahead("overview_since_yesterday", **{**scope, "days": 2})
    reader.ahead("overview_totals", "overview_outcomes", "overview_repeats", "overview_health", **scope)
    line = behind(reader)
    if line is not None:
        st.warning(markdown_text(line), icon=":material/hourglass_bottom:")
    # Whoever was woken by one opens this page: what fires stands before everything else.
    if "alerts" in views:
        _alerts(reader, scope)
    _since_yesterday(reader, scope, views)
    if "slo_status" in views:
        _objectives(reader, scope)
    if "waste" in views:
        _waste(reader, scope)
    if "incidents" in views:
        _incidents(reader, scope)
    _outcomes(reader, scope)
    _duplicates(reader, scope)
    _health(reader, scope)


def _since_yesterday(reader: Answers, scope: Scope, views: frozenset[str]) -> None:
    row = reader.row("overview_since_yesterday", **{**scope, "days": 2})
    if row is None:
        return
    st.subheader("Since yesterday", anchor=False)
    failed = [words(OUTCOME_WORDS, outcome) for outcome in ("failed", "lost", "dead_letter")]

    def day(
        label: str, column: str, change: str, spell: Callable[[Any], str], screen: str, *, worse: bool = False,
        **controls: Any,
    ) -> Fact:  # fmt: skip
        lead = partial(go, f"screens/{screen}.py", time_range="24h", **controls)
        changed = None if missing(row[change]) else signed(row[change], spell)
        return Fact(label, spell(row[column]), lead, changed, worse)

    facts(
        "facts_yesterday",
        [
            day("Tasks", "tasks", "tasks_change", count, "tasks"),
            day("Failed or lost", "failed", "failed_change", count, "tasks", worse=True, outcome=failed),
            day(
                "Unprotected duplicates", "duplicates", "duplicates_change", count, "tasks", worse=True,
                duplicate="true",
            ),
            day("Human interventions", "interventions", "interventions_change", count, "humans"),
            day("Cost of model calls", "cost_usd", "cost_change", usd, "cost", measure="Cost"),
            day(
                "Active time, slowest 5%", "active_p95_s", "active_p95_change_s", duration, "cost", worse=True,
                measure="Active time",
            ),
        ],
    )  # fmt: skip
    st.caption(
        "The last 24 hours; below each, the difference from the 24 hours before. A name leads to what is counted."
    )
    lines = [
        f"New version: {one_line(r['service'], 60)} {one_line(r['app_version'], 40)}, first seen "
        f"{when(r['first_seen'], seconds=False)}"
        for r in (reader.rows("overview_new_versions") if "tasks" in views else [])
    ]
    if lines:
        # Two spaces before a newline are Markdown's line break.
        st.caption("  \n".join(markdown_text(text) for text in lines))


def _objectives(reader: Answers, scope: Scope) -> None:
    st.subheader("Objectives", anchor=False)
    held = {"agents": scope["agents"], "task_types": scope["task_types"]}
    status = reader.rows("overview_cards", **held)
    if not status:
        if held["agents"] or held["task_types"]:
            st.info("No objective is held against this agent or task type on its own.")
        else:
            st.info("No objective has been evaluated yet.")
        return
    history = reader.rows("overview_history")
    if any(value for parameter, value in scope.items() if parameter not in held):
        st.caption("Each card counts its objective's own window; only agent and task type narrow it.")
    counted_rows = [row for row in status if row["seen"] or row["state"] == "invalid"]
    cards(counted_rows, history, scope_address())
    _uncounted([row for row in status if row not in counted_rows])


def _uncounted(rows: list[Row]) -> None:
    """Objectives nothing has been counted for: one line each, so that they do not hide the others."""
    if not rows:
        return
    with st.expander(f"{counted(len(rows), 'objective')} without any event yet"):
        table(
            [{**row, "state": words(STATE_WORDS, row["state"])} for row in rows],
            {"title": "Objective", "state": "State", "description": "Counts"},
            key="uncounted",
        )


SHOWN_ALERTS = 5


def _alerts(reader: Answers, scope: Scope) -> None:
    """What fires, the gravest first; each leads to its alert."""
    row = reader.row("alerts_choices")
    if row is None or not (row["firing"] or row["frozen"]):
        return
    asked = {"states": '["firing", "frozen"]', "agents": scope["agents"], "severities": None}
    found = reader.rows("alerts_list", **asked)
    matching, rows = (found[0]["matching"] if found else 0), found[:SHOWN_ALERTS]
    st.subheader("Alerts", anchor=False)
    line = f"{counted(row['firing'], 'alert')} firing"
    if row["frozen"]:
        line += f" · {count(row['frozen'])} frozen, as nothing new came to judge by"
    if row["silenced"]:
        line += f" · {count(row['silenced'])} silenced"
    if scope["agents"]:
        line += (
            " in all; below, those of the chosen agents alone"
            if rows
            else " in all; none of the chosen agents alone"
        )
    if matching > len(rows):
        line += f"; {count(len(rows))} of {count(matching)} shown"
    st.caption(markdown_text(f"{line}. Click a row to read it." if rows else f"{line}."))
    if rows:
        picked = table(
            [
                {
                    **row,
                    "since": when(row["fired_at"], seconds=False),
                    "told": "" if missing(row["silenced_by"]) or row["silenced_by"] == "" else "silenced",
                }
                for row in rows
            ],
            {
                "severity": "Severity",
                "state": "State",
                "since": "Since",
                "summary": "What",
                "told": "Silenced",
            },
            key="firing",
            selectable=True,
            drop_empty=True,
            config={"What": st.column_config.Column(width=760)},
        )
        if picked is not None:
            st.switch_page("screens/alerts.py", query_params={"id": rows[picked]["alert_id"]})
    more = f"All {count(matching)}" if matching > len(rows) else "All alerts"
    st.page_link("screens/alerts.py", label=f"{more}, and who was told", icon=":material/arrow_forward:")


def _waste(reader: Answers, scope: Scope) -> None:
    """Money lost to unreliability within the filters, in one line; always of seven days."""
    weeks = reader.rows("waste_weeks", **{**scope, "days": None})
    st.subheader("Money lost to unreliability", anchor=False)
    row = next((week for week in weeks if week["weeks_ago"] == 0), None)
    if row is None:
        st.caption("No task of these filters was decided in the last seven days.")
        return
    if missing(row["waste_usd"]):
        st.caption(
            "Unknown: no model call of the last seven days has a price. "
            "Add the models under `prices:` in agent-slo.yaml."
        )
        return
    parts = [
        f"{usd(row[column])} {name}"
        for column, name in (
            ("failed_tasks_usd", "in tasks that failed"),
            ("abandoned_tasks_usd", "in tasks lost or given up"),
            ("duplicates_usd", "done twice"),
            ("loops_usd", "in loops"),
            ("retries_usd", "in retries"),
        )
        if row[column]
    ]
    change = (
        ""
        if missing(row["waste_change"])
        else f", {signed(row['waste_change'], usd)} against the week before"
    )
    whose = "of these filters" if narrowed(scope) else "of all agents"
    lines = [
        f"{usd(row['waste_usd'])} of {usd(row['cost_usd'])} for model calls {whose} in the last seven days "
        f"({percent(row['waste_share'])}), in {count(row['wasteful_tasks'])} of {counted(row['tasks'], 'task')}"
        f"{change}.",
        " · ".join(parts),
    ]
    if row["unpriced_tasks"]:
        lines.append(f"{counted(row['unpriced_tasks'], 'task')} without a full price: it is at least that.")
    st.text("\n".join(line for line in lines if line))
    st.page_link("screens/cost.py", label="Where it was lost", icon=":material/arrow_forward:")


def _incidents(reader: Answers, scope: Scope) -> None:
    rows = reader.rows("overview_incidents", agents=scope["agents"])
    st.subheader("Open incidents", anchor=False)
    if not rows:
        st.caption("None.")
        return
    line = f"{counted(rows[0]['open'], 'incident')} open, {count(rows[0]['open_new'])} of them new since yesterday."
    st.caption(markdown_text(f"{line} Click a row to read its story."))
    picked = table(
        [
            {
                **row,
                "title": incident_title(row),
                "seen": counted(row["seen_count"], "task"),
                "last": when(row["last_seen"], seconds=False),
                "new": "new" if row["is_new"] else "",
            }
            for row in rows
        ],
        {
            "severity": "Severity",
            "title": "What happened",
            "agent": "Agent",
            "seen": "Seen in",
            "last": "Last seen",
            "new": "New",
        },
        key="open_incidents",
        selectable=True,
    )
    st.page_link("screens/incidents.py", label="All incidents", icon=":material/arrow_forward:")
    if picked is not None:
        st.switch_page("screens/incidents.py", query_params={"id": rows[picked]["incident_id"]})


def _outcomes(reader: Answers, scope: Scope) -> None:
    totals = reader.row("overview_totals", **scope) or {}
    st.subheader("Tasks by outcome", anchor=False)
    line = f"{counted(totals.get('tasks'), 'task')} · {count(totals.get('running'))} running"
    line += f" · {count(totals.get('waiting_human'))} waiting for a human"
    if not missing(totals.get("oldest_waiting_since")):
        line += f" (the oldest since {when(totals['oldest_waiting_since'], seconds=False)})"
    st.caption(markdown_text(line))
    wrong = st.toggle("Only what went wrong", key="wrong", bind="query-params")
    rows = [row for row in reader.rows("overview_outcomes", **scope) if row["went_wrong"] or not wrong]
    if not rows:
        st.caption("No task." if not wrong else "Nothing went wrong.")
        return
    rows = drawn(reader, rows, scope["days"])
    if not rows:
        return
    title = "Tasks that went wrong" if wrong else "Tasks"
    chart = charts.chart(f"{title}, by outcome and day of start (UTC)", "tasks", stacked=True)
    for outcome, style in colours.OUTCOME_STYLE.items():
        days = [row for row in rows if row["outcome"] == outcome]
        leads_to = [[outcome, f"{row['day']:%Y-%m-%d}"] for row in days]
        charts.bars(chart, days, "day", "tasks", words(OUTCOME_WORDS, outcome), style, customdata=leads_to)
    charts.days_axis(chart, charts.span(rows))
    st.caption("Click a bar to list its tasks.")
    picked = charts.pick(chart, "outcomes")
    if picked is not None:
        outcome, on = picked
        go("screens/tasks.py", time_range="all", outcome=[words(OUTCOME_WORDS, outcome)], day=[on])


def _duplicates(reader: Answers, scope: Scope) -> None:
    found = reader.rows("overview_repeats", **scope)
    rows = [row for row in found if row["attempt_id"] is not None]
    totals = found[0]
    st.subheader("Done twice", anchor=False)
    line = counted(totals["unprotected"], "unprotected duplicate")
    line += f" · {count(totals['protected'])} protected by a key"
    line += f" · {counted(totals['no_op'], 'repeat')} without effect"
    if rows:
        line += ". The newest below; click a row to open its task."
    st.caption(markdown_text(line))
    if not rows:
        return
    repeats_table(rows, "duplicates")
    st.page_link(
        "screens/actions.py", label="All repeats and the tools to fix first", icon=":material/arrow_forward:"
    )


def _health(reader: Answers, scope: Scope) -> None:
    """One line on how far all this can be trusted."""
    row = reader.row("overview_health", **scope)
    if row is None:
        return
    st.subheader("Data", anchor=False)
    parts = [
        counted(row["senders"], "service"),
        f"outcome unknown for {counted(row['unknown'], 'task')} ({percent(row['unknown_share'])})",
        f"no full price for {counted(row['unpriced'], 'task')} ({percent(row['unpriced_share'])})",
        f"{counted(row['delivered_twice'], 'task')} with spans that arrived twice",
        f"{counted(row['excluded'], 'task')} excluded from objectives",
    ]
    for missing_key, label in (("without_environment", "environment"), ("without_version", "version")):
        if row[missing_key]:
            parts.append(f"{counted(row[missing_key], 'task')} without {label}")
    st.caption(markdown_text(" · ".join(parts)))
    st.page_link("screens/data.py", label="What each sender's traces lack", icon=":material/arrow_forward:")


page("Overview", show, keys=(*SCOPE_KEYS, "wrong"))
