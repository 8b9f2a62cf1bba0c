"""The control by which a person says whether a task needed a human."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.chrome import in_the_shell
from dashboard.door import Answers
from dashboard.format import missing, one_line, when
from dashboard.saying import answered, name_field, note_field, shell, tell

Row = dict[str, Any]

CHOICES = (("A human was needed", "yes"), ("None was needed", "no"), ("Cannot tell", "unknown"))

SOURCE_WORDS = {"person": "a person", "stated": "the trace", "configured": "a rule in agent-slo.yaml"}


def label_control(reader: Answers, task_id: str, key: str) -> None:
    """Buttons, a note, and nothing else; without a collector, how to say it in the shell."""
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"label_{key}"):
        note = note_field("Why (optional)", task_id, "", 320)
        by = name_field()
        clicked = [
            needed
            for label, needed in CHOICES
            if reader.source == "door" and st.button(label, key=f"label_{key}_{needed}")
        ]
    if reader.source != "door":
        noted = ["--note", one_line(note, 2000)] if note else []
        in_the_shell(
            "Read-only: no collector runs that could keep a label. Start one, or say it in the shell:",
            shell("label", one_line(task_id), "--needed", "yes", *noted),
        )
        return
    for needed in clicked:
        said = {"task_id": task_id, "needed": needed, "note": note or None, "by": by}
        tell(
            "tasks.label", {name: value for name, value in said.items() if value is not None}, by=by,
            done="The label is kept.", about=task_id,
        )  # fmt: skip
    answered()


def label_line(row: Row | None) -> str:
    """What is known: `A human was needed, says a person (2026-11-28 14:03 UTC): they asked for a refund twice`."""
    if row is None or missing(row["needed"]):
        return "Nobody has said whether this task needed a human."
    said = "A human was needed" if row["needed"] else "No human was needed"
    who = SOURCE_WORDS.get(row["source"], one_line(row["source"], 60))
    if not missing(row["said_by"]):
        who = one_line(row["said_by"], 60)
    at = "" if missing(row["said_at"]) else f" ({when(row['said_at'], seconds=False)})"
    note = "" if missing(row["note"]) else f": {one_line(row['note'], 300)}"
    return f"{said}, says {who}{at}{note}"
