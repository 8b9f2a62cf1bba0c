"""Counting events in SQL: one scan of `sli_events` (and one of `tasks` per condition) for all objectives.

Every moment an objective's windows begin or end on is an *edge*; an event's *band* is the number of edges
before it. The scan groups events by band (and by what conditions and cuts need), and each window of each
objective is then a sum over a few hundred grouped rows instead of a scan of its own.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any

import duckdb

from metrics.slo.objective import (
    THRESHOLD_SLIS,
    ConjunctionSource,
    EventSource,
    Objective,
    OwnSource,
    Scope,
    TaskSource,
)
from metrics.slo.predicate import EVENT_COLUMNS, SqlWriter, columns_of

Edge = tuple[datetime, datetime]
Slice = tuple[int, int]
_SIGNS = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_PARAMETER = re.compile(r"\$([a-z_][a-z0-9_]*)")


@cache
def sql_text(package: str, name: str) -> str:
    """Text of `sql/<name>.sql` in a package such as `metrics.alerts`."""
    return (resources.files(package) / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def sql(name: str) -> str:
    """Text of `metrics/slo/sql/<name>.sql`."""
    return sql_text("metrics.slo", name)


def filled(name: str, **parts: str) -> str:
    """The SQL file with its {placeholders} filled by SQL made from whitelisted names and parameters only."""
    text = sql(name)
    for key, part in parts.items():
        text = text.replace("{" + key + "}", part)
    return text


def named(text: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `params` that `text` names: DuckDB refuses the others."""
    names = set(_PARAMETER.findall(text))
    return {k: v for k, v in params.items() if k in names}


def run(con: duckdb.DuckDBPyConnection, text: str, params: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """Execute `text` with those of `params` it names."""
    return con.execute(text, named(text, params))


@dataclass(frozen=True)
class Counts:
    """Events of one window, by class; `first_at` is the first valid one."""

    good: int
    bad: int
    unknown: int
    excluded: int
    inferred: int
    first_at: datetime | None
    excluded_by: Mapping[str, int] = field(default_factory=dict)
    """Excluded events by reason, most first; only where asked for."""

    last_at: datetime | None = None
    """The last valid event."""

    @property
    def n(self) -> int:
        return self.good + self.bad

    def swapped(self) -> Counts:
        """Good and bad changed places."""
        return replace(self, good=self.bad, bad=self.good)


def _counts(rows: Sequence[tuple[Any, ...]]) -> Counts:
    """Counts of the rows (class, reason, n, inferred, first_at, last_at) of one window."""
    classes = {c: [r for r in rows if r[0] == c] for c in ("good", "bad", "unknown", "excluded")}
    valid = classes["good"] + classes["bad"]
    return Counts(
        good=sum(r[2] for r in classes["good"]),
        bad=sum(r[2] for r in classes["bad"]),
        unknown=sum(r[2] for r in classes["unknown"]),
        excluded=sum(r[2] for r in classes["excluded"]),
        inferred=sum(r[3] for r in valid),
        first_at=min((r[4] for r in valid), default=None),
        excluded_by=_reasons(classes["excluded"]),
        last_at=max((r[5] for r in valid), default=None),
    )


def _reasons(rows: Sequence[tuple[Any, ...]]) -> dict[str, int]:
    """Excluded events by reason, most first."""
    found: dict[str, int] = {}
    for row in rows:
        if row[1] is not None:
            found[str(row[1])] = found.get(str(row[1]), 0) + row[2]
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _seen(counts: Counts) -> int:
    """Events an objective is about, decided or not."""
    return counts.n + counts.unknown


def _tree(edges: Sequence[str], moment: str, low: int, high: int) -> str:
    """A binary search over the edges as nested CASE: the number of edges before `moment`."""
    if low == high:
        return str(low)
    middle = (low + high) // 2
    later = _tree(edges, moment, middle + 1, high)
    earlier = _tree(edges, moment, low, middle)
    return f"CASE WHEN {moment} > {edges[middle]} THEN {later} ELSE {earlier} END"


def task_rows(source: TaskSource, key: str, params: dict[str, Any]) -> str:
    """SELECT of `tasks` judged by the conditions of `source`; literals go to `params` under `key`."""
    name = _parameter(key)
    params[name] = key
    total = SqlWriter(f"{name}_t")
    meant = SqlWriter(f"{name}_m", assume={"eligible": True})
    verdict = SqlWriter(f"{name}_v")
    value = "NULL"
    if source.value is not None:
        good = "TRUE"
        value = verdict.value(source.value)
    elif source.good is not None:
        good = f"({verdict.write(source.good)})"
    else:
        assert source.bad is not None
        good = f"(NOT ({verdict.write(source.bad)}))"
    text = filled(
        "task_rows",
        source=f"${name}",
        total=f"({total.write(source.total)})",
        meant=f"({meant.write(source.total)})",
        good=good,
        value=value,
    )
    params.update(total.params)
    params.update(meant.params)
    params.update(verdict.params)
    return text


def _parameter(key: str) -> str:
    return "src_" + key.replace(":", "_")


def conjunction_rows(source: ConjunctionSource, key: str, params: dict[str, Any]) -> str:
    """SELECT of tasks judged by all parts of `source` together."""
    name = _parameter(key)
    params[name] = key
    parts: list[str] = []
    for i, part in enumerate(source.parts):
        where, within = "TRUE", "TRUE"
        if isinstance(part.source, EventSource):
            writer = SqlWriter(f"{name}_{i}_w")
            where = f"(sli = ${name}_{i}_sli AND {writer.write(part.source.where)})"
            params |= {
                f"{name}_{i}_sli": part.source.sli,
                f"{name}_{i}_slis": [part.source.sli],
                **writer.params,
            }
            rows = sql("event_rows").replace("$slis", f"${name}_{i}_slis")
            needs_value = part.source.sli in THRESHOLD_SLIS
        else:
            rows = task_rows(part.source, f"{key}:{i}", params)
            needs_value = part.source.value is not None
        if part.cut is not None:
            params[f"{name}_{i}_cut"] = float(part.cut)
            within = f"value {_SIGNS[part.op or 'lte']} ${name}_{i}_cut"
        parts.append(
            filled("part_rows", rows=rows, where=where, within=within, needs_value=str(needs_value).upper())
        )
    return filled("conjunction_rows", source=f"${name}", parts=" UNION ALL ".join(f"({p})" for p in parts))


def own_rows(source: OwnSource, key: str, params: dict[str, Any]) -> str:
    """SELECT of the rows of a source that is no built-in SLI."""
    if isinstance(source, ConjunctionSource):
        return conjunction_rows(source, key, params)
    return task_rows(source, key, params)


def _measures(source: OwnSource) -> bool:
    return isinstance(source, TaskSource) and source.value is not None


def _unmeasured(own_values: Iterable[str], params: dict[str, Any]) -> str:
    """Condition of a good row without the value its SLI is about: unknown, not good and not zero."""
    params["measured"] = [*THRESHOLD_SLIS, *own_values]
    return "(verdict = 'good' AND value IS NULL AND list_contains($measured, sli))"


def excluded_sql(objective: Objective, params: dict[str, Any]) -> tuple[str, str]:
    """(any exclusion of the objective's own, by environment): conditions on a row or a cube row."""
    by_environment = "FALSE"
    if objective.exclude:
        params["exclude"] = list(objective.exclude)
        by_environment = "coalesce(list_contains($exclude, environment), FALSE)"
    by_evidence = "(inferred AND verdict IN ('good', 'bad'))" if objective.verified_only else "FALSE"
    return f"({by_environment} OR {by_evidence})", by_environment


class Cube:
    """The grouped events behind a set of objectives, in a temporary table of `con`."""

    def __init__(
        self, con: duckdb.DuckDBPyConnection, objectives: Sequence[Objective], edges: Iterable[datetime]
    ):
        self.con = con
        self.edges = sorted(set(edges))
        self.own: dict[OwnSource, str] = {}
        for objective in objectives:
            if not isinstance(objective.source, EventSource):
                self.own.setdefault(objective.source, f"own:{len(self.own)}")
        self.cuts: dict[str, list[float]] = {}
        for objective in objectives:
            if objective.cut is not None:
                cuts = self.cuts.setdefault(self.key(objective), [])
                if float(objective.cut) not in cuts:
                    cuts.append(float(objective.cut))
        for cuts in self.cuts.values():
            cuts.sort()
        self._build(objectives)

    def key(self, objective: Objective) -> str:
        """Value of the cube's `sli` column for the objective."""
        source = objective.source
        return source.sli if isinstance(source, EventSource) else self.own[source]

    def band(self, edge: datetime) -> int:
        """Index of an edge; a window (a, b] holds the bands above band(a) up to band(b)."""
        at = bisect_left(self.edges, edge)
        if at == len(self.edges) or self.edges[at] != edge:
            raise KeyError(f"{edge} is no edge of this cube")
        return at

    def _build(self, objectives: Sequence[Objective]) -> None:
        params: dict[str, Any] = {f"e{i}": edge for i, edge in enumerate(self.edges)}
        names = [f"$e{i}" for i in range(len(self.edges))]
        dimensions: set[str] = set()
        for objective in objectives:
            if isinstance(objective.source, EventSource):
                dimensions |= columns_of(objective.source.where)
            if objective.exclude:
                dimensions.add("environment")
            dimensions |= {*objective.per, *(name for name, _ in objective.scope)}
        rows = [sql("event_rows")] if any(isinstance(o.source, EventSource) for o in objectives) else []
        if rows:
            params["slis"] = sorted({o.source.sli for o in objectives if isinstance(o.source, EventSource)})
        rows += [own_rows(source, key, params) for source, key in self.own.items()]
        cut_cases = []
        for i, (key, cuts) in enumerate(self.cuts.items()):
            params[f"cut_of_{i}"] = key
            terms = []
            for j, cut in enumerate(cuts):
                params[f"cut_{i}_{j}"] = cut
                terms.append(f"(value >= $cut_{i}_{j})::UTINYINT + (value > $cut_{i}_{j})::UTINYINT")
            cut_cases.append(f"WHEN sli = $cut_of_{i} THEN coalesce({' + '.join(terms)}, 0)")
        dues = {o.unknown.due_s for o in objectives}
        params["due"] = sorted(dues, key=lambda d: (d is None, d or 0))
        params["longest_due"] = max((d for d in dues if d is not None), default=0)
        params["first"], params["last"] = self.edges[0], self.edges[-1]
        band = _tree(names, "event_time", 0, len(names))
        due_band = _tree(names, "(event_time + to_seconds(due_s))", 0, len(names))
        measured = [key for source, key in self.own.items() if _measures(source)]
        text = filled(
            "cube",
            rows=" UNION ALL ".join(f"({r})" for r in rows),
            dimensions="".join(f"{d}, " for d in sorted(dimensions & EVENT_COLUMNS.keys())),
            cut_band=f"CASE {' '.join(cut_cases)} ELSE 0 END" if cut_cases else "0",
            unmeasured=_unmeasured(measured, params),
            band=f"({band})::USMALLINT",
            due_band=f"({due_band})::USMALLINT",
        )
        run(self.con, text, params)

    def selection(self, objective: Objective) -> tuple[dict[str, str], dict[str, Any]]:
        """Placeholders and parameters that pick an objective's rows of the cube."""
        params: dict[str, Any] = {"sli": self.key(objective), "due": objective.unknown.due_s}
        where = "TRUE"
        if isinstance(objective.source, EventSource):
            writer = SqlWriter("w")
            where = f"({writer.write(objective.source.where)})"
            params.update(writer.params)
        for name, value in objective.scope:
            where += f" AND {name} IS NOT DISTINCT FROM $scope_{name}"
            params[f"scope_{name}"] = value
        within = "TRUE"
        if objective.cut is not None:
            params["cut"] = 2 * self.cuts[self.key(objective)].index(float(objective.cut))
            within = {
                "lt": "cut_band <= $cut",
                "lte": "cut_band <= $cut + 1",
                "gt": "cut_band >= $cut + 2",
                "gte": "cut_band >= $cut + 1",
            }[objective.op or "lte"]
        excluded, by_environment = excluded_sql(objective, params)
        parts = {"where": where, "within": within, "excluded": excluded, "by_environment": by_environment}
        return parts, params

    def counts(self, objective: Objective, windows: Sequence[Edge]) -> list[Counts]:
        """Counts of every window (start excluded, end included), in order; reasons only in the first."""
        return self.split_counts(replace(objective, per=()), windows)[()]

    def split_counts(self, objective: Objective, windows: Sequence[Edge]) -> dict[Scope, list[Counts]]:
        """`counts` of the objective (under `()`) and of each value of the dimensions it is split by.

        One query for all: their sum is the whole. In order of their events in the first window, most first.
        """
        parts, params = self.selection(objective)
        params["ids"] = list(range(len(windows)))
        params["lows"] = [self.band(a) for a, _ in windows]
        params["highs"] = [self.band(b) for _, b in windows]
        parts["dimensions"] = "".join(f"{name}, " for name in objective.per)
        parts["also"] = "".join(f", {name}" for name in objective.per)
        found: dict[Scope, list[list[tuple[Any, ...]]]] = {(): [[] for _ in windows]}
        for window, *rest in run(self.con, filled("counts", **parts), params).fetchall():
            row, values = tuple(rest[:6]), rest[6:]
            found[()][window].append(row)
            if objective.per:
                scope: Scope = tuple(zip(objective.per, values, strict=True))
                found.setdefault(scope, [[] for _ in windows])[window].append(row)
        counted = {scope: [_counts(rows) for rows in by_window] for scope, by_window in found.items()}
        if objective.is_floor:
            counted = {scope: [c.swapped() for c in every] for scope, every in counted.items()}
        whole = {(): counted.pop(())}
        busiest = sorted(counted.items(), key=lambda item: (-_seen(item[1][0]), str(item[0])))
        return whole | dict(busiest)

    def drop(self) -> None:
        """Free the temporary table."""
        self.con.execute("DROP TABLE IF EXISTS _slo_cube")


def own_parts(objective: Objective, start: datetime, end: datetime) -> tuple[dict[str, str], dict[str, Any]]:
    """Placeholders and parameters of a query over the raw events of one objective in (start, end]."""
    params: dict[str, Any] = {"start": start, "end": end, "due": objective.unknown.due_s}
    where = "TRUE"
    if isinstance(objective.source, EventSource):
        rows = sql("event_rows")
        measures = objective.source.sli in THRESHOLD_SLIS
        params["slis"] = [objective.source.sli]
        writer = SqlWriter("w")
        where = f"({writer.write(objective.source.where)})"
        params.update(writer.params)
    else:
        rows = own_rows(objective.source, "own:0", params)
        measures = _measures(objective.source)
    for name, value in objective.scope:
        where += f" AND {name} IS NOT DISTINCT FROM $scope_{name}"
        params[f"scope_{name}"] = value
    within = "TRUE"
    if objective.cut is not None:
        params["cut"] = float(objective.cut)
        within = f"value {_SIGNS[objective.op or 'lte']} $cut"
    excluded, by_environment = excluded_sql(objective, params)
    parts = {
        "rows": rows,
        "where": where,
        "within": within,
        "excluded": excluded,
        "by_environment": by_environment,
    }
    return parts | {"unmeasured": "(verdict = 'good' AND value IS NULL)" if measures else "FALSE"}, params


def slice_counts(
    con: duckdb.DuckDBPyConnection, objective: Objective, start: datetime, end: datetime
) -> dict[int, Counts]:
    """Counts per time slice of (start, end]; slices without events are missing."""
    assert objective.slice_s is not None
    parts, params = own_parts(objective, start, end)
    text = filled("slices", **parts)
    params["slice_s"] = objective.slice_s
    found = run(con, text, params).fetchall()
    return {int(r[0]): Counts(r[1], r[2], r[3], r[4], r[5], r[6]) for r in found}


def _slice(moment: datetime, width: int) -> int:
    """Number of the slice of `width` seconds since 1970 UTC that holds `moment`."""
    return int((moment - datetime(1970, 1, 1)) // timedelta(seconds=width))


def slices_of(
    objective: Objective, found: Mapping[int, Counts], start: datetime, end: datetime
) -> list[Slice]:
    """(good, n) of the slices that (start, end] touches; empty ones only when they mean something."""
    width = objective.slice_s
    assert width is not None
    tick = timedelta(microseconds=1)
    first, last = _slice(start + tick, width), _slice(end - tick, width)
    # A slice that begins at `end` counts only for the event it may hold at that very moment.
    last = max(last, _slice(end, width)) if _slice(end, width) in found else last
    if objective.empty_slices == "ignore":
        numbers = [i for i in sorted(found) if first <= i <= last]
    else:
        numbers = list(range(first, last + 1))
    return [(found[i].good, found[i].n) if i in found else (0, 0) for i in numbers]
