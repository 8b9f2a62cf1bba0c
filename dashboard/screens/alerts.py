"""Alerts: what fires and by how many of how many, who was told, what is silenced, and what could not be delivered."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

import streamlit as st

from dashboard.chrome import badge, in_the_shell, open_task, page, rows_height, tab, table
from dashboard.door import Answers
from dashboard.filters import filter_bar, heed, offered
from dashboard.format import (
    UNKNOWN,
    count,
    counted,
    json_list,
    json_object,
    markdown_text,
    missing,
    one_line,
    when,
    words,
)
from dashboard.saying import answered, command_id, name_field, note_field, shell, tell

Row = dict[str, Any]

STATES = ("firing", "frozen", "pending", "resolved")
STATE_BADGE = {
    "firing": ("red", ":material/notifications_active:"),
    "frozen": ("orange", ":material/ac_unit:"),
    "pending": ("gray", ":material/hourglass_empty:"),
    "resolved": ("green", ":material/check_circle:"),
}
STATE_SAYS = {
    "firing": "The condition holds.",
    "frozen": "Nothing new to judge by since it fired: a quiet night is no recovery, so it stays.",
    "pending": "The condition holds, but not yet for long enough to tell anybody.",
    "resolved": "It is over.",
}
KIND_WORDS = {
    "burn": "budget burns too fast",
    "event": "a finding you asked to hear of",
    "no_data": "no data",
    "drift": "drift",
    "budget": "budget spent",
}
# Annotation -> heading, in reading order; others follow under their own names.
_SAID = {
    "why": "Why",
    "window": "Bad of all",
    "sli": "SLI",
    "interval": "95% interval",
    "chance_met": "Chance that the target is met",
    "budget": "Error budget",
    "window_pair": "Windows",
    "burn_long": "Burn, long window",
    "burn_short": "Burn, short window",
    "threshold": "Threshold",
    "unknown": "Unknown",
    "excluded": "Excluded",
    "description": "Counts",
    "runbook": "Runbook",
}
LENGTHS = {"1 hour": 1, "4 hours": 4, "1 day": 24, "7 days": 168}


def show(reader: Answers) -> None:
    """Draw the list, or the alert named by `?id=`."""
    if "alerts" not in reader.views():
        st.info("Alerts are evaluated by the collector, every minute; none has run here yet.")
        return
    wanted = st.query_params.get("id", "")
    if wanted:
        st.page_link("screens/alerts.py", label="All alerts", icon=":material/arrow_back:")
        row = reader.row("alert", id=wanted)
        if row is None:
            st.warning("There is no alert with this id; ended ones are kept for a week.")
            st.text(one_line(wanted))
            return
        _alert(reader, row)
        return
    choices = reader.row("alerts_choices") or {}
    _list(reader, choices)
    if "alert_silences" in reader.views():
        _silences(reader)
    if "alert_outbox" in reader.views():
        _outbox(reader)


def _list(reader: Answers, choices: Row) -> None:
    parts = [f"{count(choices.get(state))} {state}" for state in ("firing", "frozen", "pending")]
    parts.append(f"{count(choices.get('resolved'))} ended within a week")
    if choices.get("silenced"):
        parts.append(f"{count(choices['silenced'])} silenced")
    st.caption(markdown_text(" · ".join(parts)))
    heed("state", "State", STATES)
    heed("severity", "Severity", ("page", "ticket"))
    with filter_bar("scope"):
        states = st.multiselect(
            "State", STATES, default=["firing", "frozen", "pending"], key="state", bind="query-params",
            placeholder="any", width=330,
        )  # fmt: skip
        severities = st.multiselect(
            "Severity", ("page", "ticket"), key="severity", bind="query-params", placeholder="any"
        )
        agents = st.multiselect(
            "Agent", offered("agent", choices.get("agents")), key="agent", bind="query-params", placeholder="any",
            format_func=str,
        )  # fmt: skip
    asked = {"states": states, "severities": severities, "agents": agents}
    rows = reader.rows("alerts_list", **{k: json.dumps(v) if v else None for k, v in asked.items()})
    if not rows:
        st.info("No alert passes these filters.")
        st.caption("What ended within a week is listed under the state `resolved`.")
        return
    more = "" if rows[0]["matching"] == len(rows) else f"; {count(len(rows))} are shown"
    st.caption(markdown_text(f"{counted(rows[0]['matching'], 'alert')}{more}. Click a row to read it."))
    picked = table(
        [
            {
                **row,
                "state": _state(row),
                "since": when(
                    row["fired_at"] if not missing(row["fired_at"]) else row["pending_since"], seconds=False
                ),
                "kind": words(KIND_WORDS, row["kind"]),
            }
            for row in rows
        ],
        {
            "severity": "Severity",
            "state": "State",
            "since": "Since",
            "summary": "What",
            "counted": "Bad of all",
            # Said once where it differs: what an alert says takes the room.
            **({"kind": "Kind"} if len({row["kind"] for row in rows}) > 1 else {}),
        },
        key="alerts",
        raw=rows,
        selectable=True,
        drop_empty=True,
        height=rows_height(len(rows), 640),
        config={"What": st.column_config.Column(width=700)},
    )
    if picked is not None:
        st.query_params.from_dict({"id": rows[picked]["alert_id"]})
        st.rerun()


def _state(row: Row) -> str:
    silenced = not missing(row["silenced_by"]) and row["silenced_by"] != "" and row["state"] != "resolved"
    return f"{row['state']}, silenced" if silenced else str(row["state"])


def _alert(reader: Answers, row: Row) -> None:
    silences = reader.rows("alerts_silences") if "alert_silences" in reader.views() else []
    silenced = covering(row, silences, datetime.now(UTC).replace(tzinfo=None))
    if silenced is not None:
        # The alert itself says so from the next evaluation on, within a minute.
        row = {**row, "silenced_by": silenced["silence_id"]}
    tab(f"Alert: {one_line(row['summary'], 40)}")
    annotations = json_object(row["annotations"])
    with st.container(border=True, key="verdict"):
        colour, icon = STATE_BADGE.get(row["state"], ("gray", ":material/help:"))
        with st.container(horizontal=True, vertical_alignment="center"):
            badge(
                words({}, row["severity"]),
                "red" if row["severity"] == "page" else "orange",
                ":material/flag:",
            )
            badge(_state(row), colour, icon)
            st.text(one_line(row["summary"]))
        moments = [
            ("pending since", row["pending_since"]),
            ("fired", row["fired_at"]),
            ("last told", row["told_at"]),
            ("ended", row["resolved_at"]),
        ]
        lines = [
            STATE_SAYS.get(row["state"], ""),
            " · ".join(
                f"{label} {'not sent' if missing(at) else when(at)}"
                for label, at in moments
                if not missing(at) or (label == "last told" and not missing(row["fired_at"]))
            ),
            " · ".join(
                f"{label} {one_line(value, 120)}"
                for label, value in (
                    ("about", words(KIND_WORDS, row["kind"])),
                    ("agent", row["agent"]),
                    ("task type", row["task_type"]),
                    ("tool", row["tool"]),
                    ("service", row["service"]),
                    ("reason", row["reason"]),
                    ("silenced by", row["silenced_by"]),
                    ("alert", row["alert_id"]),
                )
                if not missing(value) and value != ""
            ),
        ]
        st.caption("  \n".join(markdown_text(line) for line in lines if line))
    if row["kind"] in ("burn", "budget", "no_data") and not missing(row["objective"]):
        st.page_link(
            "screens/objective.py", label="The objective with its budget and burn", icon=":material/flag:",
            query_params={"slo": row["slo"], "objective": row["objective"]},
        )  # fmt: skip
    said = [*(k for k in _SAID if annotations.get(k)), *(k for k in annotations if k not in _SAID)]
    if said:
        st.subheader("What is said", anchor=False)
        table(
            [{"what": _SAID.get(k, words({}, k)), "value": annotations[k]} for k in said],
            {"what": "What", "value": "Value"},
            key="said",
            height=rows_height(len(said)),
            config={"What": st.column_config.Column(width=200), "Value": st.column_config.Column(width=900)},
        )
    _tasks(json_list(row["tasks"]))
    _controls(reader, row, silenced)


def _tasks(tasks: list[Any]) -> None:
    if not tasks:
        return
    st.subheader("Tasks behind it", anchor=False)
    st.caption("Click a row to open its task.")
    picked = table(
        [{"task": t.get("task_id"), "words": t.get("words")} for t in tasks],
        {"task": "Task", "words": "When, or by how much"},
        key="alert_tasks",
        selectable=True,
    )
    if picked is not None:
        open_task(str(tasks[picked]["task_id"]))


def covering(row: Row, silences: list[Row], now: datetime) -> Row | None:
    """The silence that covers an alert at `now` (naive UTC), the last to end; None when none does."""
    identity = {name: str(row[name] or "") for name in ("slo", "agent", "severity")}
    found = [
        silence
        for silence in silences
        if silence["starts_at"] <= now < silence["ends_at"]
        and all(fnmatchcase(identity[name], str(silence[name])) for name in identity)
    ]
    return max(found, key=lambda silence: silence["ends_at"], default=None)


def scope_of(row: Row) -> dict[str, str]:
    """What a silence of this alert is of: its objective or rule, agent and severity."""
    return {"slo": str(row["slo"]), "agent": str(row["agent"] or "*"), "severity": str(row["severity"])}


def silence_end(now: datetime, hours: int) -> datetime:
    """When a silence asked for at `now` ends: on a whole minute, so that two clicks ask for the same."""
    return (now + timedelta(hours=hours, seconds=59)).replace(second=0, microsecond=0)


def _kept_end(asked: dict[str, Any], hours: int) -> datetime:
    """The end of a silence with this content; that of the first click when a second one comes within a minute."""
    now = datetime.now(UTC)
    content = json.dumps([asked, hours], sort_keys=True)
    kept: tuple[str, datetime, datetime] = st.session_state.get("silence_asked", ("", now, now))
    before, at, end = kept
    if before != content or now - at > timedelta(minutes=1):
        at, end = now, silence_end(now, hours)
        st.session_state["silence_asked"] = (content, at, end)
    return end


def _controls(reader: Answers, row: Row, silenced: Row | None) -> None:
    if row["state"] == "resolved":
        answered()
        return
    st.subheader("Silence or end it", anchor=False)
    about, scope = str(row["alert_id"]), scope_of(row)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        reason = note_field("Reason", about, "what is known, who works on it", 380)
        length = st.selectbox("For", list(LENGTHS), key="length", width=140)
        by = name_field()
    hours = LENGTHS[length]
    if reader.source != "door":
        options = [word for name, value in scope.items() for word in (f"--{name}", one_line(value))]
        in_the_shell(
            "Read-only: no collector runs that could keep it. Start one, or say it in the shell:",
            shell(
                "alerts",
                "silence",
                "--for",
                f"{hours}h",
                *options,
                "--reason",
                one_line(reason) if reason else "why",
            ),
            shell("alerts", "resolve", one_line(about)),
        )
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if st.button("Silence", key="silence", disabled=not reason or silenced is not None):
            asked = {**scope, "reason": reason}
            ends = _kept_end(asked, hours)
            tell(
                "alerts.silence",
                {**asked, "ends_at": ends.isoformat(timespec="seconds")},
                by=by,
                command_id=command_id("alerts.silence", asked, ends),
                done=f"Silenced until {when(ends, seconds=False)}.",
                about=about,
            )
        if st.button("End it", key="resolve", help="It fires again when its condition still holds."):
            tell(
                "alerts.resolve",
                {"alert_id": about, **({"reason": reason} if reason else {})},
                by=by,
                done="Ended. It fires again when its condition still holds.",
                about=about,
            )
        if silenced is not None and st.button("End the silence", key="unsilence"):
            tell(
                "alerts.unsilence", {"silence_id": silenced["silence_id"]}, by=by, done="The silence is over."
            )
    st.caption(
        "A silence is of this objective, agent and severity: it is evaluated on, and told when the silence ends."
        if silenced is None
        else markdown_text(
            f"It is silenced until {when(silenced['ends_at'], seconds=False)}: {one_line(silenced['reason'])}"
        )
    )
    answered()


def _silences(reader: Answers) -> None:
    rows = reader.rows("alerts_silences")
    st.subheader("Silences", anchor=False)
    if not rows:
        st.caption("None.")
        return
    may_end = reader.source == "door"
    if may_end:
        st.caption("Click a row to end the silence.")
    picked = table(
        [
            {
                **row,
                "from": when(row["starts_at"], seconds=False),
                "until": when(row["ends_at"], seconds=False),
            }
            for row in rows
        ],
        {
            "until": "Until",
            "from": "From",
            "slo": "Objective or rule",
            "agent": "Agent",
            "severity": "Severity",
            "reason": "Reason",
            "silence_id": "Silence",
        },
        key="silences",
        selectable=may_end,
    )
    if picked is not None:
        chosen = rows[picked]["silence_id"]
        if st.button(f"End silence {markdown_text(chosen)} now", key="unsilence"):
            tell("alerts.unsilence", {"silence_id": chosen}, done=f"The silence {chosen} is over.")
    answered()


def _outbox(reader: Answers) -> None:
    rows = reader.rows("alerts_outbox")
    st.subheader("Delivery", anchor=False)
    if not rows:
        st.caption(
            "No message was sent. Alerts are told to the targets under `alerts:` in agent-slo.yaml; without one they "
            "are shown here alone."
        )
        return
    table(
        [
            {
                "target": row["target"],
                "delivered": count(row["delivered"]),
                "last": UNKNOWN
                if missing(row["last_delivered"])
                else when(row["last_delivered"], seconds=False),
                "waiting": count(row["waiting"]),
                "since": None if missing(row["waiting_since"]) else when(row["waiting_since"], seconds=False),
                "dead": count(row["dead"]),
                "error": row["error"],
            }
            for row in rows
        ],
        {
            "target": "Target",
            "delivered": "Delivered",
            "last": "Last",
            "waiting": "Waiting",
            "since": "Waiting since",
            "dead": "Given up",
            "error": "What it said last",
        },
        key="outbox",
        drop_empty=True,
    )
    if not any(row["dead"] for row in rows):
        return
    dead = reader.rows("alerts_dead")
    st.caption("Given up, the newest first:")
    table(
        [
            {**row, "dead": when(row["dead_at"], seconds=False), "attempts": count(row["attempts"])}
            for row in dead
        ],
        {
            "dead": "Given up",
            "target": "Target",
            "event": "Event",
            "summary": "Alert",
            "attempts": "Tries",
            "error": "Why",
        },
        key="dead",
        drop_empty=True,
    )


page("Alerts", show, keys=("id", "state", "severity", "agent"))
