"""What people decide of evaluation cases, and which content each case has had: kept in the store, beside incidents.

A case begins as a draft or, when it proves itself, in review; a person approves or rejects it, and retires it when the
tool or the policy it is about is gone. The word of a person holds for the content they saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

import duckdb

from incidents.case import Group
from incidents.evidence import Row, Source
from incidents.queries import query_text

State = Literal["draft", "in_review", "approved", "rejected", "retired"]
Word = Literal["in_review", "approved", "rejected", "retired"]
"""What a person may say; a draft is what does not prove itself, and nobody can say that it does."""
CaseSet = Literal["regression", "capability"]
STATES: tuple[str, ...] = get_args(State)
SETS: tuple[str, ...] = (*get_args(CaseSet), "retired")
GATED = frozenset({"regression", "capability"})
"""Sets that gate or measure something: only what a person approved belongs there."""

TABLES = """
CREATE TABLE IF NOT EXISTS core.case_log (
  case_id VARCHAR, said_at TIMESTAMP, state VARCHAR, case_set VARCHAR, note VARCHAR, said_by VARCHAR,
  content_hash VARCHAR);
CREATE TABLE IF NOT EXISTS core.case_revisions (
  case_id VARCHAR, revision INTEGER, content_hash VARCHAR, proven BOOLEAN, reason VARCHAR, recorded_at TIMESTAMP);
"""


@dataclass(frozen=True)
class Content:
    """One case as it was derived: `content_hash` decides whether it is the same as before."""

    case_id: str
    content_hash: str
    proven: bool
    reason: str | None


@dataclass(frozen=True)
class Kept:
    """What is kept of some cases, by case id: the last word, and the last content with its number."""

    words: Mapping[str, Row] = field(default_factory=dict)
    contents: Mapping[str, tuple[Content, int]] = field(default_factory=dict)

    def fresh(self, group: Group) -> list[Content]:
        """The members of a group whose content or proof is not kept yet."""
        known = {case_id: content for case_id, (content, _) in self.contents.items()}
        return [one for one in contents(group) if known.get(one.case_id) != one]


def contents(group: Group) -> list[Content]:
    """The members of a group as they are kept."""
    return [
        Content(case["case_id"], case["content_hash"], group.proof.holds, group.reason)
        for case in group.cases
    ]


def kept(source: Source, incident_ids: Sequence[str]) -> Kept:
    """Read what is kept of the cases of these incidents."""
    ids = list(incident_ids)
    words: list[Row] = source.sql(query_text("case_words"), {"ids": ids}).to_pylist()
    numbers: list[Row] = source.sql(query_text("case_numbers"), {"ids": ids}).to_pylist()
    return Kept(
        {row["case_id"]: row for row in words},
        {
            row["case_id"]: (
                Content(row["case_id"], row["content_hash"], row["proven"], row["reason"] or None),
                int(row["revision"]),
            )
            for row in numbers
        },
    )


def settle(group: Group, known: Kept) -> None:
    """Number the cases of a group and write into them what people said of them.

    A word about another content than this one is told in the note and decides nothing.
    """
    for case in group.cases:
        before = known.contents.get(case["case_id"])
        if before is not None:
            case["revision"] = before[1] + (before[0].content_hash != case["content_hash"])
    word = known.words.get(group.incident["case_id"])
    if word is None:
        return
    state, said = (
        word["said_state"],
        {"by": word["said_by"], "at": _time(word["said_at"]), "note": word["note"]},
    )
    seen = word["seen_hash"] == group.incident["content_hash"]
    for case in group.cases:
        case["set"] = word["case_set"]
        if (
            state == "retired"
            or (state == "rejected" and seen)
            or (state == "approved" and seen and not group.draft)
        ):
            case["review"] = {"state": state, **said}
            case["privacy"]["reviewed"] = state == "approved"
        elif not group.draft and state in ("approved", "rejected"):
            case["review"]["note"] = f"it was {state} on {said['at'][:10]} and its content has changed since"


def _time(moment: datetime) -> str:
    return moment.replace(microsecond=0).isoformat() + "Z"


def record(con: duckdb.DuckDBPyConnection, at: datetime, found: Iterable[Content]) -> None:
    """Keep contents: one that differs from the case's last gets the next revision."""
    con.execute(TABLES)
    for one in found:
        last = con.execute(
            "SELECT revision, content_hash FROM core.case_revisions WHERE case_id = ? ORDER BY revision DESC LIMIT 1",
            [one.case_id],
        ).fetchone()
        if last is not None and last[1] == one.content_hash:
            # the same content may be proven now: an agent-slo with better scripted agents changes no case
            con.execute(
                "UPDATE core.case_revisions SET proven = ?, reason = ? WHERE case_id = ? AND revision = ? "
                "AND (proven IS DISTINCT FROM ? OR reason IS DISTINCT FROM ?)",
                [one.proven, one.reason, one.case_id, last[0], one.proven, one.reason],
            )
            continue
        con.execute(
            "INSERT INTO core.case_revisions VALUES (?, ?, ?, ?, ?, ?)",
            [one.case_id, 1 if last is None else last[0] + 1, one.content_hash, one.proven, one.reason, at],
        )


def say(
    con: duckdb.DuckDBPyConnection,
    case_id: str,
    at: datetime,
    state: Word,
    *,
    case_set: CaseSet | None = None,
    note: str | None = None,
    by: str | None = None,
) -> None:
    """Keep what a person said of the case of an incident (UTC, naive), for the content that was recorded last.

    Raises `ValueError` for an unknown incident, a case that was never recorded, and one that cannot be approved.
    """
    con.execute(TABLES)
    if not con.execute("SELECT 1 FROM core.incidents WHERE incident_id = ?", [case_id]).fetchall():
        raise ValueError(f"no incident {case_id!r}; `agent-slo incidents` lists them")
    last = con.execute(
        "SELECT content_hash, proven, reason FROM core.case_revisions WHERE case_id = ? ORDER BY revision DESC LIMIT 1",
        [case_id],
    ).fetchone()
    if last is None and state != "retired":
        raise ValueError(
            f"{case_id}: its case was never made; `agent-slo cases {_VERBS[state]} {case_id}` makes it first"
        )
    if last is not None and state == "approved" and not last[1]:
        raise ValueError(f"{case_id}: is a draft and cannot be approved: {last[2]}")
    con.execute(
        "INSERT INTO core.case_log VALUES (?, ?, ?, ?, ?, ?, ?)",
        [case_id, at, state, case_set, note, by, None if last is None else last[0]],
    )


_VERBS: Mapping[Word, str] = {
    "in_review": "reopen",
    "approved": "approve",
    "rejected": "reject",
    "retired": "retire",
}
