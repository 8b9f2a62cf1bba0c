"""The action of labels: whether a task needed a human."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import duckdb
from pydantic import Field

from agent_slo.actions import Action, Arguments, registry
from metrics.labels import add_label

Needed = Literal["yes", "no", "unknown"]
_MEANS: Mapping[Needed, bool | None] = {"yes": True, "no": False, "unknown": None}


class LabelArguments(Arguments):
    """Say whether a task needed a human: what precision and recall of escalations are counted by."""

    task_id: str = Field(min_length=1, description="the task's id, as `agent-slo tasks` lists it")
    needed: bool | Needed = Field(
        description="true or false (yes, no); unknown when nobody can tell, which is also how a label is taken back"
    )
    note: str | None = Field(
        default=None, min_length=1, max_length=2000, description="why, for those who wonder later"
    )
    by: str | None = Field(default=None, min_length=1, max_length=200, description="who says so")


def label_actions() -> dict[str, Action[Any]]:
    """Actions by name."""

    def label(con: duckdb.DuckDBPyConnection, given: LabelArguments) -> Mapping[str, Any]:
        said = add_label(
            con,
            datetime.now(UTC).replace(tzinfo=None),
            task_id=given.task_id,
            needed=given.needed if isinstance(given.needed, bool) else _MEANS[given.needed],
            note=given.note,
            said_by=given.by,
        )
        return {"task_id": said.task_id, "needed": said.needed, "asked": said.asked, "frozen": said.frozen}

    return registry(Action("tasks.label", LabelArguments, label))
