"""The action of objectives: since when the present definition holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import duckdb
from pydantic import Field

from agent_slo.actions import Action, Arguments, Moment, registry
from metrics.slo.revisions import revise


class ReviseArguments(Arguments):
    """Say since when the present definition of an objective holds; points before keep the target they had."""

    slo: str = Field(min_length=1, description="name of the SLO, as `agent-slo slo list` has it")
    objective: str | None = Field(
        default=None, min_length=1, description="one of its objectives; all when left out"
    )
    since: Moment = Field(description="the moment from which it holds")
    reason: str = Field(min_length=1, description="why, for those who wonder later")
    by: str | None = Field(default=None, min_length=1, max_length=200, description="who says so")


def objective_actions() -> dict[str, Action[Any]]:
    """Actions by name."""

    def change(con: duckdb.DuckDBPyConnection, given: ReviseArguments) -> Mapping[str, Any]:
        keys = revise(
            con,
            datetime.now(UTC).replace(tzinfo=None),
            slo=given.slo,
            objective=given.objective,
            since=given.since,
            reason=given.reason,
            said_by=given.by,
        )
        return {"slo": given.slo, "objectives": [key[1] for key in keys], "since": given.since}

    return registry(Action("objectives.revise", ReviseArguments, change))
