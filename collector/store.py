"""The one owner of every DuckDB file in a data folder.

One in-memory DuckDB instance has all files attached: span files (`spans_000001`, ...), `core`, `work`.
Spans go into the newest span file, the hot one. It is closed at N rows, N bytes of log or an age, a new
one takes over, and the closed one is checkpointed by another thread: a checkpoint of the table being
written stops commits for 1.9-5.4 s, one of another file for 33-84 ms.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import queue
import re
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psutil
import pyarrow as pa

from collector import views
from collector.batch import Batch
from collector.layout import STORAGE_VERSION, DataFolder, StoreBusyError, StoreError, quoted
from collector.redaction.redactor import Redactor
from collector.repair import Repair, cut_log, damage_position, set_aside_unfinished

__all__ = ["Store", "StoreBusyError", "StoreError", "StoreOptions"]

log = logging.getLogger("agent_slo.store")

_LOCK_HOLDER = re.compile(r"Could not set lock on file.*?\(PID (\d+)\)", re.DOTALL)
_MIB = 1 << 20


@dataclass(frozen=True)
class StoreOptions:
    """How the store behaves; the defaults suit one machine with two cores."""

    rotate_spans: int = 100_000
    """Rows after which the hot file is closed."""
    rotate_seconds: float = 3600.0
    """Age after which a hot file of some size is closed; see Store._is_full."""
    rotate_log_bytes: int = 256 * _MIB
    """Size of the hot file's write-ahead log after which it is closed (few spans, large prompts)."""
    memory_limit: str | None = None
    """DuckDB's memory limit, such as '2GB'; None: a quarter of the machine's memory, 0.5 to 2 GB."""
    threads: int | None = None
    """DuckDB's worker threads; None: one per core."""
    lock_wait: float = 10.0
    """Seconds to wait for another process to give up the files."""
    commit_rows: int = 50_000
    """Largest number of rows in one transaction."""
    derived_log_bytes: int = 64 * _MIB
    """Size of the write-ahead log of core or work after which it is checkpointed."""
    close_seconds: float = 3.0
    """Time after which a stop begins no further checkpoint; a log that stays is as durable as its file."""
    free_bytes: int = 64 * _MIB
    """Free space on the volume below which nothing more is accepted."""
    redactor: Redactor | None = None
    """Takes secrets out of everything before it is written; None: stored as it came."""


@dataclass
class _SpanFile:
    number: int
    path: Path
    rows: int
    max_seq: int
    opened: float

    @property
    def database(self) -> str:
        return f"spans_{self.number:06d}"


class Store:
    """Append spans, read everything, derive into `core` and `work`. Safe to use from many threads."""

    def __init__(self, folder: DataFolder, options: StoreOptions) -> None:
        self.folder = folder
        self.options = options
        self.repairs: list[Repair] = []
        self.on_memory_pressure: Callable[[], None] | None = None
        self.generation = 0
        """Grows when the instance had to be reopened: connections handed out before are dead."""
        self._write = threading.RLock()
        self._catalog = threading.RLock()
        self._committed = threading.Condition()
        self._last_seq = 0
        self._files: list[_SpanFile] = []
        self._handed_out: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()
        self._to_checkpoint: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._checkpointer: threading.Thread | None = None
        self._failure: str | None = None
        self._closed = False
        self._checked_space = 0.0
        self._root: duckdb.DuckDBPyConnection
        self._writer: duckdb.DuckDBPyConnection

    @classmethod
    def open(cls, data: Path | str, options: StoreOptions | None = None) -> Store:
        """Open or create the data folder; repairs a damaged log tail and reports it in `repairs`.

        Raises StoreError when the folder is not writable, held by another process (names its PID), written
        by a newer version, or holds a file that cannot be opened.
        """
        store = cls(DataFolder(Path(data).expanduser().resolve()), options or StoreOptions())
        store.folder.prepare(_program_version())
        store._open()
        store._checkpointer = threading.Thread(target=store._checkpoint_loop, name="checkpoint", daemon=True)
        store._checkpointer.start()
        return store

    # ------------------------------------------------------------------ reading

    @contextlib.contextmanager
    def reader(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor inside a read-only transaction: one consistent picture, closed on leaving."""
        cursor = self._cursor()
        try:
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            yield cursor
        finally:
            cursor.close()

    def derivation(self) -> duckdb.DuckDBPyConnection:
        """A connection for the deriver: may write `core` and `work` (one of them a transaction).

        Its configuration is locked: the time zone is UTC, and `SET` is refused.
        """
        return self._cursor()

    def spans_since(self, seq: int) -> list[str]:
        """Qualified names of the `spans` tables that hold rows with a seq above `seq`, oldest first."""
        return self._tables_since("spans", seq)

    def logs_since(self, seq: int) -> list[str]:
        """Qualified names of the `logs` tables of the files that hold rows with a seq above `seq`."""
        return self._tables_since("logs", seq)

    def _tables_since(self, table: str, seq: int) -> list[str]:
        with self._catalog:
            return [f"{f.database}.{table}" for f in self._files if f.max_seq > seq]

    @property
    def last_seq(self) -> int:
        """The highest committed seq, 0 when nothing was ever stored."""
        return self._last_seq

    def wait_for_spans(self, after_seq: int, timeout: float) -> int:
        """Block until something with a seq above `after_seq` is committed, at most `timeout` seconds.

        Returns the highest committed seq, which is `after_seq` or less when the time ran out.
        """
        with self._committed:
            self._committed.wait_for(lambda: self._last_seq > after_seq or self._closed, timeout)
            return self._last_seq

    def state(self) -> dict[str, Any]:
        """What a health page shows: {"state": "ok"|"failed"|"closed", ...}."""
        with self._catalog:
            number, rows = len(self._files), sum(f.rows for f in self._files)
        return {
            "state": "closed" if self._closed else "failed" if self._failure else "ok",
            "failure": self._failure,
            "span_files": number,
            "rows": rows,
            "last_seq": self._last_seq,
            "repairs": [str(r) for r in self.repairs],
        }

    # ------------------------------------------------------------------ writing

    def append(self, batch: Batch) -> int:
        """Commit the batch and return the highest seq given out; on return the rows survive kill -9.

        Raises StoreBusyError when nothing (or, above `commit_rows`, not all) was stored and a retry is
        sensible: disk full, out of memory, file failure.
        """
        if self.options.redactor is not None:
            batch = self.options.redactor.batch(batch)
        with self._write:
            self._check_writable()
            for spans, logs in _slices(batch, self.options.commit_rows):
                try:
                    self._commit(spans, logs)
                except duckdb.OutOfMemoryException:
                    if self.on_memory_pressure is not None:
                        self.on_memory_pressure()
                    self._commit_or_fail(spans, logs)
                except duckdb.Error as e:
                    self._fail(e)
                self._rotate_if_full()
            return self._last_seq

    def _commit_or_fail(self, spans: pa.Table | None, logs: pa.Table | None) -> None:
        try:
            self._commit(spans, logs)
        except duckdb.Error as e:
            self._fail(e)

    def _commit(self, spans: pa.Table | None, logs: pa.Table | None) -> None:
        file, seq, con = self._files[-1], self._last_seq, self._writer
        now = np.datetime64(dt.datetime.now(dt.UTC).replace(tzinfo=None), "us")
        con.execute("BEGIN TRANSACTION")
        try:
            for name, table in (("spans", spans), ("logs", logs)):
                if table is None or not table.num_rows:
                    continue
                n = table.num_rows
                stamped = table.add_column(0, "seq", pa.array(np.arange(seq + 1, seq + n + 1)))
                stamped = stamped.add_column(1, "received_at", pa.array(np.full(n, now)))
                con.register("incoming", stamped)
                con.execute(f"INSERT INTO {file.database}.{name} SELECT * FROM incoming")
                con.unregister("incoming")
                seq += n
            con.execute("COMMIT")
        except duckdb.Error:
            with contextlib.suppress(duckdb.Error):  # a dead instance or an already ended transaction
                con.execute("ROLLBACK")
            raise
        file.rows += seq - self._last_seq
        file.max_seq = seq
        with self._committed:
            self._last_seq = seq
            self._committed.notify_all()

    def _check_writable(self) -> None:
        if self._closed:
            raise StoreBusyError("the store is closed")
        if self._failure is not None:
            self._reopen()
        now = time.monotonic()
        if now - self._checked_space > 1.0:
            free = shutil.disk_usage(self.folder.root).free
            if free < self.options.free_bytes:
                raise StoreBusyError(
                    f"data folder {self.folder.root}: only {free // _MIB} MiB free on its volume, "
                    f"{self.options.free_bytes // _MIB} MiB are kept back; make room, the senders will retry"
                )
            self._checked_space = now

    def _fail(self, error: duckdb.Error) -> None:
        """Turn an engine error into StoreBusyError; a fatal one has killed the instance, so mark it."""
        fatal = isinstance(error, duckdb.FatalException) or "database has been invalidated" in str(error)
        log.error("commit failed%s: %s", ", instance lost" if fatal else "", error)
        if fatal:
            self._failure = str(error).splitlines()[0]
        raise StoreBusyError(f"commit failed, send again: {str(error).splitlines()[0]}") from error

    def _reopen(self) -> None:
        """Close the dead instance and open the files anew; every connection handed out before is dead."""
        with self._catalog:
            log.warning("reopening the store after: %s", self._failure)
            self._close_instance()
            try:
                self._open()
            except (StoreError, duckdb.Error) as e:
                self._failure = str(e).splitlines()[0]
                raise StoreBusyError(f"the store cannot be reopened yet: {self._failure}") from e
            self._failure = None
            self.generation += 1
            log.warning("store open again")

    # ------------------------------------------------------------------ rotation

    def _is_full(self, file: _SpanFile) -> bool:
        o = self.options
        if file.rows >= o.rotate_spans:
            return True
        # By age alone a quiet installation would collect 24 nearly empty files a day: a small hot file
        # waits for the end of the day.
        age = time.time() - file.opened
        if age >= o.rotate_seconds and file.rows >= o.rotate_spans // 10:
            return True
        if file.rows and age >= 86_400:
            return True
        return _log_size(file.path) >= o.rotate_log_bytes

    def _rotate_if_full(self) -> None:
        if self._is_full(self._files[-1]):
            try:
                self.rotate()
            except duckdb.Error as e:
                # The rows are committed: the hot file goes on being used and rotation is tried again.
                log.error("rotation failed, still writing %s: %s", self._files[-1].path, e)
                if isinstance(e, duckdb.FatalException):
                    self._failure = str(e).splitlines()[0]

    def rotate(self) -> None:
        """Close the hot file: a new one takes over, the closed one is checkpointed in another thread."""
        with self._write, self._catalog:
            closed = self._files[-1]
            self._files.append(self._attach_span_file(closed.number + 1))
            self._swap_span_views()
            self._to_checkpoint.put(closed.database)
            log.info("rotated: %s closed with %d rows", closed.path.name, closed.rows)

    def _checkpoint_loop(self) -> None:
        while (database := self._next_checkpoint()) is not None:
            if database:
                self._checkpoint(database)
            for name, path in (("core", self.folder.core), ("work", self.folder.work)):
                if _log_size(path) >= self.options.derived_log_bytes:
                    self._checkpoint(name)

    def _next_checkpoint(self) -> str | None:
        """The next database to checkpoint, "" after a while without one, None at the end."""
        try:
            return self._to_checkpoint.get(timeout=5.0)
        except queue.Empty:
            return ""

    def _checkpoint(self, database: str) -> None:
        try:
            started = time.monotonic()
            with contextlib.closing(self._cursor()) as cursor:
                cursor.execute(f"CHECKPOINT {database}")
            log.info("checkpoint of %s took %.2f s", database, time.monotonic() - started)
        except (duckdb.Error, StoreError) as e:
            # The rows stay in the log, which is as durable; the next start or stop checkpoints it.
            log.warning("checkpoint of %s failed: %s", database, e)

    # ------------------------------------------------------------------ catalogue

    def refresh_views(self) -> None:
        """Show every public table and view of `core` and `work` in `main`; safe under open readers."""
        with self._catalog:
            cursor = self._cursor()
            try:
                for statement in views.derived_views(cursor):
                    cursor.execute(statement)
            finally:
                cursor.close()

    def _swap_span_views(self) -> None:
        cursor = self._root.cursor()
        try:
            cursor.execute("BEGIN TRANSACTION")
            for statement in views.span_views([f.database for f in self._files]):
                cursor.execute(statement)
            cursor.execute("COMMIT")
        finally:
            cursor.close()

    # ------------------------------------------------------------------ opening and closing

    def _open(self) -> None:
        root = duckdb.connect(":memory:")
        self._root = root
        try:
            self._configure(root)
            self._attach(self.folder.core, "core")
            self._attach(self.folder.work, "work")
            numbers = [number for number, _ in self.folder.span_files()] or [1]
            self._files = [self._attach_span_file(number) for number in numbers]
            if self._is_full(self._files[-1]):
                self._files.append(self._attach_span_file(numbers[-1] + 1))
            for file in self._files[:-1]:
                if _log_size(file.path):
                    self._to_checkpoint.put(file.database)
            self._last_seq = max(self._last_seq, *(f.max_seq for f in self._files))
            self._swap_span_views()
            self._writer = root.cursor()
            self.refresh_views()
            self._lock(root)
        except BaseException:
            root.close()
            raise

    def _configure(self, root: duckdb.DuckDBPyConnection) -> None:
        o = self.options
        memory = o.memory_limit or f"{_default_memory_mib()}MiB"
        for statement in (
            "SET GLOBAL TimeZone = 'UTC'",
            # Own checkpoint policy: never inside a commit.
            "SET checkpoint_threshold = '1TB'",
            "PRAGMA disable_checkpoint_on_shutdown",
            "SET auto_checkpoint_skip_wal_threshold = 1000000000000",
            f"SET temp_directory = {quoted(self.folder.temporary)}",
        ):
            root.execute(statement)
        try:
            root.execute(f"SET memory_limit = {quoted(memory)}")
        except duckdb.Error as e:
            raise StoreError(f"memory limit {memory!r}: not a size; write it like 2GB or 512MB") from e
        if o.threads:
            root.execute(f"SET threads = {int(o.threads)}")

    def _lock(self, root: duckdb.DuckDBPyConnection) -> None:
        # In this order; afterwards none can be undone. ATTACH inside the folder goes on working.
        root.execute(f"SET allowed_directories = [{quoted(f'{self.folder.root}/')}]")
        root.execute("SET enable_external_access = false")
        root.execute("SET lock_configuration = true")

    def _attach_span_file(self, number: int) -> _SpanFile:
        path = self.folder.span_file(number)
        opened = path.stat().st_mtime if path.exists() else time.time()
        file = _SpanFile(number, path, 0, 0, opened)
        self._attach(path, file.database)
        views.create_tables(self._root, file.database)
        for table in views.table_names():
            row = self._root.execute(f"SELECT count(*), max(seq) FROM {file.database}.{table}").fetchone()
            assert row is not None
            file.rows += row[0]
            file.max_seq = max(file.max_seq, row[1] or 0)
        return file

    def _attach(self, path: Path, alias: str) -> None:
        deadline = time.monotonic() + self.options.lock_wait
        repaired = False
        while True:
            try:
                self._root.execute(f"ATTACH {quoted(path)} AS {alias} (STORAGE_VERSION '{STORAGE_VERSION}')")
                return
            except duckdb.Error as e:
                message = str(e)
                holder = _LOCK_HOLDER.search(message)
                if holder and time.monotonic() < deadline:
                    time.sleep(0.2)
                    continue
                if holder:
                    raise StoreError(
                        f"data folder {self.folder.root}: in use by process {holder.group(1)}; "
                        "stop that collector or name another folder with --data"
                    ) from e
                if not repaired and (repair := self._repair(path, message)):
                    repaired = True
                    self.repairs.append(repair)
                    log.warning("repaired %s", repair)
                    continue
                raise StoreError(
                    f"{path} cannot be opened: {message.splitlines()[0]}; "
                    "move this file (and its .wal) out of the data folder to go on without it"
                ) from e

    def _repair(self, path: Path, message: str) -> Repair | None:
        position = damage_position(message)
        if position is not None:
            return cut_log(path, position, self.folder.damaged)
        if "not a valid DuckDB database file" in message:
            return set_aside_unfinished(path, self.folder.damaged)
        return None

    def close(self) -> None:
        """Stop. The logs are folded into the files, so that read-only readers start at once."""
        with self._write:
            if self._closed:
                return
            self._closed = True
            with self._committed:
                self._committed.notify_all()
            self._to_checkpoint.put(None)
            if self._checkpointer is not None:
                self._checkpointer.join(timeout=5.0)
            with self._catalog:
                self.interrupt()
                if self._failure is None:
                    self._checkpoint_everything()
                self._close_instance()

    def _checkpoint_everything(self) -> None:
        named = [(f.database, f.path) for f in self._files]
        named += [("core", self.folder.core), ("work", self.folder.work)]
        deadline = time.monotonic() + self.options.close_seconds
        for database, path in sorted(named, key=lambda n: _log_size(n[1])):
            if not _log_size(path):
                continue
            if time.monotonic() > deadline:
                log.warning("no time left at stop to checkpoint %s, its log stays", database)
                continue
            try:
                # FORCE aborts transactions that readers left open; nobody may write any more.
                self._root.execute(f"FORCE CHECKPOINT {database}")
            except duckdb.Error as e:
                log.warning("checkpoint of %s at stop failed, its log stays: %s", database, e)

    def _close_instance(self) -> None:
        self.interrupt()
        for con in list(self._handed_out):
            with contextlib.suppress(duckdb.Error):  # already closed by its user
                con.close()
        self._handed_out.clear()
        for name in ("_writer", "_root"):
            con = getattr(self, name, None)
            if con is not None:
                with contextlib.suppress(duckdb.Error):  # the instance may be dead already
                    con.close()

    def interrupt(self) -> None:
        """Stop whatever runs on connections that were handed out; each of them raises InterruptException."""
        for con in list(self._handed_out):
            with contextlib.suppress(duckdb.Error):  # nothing was running
                con.interrupt()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        with self._catalog:
            if self._closed:
                raise StoreBusyError("the store is closed")
            try:
                cursor = self._root.cursor()
            except duckdb.Error as e:
                raise StoreBusyError(f"the store is not open: {e}") from e
            self._handed_out.add(cursor)
            return cursor


def _slices(batch: Batch, size: int) -> Iterator[tuple[pa.Table | None, pa.Table | None]]:
    if batch.rows <= size:
        if batch.rows:
            yield batch.spans, batch.logs
        return
    for table, is_span in ((batch.spans, True), (batch.logs, False)):
        if table is None:
            continue
        for start in range(0, table.num_rows, size):
            part = table.slice(start, size)
            yield (part, None) if is_span else (None, part)


def _log_size(database: Path) -> int:
    try:
        return database.with_name(database.name + ".wal").stat().st_size
    except FileNotFoundError:
        return 0


def _default_memory_mib() -> int:
    return int(min(2048, max(512, psutil.virtual_memory().total // 4 // _MIB)))


def _program_version() -> str:
    try:
        return version("agent-slo")
    except PackageNotFoundError:
        return "unknown"
