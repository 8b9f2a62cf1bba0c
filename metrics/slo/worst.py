"""Which tasks an objective's bad events come from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import duckdb

from metrics.slo.cube import filled, own_parts, run
from metrics.slo.objective import Objective


@dataclass(frozen=True)
class WorstTask:
    """A task with `bad` bad events; `value` is its worst measured one (seconds, USD), None without a cut."""

    task_id: str
    at: datetime
    value: float | None
    bad: int


def worst_tasks(
    con: duckdb.DuckDBPyConnection, objective: Objective, start: datetime, end: datetime, most: int = 5
) -> list[WorstTask]:
    """Tasks with bad events in (start, end] (naive UTC), at most `most`.

    With a cut the farthest beyond it come first, else those with the most bad events, then the newest. The
    floor of a band has none: its bad events are the healthy ones.
    """
    if objective.is_floor:
        return []
    parts, params = own_parts(objective, start, end)
    smallest = objective.op in ("gt", "gte")
    measured = objective.cut is not None
    text = filled(
        "worst",
        **parts,
        worst="min" if smallest else "max",
        direction="ASC" if smallest else "DESC",
    )
    rows = run(con, text, params | {"most": most}).fetchall()
    return [WorstTask(r[0], r[1], r[2] if measured else None, int(r[3])) for r in rows]
