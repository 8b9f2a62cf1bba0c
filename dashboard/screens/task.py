"""Task: everything about one piece of work, over all its runs and traces."""

from __future__ import annotations

import json
from typing import Any

import streamlit as st

from dashboard import colours
from dashboard.chrome import badge, page, tab, table
from dashboard.door import Answers
from dashboard.format import (
    CAUSE_WORDS,
    DUPLICATE_WORDS,
    OUTCOME_WORDS,
    UNKNOWN,
    count,
    duration,
    markdown_text,
    missing,
    one_line,
    when,
    words,
)
from dashboard.incident_words import finding_detail
from dashboard.labelling import label_control, label_line
from dashboard.timeline import figure, idle_gaps
from dashboard.verdict import (
    evidence_ids,
    findings_note,
    grave_findings,
    reason,
    run_evidence,
    task_facts,
    verdict_notes,
    verdict_sentence,
)

Row = dict[str, Any]


def show(reader: Answers) -> None:
    """Draw the page of the task named by `?id=`."""
    wanted = st.query_params.get("id", "")
    st.page_link("screens/tasks.py", label="All tasks", icon=":material/arrow_back:")
    if not wanted:
        st.info("No task is named. Choose one in the list of tasks.")
        return
    task = reader.row("task", id=wanted)
    if task is None:
        st.warning("No task has this id; it may be past retention, or mistyped:")
        st.text(one_line(wanted))
        return
    task_id = task["task_id"]
    tab(f"{one_line(task_id, 40)}: {words(OUTCOME_WORDS, task['outcome'])}")
    reader.ahead(
        "task_runs", "task_steps", "task_interventions", "task_findings", "task_attempts", id=task_id
    )
    runs = reader.rows("task_runs", id=task_id)
    steps = reader.rows("task_steps", id=task_id)
    interventions = reader.rows("task_interventions", id=task_id)
    findings = reader.rows("task_findings", id=task_id)
    _verdict(task, runs, findings, wanted)
    _facts(task)
    if findings:
        _findings(findings)
    _timeline(runs, steps, interventions)
    _attempts(reader, reader.rows("task_attempts", id=task_id), steps)
    if interventions:
        _interventions(interventions)
    if "human_labels" in reader.views():
        st.subheader("Was a human needed?", anchor=False)
        st.caption(markdown_text(label_line(reader.row("human_label", id=task_id))))
        label_control(reader, task_id, "task")
    _runs(runs)
    revisions = reader.rows("task_revisions", id=task_id) if "revisions" in reader.views() else []
    if revisions:
        _revisions(revisions)
    _raw(reader, task_id)


def _verdict(task: Row, runs: list[Row], findings: list[Row], wanted: str) -> None:
    with st.container(border=True, key="verdict"):
        colour, icon = colours.OUTCOME_BADGE.get(task["outcome"], ("gray", ":material/help:"))
        outcome, note = words(OUTCOME_WORDS, task["outcome"]), findings_note(task, findings)
        if note:
            # A green badge would say that nothing is wrong.
            outcome, colour, icon = f"{outcome}, {grave_findings(findings)}", "orange", ":material/warning:"
        with st.container(horizontal=True, vertical_alignment="center"):
            badge(outcome, colour, icon)
            st.text("\n".join(line for line in (note, verdict_sentence(task)) if line))
        if wanted != task["task_id"]:
            st.text(f"{one_line(wanted)} is an earlier id of this task; its runs were merged.")
        lines = verdict_notes(task) + run_evidence(runs)
        # Two spaces before a newline are Markdown's line break.
        st.caption("  \n".join(markdown_text(line) for line in lines))
        identity = [
            ("task", task["task_id"]),
            ("agent", task["agent"]),
            ("type", task["task_type"]),
            ("conversation", task["conversation_id"]),
            ("service", task["service"]),
            ("environment", task["environment"]),
            ("version", task["app_version"]),
            ("started", when(task["started_at"])),
            ("decided", when(task["decided_at"]) if not missing(task["decided_at"]) else None),
        ]
        line = " · ".join(
            f"{label} {one_line(value, 120)}" for label, value in identity if not missing(value)
        )
        st.caption(markdown_text(line))


def _facts(task: Row) -> None:
    with st.container(key="facts", horizontal=True, gap="medium"):
        for label, value in task_facts(task):
            st.metric(label, markdown_text(value), width="content")


def _findings(findings: list[Row]) -> None:
    st.subheader("Findings", anchor=False)
    table(
        [
            {
                **row,
                "kind": words({}, row["kind"]),
                "detail": finding_detail(row["detail"]),
                "why": reason(row["rule"]),
                "evidence": evidence_ids(row["evidence"]),
            }
            for row in findings
        ],
        {
            "severity": "Severity",
            "kind": "What",
            "detail": "Detail",
            "why": "Why",
            "evidence": "Evidence (span ids)",
        },
        key="findings",
    )


def _timeline(runs: list[Row], steps: list[Row], interventions: list[Row]) -> None:
    if not steps:
        st.info("The steps of this task are past retention; its verdict stays.")
        return
    cut = bool(idle_gaps(steps)) and st.toggle("Cut out long idle stretches", value=True, key="cut")
    st.plotly_chart(
        figure(runs, steps, interventions, cut_gaps=cut),
        key="timeline",
        config={"displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]},
    )


def _attempts(reader: Answers, attempts: list[Row], steps: list[Row]) -> None:
    st.subheader("Tool calls", anchor=False)
    if not attempts:
        st.caption("This task called no tool.")
        return
    st.caption("One row an attempt. Click a row to read its arguments, result and the rule that judged it.")
    known = dict.fromkeys(a["action_id"] for a in attempts if not missing(a["action_id"]))
    actions = {key: f"#{place}" for place, key in enumerate(known, start=1)}
    picked = table(
        [_attempt(row, actions) for row in attempts],
        {
            "started": "Started (UTC)",
            "took": "Took",
            "tool": "Tool",
            "action": "Action",
            "attempt_no": "Attempt",
            "effect_class": "Class",
            "outcome": "Outcome",
            "disposition": "Disposition",
            "verdict": "Duplicate",
            "why": "Cause",
            "undone": "Undone",
            "arguments": "Arguments",
        },
        key="attempts",
        raw=attempts,
        drop_empty=True,
        selectable=True,
    )
    if picked is not None:
        _attempt_detail(reader, attempts[picked], steps)


def _attempt(row: Row, actions: dict[str, str]) -> Row:
    # of a call that only messages show, no more is known than the time between two model calls
    unseen = missing(row["ended_at"]) or row["seen_by"] == "messages"
    length = None if unseen else (row["ended_at"] - row["started_at"]).total_seconds()
    suspected = "suspected" if row["suspected"] and missing(row["duplicate"]) else ""
    return {
        **row,
        "started": row["started_at"].strftime("%H:%M:%S.%f")[:-3],
        "took": duration(length),
        "action": actions.get(row["action_id"], ""),
        "verdict": suspected if missing(row["duplicate"]) else words(DUPLICATE_WORDS, row["duplicate"]),
        "why": "" if missing(row["duplicate"]) else words(CAUSE_WORDS, row["cause"]),
        "undone": ""
        if missing(row["duplicate"]) or missing(row["compensated"])
        else "yes"
        if row["compensated"]
        else "no",
        "attempt_no": None if missing(row["attempt_no"]) else count(row["attempt_no"]),
        "effect_class": words({}, row["effect_class"]),
    }


def _attempt_detail(reader: Answers, row: Row, steps: list[Row]) -> None:
    step = next((s for s in steps if s["span_id"] == row["span_id"] and s["attempt_id"] is not None), None)
    said = None
    if step is not None and row["seen_by"] != "messages":
        said = reader.row(
            "attempt_error", trace=step["trace_id"], span=step["span_id"], at=str(row["started_at"])
        )
    with st.container(border=True, key="attempt_detail"):
        st.text(f"{one_line(row['tool'])}, {_seen(row)}")
        facts = [
            ("outcome", outcome_why(row, step, said)),
            *error_facts(step, said),
            *(("why", said) for said in _reasons(row)),
            ("evidence", ", ".join(evidence_ids(row["evidence"])) or None),
            ("idempotency key", row["idempotency_key"]),
        ]
        st.text("\n".join(f"{label}: {one_line(value)}" for label, value in facts if not missing(value)))
        left, right = st.columns(2)
        left.caption("Arguments")
        left.code(_pretty(row["arguments"]), language="json", wrap_lines=True)
        right.caption("Result")
        right.code(_pretty(None if step is None else step["result"]), language="json", wrap_lines=True)


OUTCOME_WHY = {
    "unknown": "Unknown: whether it took effect cannot be told from the trace.",
    "refused": "Refused: it did not take effect.",
    "ok": "Ok: it ended without an error.",
}


def outcome_why(row: Row, step: Row | None, said: Row | None) -> str | None:
    """The outcome of an attempt with what it was decided by: no end, an error, or the answer; None when unknown here.

    `step` is the step of the call, `said` what its span says of an error (`attempt_error`).
    """
    base = OUTCOME_WHY.get(str(row["outcome"]))
    if base is None or row["seen_by"] == "messages":
        return base
    if said is not None and said["status"] == "error":
        error = (
            "" if step is None or missing(step["error_class"]) else f" ({one_line(step['error_class'], 80)})"
        )
        by = {
            "unknown": f"Its span ended with an error{error} after which the effect may or may not have happened, such "
            "as a timeout or a lost connection.",
            "refused": f"Its span ended with an error{error} by which nothing was done.",
        }.get(str(row["outcome"]))
    elif missing(row["ended_at"]):
        by = "Its span has no end: the process may have died, before or after the effect."
    else:
        by = {
            "unknown": "Its span ended without an error, but its answer says that it may or may not have happened.",
            "refused": "Its span ended without an error, but the answer tells of one.",
        }.get(str(row["outcome"]))
    return f"{base} {by}" if by else base


def error_facts(step: Row | None, said: Row | None) -> list[tuple[str, str]]:
    """Class and message of the error of a call, as far as its span says them."""
    found = []
    if step is not None and not missing(step["error_class"]):
        found.append(("error class", str(step["error_class"])))
    if said is not None:
        message = said["status_message"] or said["exception_message"]
        if not missing(message) and message != "":
            found.append(("message", str(message)))
    return found


def _seen(row: Row) -> str:
    """Where an attempt was seen: its span, or the model call whose messages show it."""
    if row["seen_by"] == "messages":
        asked_by = str(row["span_id"]).partition(".")[0]
        return f"no span of its own: shown by the messages around span {one_line(asked_by)}"
    return f"span {one_line(row['span_id'])}"


def _reasons(row: Row) -> list[str]:
    """Why an attempt counts as it does, in the order in which it is decided: class, repeat, effect, cause."""
    rules = [None if missing(row["class_source"]) else f"class.{row['class_source']}", row["rule"]]
    if not missing(row["duplicate"]):
        rules += [f"{part}.{row[part]}" for part in ("effect", "cause") if not missing(row[part])]
    return [reason(rule) for rule in rules if not missing(rule)]


def _pretty(text: Any) -> str:
    if missing(text):
        return UNKNOWN
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return str(text)


def _interventions(rows: list[Row]) -> None:
    st.subheader("Human interventions", anchor=False)
    table(
        [
            {
                **row,
                "kind": words({}, row["kind"]),
                "requested": when(row["requested_at"]),
                "decided": when(row["decided_at"]),
                "wait": duration(row["wait_s"]),
                "evidence": evidence_ids(row["evidence"]),
            }
            for row in rows
        ],
        {
            "kind": "Kind",
            "decision": "Decision",
            "tool": "Tool",
            "requested": "Requested",
            "decided": "Decided",
            "wait": "Waited",
            "level": "Level",
            "required_level": "Required level",
            "evidence": "Evidence (span ids)",
        },
        key="interventions",
        drop_empty=True,
    )


def _runs(rows: list[Row]) -> None:
    st.subheader("Runs", anchor=False)
    table(
        [
            {
                **row,
                "number": f"run {position}",
                "verdict": words({}, row["verdict"]),
                "why": reason(row["rule"]),
                "joined": " ".join(reason(rule) for rule in row["joined_by"] or []),
                "started": when(row["started_at"]),
                "ended": when(row["ended_at"]),
                "evidence": evidence_ids(row["evidence"]),
            }
            for position, row in enumerate(rows, start=1)
        ],
        {
            "number": "Run",
            "trace_id": "Trace",
            "agent": "Agent",
            "trigger": "Trigger",
            "verdict": "Verdict",
            "why": "Why",
            "joined": "Why the same task",
            "started": "Started",
            "ended": "Ended",
            "evidence": "Evidence (span ids)",
        },
        key="runs",
        drop_empty=True,
    )


def _revisions(rows: list[Row]) -> None:
    st.subheader("Changed verdicts", anchor=False)
    table(
        [{**row, "changed": when(row["changed_at"]), "sli": words({}, row["sli"])} for row in rows],
        {"changed": "When", "sli": "SLI", "from_verdict": "From", "to_verdict": "To", "cause": "Cause"},
        key="revisions",
        drop_empty=True,
    )


def _raw(reader: Answers, task_id: str) -> None:
    with st.expander("Raw spans", icon=":material/data_object:"):
        # A task of a long trace has megabytes of attributes, so they are read on demand only.
        if not st.toggle("Read them", key="raw"):
            return
        rows = reader.rows("task_spans", id=task_id)
        picked = table(
            [{**row, "started": str(row["started_at"]), "took": duration(row["seconds"])} for row in rows],
            {
                "started": "Started (UTC)",
                "took": "Took",
                "name": "Name",
                "kind": "Kind",
                "status": "Status",
                "status_message": "Message",
                "service": "Service",
                "scope": "Scope",
                "flags": "Flags",
                "span_id": "Span",
                "parent_span_id": "Parent",
                "trace_id": "Trace",
            },
            key="spans",
            drop_empty=True,
            selectable=True,
        )
        if picked is not None:
            st.caption("Attributes")
            st.code(_pretty(rows[picked]["attributes"]), language="json", wrap_lines=True)
            if not missing(rows[picked]["events"]):
                st.caption("Events")
                st.code(_pretty(rows[picked]["events"]), language="json", wrap_lines=True)


page("Task", show, keys=("id",))
