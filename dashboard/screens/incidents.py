"""Incidents: the queue, one incident as a story with its evidence, what people say of it, and its export."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import streamlit as st

from collector.reader import ReaderError
from dashboard import charts, colours
from dashboard.chrome import badge, in_the_shell, open_task, page, rows_height, tab, table
from dashboard.configuration import ConfigurationError, metrics_settings
from dashboard.days import drawn
from dashboard.door import Answers, data_folder
from dashboard.filters import RANGES, USUAL_RANGE, filter_bar, heed, offered
from dashboard.format import (
    OUTCOME_WORDS,
    count,
    counted,
    markdown_text,
    missing,
    one_line,
    usd,
    when,
    words,
)
from dashboard.incident_words import STATE_WORDS, finding_detail, incident_title
from dashboard.saying import answered, command_id, name_field, note_field, shell, tell
from dashboard.verdict import reason
from incidents import evidence, timeline
from incidents.bundle import Choice, ExportError, check_folder, export
from incidents.targets import TARGETS

Row = dict[str, Any]

SEVERITY_BADGE = {
    "critical": ("red", ":material/error:"),
    "high": ("red", ":material/error:"),
    "medium": ("orange", ":material/warning:"),
    "low": ("gray", ":material/info:"),
}
SEVERITIES = ("critical", "high", "medium", "low")
STATES = ("open", "reopened", "acknowledged", "resolved", "ignored")
VERDICT_WORDS = {"real": "real", "false_alarm": "a false alarm"}


def show(reader: Answers) -> None:
    """Draw the queue, or the incident named by `?id=`."""
    if "incidents" not in reader.views():
        st.info("Incidents are grouped after the next pass of the collector.")
        return
    wanted = st.query_params.get("id", "")
    if wanted:
        st.page_link("screens/incidents.py", label="All incidents", icon=":material/arrow_back:")
        row = reader.row("incident", id=wanted)
        if row is None:
            st.warning("There is no incident with this id; its findings may be past retention.")
            st.text(one_line(wanted))
            return
        _incident(reader, row)
    else:
        _queue(reader)


def _queue(reader: Answers) -> None:
    choices = reader.row("incidents_choices") or {}
    if not choices.get("incidents"):
        st.info("No incident: nothing in the traces violates a rule.")
        return
    rows = reader.rows("incidents_list", **_filters(choices))
    if not rows:
        st.info("No incident passes these filters.")
        st.caption("Closed ones are shown when the states are cleared; else widen the time range.")
        return
    more = "" if rows[0]["matching"] == len(rows) else f"; {count(len(rows))} are shown"
    line = f"{counted(rows[0]['matching'], 'incident')}, {count(rows[0]['open'])} open{more}."
    st.caption(
        markdown_text(f"{line} Findings of one structure are one incident. Click a row to read its story.")
    )
    picked = table(
        [
            {
                **row,
                "title": incident_title(row),
                "state": words(STATE_WORDS, row["state"]),
                "verdict": "" if missing(row["verdict"]) else words(VERDICT_WORDS, row["verdict"]),
                "tasks": count(row["seen_count"]),
                "first": when(row["first_seen"], seconds=False).removesuffix(" UTC"),
                "last": when(row["last_seen"], seconds=False).removesuffix(" UTC"),
            }
            for row in rows
        ],
        {
            "severity": "Severity",
            "state": "State",
            "title": "What happened",
            "agent": "Agent",
            "tasks": "Tasks",
            "first": "First seen",
            "last": "Last seen",
            "verdict": "Reviewed",
            "note": "Note",
        },
        key="incidents",
        raw=rows,
        selectable=True,
        drop_empty=True,
        height=rows_height(len(rows), 760),
        config={"Tasks": st.column_config.Column(alignment="right", width=60)},
    )
    if picked is not None:
        st.query_params.from_dict({"id": rows[picked]["incident_id"]})
        st.rerun()


def _filters(choices: Row) -> Row:
    for key, label, options in (
        ("range", "Time range", RANGES),
        ("state", "State", STATES),
        ("severity", "Severity", SEVERITIES),
    ):
        heed(key, label, options)
    with filter_bar("scope"):
        chosen = st.segmented_control(
            "Seen in the last",
            list(RANGES),
            default=USUAL_RANGE,
            required=True,
            key="range",
            bind="query-params",
        )
        states = st.multiselect(
            "State",
            STATES,
            default=["open", "reopened"],
            key="state",
            bind="query-params",
            placeholder="any",
            width=250,
        )
        severities = st.multiselect(
            "Severity", SEVERITIES, key="severity", bind="query-params", placeholder="any"
        )
        agents = st.multiselect(
            "Agent", offered("agent", choices["agents"]), key="agent", bind="query-params", placeholder="any"
        )
        kinds = st.multiselect(
            "Kind", offered("kind", choices["kinds"]), key="kind", bind="query-params", placeholder="any"
        )
    listed = {"states": states, "severities": severities, "agents": agents, "kinds": kinds}
    return {
        "days": RANGES[chosen or USUAL_RANGE],
        **{name: json.dumps(values) if values else None for name, values in listed.items()},
    }


def _incident(reader: Answers, row: Row) -> None:
    tab(incident_title(row))
    with st.container(border=True, key="verdict"):
        colour, icon = SEVERITY_BADGE.get(row["severity"], ("gray", ":material/info:"))
        with st.container(horizontal=True, vertical_alignment="center"):
            badge(words({}, row["severity"]), colour, icon)
            badge(words(STATE_WORDS, row["state"]), "gray", ":material/flag:")
            st.text(incident_title(row))
        lines = [
            f"Seen in {counted(row['seen_count'], 'task')}, first {when(row['first_seen'])}, "
            f"last {when(row['last_seen'])}"
        ]
        facts = [
            ("agent", row["agent"]),
            ("tool", row["tool"]),
            ("fault", row["fault"]),
            ("error", row["error"]),
        ]
        lines.append(
            " · ".join(
                f"{label} {one_line(v, 120)}"
                for label, v in facts
                if not missing(v) and v not in ("", "none")
            )
        )
        if not missing(row["verdict"]):
            lines.append(f"Reviewed: {words(VERDICT_WORDS, row['verdict'])}")
        if not missing(row["note"]):
            lines.append(f"Note: {one_line(row['note'], 500)}")
        lines.append(f"{row['incident_id']}")
        st.caption("  \n".join(markdown_text(line) for line in lines if line))
    said = _all_said(reader, row)
    _say(reader, row, said)
    _story(reader, row)
    _seen(reader, row)
    _tasks(reader, row)
    _said(said)
    _export(reader, row)


def _say(reader: Answers, row: Row, said: list[Row]) -> None:
    """What a person says of it goes to the collector, which keeps it apart from what is derived."""
    about = str(row["incident_id"])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        note = note_field("Note", about, "what is known, who works on it")
        by = name_field()
    if reader.source != "door":
        noted = ["--note", one_line(note, 2000)] if note else []
        in_the_shell(
            "Read-only: no collector runs. To acknowledge or resolve it, start one, or say so in the shell:",
            shell("incident", one_line(about), "--state", "acknowledged", *noted),
            shell("incident", one_line(about), "--state", "resolved", *noted),
        )
        return
    latest = str(said[0]["said_at"]) if said else ""
    # What the buttons that were clicked stood beside.
    drawn_with = st.session_state.get(f"drawn_{about}", latest)
    offered_words: list[tuple[str, Row]] = [
        ("Acknowledge", {"state": "acknowledged"}),
        ("Resolve", {"state": "resolved"}),
        ("Ignore", {"state": "ignored"}),
        ("Open again", {"state": "open"}),
        ("It is real", {"verdict": "real"}),
        ("False alarm", {"verdict": "false_alarm"}),
    ]
    asked: tuple[str, Row] | None = None
    with st.container(horizontal=True):
        for label, words_of in offered_words:
            # What already holds is not offered; a note alone can be given with any.
            holds = words_of.get("state", "") == row["state"] or words_of.get("verdict", "") == row["verdict"]
            # A button that was clicked is drawn, though somebody else said the same meanwhile.
            if holds and drawn_with == latest:
                continue
            if st.button(label, key=f"say_{label}"):
                asked = (label, words_of)
        if st.button("Note only", key="say_note", disabled=not note):
            asked = ("Note only", {})
    st.session_state[f"drawn_{about}"] = latest
    if asked is not None and drawn_with != latest:
        st.warning(
            markdown_text(
                f"Not sent: it changed since this page was drawn. {said_line(said[0])}. Click again if it still holds."
                if said
                else "Not sent: it changed since this page was drawn. Click again if it still holds."
            ),
            icon=":material/sync_problem:",
        )
    elif asked is not None:
        label, words_of = asked
        # What is drawn next stands beside what was said now.
        del st.session_state[f"drawn_{about}"]
        tell(
            "incidents.say",
            {**words_of, "incident_id": about, **({"note": note} if note else {})},
            by=by,
            command_id=command_id("incidents.say", about, words_of, note, latest),
            done=f"Kept: {label.lower()}.",
            about=about,
        )
    answered()


def said_line(said: Row) -> str:
    """`anna: resolved, real, "restarted it" (2026-11-28 14:03:22 UTC)`: what was said last, by whom and when."""
    parts = [
        words(STATE_WORDS, said["state"]) if not missing(said["state"]) else "",
        words(VERDICT_WORDS, said["verdict"]) if not missing(said["verdict"]) else "",
        f"“{one_line(said['note'], 200)}”" if not missing(said["note"]) else "",
    ]
    who = "Somebody" if missing(said.get("said_by")) else one_line(said["said_by"], 60)
    return f"{who}: {', '.join(part for part in parts if part)} ({when(said['said_at'])})"


def _all_said(reader: Answers, row: Row) -> list[Row]:
    """What was said of an incident, the newest first."""
    if "incident_log" not in reader.views():
        return []
    if "operator_log" not in reader.views():
        return reader.rows("incident_said", id=row["incident_id"])
    return reader.rows("incident_said_by", id=row["incident_id"])


def _story(reader: Answers, row: Row) -> None:
    st.subheader("What happened", anchor=False)
    try:
        found = evidence.find(reader.source_of_spans, ids=[row["incident_id"]])
        told = next(iter(evidence.gather(reader.source_of_spans, found)), None)
    except ReaderError as error:
        # The rest of the page needs no spans and stays.
        st.warning("The story cannot be told:")
        st.text(str(error))
        return
    if told is None:
        st.caption("The spans of this incident are past retention; what was counted stays.")
        return
    for finding in told.own_findings:
        st.text(f"{one_line(finding_detail(finding['detail']))}\n{reason(finding['rule'])}")
    table(
        [
            {
                "at": when(line.at),
                "mark": "✕ fault" if line.fault else "↶ undone by" if line.undoes else "",
                "text": one_line(line.text, 400),
                "spans": list(line.span_ids),
            }
            for line in timeline.tell(told)
        ],
        {"at": "When", "mark": "", "text": "What", "spans": "Evidence (span ids)"},
        key="story",
        drop_empty=True,
        config={"What": st.column_config.Column(width=700)},
    )
    st.page_link(
        "screens/task.py", label="The task with its timeline and spans", icon=":material/timeline:",
        query_params={"id": told.task["task_id"]},
    )  # fmt: skip


def _seen(reader: Answers, row: Row) -> None:
    days = reader.rows("incident_daily", fingerprint=row["fingerprint"])
    if len(days) < 2:
        return
    days = drawn(reader, days, None)
    if not days:
        return
    chart = charts.chart("Tasks it was seen in, by day (UTC)", "tasks", height=200)
    chart.add_bar(
        x=[day["day"] for day in days],
        y=[day["tasks"] for day in days],
        width=charts.DAY_WIDTH,
        marker={"color": colours.VERMILION},
        hovertemplate="%{y:,} tasks<br>%{x|%Y-%m-%d} UTC<extra></extra>",
    )
    known = reader.row("as_of")
    last = max([day["day"] for day in days] + ([known["as_of"]] if known and known["as_of"] else []))
    charts.days_axis(chart, (last - min(day["day"] for day in days)).days + 1)
    # To now, not to where it was seen last: that it was not seen since is what the chart is looked at for.
    if (last - days[0]["day"]).days >= charts.FEWEST_DAYS:
        chart.update_xaxes(range=[days[0]["day"] - timedelta(hours=12), last + timedelta(hours=12)])
    charts.draw(chart, "seen")


def _tasks(reader: Answers, row: Row) -> None:
    rows = reader.rows("incident_tasks", fingerprint=row["fingerprint"])
    st.subheader("Tasks", anchor=False)
    st.caption(markdown_text(f"{counted(row['seen_count'], 'task')}, newest first. Click a row to open it."))
    picked = table(
        [
            {
                **task,
                "at": when(task["happened_at"]),
                "outcome": words(OUTCOME_WORDS, task["outcome"]),
                "cost": usd(task["cost_usd"]),
                "detail": finding_detail(task["detail"]),
                "why": reason(task["rule"]),
            }
            for task in rows
        ],
        {
            "at": "When",
            "task_id": "Task",
            "outcome": "Outcome",
            "app_version": "Version",
            "detail": "Finding",
            "why": "Why",
            "evidence": "Evidence (span ids)",
        },
        key="tasks",
        raw=rows,
        selectable=True,
        drop_empty=True,
    )
    if picked is not None:
        open_task(rows[picked]["task_id"])


def _said(rows: list[Row]) -> None:
    if not rows:
        return
    st.subheader("What was said of it", anchor=False)
    table(
        [
            {
                **said,
                "at": when(said["said_at"]),
                "by": said.get("said_by"),
                "verdict": None if missing(said["verdict"]) else words(VERDICT_WORDS, said["verdict"]),
            }
            for said in rows
        ],
        {"at": "When", "by": "Who", "state": "State", "verdict": "Review", "note": "Note"},
        key="said",
        drop_empty=True,
    )


def _export(reader: Answers, row: Row) -> None:
    st.subheader("As an evaluation case", anchor=False)
    st.caption(
        "The incident, its twin with the opposite hidden effect and a control, redacted, with a replay core that "
        "proves them. Nothing leaves this machine until you download it."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        targets = st.multiselect("For", list(TARGETS), default=["jsonl"], key="targets", width=420)
        draft = st.checkbox("Also when it does not prove itself (draft)", key="draft")
        if not st.button("Make it", key="export", disabled=not targets):
            return
    try:
        with st.spinner("Reading the evidence and proving the cases"):
            packed, groups, left_out = _bundle(reader, row["incident_id"], tuple(targets), draft)
    except (ExportError, ConfigurationError) as error:
        st.warning("The case cannot be made:")
        st.text(str(error))
        return
    for why in left_out:
        st.text(f"Left out: {one_line(why, 500)}")
    if not groups:
        return
    st.download_button(
        "Download the bundle",
        packed,
        file_name=f"{row['incident_id']}.zip",
        mime="application/zip",
        icon=":material/download:",
        on_click="ignore",
    )


def _bundle(
    reader: Answers, incident_id: str, targets: tuple[str, ...], draft: bool
) -> tuple[bytes, int, list[str]]:
    """The bundle as a ZIP archive, how many groups it holds, and why others are left out."""
    data = data_folder()
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "cases"
        check_folder(out, data, force=False)
        choice = Choice(incidents=(incident_id,), targets=targets, include_draft=draft)
        written = export(reader.source_of_spans, metrics_settings(data), out, choice, version("agent-slo"))
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(out.rglob("*")):
                if path.is_file():
                    archive.write(path, f"{incident_id}/{path.relative_to(out)}")
    return packed.getvalue(), len(written.groups), [str(item["reason"]) for item in written.excluded]


page("Incidents", show, keys=("id", "range", "state", "severity", "agent", "kind"))
