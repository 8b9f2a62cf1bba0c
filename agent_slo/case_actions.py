"""The actions of evaluation cases: keep what was derived, and what people say of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import duckdb
from pydantic import BaseModel, ConfigDict, Field

from agent_slo.actions import Action, Arguments, registry
from incidents import grouping, reviews


class CaseContent(BaseModel):
    """One case as it was derived."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    case_id: str = Field(min_length=1, max_length=200)
    content_hash: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    proven: bool
    reason: str | None = Field(default=None, max_length=4000)


class RecordArguments(Arguments):
    """Keep the contents of cases, so that revisions count on whatever folder they are exported to."""

    cases: list[CaseContent] = Field(
        min_length=1, max_length=500, description="`case_id`, `content_hash`, `proven` and `reason` of each"
    )


class SayOfCaseArguments(Arguments):
    """Say what becomes of the evaluation case of an incident, for the content that was kept last."""

    case_id: str = Field(min_length=1, description="the incident's id, which is the case's as well")
    state: reviews.Word = Field(description="in_review, approved, rejected or retired")
    case_set: reviews.CaseSet | None = Field(
        default=None,
        description="regression (must pass for ever; the default) or capability (hard, followed as a rate)",
    )
    note: str | None = Field(default=None, min_length=1, max_length=2000, description="why")
    by: str | None = Field(default=None, min_length=1, max_length=200, description="who says so")


def case_actions() -> dict[str, Action[Any]]:
    """Actions by name."""

    def record(con: duckdb.DuckDBPyConnection, given: RecordArguments) -> Mapping[str, Any]:
        found = [reviews.Content(c.case_id, c.content_hash, c.proven, c.reason) for c in given.cases]
        reviews.record(con, _now(), found)
        return {"recorded": len(found)}

    def say(con: duckdb.DuckDBPyConnection, given: SayOfCaseArguments) -> Mapping[str, Any]:
        reviews.say(
            con, given.case_id, _now(), given.state, case_set=given.case_set, note=given.note, by=given.by
        )
        return given.model_dump()

    return registry(
        Action("cases.record", RecordArguments, record, after=grouping.refresh),
        Action("cases.say", SayOfCaseArguments, say, after=grouping.refresh),
    )


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
