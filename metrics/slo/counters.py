"""Events an objective has counted since it was first seen: numbers that never go back.

A rolling window forgets, so its counts fall, and Prometheus would read a fall as a restart. These grow by the
events between the last settled watermark and the present one, and survive a restart in a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import duckdb

from metrics.slo.cube import Cube
from metrics.slo.objective import EventSource, Objective, UnknownPolicy
from metrics.slo.tables import identifier, replace_rows
from metrics.slo.windows import utc

Key = tuple[str, str]


@dataclass(frozen=True)
class CounterRow:
    """Events of one objective by outcome, up to `counted_until` (naive UTC, included)."""

    slo: str
    objective: str
    agent: str | None
    task_type: str | None
    split: bool
    good: int
    bad: int
    unknown: int
    excluded: int
    counted_until: datetime

    @property
    def key(self) -> Key:
        return self.slo, self.objective


def read_counters(con: duckdb.DuckDBPyConnection, table: str = "core._slo_counters") -> dict[Key, CounterRow]:
    """The counters as last written; empty before the first time."""
    try:
        found = con.execute(
            "SELECT slo, objective, agent, task_type, split, good, bad, unknown, excluded, counted_until "
            f"FROM {identifier(table)}"
        ).fetchall()
    except (duckdb.CatalogException, duckdb.BinderException):
        return {}
    return {(r[0], r[1]): CounterRow(*r) for r in found}


def advance(
    con: duckdb.DuckDBPyConnection,
    before: Mapping[Key, CounterRow],
    objectives: Sequence[Objective],
    as_of: datetime,
) -> list[CounterRow]:
    """Counters as of the objectives' settled watermarks; one that is new begins with its window.

    An unknown event counts as unknown when it happened and as bad when its policy makes it so. What arrives
    later than the watermark is not counted. Objectives that cannot be counted, and methods that count slices,
    have none.
    """
    moment = utc(as_of)
    groups: dict[object, list[tuple[Objective, datetime, datetime]]] = {}
    kept: dict[Key, CounterRow] = {}
    for objective in objectives:
        if objective.method != "Occurrences":
            continue
        old = before.get(objective.key)
        until = moment - timedelta(seconds=objective.settle_s)
        since = old.counted_until if old else objective.window.bounds(moment)[0]
        if old:
            kept[old.key] = old
        if since < until:
            key = "events" if isinstance(objective.source, EventSource) else objective.source
            groups.setdefault(key, []).append((objective, since, until))
    for group in groups.values():
        try:
            every = [o for one, _, _ in group for o in (one, _undecided(one))]
            cube = Cube(con, every, {e for _, a, b in group for e in (a, b)})
        except (duckdb.CatalogException, duckdb.BinderException):
            continue  # The evaluation reports such an objective as invalid.
        try:
            for objective, since, until in group:
                kept[objective.key] = _grown(cube, kept.get(objective.key), objective, since, until)
        finally:
            cube.drop()
    return list(kept.values())


def _undecided(objective: Objective) -> Objective:
    """The objective as if unknown events stayed unknown."""
    return replace(objective, unknown=UnknownPolicy("exclude"))


def _grown(
    cube: Cube, old: CounterRow | None, objective: Objective, since: datetime, until: datetime
) -> CounterRow:
    counts = cube.counts(objective, [(since, until)])[0]
    # What was unknown when it happened, also when it has turned bad since: the sum must not depend on when it is read.
    unknown = cube.counts(_undecided(objective), [(since, until)])[0].unknown
    scope = dict(objective.scope)
    return CounterRow(
        slo=objective.slo,
        objective=objective.objective,
        agent=scope.get("agent"),
        task_type=scope.get("task_type"),
        split=bool(objective.scope),
        good=counts.good + (old.good if old else 0),
        bad=counts.bad + (old.bad if old else 0),
        unknown=unknown + (old.unknown if old else 0),
        excluded=counts.excluded + (old.excluded if old else 0),
        counted_until=until,
    )


def write_counters(
    con: duckdb.DuckDBPyConnection, rows: Sequence[CounterRow], target: str = "core._slo_counters"
) -> None:
    """Replace the content of `target` by `rows` in one transaction of its own (creating the table)."""
    replace_rows(con, "slo_counters", target, CounterRow, rows)
