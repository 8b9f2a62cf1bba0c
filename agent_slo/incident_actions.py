"""The action of incidents: what a person says of one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import duckdb

from agent_slo.actions import Action
from incidents import grouping


def incident_actions() -> dict[str, Action]:
    """Actions by name: `incidents.say` with `incident_id` and one or more of `state`, `verdict`, `note`."""

    def say(con: duckdb.DuckDBPyConnection, given: Mapping[str, Any]) -> Mapping[str, Any]:
        incident_id = str(given.get("incident_id") or "")
        state, verdict, note = given.get("state"), given.get("verdict"), given.get("note")
        if state is not None and state not in grouping.STATES:
            raise ValueError(f"state: {state!r} is none; there are {', '.join(grouping.STATES)}")
        if verdict is not None and verdict not in grouping.REVIEWS:
            raise ValueError(f"verdict: {verdict!r} is none; there are {', '.join(grouping.REVIEWS)}")
        if state is None and verdict is None and not note:
            raise ValueError("nothing was said: give a state, a verdict or a note")
        grouping.say(
            con,
            incident_id,
            datetime.now(UTC).replace(tzinfo=None),
            state=state,
            note=None if note is None else str(note),
            verdict=verdict,
        )
        grouping.refresh(con)
        return {"incident_id": incident_id, "state": state, "verdict": verdict, "note": note}

    return {"incidents.say": say}
