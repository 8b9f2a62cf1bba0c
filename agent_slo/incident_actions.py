"""The action of incidents: what a person says of one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import duckdb
from pydantic import Field, model_validator

from agent_slo.actions import Action, Arguments, registry
from incidents import grouping


class SayArguments(Arguments):
    """Say something of an incident: one or more of state, verdict and note."""

    incident_id: str = Field(min_length=1, description="the incident's id, as `agent-slo incidents` lists it")
    state: grouping.State | None = Field(default=None, description="what is done about it")
    verdict: grouping.Review | None = Field(default=None, description="whether the finding is right")
    note: str | None = Field(default=None, min_length=1, description="words to keep with it")

    @model_validator(mode="after")
    def _said(self) -> SayArguments:
        if self.state is None and self.verdict is None and self.note is None:
            raise ValueError("nothing was said: give a state, a verdict or a note")
        return self


def incident_actions() -> dict[str, Action[Any]]:
    """Actions by name."""

    def say(con: duckdb.DuckDBPyConnection, given: SayArguments) -> Mapping[str, Any]:
        grouping.say(
            con,
            given.incident_id,
            datetime.now(UTC).replace(tzinfo=None),
            state=given.state,
            note=given.note,
            verdict=given.verdict,
        )
        return given.model_dump()

    return registry(Action("incidents.say", SayArguments, say, after=grouping.refresh))
