"""Which events an objective counted: the rows behind its k of n, its unknown ones and its excluded ones."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal

from metrics.slo.cube import filled, named, own_parts
from metrics.slo.objective import EventSource, Objective

EventClass = Literal["good", "bad", "unknown", "excluded"]


def counted_events(
    objective: Objective, which: EventClass, as_of: datetime, most: int
) -> tuple[str, dict[str, Any]]:
    """SELECT, with its parameters, of the events of one class that an evaluation at `as_of` (naive UTC) counts.

    Columns: counted_at, task_id, agent, task_type, value (NULL where nothing is measured), turns_bad_at (when an
    unknown event will count as bad, NULL for never), reason (why it is excluded, or `unknown_too_long`) and
    matching (how many there are in all). At most `most` rows: of bad ones with a cut the farthest beyond it first,
    else the newest. Reads `sli_events` and `tasks`. Raises ValueError for the floor of a band, which counts the
    events of the objective above it with good and bad in each other's place.
    """
    if objective.is_floor:
        raise ValueError(f"{objective.slo}/{objective.objective} is the floor of a band")
    start, end = objective.window.bounds(as_of)
    if objective.window.anchor is not None:
        # As evaluated: a calendar window owns the moment it starts on, and nothing is counted ahead of time.
        start, end = start - timedelta(microseconds=1), min(end, as_of)
    parts, params = own_parts(objective, start, end)
    if isinstance(objective.source, EventSource):
        # The same as its list of one SLI, but for the scan: it skips what holds other ones.
        parts["where"] += " AND sli = $sli"
        params["sli"] = objective.source.sli
    beyond = "ASC" if objective.op in ("gt", "gte") else "DESC"
    measured = which == "bad" and objective.cut is not None
    text = filled("counted", **parts, worst_first=f"value {beyond} NULLS LAST, " if measured else "")
    return text, named(text, params | {"class": which, "most": most})
