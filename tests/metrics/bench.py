"""A derivation bench for tests: real OTLP requests through the real decoder into the real store."""

from __future__ import annotations

import atexit
import itertools
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import orjson

from collector.batch import LOG_SCHEMA, SPAN_SCHEMA
from collector.decode import decode
from collector.store import Store
from metrics.deriver import Deriver, Prices
from metrics.prices import PriceBook, PriceOverride
from metrics.settings import MetricsSettings

PUBLIC = (
    "steps",
    "runs",
    "tasks",
    "attempts",
    "actions",
    "interventions",
    "findings",
    "sli_events",
    "sli_hourly",
    "task_costs",
    "task_times",
    "waste",
    "task_aliases",
    "_escalations",
)


class ListPrices:
    """The shipped price book under overrides, asked one model at a time."""

    def __init__(self, overrides: Sequence[PriceOverride] = ()) -> None:
        self.book = PriceBook(list(overrides))
        self.asked: list[tuple[str, str]] = []

    @property
    def by_service(self) -> bool:
        return self.book.by_service

    def rows(self, provider: str, model: str, service: str | None) -> list[tuple[object, ...]]:
        self.asked.append((provider, model))
        found = self.book.rows([(provider or None, model, service or None)])
        return [(provider, *row[1:10], service) for row in found]


class Bench:
    """A store in a temporary folder with a deriver on it."""

    def __init__(
        self, store: Store, settings: MetricsSettings | None, prices: Prices | None, pass_spans: int
    ) -> None:
        self.store = store
        self.con = store.derivation()
        self.deriver = Deriver(
            self.con, settings, prices=prices, sources=store.spans_since, pass_spans=pass_spans
        )
        self.deriver.migrate()

    def send(self, requests: Iterable[bytes | dict[str, Any]]) -> Bench:
        """Store OTLP/JSON requests, one commit each."""
        for request in requests:
            body = request if isinstance(request, bytes) else orjson.dumps(request)
            self.store.append(decode("traces", "json", body).batch)
        return self

    def derive(self, as_of: datetime | None = None) -> Bench:
        self.deriver.catch_up(as_of)
        return self

    def rows(self, sql: str, *params: Any) -> list[dict[str, Any]]:
        found = self.con.execute(sql, list(params))
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def view(self, name: str, *, without: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """All rows of a kept table as comparable text, sorted: for laws such as `incremental = from scratch`."""
        where = "work" if name in ("steps", "attempts") else "core"
        dropped = [c for c in without if c in self.columns(where, name)]
        columns = f"* EXCLUDE ({', '.join(dropped)})" if dropped else "*"
        return sorted(self.con.execute(f"SELECT {columns} FROM {where}.{name}").fetchall(), key=repr)

    def columns(self, where: str, name: str) -> list[str]:
        return [row[0] for row in self.con.execute(f"DESCRIBE {where}.{name}").fetchall()]


@cache
def _begun() -> Path:
    """A data folder without spans whose tables are made: making them takes longer than most tests."""
    folder = Path(tempfile.mkdtemp(prefix="agent-slo-begun-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    store = Store.open(folder)
    try:
        Deriver(store.derivation(), sources=store.spans_since).migrate()
    finally:
        store.close()
    return folder


def begin(folder: Path) -> None:
    """Let a new folder begin with its tables made; one that holds something stays as it is."""
    if not folder.exists() or not any(folder.iterdir()):
        shutil.copytree(_begun(), folder, dirs_exist_ok=True)


@contextmanager
def bench(
    folder: Path,
    settings: MetricsSettings | None = None,
    prices: Prices | None = None,
    pass_spans: int = 50_000,
) -> Iterator[Bench]:
    """Open a bench in a folder and close it again. A new folder begins with its tables made."""
    begin(folder)
    store = Store.open(folder)
    try:
        yield Bench(store, settings, prices, pass_spans)
    finally:
        store.close()


class MemoryBench:
    """A deriver on tables in memory, used again and again: one capture at a time."""

    def __init__(self, settings: MetricsSettings | None = None) -> None:
        self.con = duckdb.connect(config={"threads": 1})
        for name in ("core", "work"):
            self.con.execute(f"ATTACH ':memory:' AS {name}")
        columns = ", ".join(
            f'"{name}" {_sql_type(name)}' for name in ("seq", "received_at", *SPAN_SCHEMA.names)
        )
        self.con.execute(f"CREATE TABLE spans ({columns})")
        columns = ", ".join(
            f'"{name}" {_sql_type(name)}' for name in ("seq", "received_at", *LOG_SCHEMA.names)
        )
        self.con.execute(f"CREATE TABLE logs ({columns})")
        self.deriver = Deriver(self.con, settings)
        self.deriver.migrate()

    def __enter__(self) -> MemoryBench:
        return self

    def __exit__(self, *_: object) -> None:
        self.con.close()

    def derive_only(
        self,
        requests: Iterable[bytes | dict[str, Any]],
        as_of: datetime | None = None,
        *,
        logs: Iterable[bytes] = (),
    ) -> None:
        """Forget what was there and derive these OTLP/JSON requests: of traces, and of logs."""
        self.con.execute("DELETE FROM spans; DELETE FROM logs")
        for request in requests:
            body = request if isinstance(request, bytes) else orjson.dumps(request)
            self._insert("spans", decode("traces", "json", body).batch.spans)
        for body in logs:
            self._insert("logs", decode("logs", "json", body).batch.logs)
        self.deriver.rebuild(as_of)

    def _insert(self, table: str, rows: Any) -> None:
        self.con.register("batch", rows)
        self.con.execute(
            f"INSERT INTO {table} BY NAME SELECT "
            "(SELECT coalesce(max(seq), 0) FROM (FROM (SELECT seq FROM spans) UNION ALL SELECT seq FROM logs)) "
            "+ row_number() OVER () AS seq, TIMESTAMP '2026-11-29 12:00:00' AS received_at, * FROM batch"
        )
        self.con.unregister("batch")

    def rows(self, sql: str, *params: Any) -> list[dict[str, Any]]:
        found = self.con.execute(sql, list(params))
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _sql_type(name: str) -> str:
    return (
        "TIMESTAMP"
        if name == "received_at"
        else "BIGINT"
        if name == "seq" or name[-3:] == "_ns"
        else "VARCHAR"
    )


# ---- traces made by hand ------------------------------------------------------------------------------------------

_T0 = int(datetime(2026, 11, 2, 9, 0, tzinfo=UTC).timestamp())
_numbers = itertools.count(1)


def at(seconds: float) -> datetime:
    """The moment `seconds` after the start of every hand-made trace (UTC, naive)."""
    return datetime.fromtimestamp(_T0 + seconds, tz=UTC).replace(tzinfo=None)


def span(
    trace: str,
    name: str,
    start: float,
    end: float | None,
    parent: str | None = None,
    *,
    id: str | None = None,
    error: str | None = None,
    message: str = "",
    events: list[dict[str, Any]] | None = None,
    **attributes: Any,
) -> dict[str, Any]:
    """One span; keyword attributes are written with `__` for a dot."""
    attrs = {key.replace("__", "."): value for key, value in attributes.items()}
    if error:
        attrs["error.type"] = error
    return {
        "traceId": f"{abs(hash_id(trace)):032x}"[-32:],
        "spanId": f"{abs(hash_id(trace + '/' + (id or f'{name}@{start}'))):016x}"[-16:],
        "parentSpanId": f"{abs(hash_id(trace + '/' + parent)):016x}"[-16:] if parent else "",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(int((_T0 + start) * 1e9)),
        "endTimeUnixNano": str(int((_T0 + end) * 1e9)) if end is not None else "0",
        "attributes": [{"key": key, "value": _value(value)} for key, value in attrs.items()],
        "events": events or [],
        "status": {"code": 2, "message": message or error} if error else {},
    }


def hash_id(text: str) -> int:
    """A number that is the same in every process."""
    import hashlib

    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"stringValue": orjson.dumps(value).decode()}
    return {"stringValue": str(value)}


def request(
    spans: Sequence[dict[str, Any]], service: str = "desk", scope: str = "made.by.hand", **resource: Any
) -> dict[str, Any]:
    """One ExportTraceServiceRequest around spans."""
    attrs = {"service.name": service, **{key.replace("__", "."): value for key, value in resource.items()}}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": k, "value": _value(v)} for k, v in attrs.items()]},
                "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}],
            }
        ]
    }
