"""Objectives -> `slo_status`: counts from SQL, meaning from the pure functions.

The SLI, its budget and its interval count (as_of - W, as_of]. Burn rates, and with them alerts, end at the
*settled watermark* as_of - settle delay: a late span can still change what is younger, and an alert must not
fire or resolve on it. The burn over the whole SLO window belongs to the budget: remaining = 1 - burn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

import duckdb

from metrics.slo.arithmetic import budget
from metrics.slo.cube import Counts, Cube, Edge, slice_counts, slices_of
from metrics.slo.objective import AlertPair, Dimension, EventSource, Objective
from metrics.slo.pairs import Count, choose, judge_all
from metrics.slo.slices import ratio_timeslices, timeslices
from metrics.slo.status import (
    Burn,
    Measured,
    StatusRow,
    burn_of,
    composite_row,
    forecast,
    invalid_row,
    status_row,
)
from metrics.slo.tables import identifier, replace_rows
from metrics.slo.windows import utc

DAY = 86400
_ALWAYS = (3600, 6 * 3600, DAY, 3 * DAY)
"""Burn windows every objective shows, whatever pairs it has."""

_FORECAST_BUCKETS = 28

MOST_SCOPES = 50
"""Agents and task types an objective is split into at most, the busiest ones."""

Firing = Mapping[tuple[str, str], frozenset[str]]


def _seconds(seconds: int) -> timedelta:
    return timedelta(seconds=seconds)


class _Plan:
    """The windows of one objective at one moment."""

    def __init__(self, objective: Objective, as_of: datetime) -> None:
        self.objective = objective
        self.as_of = as_of
        self.settled = as_of - _seconds(objective.settle_s)
        start, end = objective.window.bounds(as_of)
        self.window_s = int((end - start).total_seconds())
        # Ends are included and starts are not; a calendar window owns the moment it starts on.
        calendar = objective.window.anchor is not None
        self.start = start - timedelta(microseconds=1) if calendar else start
        self.shown = (start, end)
        self.buckets: list[Edge] = []
        if not calendar:
            at = [
                as_of - _seconds(self.window_s) * i / _FORECAST_BUCKETS
                for i in range(_FORECAST_BUCKETS, -1, -1)
            ]
            self.buckets = list(pairwise(at))

    def candidates(self) -> set[int]:
        """Every burn window some choice of pairs could ask for: the choice needs the counts first."""
        found = {s for s in _ALWAYS if s < self.window_s}
        if self.objective.is_floor:
            return found
        if self.objective.alerts is not None:
            return found | {s for p in self.objective.alerts for s in (p.long_s, p.short_s)}
        for per_day in (0.0, 1e9):
            for pair in choose(self.objective.target, self.window_s, per_day)[0]:
                found |= {pair.long_s, pair.long_s // 2, pair.short_s}
                short = pair.short_s
                while short * 2 <= pair.long_s // 2:
                    short *= 2
                    found.add(short)
        return found

    def burn_edge(self, seconds: int) -> Edge:
        return self.settled - _seconds(seconds), self.settled

    def edges(self) -> Iterable[datetime]:
        yield from (self.start, self.as_of, self.settled)
        for seconds in self.candidates():
            yield self.settled - _seconds(seconds)
        for edge in self.buckets:
            yield from edge


def evaluate(
    con: duckdb.DuckDBPyConnection,
    objectives: Sequence[Objective],
    as_of: datetime,
    *,
    was_firing: Firing | None = None,
) -> list[StatusRow]:
    """One row per objective (and one per composite SLO) as of `as_of` (naive is UTC), in the given order.

    An objective that is split `per` agent or task type has the rows of its parts right behind its own, the
    busiest first, at most `MOST_SCOPES`.

    Reads the tables or views `sli_events` and `tasks` of `con`; leaves a temporary table behind only when
    it fails. `was_firing` (see `firing_now`) lets an alert whose short window is empty stay as it was.
    An objective whose columns are missing comes back as state `invalid`, with the reason in `notes`.
    """
    moment = utc(as_of)
    by_key: dict[tuple[str, str], list[StatusRow]] = {}
    last: tuple[str, str] = ("", "")
    for group in _groups(objectives):
        plans = [_Plan(o, moment) for o in group]
        try:
            for row in _evaluate_group(con, plans, was_firing or {}):
                if row.split:
                    # The rows of one agent or type follow the row of all.
                    by_key[last].append(row)
                else:
                    last = row.slo, row.objective
                    by_key[last] = [row]
        except (duckdb.CatalogException, duckdb.BinderException) as error:
            problem = f"cannot be counted: {str(error).splitlines()[0]}"
            for objective in group:
                by_key[objective.key] = [invalid_row(objective, moment, problem)]
    wholes = [by_key[o.key][0] for o in objectives]
    return [r for o in objectives for r in by_key[o.key]] + _composites(wholes, objectives)


def _groups(objectives: Sequence[Objective]) -> list[list[Objective]]:
    """Objectives that can share a scan: over events, and one group per condition over tasks.

    A task condition on a column this database lacks must not take the others down with it.
    """
    groups: dict[object, list[Objective]] = {}
    for objective in objectives:
        key = "events" if isinstance(objective.source, EventSource) else objective.source
        groups.setdefault(key, []).append(objective)
    return list(groups.values())


def _evaluate_group(
    con: duckdb.DuckDBPyConnection, plans: Sequence[_Plan], was_firing: Firing
) -> list[StatusRow]:
    rows: list[StatusRow] = []
    counted = [p for p in plans if p.objective.method == "Occurrences"]
    if counted:
        cube = Cube(con, [p.objective for p in counted], {e for p in counted for e in p.edges()})
        try:
            for plan in counted:
                rows += _occurrences(cube, plan, was_firing)
        finally:
            cube.drop()
    rows += [_slices(con, p, was_firing) for p in plans if p.objective.method != "Occurrences"]
    return rows


def _pairs(plan: _Plan, counts: Counts) -> tuple[tuple[AlertPair, ...], tuple[str, ...]]:
    if plan.objective.is_floor:
        # A share that falls below the floor is slow news, told by the state; its burn rate cannot pass 1.0x.
        return (), ()
    if plan.objective.alerts is not None:
        return plan.objective.alerts, ()
    if counts.first_at is None:
        return choose(plan.objective.target, plan.window_s, 0.0)
    # At least a day: the first hour of a new agent says nothing about its day.
    days = max(1.0, (plan.as_of - counts.first_at).total_seconds() / DAY)
    return choose(plan.objective.target, plan.window_s, counts.n / days)


def _occurrences(cube: Cube, plan: _Plan, was_firing: Firing) -> list[StatusRow]:
    """The row of an objective over single events, and those of the parts it is split into."""
    seconds = sorted(plan.candidates())
    windows: list[Edge] = [(plan.start, plan.as_of)]
    windows += [plan.burn_edge(s) for s in seconds] + plan.buckets
    whole, *parts = cube.split_counts(plan.objective, windows).items()
    rows = [_counted(plan, seconds, whole[1], was_firing)]
    parts = [(scope, counts) for scope, counts in parts if counts[0].n or counts[0].unknown]
    if len(parts) > 1:  # A single one would say the same as the whole.
        for scope, counts in parts[:MOST_SCOPES]:
            narrowed = _Plan(plan.objective.narrowed(scope), plan.as_of)
            rows.append(_counted(narrowed, seconds, counts, was_firing))
    return rows


def _counted(plan: _Plan, seconds: Sequence[int], windows: Sequence[Counts], was_firing: Firing) -> StatusRow:
    """The row from the counts of the whole window, the burn windows and the buckets of the forecast."""
    objective = plan.objective
    whole, *others = windows
    at = dict(zip(seconds, others, strict=False))
    buckets = [(c.n, c.bad) for c in others[len(seconds) :]]
    pairs, left_out = _pairs(plan, whole)
    shown = {s for p in pairs for s in (p.long_s, p.short_s)} | {s for s in _ALWAYS if s in at}
    burns = {s: burn_of(at[s].good, at[s].n, objective) for s in sorted(shown)}
    burns[plan.window_s] = burn_of(whole.good, whole.n, objective)
    measured = Measured(whole.good, whole.n, None)
    return _row(plan, whole, measured, burns, buckets, pairs, left_out, was_firing)


def _row(
    plan: _Plan,
    whole: Counts,
    measured: Measured,
    burns: dict[int, Burn],
    buckets: Sequence[tuple[int, int]],
    pairs: tuple[AlertPair, ...],
    left_out: tuple[str, ...],
    was_firing: Firing,
) -> StatusRow:
    objective = plan.objective
    counts = {s: Count(b.n, b.bad) for s, b in burns.items()}
    verdicts = judge_all(pairs, objective.target, counts, was_firing.get(objective.key, frozenset()))
    recent = min((s for s in burns if s >= DAY), default=plan.window_s)
    whole_burn = burns[plan.window_s].value
    remaining = None if whole_burn is None else 1 - whole_burn
    return status_row(
        objective,
        window=plan.shown,
        settled_until=plan.settled,
        evaluated_at=plan.as_of,
        counts=whole,
        measured=measured,
        burns=burns,
        exhaustion={}
        if objective.is_floor
        else forecast(remaining, burns[recent], recent, plan.window_s, buckets, objective),
        verdicts=verdicts,
        notes=[f"no alert pair {text}" for text in left_out],
    )


def _slices(con: duckdb.DuckDBPyConnection, plan: _Plan, was_firing: Firing) -> StatusRow:
    """A Timeslices or RatioTimeslices objective: `n`, `good` and `bad` count slices."""
    objective = plan.objective
    assert objective.slice_s is not None
    found = slice_counts(con, objective, plan.start, plan.as_of)
    seconds = [s for s in sorted(plan.candidates() | {plan.window_s}) if s >= objective.slice_s]

    def measure(start: datetime, end: datetime) -> Measured:
        part = slices_of(objective, found, start, end)
        if objective.method == "Timeslices":
            good, n = timeslices(part, objective.slice_target or 1, objective.empty_slices)
            return Measured(good, n, None)
        mean = ratio_timeslices(part, objective.empty_slices)
        n = len(part) if objective.empty_slices != "ignore" else sum(1 for _, k in part if k)
        return Measured(0 if mean is None else round(mean * n), n, mean, exact_counts=False)

    def burn(measured: Measured) -> Burn:
        if measured.exact_counts or measured.sli is None:
            return burn_of(measured.good, measured.n, objective)
        return Burn((1 - measured.sli) / budget(objective.target), measured.n, measured.n - measured.good)

    whole = measure(plan.start, plan.as_of)
    counts = _total(found.values())
    pairs, left_out = _pairs(plan, counts)
    pairs = tuple(p for p in pairs if p.short_s >= objective.slice_s and p.long_s < plan.window_s)
    burns = {s: burn(measure(*plan.burn_edge(s))) for s in seconds if s != plan.window_s}
    burns[plan.window_s] = burn(whole)
    return _row(plan, counts, whole, burns, (), pairs, left_out, was_firing)


def _total(parts: Iterable[Counts]) -> Counts:
    """Event counts over all slices, for the numbers beside the slice SLI."""
    every = list(parts)
    return Counts(
        good=sum(c.good for c in every),
        bad=sum(c.bad for c in every),
        unknown=sum(c.unknown for c in every),
        excluded=sum(c.excluded for c in every),
        inferred=sum(c.inferred for c in every),
        first_at=min((c.first_at for c in every if c.first_at is not None), default=None),
    )


def _composites(rows: Sequence[StatusRow], objectives: Sequence[Objective]) -> list[StatusRow]:
    parts: dict[str, list[int]] = {}
    for i, objective in enumerate(objectives):
        if objective.composite:
            parts.setdefault(objective.slo, []).append(i)
    return [composite_row([rows[i] for i in at], [objectives[i] for i in at]) for at in parts.values()]


def split_objectives(objectives: Sequence[Objective], rows: Iterable[StatusRow]) -> list[Objective]:
    """The objectives as given plus those of single agents and types that `rows` came from."""
    found = list(objectives)
    for row in rows:
        values: dict[Dimension, str | None] = {"agent": row.agent, "task_type": row.task_type}
        for whole in objectives:
            if row.split and whole.per and whole.slo == row.slo:
                part = whole.narrowed(tuple((d, values[d]) for d in whole.per))
                if part.objective == row.objective:
                    found.append(part)
    return found


def write_status(
    con: duckdb.DuckDBPyConnection, rows: Sequence[StatusRow], target: str = "core.slo_status"
) -> None:
    """Replace the content of `target` by `rows` in one transaction of its own (creating the table)."""
    replace_rows(con, "slo_status", target, StatusRow, rows)


def firing_now(con: duckdb.DuckDBPyConnection, table: str = "slo_status") -> Firing:
    """What fires according to the last evaluation, for `was_firing`. Nothing when there was none."""
    try:
        found = con.execute(f"SELECT slo, objective, firing FROM {identifier(table)}").fetchall()
    except (duckdb.CatalogException, duckdb.BinderException):
        return {}
    return {
        (slo, objective): frozenset(f["key"] for f in json.loads(firing)) for slo, objective, firing in found
    }
