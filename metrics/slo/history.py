"""SLI and budget over time: what each point of a chart says, computed here so that no page has to."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import duckdb

from metrics.slo.arithmetic import account, burn_rate
from metrics.slo.cube import Cube, filled, run, slice_counts, slices_of
from metrics.slo.objective import EventSource, Objective
from metrics.slo.revisions import Revisions, as_it_was
from metrics.slo.slices import ratio_timeslices, timeslices
from metrics.slo.tables import replace_rows
from metrics.slo.windows import utc

DAILY = timedelta(days=1)


@dataclass(frozen=True)
class HistoryRow:
    """One point: what the objective's window that ends at `at` (naive UTC) said.

    Under the `target` of that time (`metrics.slo.revisions`), and else under today's definition. `n`, `good`,
    `bad`, `sli` and `remaining` belong to that whole window; `burn`, `step_n` and `step_bad` to the step before
    the point. `None` is unknown (no events). Slices are counted instead of events where the objective's method
    says so.
    """

    slo: str
    objective: str
    at: datetime
    n: int
    good: int
    bad: int
    sli: float | None
    remaining: float | None
    burn: float | None
    step_n: int
    step_bad: int
    revision: str
    target: float


@dataclass(frozen=True)
class _Point:
    at: datetime
    start: datetime
    step_start: datetime


def _points(objective: Objective, as_of: datetime, step: timedelta, points: int) -> list[_Point]:
    found: list[_Point] = []
    for i in range(points - 1, -1, -1):
        at = as_of - i * step
        start, _ = objective.window.bounds(at)
        if objective.window.anchor is not None:
            start -= timedelta(microseconds=1)
        # In a calendar window that has just begun, the step before it belongs to the old one.
        found.append(_Point(at, start, at - step))
    return found


def default_points(objective: Objective, as_of: datetime, step: timedelta = DAILY) -> int:
    """Points that cover the objective's window once, both ends included, at most 400."""
    whole = timedelta(seconds=objective.window.seconds(utc(as_of)))
    return max(2, min(400, whole // step + 1))


def history(
    con: duckdb.DuckDBPyConnection,
    objective: Objective,
    as_of: datetime,
    step: timedelta = DAILY,
    points: int | None = None,
    revisions: Revisions | None = None,
) -> list[HistoryRow]:
    """Points every `step` up to `as_of` (naive is UTC), oldest first; daily over the window by default.

    Unknown events count as bad from the moment the objective's policy makes them so, at every point alike.
    Raises ValueError for a step that is not positive or fewer than one point.
    """
    return histories(con, [objective], as_of, step, points, revisions)


def _countable() -> AbstractContextManager[None]:
    """Lets an objective on a missing table or column have no points: `evaluate` reports it as invalid."""
    return suppress(duckdb.CatalogException, duckdb.BinderException)


def histories(
    con: duckdb.DuckDBPyConnection,
    objectives: Sequence[Objective],
    as_of: datetime,
    step: timedelta = DAILY,
    points: int | None = None,
    revisions: Revisions | None = None,
) -> list[HistoryRow]:
    """`history` of several objectives from one scan. Objectives that cannot be counted have no points."""
    if step <= timedelta(0) or (points is not None and points < 1):
        raise ValueError("a history needs a step above 0 and at least one point")
    moment = utc(as_of)
    plans = [
        (o, _points(o, moment, step, points if points is not None else default_points(o, moment, step)))
        for o in objectives
    ]
    rows: list[HistoryRow] = []
    groups: dict[object, list[tuple[Objective, list[_Point]]]] = {}
    for objective, plan in plans:
        if objective.method != "Occurrences":
            with _countable():
                rows += _of_slices(con, objective, plan, revisions or {})
            continue
        key = "events" if isinstance(objective.source, EventSource) else objective.source
        groups.setdefault(key, []).append((objective, plan))
    for group in groups.values():
        edges = {e for _, plan in group for p in plan for e in (p.at, p.start, p.step_start)}
        with _countable():
            cube = Cube(con, [o for o, _ in group], edges)
            try:
                for objective, plan in group:
                    rows += _of_events(cube, objective, plan, revisions or {})
            finally:
                cube.drop()
    order = {o.key: i for i, o in enumerate(objectives)}
    return sorted(rows, key=lambda r: (order[r.slo, r.objective], r.at))


def _of_events(
    cube: Cube, objective: Objective, plan: Sequence[_Point], revisions: Revisions
) -> list[HistoryRow]:
    parts, params = cube.selection(objective)
    params |= {
        "last_band": len(cube.edges),
        "ids": list(range(len(plan))),
        "lows": [cube.band(p.start) for p in plan],
        "steps": [cube.band(p.step_start) for p in plan],
        "highs": [cube.band(p.at) for p in plan],
    }
    found = run(cube.con, filled("history", **parts), params).fetchall()
    rows = []
    for point, (_, good, bad, step_good, step_bad) in zip(plan, found, strict=True):
        if objective.is_floor:
            good, bad, step_good, step_bad = bad, good, step_bad, step_good
        whole, step = (int(good), int(good + bad)), (int(step_good), int(step_good + step_bad))
        rows.append(_row(as_it_was(objective, point.at, revisions), point, whole, step))
    return rows


def _row(objective: Objective, point: _Point, whole: tuple[int, int], step: tuple[int, int]) -> HistoryRow:
    result = account(*whole, objective.target)
    burn = burn_rate(step[1] - step[0], step[1], objective.target)
    return HistoryRow(
        slo=objective.slo,
        objective=objective.objective,
        at=point.at,
        n=result.n,
        good=result.good,
        bad=result.bad,
        sli=None if result.sli is None else float(result.sli),
        remaining=None if result.remaining is None else float(result.remaining),
        burn=None if burn is None else float(burn),
        step_n=step[1],
        step_bad=step[1] - step[0],
        revision=objective.revision,
        target=float(objective.target),
    )


def _of_slices(
    con: duckdb.DuckDBPyConnection, objective: Objective, plan: Sequence[_Point], revisions: Revisions
) -> list[HistoryRow]:
    # One scan per point: a slice cut by the point must not hold what came after it.
    rows: list[HistoryRow] = []
    for point in plan:
        counts = slice_counts(con, objective, min(point.start, point.step_start), point.at)
        whole = slices_of(objective, counts, point.start, point.at)
        step = slices_of(objective, counts, point.step_start, point.at)
        then = as_it_was(objective, point.at, revisions)
        if objective.method == "Timeslices":
            rule = objective.slice_target or 1, objective.empty_slices
            rows.append(_row(then, point, timeslices(whole, *rule), timeslices(step, *rule)))
            continue
        mean, recent = (ratio_timeslices(s, objective.empty_slices) for s in (whole, step))
        base = _row(then, point, (0, 0), (0, 0))
        share = account(0, 0, then.target).share
        rows.append(
            HistoryRow(
                **{
                    **base.__dict__,
                    "n": len(whole),
                    "good": round((mean or 0) * len(whole)),
                    "bad": len(whole) - round((mean or 0) * len(whole)),
                    "sli": None if mean is None else float(mean),
                    "remaining": None if mean is None else float(1 - (1 - mean) / share),
                    "burn": None if recent is None else float((1 - recent) / share),
                    "step_n": len(step),
                }
            )
        )
    return rows


def write_history(
    con: duckdb.DuckDBPyConnection, rows: Sequence[HistoryRow], target: str = "core.slo_history"
) -> None:
    """Replace the content of `target` by `rows` in one transaction of its own (creating the table)."""
    replace_rows(con, "slo_history", target, HistoryRow, rows)
