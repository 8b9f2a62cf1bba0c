"""The query door: one SELECT at a time over the store, for the dashboard and the command line.

The data folder's door.json names the address and the token; whoever may read that file may ask.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from collector.access import Access, Role, Token
from collector.fence import fence, memory_limit, resident
from collector.otlp_http import LOOPBACK_HOSTS, host_name
from collector.settings import CollectorSettings
from collector.statement import QueryRefused, check_statement
from collector.store import Store, StoreError

ARROW_STREAM = "application/vnd.apache.arrow.stream"
_BATCH_ROWS = 2048
"""One vector of DuckDB: the size of the answer is looked at before the next is made."""
_WATCH_SECONDS = 0.1
_WAITING_PER_SLOT = 8
_MOST_QUESTION_BYTES = 4 << 20


class Door:
    """ASGI application answering POST /sql with an Arrow IPC stream."""

    def __init__(
        self,
        store: Store,
        settings: CollectorSettings,
        health: Callable[[], dict[str, Any]],
        routes: Sequence[BaseRoute] = (),
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        """The token of door.json: whoever may read that file may do everything here."""
        self.access = Access((Token("admin", self.token), *settings.tokens))
        self._store = store
        self._settings = settings
        self._health = health
        slots = settings.query_concurrency
        self._threads = ThreadPoolExecutor(slots, thread_name_prefix="query")
        self._closing = False
        self._asked = 0
        self._most = slots * (1 + _WAITING_PER_SLOT)
        self._running: set[duckdb.DuckDBPyConnection] = set()
        self._lock = threading.Lock()
        self.app = Starlette(
            routes=[Route("/sql", self._sql, methods=["POST"]), Route("/healthz", self._healthz), *routes]
        )

    def authorised(self, request: Request, role: Role = "admin") -> bool:
        """Whether the request shows a token that may act in this role; further routes must ask this too."""
        return self.access.allows(request.headers.get("authorization", ""), role) == "yes"

    def refusal(self, request: Request, role: Role) -> Response | None:
        """The answer for whoever may not act in this role, None for who may."""
        may = self.access.allows(request.headers.get("authorization", ""), role)
        if may == "unknown":
            return _error(401, "a bearer token is needed; it is in door.json of the data folder")
        return _error(403, f"this token may not: the role {role} is needed") if may == "denied" else None

    async def _healthz(self, request: Request) -> Response:
        if host_name(request.headers.get("host", "")) not in LOOPBACK_HOSTS:
            return _error(421, "the door is for this machine: use the host 127.0.0.1 or localhost")
        return JSONResponse(self._health())

    async def _sql(self, request: Request) -> Response:
        if (refused := self.refusal(request, "read")) is not None:
            return refused
        body = await read_body(request, _MOST_QUESTION_BYTES)
        if body is None:
            return _error(413, f"a question has at most {_MOST_QUESTION_BYTES} bytes")
        try:
            question = json.loads(body)
            unknown = sorted(set(question) - {"sql", "params"}) if isinstance(question, dict) else []
            if unknown:
                return _error(400, f"{unknown[0][:40]!r}: no such key; there are 'sql' and 'params'")
            sql, params = question["sql"], question.get("params")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return _error(400, 'send a JSON object {"sql": TEXT, "params": LIST or OBJECT}')
        if not isinstance(sql, str) or not isinstance(params, list | dict | None):
            return _error(400, "sql must be a string, params a list or an object")
        if self._asked >= self._most:
            return _error(503, "too many queries are waiting; ask again", {"retry-after": "1"})
        self._asked += 1
        try:
            loop = asyncio.get_running_loop()
            body = await loop.run_in_executor(self._threads, self.answer, sql, params)
        except QueryRefused as e:
            return _error(400, str(e))
        except StoreError as e:
            return _error(503, str(e), {"retry-after": "1"})
        except duckdb.Error as e:
            return _error(400, str(e))
        except asyncio.CancelledError:
            if not self._closing:
                raise
            return _error(503, "the collector is stopping", {"retry-after": "1"})
        finally:
            self._asked -= 1
        return Response(body, media_type=ARROW_STREAM)

    def answer(self, sql: str, params: list[Any] | dict[str, Any] | None) -> bytes:
        """Run one SELECT and return an Arrow IPC stream.

        Raises QueryRefused (not one SELECT, one that reads files, too slow, too many rows or bytes) or duckdb.Error.
        """
        with self._store.reader() as con, self._limited(con) as watch:
            check_statement(con, sql, params)
            try:
                return self._stream(con.sql(sql, params=params or None))
            except (duckdb.InterruptException, duckdb.OutOfMemoryException, MemoryError) as e:
                raise QueryRefused(watch.reason or _stopped(e)) from e
            except duckdb.Error as e:
                if (damage := self._store.note_damage(e)) is not None:
                    raise QueryRefused(damage) from e
                raise
            except (OSError, pa.ArrowException) as e:
                # What goes wrong after the first rows comes through Arrow, which knows no kinds of errors.
                raise QueryRefused(watch.reason or self._store.note_damage(e) or _stopped(e)) from e

    def _stream(self, result: duckdb.DuckDBPyRelation) -> bytes:
        reader = result.to_arrow_reader(_BATCH_ROWS)
        out = io.BytesIO()
        rows = 0
        # Closed only at a good end: after an error its own close would fail, and hide the error.
        writer = pa.ipc.new_stream(out, reader.schema)
        for batch in reader:
            rows += batch.num_rows
            if rows > self._settings.query_rows:
                raise QueryRefused(f"more than {self._settings.query_rows} rows; aggregate, or add a LIMIT")
            if out.tell() + batch.nbytes > self._settings.query_bytes:
                raise QueryRefused(
                    f"more than {self._settings.query_bytes} bytes; name fewer columns, or add a LIMIT"
                )
            writer.write_batch(batch)
        writer.close()
        return out.getvalue()

    @contextlib.contextmanager
    def _limited(self, con: duckdb.DuckDBPyConnection) -> Iterator[_Watch]:
        limit = memory_limit(con)
        watch = _Watch(con, self._settings.query_seconds, limit + self._settings.query_bytes)
        # Twice the limit: what DuckDB counts, and as much of what it does not.
        with fence(2 * limit + self._settings.queue_bytes):
            watch.start()
            with self._lock:
                self._running.add(con)
            try:
                yield watch
            finally:
                watch.stop()
                with self._lock:
                    self._running.discard(con)

    def interrupt(self) -> None:
        """Stop the queries that run: the writer needs the memory, or the collector stops."""
        with self._lock:
            for con in self._running:
                con.interrupt()

    def close(self) -> None:
        """Stop the queries that run or wait."""
        self._closing = True
        self.interrupt()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Watch:
    """Interrupts one query that runs too long or makes the process grow by more than `growth` bytes."""

    def __init__(self, con: duckdb.DuckDBPyConnection, seconds: float, growth: int) -> None:
        self._con, self._seconds, self._growth = con, seconds, growth
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="query-watch", daemon=True)
        self.reason: str | None = None
        """Why the query was stopped."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        until, most = time.monotonic() + self._seconds, resident() + self._growth
        while not self._over.wait(min(_WATCH_SECONDS, max(0.0, until - time.monotonic()))):
            if time.monotonic() >= until:
                self.reason = self.reason or (
                    f"stopped after {self._seconds:g} s; bound the query by time or ask for less"
                )
            elif resident() > most:
                self.reason = self.reason or _TOO_MUCH_MEMORY
            if self.reason is not None:
                # Again and again: an interrupt that comes before the query runs does nothing.
                self._con.interrupt()
                self._over.wait(_WATCH_SECONDS)


_TOO_MUCH_MEMORY = (
    "stopped: this query needs more memory than it may have; name fewer columns or rows, or aggregate"
)


def _stopped(error: BaseException) -> str:
    """The line for whoever asked."""
    text = str(error)
    if isinstance(error, duckdb.InterruptException) or "INTERRUPT" in text:
        return "stopped: the collector needed the memory or is stopping"
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError) or "Out of Memory" in text:
        return _TOO_MUCH_MEMORY
    return (
        f"the answer cannot be sent ({(text.splitlines() or ['no reason given'])[0]}); "
        "shorten its texts with left(), or add a LIMIT"
    )


async def read_body(request: Request, most: int) -> bytes | None:
    """The body of a request, None when it has more than `most` bytes; no more than that is held."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            return None
    return bytes(body)


def write_door_file(path: Path, door: Door, port: int, http: str, grpc: str | None, version: str) -> None:
    """Write door.json, readable by its owner only, in one step."""
    content = {
        "door": f"http://127.0.0.1:{port}",
        "token": door.token,
        "pid": os.getpid(),
        "http": http,
        "grpc": grpc,
        "version": version,
        "started": time.time(),
    }
    scratch = path.with_suffix(".json.new")
    scratch.unlink(missing_ok=True)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as f:
        json.dump(content, f)
    scratch.replace(path)


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": message}, status, headers)
