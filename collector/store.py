"""The one owner of every DuckDB file in a data folder.

One in-memory DuckDB instance has all files attached: span files (`spans_000001`, ...), `core`, `work`.
Spans go into the newest span file, the hot one. It is closed at N rows, N bytes of log or an age, a new
one takes over, and the closed one is checkpointed by another thread: a checkpoint of the table being
written stops commits for 1.9-5.4 s, one of another file for 33-84 ms.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import logging
import queue
import re
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import psutil
import pyarrow as pa

from collector import compaction, views
from collector.batch import Batch
from collector.layout import STORAGE_VERSION, DataFolder, SpanPath, StoreBusyError, StoreError, quoted
from collector.migrations import upgrade
from collector.redaction.redactor import Redactor
from collector.repair import Repair, cut_log, damage_position, set_aside_unfinished

__all__ = ["Store", "StoreBusyError", "StoreError", "StoreOptions"]

log = logging.getLogger("agent_slo.store")

_LOCK_HOLDER = re.compile(r"Could not set lock on file.*?\(PID (\d+)\)", re.DOTALL)
_MIB = 1 << 20
# A reader waits this long for the moment in which files change; the change takes milliseconds.
_GATE_SECONDS = 10.0
_GATE_TRIES = 40
_REWRITES = 3
# core.duckdb and work.duckdb, their logs, and the copies they are written anew from.
_DERIVED_ENDS = tuple(a + b for a in ("", ".new") for b in ("", ".wal", ".wal.checkpoint", ".wal.recovery"))


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
    merge_rows: int = 2_000_000
    """Largest number of rows of a merged file."""
    merge_files: int = 16
    """Closed files of the running day after which they are merged; those of a past day always are."""
    merge_days: bool = True
    """Whether small files of several days become one; with a retention in days each day keeps its own."""
    tend_seconds: float = 60.0
    """How often the store looks whether files can be merged."""
    retire_seconds: float = 5.0
    """Time a replaced file stays attached, for statements that named it just before."""
    redactor: Redactor | None = None
    """Takes secrets out of everything before it is written; None: stored as it came."""


@dataclass
class SpanFile:
    """One attached file of spans and logs. `first_at`, `last_at`: when its rows were received, UTC; None: empty."""

    place: SpanPath
    rows: int
    max_seq: int
    opened: float
    first_at: dt.datetime | None = None
    last_at: dt.datetime | None = None

    @property
    def path(self) -> Path:
        return self.place.path

    @property
    def database(self) -> str:
        return self.place.database

    @property
    def day(self) -> dt.date | None:
        """The last day on which something was received into it."""
        return self.last_at.date() if self.last_at else None

    def size(self) -> int:
        """Bytes on disk, its log included."""
        try:
            return self.path.stat().st_size + _log_size(self.path)
        except FileNotFoundError:
            return 0


@dataclass
class _Retired:
    """A file that nothing new reads: detached once no transaction is left that began before."""

    database: str
    at: float
    turn: int


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
        self._tending = threading.RLock()
        self._rewriting = threading.RLock()
        self._committed = threading.Condition()
        self._last_seq = 0
        self._files: list[SpanFile] = []
        self._retired: list[_Retired] = []
        self._gate = threading.Condition()
        self._readers: dict[int, int] = {}
        self._turn = 0
        self._shut = False
        self._tended = time.monotonic()
        self._merging: duckdb.DuckDBPyConnection | None = None
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
        try:
            upgrade(store.folder, store._root, _program_version())
        except OSError as e:
            store._close_instance()
            raise StoreError(
                f"data folder {store.folder.root}: cannot be upgraded ({e.strerror}); make room"
            ) from e
        store._checkpointer = threading.Thread(target=store._checkpoint_loop, name="checkpoint", daemon=True)
        store._checkpointer.start()
        return store

    # ------------------------------------------------------------------ reading

    @contextlib.contextmanager
    def reader(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor inside a read-only transaction: one consistent picture, closed on leaving."""
        with self._reading():
            cursor = self._cursor()
            try:
                cursor.execute("BEGIN TRANSACTION READ ONLY")
                yield cursor
            finally:
                cursor.close()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Count this reader, so that no file is detached under it."""
        with self._gate:
            self._gate.wait_for(lambda: not self._shut, _GATE_SECONDS)
            turn = self._turn
            self._readers[turn] = self._readers.get(turn, 0) + 1
        try:
            yield
        finally:
            with self._gate:
                self._readers[turn] -= 1
                if not self._readers[turn]:
                    del self._readers[turn]
                self._gate.notify_all()

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
            self._rotate_if_full()  # a new day
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
        moment = _now()
        now = np.datetime64(moment, "us")
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
        file.first_at, file.last_at = file.first_at or moment, moment
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

    def _is_full(self, file: SpanFile) -> bool:
        o = self.options
        if file.rows >= o.rotate_spans:
            return True
        # By age alone a quiet installation would collect 24 nearly empty files a day: a small hot file
        # waits for the end of the day.
        age = time.time() - file.opened
        if age >= o.rotate_seconds and file.rows >= o.rotate_spans // 10:
            return True
        # Each day its own files, so that a day can be removed as a whole.
        if file.first_at is not None and file.first_at.date() != _now().date():
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
            self._files.append(self._attach_span_file(self.folder.span_file(closed.place.last + 1)))
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
            if time.monotonic() - self._tended >= self.options.tend_seconds:
                self._tended = time.monotonic()
                self.tend()

    def _next_checkpoint(self) -> str | None:
        """The next database to checkpoint, "" after a while without one, None at the end."""
        try:
            return self._to_checkpoint.get(timeout=5.0)
        except queue.Empty:
            return ""

    def _checkpoint(self, database: str) -> None:
        try:
            started = time.monotonic()
            with self._rewriting, contextlib.closing(self._cursor()) as cursor:
                cursor.execute(f"CHECKPOINT {database}")
            log.info("checkpoint of %s took %.2f s", database, time.monotonic() - started)
        except (duckdb.Error, StoreError) as e:
            # The rows stay in the log, which is as durable; the next start or stop checkpoints it.
            log.warning("checkpoint of %s failed: %s", database, e)

    # ------------------------------------------------------------------ merging and removing

    def tend(self) -> int:
        """Merge closed files where that pays, detach what was replaced; returns how many files were merged.

        Called by the store's own thread; safe to call from another.
        """
        merged = 0
        with self._tending:
            try:
                if self._files[-1].rows and self._is_full(self._files[-1]):
                    self.rotate()
                while not self._closed and (group := self._group()):
                    self._merge(group)
                    merged += len(group)
                self._detach_retired()
            except duckdb.InterruptException:
                log.info("merging was interrupted; it is done again later")
            except (duckdb.Error, StoreError, OSError) as e:
                log.warning("files could not be merged, they stay as they are: %s", str(e).splitlines()[0])
        return merged

    def _group(self) -> list[SpanFile] | None:
        """Neighbouring closed files worth merging: those of a past day, many of today, many small days."""
        o, today = self.options, _now().date()
        with self._catalog:
            closed = self._files[:-1]
        groups: list[list[SpanFile]] = [[]]
        for file in closed:
            group = groups[-1]
            fits = sum(f.rows for f in group) + file.rows <= o.merge_rows
            if _log_size(file.path) or not (group and fits and group[-1].day == file.day):
                groups.append([])
            if not _log_size(file.path):
                groups[-1].append(file)
        for group in groups:
            past = bool(group) and group[-1].day != today
            if len(group) >= (2 if past else o.merge_files):
                return group
        if not o.merge_days:
            return None
        run: list[SpanFile] = []
        for file in closed:
            if (
                _log_size(file.path)
                or file.day == today
                or sum(f.rows for f in run) + file.rows > o.merge_rows
            ):
                run = []
            else:
                run.append(file)
            if len(run) >= o.merge_files:
                return run
        return None

    def _merge(self, group: list[SpanFile]) -> None:
        started = time.monotonic()
        place = self.folder.span_file(group[0].place.first, group[-1].place.last)
        needed = sum(f.size() for f in group)
        if shutil.disk_usage(self.folder.root).free < needed + self.options.free_bytes:
            raise StoreBusyError(f"merging {len(group)} files needs {needed // _MIB} MiB of free space")
        with contextlib.closing(self._cursor()) as cursor:
            self._merging = cursor
            try:
                compaction.merge(cursor, [f.database for f in group], self.folder.scratch, place.path)
            finally:
                self._merging = None
        with self._catalog:
            merged = self._attach_span_file(place, read_only=True)
            self._replace(group, [merged])
        log.info(
            "merged %d files into %s: %d rows in %.1f s",
            len(group), place.path.name, merged.rows, time.monotonic() - started,
        )  # fmt: skip

    def _replace(self, old: list[SpanFile], new: list[SpanFile]) -> None:
        """Show the new files in place of the old ones, whose bytes are gone from the folder at once."""
        gone = {f.database for f in old}
        with self._catalog:
            at = next(i for i, f in enumerate(self._files) if f.database in gone)
            left = [f for f in self._files if f.database not in gone]
            self._files = left[:at] + new + left[at:]
            self._swap_span_views()
            with self._gate:
                self._turn += 1
                turn = self._turn
            self._retired += [_Retired(f.database, time.monotonic(), turn) for f in old]
        for file in old:
            self._remove(file.path)

    def _detach_retired(self, patience: float | None = None) -> None:
        """Detach replaced files that no reader can still name."""
        wait = self.options.retire_seconds if patience is None else patience
        with self._gate:
            oldest = min(self._readers, default=self._turn)
        with self._catalog:
            ready = [r for r in self._retired if r.turn <= oldest and time.monotonic() - r.at >= wait]
            for retired in ready:
                self._root.cursor().execute(f"DETACH {retired.database}")
                self._retired.remove(retired)

    def expired(self, keep_days: float | None, keep_bytes: int | None, now: dt.datetime) -> list[SpanFile]:
        """Closed files that retention removes at `now` (naive UTC), oldest first: too old, or beyond the bytes.

        A day is kept as a whole until its last row is `keep_days` old.
        """
        with self._catalog:
            closed = self._files[:-1]
            total = sum(f.size() for f in self._files)
        found = []
        for file in closed:
            end = dt.datetime.combine(file.day, dt.time()) + dt.timedelta(days=1) if file.day else None
            old = keep_days is not None and (end is None or now - end >= dt.timedelta(days=keep_days))
            if not old and (keep_bytes is None or total <= keep_bytes):
                break
            total -= file.size()
            found.append(file)
        return found

    def forget(self, files: list[SpanFile]) -> None:
        """Remove span files for good. Their rows are no longer part of `spans`."""
        if not files:
            return
        with self._tending, self._catalog:
            scratch = self.folder.forgotten.with_suffix(".new")
            scratch.write_text(json.dumps({"last_seq": self._last_seq}) + "\n")
            scratch.replace(self.folder.forgotten)
            self._replace(files, [])
        log.info("removed %d span files", len(files))

    def owe_rewrite(self, *aliases: Literal["core", "work"]) -> None:
        """Remember, over a crash too, that rows of these files are being deleted whose bytes must go."""
        for alias in aliases:
            self.folder.owed(alias).touch()

    def rewrite_owed(self, others: AbstractContextManager[Any] | None = None) -> bool:
        """Write the derived files anew that are owed it, so that deleted rows are not on the disk any more.

        The caller keeps the derivation still. `others` keeps still whoever else writes them, for the moment in which
        a file is exchanged; what they write during the copy is seen, and the copy made again. False when something is
        left to do: queries left no moment to change the files, somebody wrote all the time, or there is no room for
        the copy.
        """
        done = True
        for alias, path in (("work", self.folder.work), ("core", self.folder.core)):
            if self.folder.owed(alias).exists():
                with self._rewriting:
                    written = any(self._rewrite(alias, path, others) for _ in range(_REWRITES))
                if written:
                    self.folder.owed(alias).unlink()
                else:
                    log.warning("%s is not written anew yet; it is tried again later", path.name)
                done = done and written
        return done

    def _rewrite(self, alias: str, path: Path, others: AbstractContextManager[Any] | None) -> bool:
        copy = path.with_name(path.name + ".new")
        free = shutil.disk_usage(self.folder.root).free
        if free < path.stat().st_size + _log_size(path) + self.options.free_bytes:
            log.warning("%s cannot be copied: %d MiB free", path.name, free // _MIB)
            return False
        self._remove(copy)
        with contextlib.closing(self._cursor()) as cursor:
            cursor.execute(f"CHECKPOINT {alias}")
            compaction.copy(cursor, alias, copy)
        for _ in range(_GATE_TRIES):
            with others or contextlib.nullcontext(), self._alone(_GATE_SECONDS / 10) as alone:
                # A log that is there again means that somebody wrote after the copy was begun.
                if alone and not _log_size(path):
                    with self._catalog:
                        self._root.execute(f"DETACH {alias}")
                        copy.replace(path)
                        compaction.sync(path.parent)
                        self._attach(path, alias)
                    return True
            if _log_size(path):
                break
        self._remove(copy)
        return False

    @staticmethod
    def _remove(database: Path) -> None:
        database.unlink(missing_ok=True)
        database.with_name(database.name + ".wal").unlink(missing_ok=True)

    @contextlib.contextmanager
    def _alone(self, patience: float) -> Iterator[bool]:
        """Whether no reader is left; new ones wait until the end of the block."""
        with self._gate:
            self._shut = True
            alone = self._gate.wait_for(lambda: not self._readers, patience)
        try:
            yield alone
        finally:
            with self._gate:
                self._shut = False
                self._gate.notify_all()

    def files(self) -> list[SpanFile]:
        """The span files, oldest first; the last one is being written."""
        with self._catalog:
            return list(self._files)

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
            self._clear_leftovers()
            places = self.folder.span_files() or [self.folder.span_file(1)]
            self._files = [self._attach_span_file(place, read_only=place.merged) for place in places]
            if places[-1].merged or self._is_full(self._files[-1]):
                self._files.append(self._attach_span_file(self.folder.span_file(places[-1].last + 1)))
            for file in self._files[:-1]:
                if _log_size(file.path):
                    self._to_checkpoint.put(file.database)
            self._last_seq = max(self._last_seq, self._forgotten_seq(), *(f.max_seq for f in self._files))
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
            # A table that does not exist is not looked for among Python's variables.
            "SET python_enable_replacements = false",
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
        # In this order; afterwards none can be undone. Only what must be attached later can still be opened:
        # door.json with its token, the configuration and everything else in the folder cannot.
        folders = ", ".join(quoted(f"{f}/") for f in (self.folder.spans, self.folder.temporary))
        names = [f"{p}{end}" for p in (self.folder.core, self.folder.work) for end in _DERIVED_ENDS]
        root.execute(f"SET allowed_directories = [{folders}]")
        root.execute(f"SET allowed_paths = [{', '.join(map(quoted, names))}]")
        root.execute("SET enable_external_access = false")
        root.execute("SET lock_configuration = true")

    def _clear_leftovers(self) -> None:
        """Remove what a crash in the middle of merging or rewriting left behind."""
        self._retired = []
        for covered in self.folder.covered_files():
            log.info("%s was merged already: removed", covered.path.name)
            self._remove(covered.path)
        self._remove(self.folder.scratch)
        for path in (self.folder.core, self.folder.work):
            self._remove(path.with_name(path.name + ".new"))

    def _forgotten_seq(self) -> int:
        try:
            return int(json.loads(self.folder.forgotten.read_text())["last_seq"])
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise StoreError(
                f'{self.folder.forgotten}: cannot be read ({e}); it should hold {{"last_seq": NUMBER}}, at least the '
                "derived_seq of `agent-slo query 'FROM pipeline'`"
            ) from e

    def _attach_span_file(self, place: SpanPath, *, read_only: bool = False) -> SpanFile:
        opened = place.path.stat().st_mtime if place.path.exists() else time.time()
        file = SpanFile(place, 0, 0, opened)
        self._attach(place.path, file.database, read_only=read_only)
        if not read_only:
            views.create_tables(self._root, file.database)
        for table in views.table_names():
            row = self._root.execute(
                f"SELECT count(*), max(seq), min(received_at), max(received_at) FROM {file.database}.{table}"
            ).fetchone()
            assert row is not None
            file.rows += row[0]
            file.max_seq = max(file.max_seq, row[1] or 0)
            if row[0]:
                file.first_at = min(file.first_at or row[2], row[2])
                file.last_at = max(file.last_at or row[3], row[3])
        return file

    def _attach(self, path: Path, alias: str, *, read_only: bool = False) -> None:
        how = "READ_ONLY" if read_only else f"STORAGE_VERSION '{STORAGE_VERSION}'"
        deadline = time.monotonic() + self.options.lock_wait
        repaired = False
        while True:
            try:
                self._root.execute(f"ATTACH {quoted(path)} AS {alias} ({how})")
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
            merging = self._merging
            if merging is not None:
                with contextlib.suppress(duckdb.Error):  # it ended just now
                    merging.interrupt()
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


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC).replace(tzinfo=None)


def _default_memory_mib() -> int:
    return int(min(2048, max(512, psutil.virtual_memory().total // 4 // _MIB)))


def _program_version() -> str:
    try:
        return version("agent-slo")
    except PackageNotFoundError:
        return "unknown"
