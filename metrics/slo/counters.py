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
from metrics.slo.evaluate import MOST_SCOPES
from metrics.slo.objective import Dimension, EventSource, Objective, Scope, UnknownPolicy
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

    An objective that is split has one row for each agent or task type, at most `MOST_SCOPES`; one that is new
    begins when it is first seen. An unknown event counts as unknown when it happened and as bad when its policy
    makes it so. What arrives later than the watermark is not counted. Objectives that cannot be counted, and
    methods that count slices, have none.
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
        kept |= {k: row for k, row in before.items() if _is_of(row, objective)}
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
                kept |= _grown(cube, kept, objective, since, until)
        finally:
            cube.drop()
    return list(kept.values())


def _is_of(row: CounterRow, objective: Objective) -> bool:
    """Whether the row counts the objective or a part of it."""
    if row.key == objective.key:
        return True
    if not row.split or row.slo != objective.slo:
        return False
    return row.objective == objective.narrowed(_scope(row, objective)).objective


def _scope(row: CounterRow, objective: Objective) -> Scope:
    values: dict[Dimension, str | None] = {"agent": row.agent, "task_type": row.task_type}
    return tuple((d, values[d]) for d in objective.per)


def _undecided(objective: Objective) -> Objective:
    """The objective as if unknown events stayed unknown."""
    return replace(objective, unknown=UnknownPolicy("exclude"))


def _grown(
    cube: Cube, kept: Mapping[Key, CounterRow], objective: Objective, since: datetime, until: datetime
) -> dict[Key, CounterRow]:
    """The rows of an objective and its parts, grown by the events in (since, until]."""
    window = [(since, until)]
    counted = cube.split_counts(objective, window)
    # What was unknown when it happened, also when it has turned bad since: the sum must not depend on when it is read.
    undecided = counted
    if objective.unknown.due_s is not None:
        undecided = cube.split_counts(_undecided(objective), window)
    rows = {k: row for k, row in kept.items() if _is_of(row, objective)}
    scopes = [(), *(_scope(row, objective) for row in rows.values() if row.split)]
    scopes += [s for s in (*counted, *undecided) if s not in scopes]
    found: dict[Key, CounterRow] = {}
    for scope in dict.fromkeys(scopes[: MOST_SCOPES + 1]):
        one = objective.narrowed(scope) if scope else objective
        old = rows.get(one.key)
        now = counted[scope][0] if scope in counted else None
        unknown = undecided[scope][0].unknown if scope in undecided else 0
        values = dict(scope)
        found[one.key] = CounterRow(
            slo=one.slo,
            objective=one.objective,
            agent=values.get("agent"),
            task_type=values.get("task_type"),
            split=bool(scope),
            good=(now.good if now else 0) + (old.good if old else 0),
            bad=(now.bad if now else 0) + (old.bad if old else 0),
            unknown=unknown + (old.unknown if old else 0),
            excluded=(now.excluded if now else 0) + (old.excluded if old else 0),
            counted_until=until,
        )
    return found


def write_counters(
    con: duckdb.DuckDBPyConnection, rows: Sequence[CounterRow], target: str = "core._slo_counters"
) -> None:
    """Replace the content of `target` by `rows` in one transaction of its own (creating the table)."""
    replace_rows(con, "slo_counters", target, CounterRow, rows)
