"""Day medians from SQL -> one row of `drift` per stream."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from metrics.drift.baselines import beginnings, since_of
from metrics.drift.detect import (
    BASELINE_DAYS,
    WINDOW_DAYS,
    Day,
    State,
    Tested,
    arrays,
    detectable,
    hits_of_day,
    judge_day,
    kitagawa,
    opened,
    shift_interval,
)
from metrics.slo.cube import run, sql_text
from metrics.slo.tables import replace_rows
from metrics.slo.windows import utc

METRICS = ("cost", "latency")
REPLAY_DAYS = 60
"""Days gone through to see whether a rise lasts: one that is older has been told long ago."""
_EPOCH = datetime(1970, 1, 1)

Stream = tuple[str, str | None, str | None]


@dataclass(frozen=True)
class DriftRow:
    """One stream as of the last whole day (UTC). Shares and ratios are plain numbers, `None` is unknown.

    `typical` is the median day's median task. `agent_mix` and `agent_rate` divide the change of the agent's
    mean over all its task types.
    """

    metric: str
    agent: str | None
    task_type: str | None
    state: State
    opened_on: date | None
    baseline_start: datetime
    baseline_end: datetime
    window_start: datetime
    window_end: datetime
    baseline_days: int
    window_days: int
    baseline_n: int
    n: int
    baseline_typical: float | None
    typical: float | None
    shift: float | None
    shift_lower: float | None
    shift_upper: float | None
    p: float | None
    detectable: float | None
    p_dearer: float | None
    p90_ratio: float | None
    p99_ratio: float | None
    agent_mean_before: float | None
    agent_mean: float | None
    agent_mix: float | None
    agent_rate: float | None
    streams: int

    @property
    def stream(self) -> Stream:
        return self.metric, self.agent, self.task_type


def _moment(day: int) -> datetime:
    return _EPOCH + timedelta(days=day)


def _day(moment: datetime) -> int:
    return (moment - _EPOCH).days


def drifts(con: duckdb.DuckDBPyConnection, as_of: datetime) -> list[DriftRow]:
    """Every stream of cost and latency as of the last whole day before `as_of` (naive is UTC).

    Reads the view `sli_events` and what operators said of baselines. The result follows from the data alone:
    the days before are gone through again, so nothing has to be remembered.
    """
    last = _day(utc(as_of)) - 1
    words = beginnings(con)
    streams: dict[Stream, list[Day]] = {}
    found = run(
        con,
        sql_text("metrics.drift", "day_medians"),
        {"first": _EPOCH, "until": _moment(last + 1), "metrics": list(METRICS)},
    ).fetchall()
    for metric, agent, task_type, day, median, n in found:
        streams.setdefault((metric, agent, task_type), []).append(Day(day, median, n))
    starts: dict[Stream, int] = {}
    for stream, days in streams.items():
        since = since_of(words, *stream)
        starts[stream] = days[0].number if since is None else _day(since)
    names = list(streams)
    tested: list[list[Tested | None]] = []
    hits: list[list[bool | None]] = []
    for day in range(last - REPLAY_DAYS + 1, last + 1):
        of_day = [judge_day(streams[s], starts[s], day) for s in names]
        tested.append(of_day)
        hits.append(hits_of_day(of_day))
    rows: list[DriftRow] = []
    for i, stream in enumerate(names):
        start = opened([h[i] for h in hits])
        opened_on = None if start is None else _moment(last - REPLAY_DAYS + 1 + start).date()
        rows.append(_row(stream, streams[stream], starts[stream], last, tested[-1][i], opened_on, len(names)))
    return _compared(con, rows)


def _row(
    stream: Stream,
    days: Sequence[Day],
    start: int,
    last: int,
    tested: Tested | None,
    opened_on: date | None,
    streams: int,
) -> DriftRow:
    first = start + BASELINE_DAYS
    low = max(first, last - WINDOW_DAYS + 1)
    baseline = [d for d in days if start <= d.number < first]
    window = [d for d in days if low <= d.number <= last]
    _, before, _ = arrays(baseline)
    _, after, _ = arrays(window)
    state: State = "learning" if last < first else "insufficient" if tested is None else "steady"
    if opened_on is not None:
        state = "rising"
    interval = shift_interval(before, after) if tested else (None, None)
    return DriftRow(
        metric=stream[0],
        agent=stream[1],
        task_type=stream[2],
        state=state,
        opened_on=opened_on,
        baseline_start=_moment(start),
        baseline_end=_moment(first),
        window_start=_moment(low),
        window_end=_moment(max(last + 1, low)),
        baseline_days=len(baseline),
        window_days=len(window),
        baseline_n=sum(d.n for d in baseline),
        n=sum(d.n for d in window),
        baseline_typical=_typical(baseline),
        typical=_typical(window),
        shift=tested.shift if tested else None,
        shift_lower=interval[0],
        shift_upper=interval[1],
        p=tested.p if tested else None,
        detectable=detectable(tested.spread, tested.baseline_days, tested.window_days) if tested else None,
        p_dearer=None,
        p90_ratio=None,
        p99_ratio=None,
        agent_mean_before=None,
        agent_mean=None,
        agent_mix=None,
        agent_rate=None,
        streams=streams,
    )


def _typical(days: Sequence[Day]) -> float | None:
    if not days:
        return None
    values = sorted(d.median for d in days)
    half = len(values) // 2
    middle = values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2
    return math.exp(middle)


def _compared(con: duckdb.DuckDBPyConnection, rows: Sequence[DriftRow]) -> list[DriftRow]:
    """The rows with what single tasks say, where there is a window to compare."""
    ready = {i: r for i, r in enumerate(rows) if r.shift is not None}
    if not ready:
        return list(rows)
    names = ("metric", "agent", "task_type", "baseline_start", "baseline_end", "window_start", "window_end")
    table = pa.table(
        {"stream": list(ready)} | {n: pa.array([getattr(r, n) for r in ready.values()]) for n in names}
    )
    con.register("_drift_streams", table)
    try:
        found = con.execute(sql_text("metrics.drift", "comparison")).fetchall()
    finally:
        con.unregister("_drift_streams")
    by_stream: dict[int, tuple[Any, ...]] = {row[0]: row[1:] for row in found}
    agents: dict[tuple[str, str | None], list[int]] = {}
    for i, row in ready.items():
        agents.setdefault((row.metric, row.agent), []).append(i)
    wholes = {key: _whole([by_stream[i] for i in members]) for key, members in agents.items()}
    compared = list(rows)
    for i, row in ready.items():
        _, _, _, _, p_dearer, p90, p99 = by_stream[i]
        whole = wholes[row.metric, row.agent]
        compared[i] = replace(row, p_dearer=p_dearer, p90_ratio=p90, p99_ratio=p99, **whole)
    return compared


def _whole(members: Sequence[tuple[Any, ...]]) -> Mapping[str, Any]:
    """Means of an agent over its task types before and now, and what their difference is made of."""
    old = sum(m[0] for m in members)
    new = sum(m[1] for m in members)
    before = [(m[0] / old, m[2] or 0.0) for m in members]
    after = [(m[1] / new, m[3] or 0.0) for m in members]
    mix, rate = kitagawa(before, after)
    return {
        "agent_mean_before": sum(s * m for s, m in before),
        "agent_mean": sum(s * m for s, m in after),
        "agent_mix": mix,
        "agent_rate": rate,
    }


def write_drift(con: duckdb.DuckDBPyConnection, rows: Sequence[DriftRow], target: str = "core.drift") -> None:
    """Replace the content of `target` by `rows` in one transaction of its own (creating the table)."""
    replace_rows(con, "drift", target, DriftRow, rows, package="metrics.drift")
