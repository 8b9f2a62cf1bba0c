"""What an incident or a finding is called: the titles of `incidents/taxonomy.yaml`, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.format import CAUSE_WORDS, missing, one_line, words
from incidents.case import taxonomy

STATE_WORDS: Mapping[str, str] = {
    "open": "open",
    "reopened": "reopened: seen again",
    "acknowledged": "acknowledged",
    "resolved": "resolved",
    "ignored": "ignored",
}


def incident_title(row: Mapping[str, Any]) -> str:
    """`issue_refund timed out and was repeated, ...`; a kind without a title keeps its own words."""
    known = taxonomy()
    entry = known.get(str(row["mode"])) or known.get(str(row["kind"]))
    if entry is None or "title" not in entry:
        return f"{words({}, row['kind'])} {'' if missing(row['tool']) else one_line(row['tool'], 60)}".strip()
    tool = "a model call" if missing(row["tool"]) else one_line(row["tool"], 60)
    agent = "an agent" if missing(row["agent"]) else one_line(row["agent"], 60)
    # Not str.format: names from a trace may hold braces.
    title = str(entry["title"]).replace("{agent}", agent).replace("{tool}", tool)
    return title[:1].upper() + title[1:] if title.startswith(("a ", "many ", "the ")) else title


def finding_detail(detail: Any) -> str:
    """A finding's detail with the keys of causes as words: `book_room: run again after a resume, ...`."""
    if missing(detail):
        return ""
    text = str(detail)
    for key, said in CAUSE_WORDS.items():
        text = text.replace(f": {key},", f": {said},")
    return text
