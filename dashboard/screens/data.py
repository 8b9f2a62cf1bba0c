"""Data: what each sender's traces carry and lack, what stays unknown and why, and the state of the collector."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.chrome import open_task, page, rows_height, table
from dashboard.door import Answers, addresses, data_folder
from dashboard.facts import Fact, Here, facts, listed
from dashboard.filters import EVERYTHING
from dashboard.format import (
    ago,
    count,
    counted,
    markdown_text,
    missing,
    one_line,
    percent,
    size,
    when,
    words,
)
from dashboard.lag import behind
from dashboard.senders import NEEDED_VIEWS, senders
from dashboard.storage import Part, measure, total
from dashboard.unpriced import unpriced_line
from dashboard.verdict import reason

Row = dict[str, Any]

_LIKE_A_PERCENTAGE = {"min_value": 0.0, "max_value": 1.0, "format": "percent"}


def show(reader: Answers) -> None:
    """Draw the page."""
    views = reader.views()
    state = reader.row("data_spans") or {}
    parts = _parts(reader, str(data_folder()), reader.mark())
    _collector(reader, state, parts)
    _room(parts)
    _services(reader.rows("data_senders"), state)
    if views >= NEEDED_VIEWS:
        _senders(reader, state)
    _unknown(reader)
    if "unpriced_usage" in views:
        _unpriced(reader.rows("data_unpriced"), unpriced_line(reader, dict(EVERYTHING)))
    _guessed(reader.rows("data_guessed"))
    _excluded(reader.rows("data_excluded"))
    if "revisions" in views:
        _revisions(reader.rows("data_revisions"))
    _flags(reader.rows("data_flags"))


def _collector(reader: Answers, state: Row, parts: list[Part]) -> None:
    data = data_folder()
    st.subheader("Collector and storage", anchor=False)
    line = behind(reader)
    if line is not None:
        st.warning(markdown_text(line), icon=":material/hourglass_bottom:")
    senders_listed = Here("senders", {"look": True}) if reader.views() >= NEEDED_VIEWS else None
    received = "never" if missing(state.get("last_received")) else when(state["last_received"])
    facts(
        "facts",
        [
            Fact("Spans", count(state.get("spans")), senders_listed),
            # No list holds single log records, and what is not derived is in no list yet.
            Fact("Log records", count(state.get("logs"))),
            Fact("Last received", received, Here("services", {})),
            Fact("Not derived yet", count(state.get("not_derived"))),
            Fact("On disk", size(total(parts)), Here("room", {})),
        ],
    )
    where = addresses(data)
    if reader.source == "door":
        st.caption(markdown_text(f"Listening on {where['http']} (OTLP/HTTP); data in {data}"))
    else:
        st.caption(
            markdown_text(
                f"No collector runs: nothing new arrives. Start one with: agent-slo up --data {data}"
            )
        )
    for skipped in reader.skipped:
        st.warning("A file was left out; a collector repairs it at its start.")
        st.text(one_line(skipped, 500))
    health = reader.health()
    if health.get("background_failure"):
        st.error("The derivation failed and is tried again:", icon=":material/error:")
        st.text(one_line(health["background_failure"], 2000))
    for key, heading in (("failure", "The store reports a failure:"), ("repairs", "Repaired at the start:")):
        if health.get(key):
            st.warning(heading)
            st.text(one_line(health[key], 2000))


def _room(parts: list[Part]) -> None:
    """What takes the room in the folder, by the code of `agent-slo storage`."""
    listed("room")
    table(
        [
            {
                "what": part.what,
                "days": None
                if part.first_day is None
                else str(part.first_day)
                if part.first_day == part.last_day
                else f"{part.first_day} to {part.last_day}",
                "rows": None if part.rows is None else count(part.rows),
                "size": size(part.bytes),
            }
            for part in parts
        ],
        {"what": "What", "days": "Received", "rows": "Rows", "size": "Size"},
        key="room",
        height=rows_height(len(parts), 250),
        config={name: st.column_config.Column(alignment="right", width=110) for name in ("Rows", "Size")},
    )


@st.cache_data(max_entries=2, ttl=60, show_spinner=False)  # type: ignore[untyped-decorator]
def _parts(_reader: Answers, folder: str, mark: object) -> list[Part]:
    """Kept for a minute: rows of every span file are counted for it."""
    del folder, mark
    return measure(_reader.source_of_spans)


def _services(rows: list[Row], state: Row) -> None:
    listed("services")
    st.subheader("Services", anchor=False)
    st.caption(
        "What the tasks of each service carry. A service is silent when no task of it started for a day."
    )
    now = state.get("as_of")
    bars = {
        "Outcome verified": "verified",
        "Conversation": "with_conversation",
        "Environment": "with_environment",
        "Version": "with_version",
        "Priced": "priced",
    }
    table(
        [
            {
                **row,
                "service": row["service"] or "no service.name",
                "tasks": count(row["tasks"]),
                "last": ago(row["last_started"], now) if now is not None else when(row["last_started"]),
                "silent": "silent" if row["silent"] else "",
                "unknown": percent(row["unknown"]),
                "without_tokens": percent(row["without_tokens"]),
            }
            for row in rows
        ],
        {
            "service": "Service",
            "tasks": "Tasks",
            "last": "Last task",
            "silent": "Silent",
            **{column: heading for heading, column in bars.items()},
            "unknown": "Outcome unknown",
            "without_tokens": "No tokens",
        },
        key="services",
        drop_empty=True,
        config={
            heading: st.column_config.ProgressColumn(**_LIKE_A_PERCENTAGE, width=100) for heading in bars
        },
    )


def _senders(reader: Answers, state: Row) -> None:
    listed("senders")
    st.subheader("Senders: what they lack, and what would supply it", anchor=False)
    amount = reader.row("data_size") or {}
    if amount.get("slow") and not st.toggle(
        f"Look through {count(amount['steps'])} spans (this takes a while)", key="look", bind="query-params"
    ):
        return
    found, lacks = senders(reader, str(data_folder()), (state.get("as_of"), state.get("spans")))
    table(
        [
            {
                **row,
                "service": row["service"] or "no service.name",
                "spans": count(row["spans"]),
                "agent_spans": count(row["agent_spans"]),
                "model_calls": count(row["model_calls"]),
                "tool_calls": count(row["tool_calls"]),
                "lacks": count(len([lack for lack in lacks if _same(lack, row)])),
            }
            for row in found
        ],
        {
            "service": "Service",
            "scope": "Instrumentation",
            "version": "Version",
            "family": "Read as",
            "spans": "Spans",
            "agent_spans": "Agent",
            "model_calls": "Model",
            "tool_calls": "Tool",
            "lacks": "Lacks",
        },
        key="senders",
        drop_empty=True,
    )
    if not lacks:
        st.caption("No sender lacks anything that an objective needs.")
        return
    st.caption("Click a row to read it whole.")
    picked = table(
        [{**row, "service": row["service"] or "no service.name"} for row in lacks],
        {
            "service": "Service",
            "scope": "Instrumentation",
            "version": "Version",
            "lack": "Lacks",
            "slo": "For",
            "supply": "What supplies it",
        },
        key="lacks",
        config={
            "Lacks": st.column_config.Column(width=250),
            "For": st.column_config.Column(width=165),
            "What supplies it": st.column_config.Column(width=400),
        },
        height=rows_height(len(lacks), 460),
        selectable=True,
        drop_empty=True,
    )
    if picked is not None:
        chosen = lacks[picked]
        st.text(
            f"{one_line(chosen['lack'])}\nFor {one_line(chosen['slo'])}: {one_line(chosen['supply'], 2000)}"
        )
    st.caption("The same, with the test trace: `agent-slo doctor --send-test`.")


def _same(lack: Row, sender: Row) -> bool:
    return all(lack[key] == sender[key] for key in ("service", "scope", "version"))


def _unknown(reader: Answers) -> None:
    rows = reader.rows("data_unknown")
    st.subheader("Outcomes that stay unknown, by reason", anchor=False)
    if not rows:
        st.caption("None.")
        return
    st.caption("Click a row to open its newest task.")
    picked = table(
        [
            {
                **row,
                "why": reason(row["rule"]),
                "tasks": count(row["tasks"]),
                "last": when(row["last_started"], seconds=False),
            }
            for row in rows
        ],
        {
            "why": "Why",
            "service": "Service",
            "tasks": "Tasks",
            "last": "Last",
            "latest_task": "Newest task",
        },
        key="unknown",
        config={"Why": st.column_config.Column(width=640)},
        selectable=True,
        drop_empty=True,
    )
    if picked is not None:
        open_task(rows[picked]["latest_task"])


def _unpriced(rows: list[Row], line: str | None) -> None:
    st.subheader("Models without a price", anchor=False)
    if not rows:
        st.caption("None: every model call that states its usage has a price.")
    if line is not None:
        st.caption(markdown_text(line))
    if not rows:
        return
    st.caption("Their cost is unknown, never 0. Add them under `prices:` in agent-slo.yaml.")
    table(
        [
            {
                **row,
                "calls": count(row["calls"]),
                "tasks": count(row["tasks"]),
                "tokens": f"{count(row['input_tokens'])} / {count(row['output_tokens'])}",
                "last": when(row["last_seen"], seconds=False),
            }
            for row in rows
        ],
        {
            "model": "Model",
            "provider": "Provider",
            "service": "Service",
            "calls": "Calls",
            "tasks": "Tasks",
            "tokens": "Tokens in / out",
            "last": "Last seen",
        },
        key="unpriced",
        drop_empty=True,
    )


def _guessed(rows: list[Row]) -> None:
    st.subheader("Tools whose effect nobody stated", anchor=False)
    if not rows:
        st.caption("None.")
        return
    st.caption(
        "Guessed from the name, or unknown and in no objective. State them under `tools:` in agent-slo.yaml, or send "
        "`agent_slo.tool.effect`."
    )
    table(
        [
            {
                **row,
                "effect": words({}, row["effect_class"]),
                "calls": count(row["calls"]),
                "last": when(row["last_called"], seconds=False),
            }
            for row in rows
        ],
        {"tool": "Tool", "effect": "Taken as", "calls": "Calls", "last": "Last called"},
        key="guessed",
    )


def _excluded(rows: list[Row]) -> None:
    if not rows:
        return
    st.subheader("Tasks in no objective", anchor=False)
    table(
        [
            {**row, "tasks": count(row["tasks"]), "last": when(row["last_started"], seconds=False)}
            for row in rows
        ],
        {"excluded_reason": "Reason", "tasks": "Tasks", "last": "Last"},
        key="excluded",
    )


def _revisions(rows: list[Row]) -> None:
    if not rows:
        return
    st.subheader("Decided verdicts that changed within 28 days", anchor=False)
    table(
        [
            {
                **row,
                "cause": words({}, row["cause"]),
                "sli": words({}, row["sli"]),
                "changes": counted(row["changes"], "change"),
                "tasks": count(row["tasks"]),
                "last": when(row["last_changed"], seconds=False),
            }
            for row in rows
        ],
        {"cause": "Cause", "sli": "SLI", "changes": "Changes", "tasks": "Tasks", "last": "Last"},
        key="revisions",
        drop_empty=True,
    )


def _flags(rows: list[Row]) -> None:
    if not rows:
        return
    st.subheader("What was repaired or looks wrong in spans", anchor=False)
    table(
        [{"flag": words({}, row["flag"]), "spans": count(row["spans"])} for row in rows],
        {"flag": "Mark", "spans": "Spans"},
        key="flags",
    )


page("Data", show, keys=("look",))
