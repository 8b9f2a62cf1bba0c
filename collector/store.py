"""The one owner of every DuckDB file in a data folder.

One in-memory DuckDB instance has all files attached: span files (`spans_000001`, ...), `core`, `work`.
Spans go into the newest span file, the hot one. It is closed at N rows, N bytes of log or an age, a new
one takes over, and the closed one is checkpointed by another thread: a checkpoint of the table being
written stops commits for 1.9-5.4 s, one of another file for 33-84 ms.

Its rooms: `instance` (the engine and what is attached), `catalogue` (span files and views), `gate` (who reads),
`upkeep` (checkpoints, merging, removing). Here: reading, writing, opening, closing.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import pyarrow as pa

from collector import span_files, views
from collector.batch import Batch
from collector.catalogue import Catalogue
from collector.gate import Gate
from collector.instance import Instance
from collector.layout import DataFolder, FolderGoneError, NoRoomError, StoreBusyError, StoreError
from collector.migrations import upgrade
from collector.presence import Presence
from collector.repair import Repair, cut_off, damaged_file
from collector.seldom import Seldom
from collector.span_files import SpanFile, is_full, log_size, remove
from collector.store_options import StoreOptions
from collector.upkeep import Upkeep

__all__ = ["SpanFile", "Store", "StoreBusyError", "StoreError", "StoreOptions"]

log = logging.getLogger("agent_slo.store")

_MIB = 1 << 20
# After a commit that failed the store counts as failed for so long, or until one succeeds. Not for ever: whoever
# balances the load keeps senders away meanwhile, so that nothing would come to show that it works again.
_FAILED_SECONDS = 10.0
# How long the end waits for a commit before it is interrupted.
_STUCK_SECONDS = 3.0


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
        self._committed = threading.Condition()
        self._last_seq = 0
        self._failure: str | None = None
        self._refused: tuple[float, str] | None = None
        """When the last commit failed and why; None after one that did not."""
        self._damaged: dict[Path, str] = {}
        self._complaints: dict[str, Path] = {}
        self._presence = Presence()
        self._seldom = Seldom(log)
        self._closed = False
        self._checked_space = 0.0
        self._gate = Gate()
        self._catalogue = Catalogue(self._gate)
        self._upkeep = Upkeep(
            folder,
            options,
            self._catalogue,
            self._gate,
            cursor=self._cursor,
            rotate_if_full=self._rotate_if_used,
            idle=self._recover,
            failed=self.note_damage,
            # A folder that took the place of ours is somebody else's: nothing in it is merged or removed.
            closed=lambda: self._closed or self._presence.missing() is not None,
            now=lambda: _now(),
        )
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
            upgrade(store.folder, store._catalogue.instance.root, _program_version())
        except OSError as e:
            store._close_instance()
            raise StoreError(
                f"data folder {store.folder.root}: cannot be upgraded ({e.strerror}); make room"
            ) from e
        store._presence.hold(store._catalogue.files[-1])
        store._upkeep.start()
        return store

    # ------------------------------------------------------------------ reading

    @contextlib.contextmanager
    def reader(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor inside a read-only transaction: one consistent picture, closed on leaving."""
        with self._gate.reading():
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
        return self._catalogue.tables_since("spans", seq)

    def logs_since(self, seq: int) -> list[str]:
        """Qualified names of the `logs` tables of the files that hold rows with a seq above `seq`."""
        return self._catalogue.tables_since("logs", seq)

    @property
    def last_seq(self) -> int:
        """The highest committed seq, 0 when nothing was ever stored."""
        return self._last_seq

    def wait_for_spans(self, after_seq: int, timeout: float) -> int:
        """Block until something with a seq above `after_seq` is committed, at most `timeout` seconds.

        Returns the highest committed seq, which is `after_seq` or less when the time ran out. Raises FolderGoneError
        when there is no place any more for what would be derived.
        """
        with self._committed:
            self._committed.wait_for(lambda: self._last_seq > after_seq or self._closed, timeout)
        if not self._closed:
            self._check_present()
        return self._last_seq

    def state(self) -> dict[str, Any]:
        """What a health page shows: {"state": "ok"|"degraded"|"full"|"failed"|"closed", ...}.

        "full" and "failed": nothing is stored now, `failure` says why. "degraded": what is sent is stored, but a file
        in `damaged` cannot be read.
        """
        files = self.files()
        state, failure = self._condition()
        return {
            "state": state,
            "failure": failure,
            "damaged": self._damage(),
            "span_files": len(files),
            "rows": sum(f.rows for f in files),
            "last_seq": self._last_seq,
            "repairs": [str(r) for r in self.repairs],
        }

    def _condition(self) -> tuple[str, str | None]:
        if self._closed:
            return "closed", None
        if (gone := self._presence.missing()) is not None:
            return "failed", gone
        if self._failure is not None:
            return "failed", self._failure
        if (full := self._no_room()) is not None:
            return "full", full
        refused = self._refused
        if refused is not None and time.monotonic() - refused[0] < _FAILED_SECONDS:
            return "failed", refused[1]
        return ("degraded", None) if self._damage() else ("ok", None)

    def note_damage(self, error: BaseException) -> str | None:
        """Remember the file that an error of the engine is about, when it says that a file cannot be read.

        Returns a line that names the file, None when the error is about something else.
        """
        message = str(error)
        # Every query over the file complains again; to find it takes some milliseconds.
        path = self._complaints.get(message)
        if path is None:
            found = damaged_file(message, self._paths())
            if found is None:
                return None
            path, line = found
            self._complaints[message] = path
            if path not in self._damaged:
                self._damaged[path] = line
                log.error("%s", line)
        return self._damaged[path]

    def _damage(self) -> list[str]:
        """Lines about damaged files that are still there: they may have been merged or removed since."""
        return [line for path, line in self._damaged.items() if path.exists()]

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
                except (duckdb.OutOfMemoryException, MemoryError):
                    if self.on_memory_pressure is not None:
                        self.on_memory_pressure()
                    self._commit_or_fail(spans, logs)
                except duckdb.Error as e:
                    self._fail(e)
                # Only now: a commit into files that nobody finds again succeeds as any other.
                if (gone := self._presence.committed()) is not None:
                    raise FolderGoneError(gone)
                self._rotate_if_full()
            self._refused = None
            return self._last_seq

    def _check_present(self) -> None:
        if (gone := self._presence.missing()) is not None:
            raise FolderGoneError(gone)

    def _commit_or_fail(self, spans: pa.Table | None, logs: pa.Table | None) -> None:
        try:
            self._commit(spans, logs)
        except MemoryError as e:
            raise StoreBusyError("commit failed, send again: no memory") from e
        except duckdb.Error as e:
            self._fail(e)

    def _commit(self, spans: pa.Table | None, logs: pa.Table | None) -> None:
        file, seq, con = self._catalogue.files[-1], self._last_seq, self._writer
        moment = _now()
        now = np.datetime64(moment, "us")
        try:
            con.execute("BEGIN TRANSACTION")
        except duckdb.TransactionException:  # a ROLLBACK that found no memory left its transaction behind
            con.execute("ROLLBACK")
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
        except BaseException:  # Python and Arrow run out of memory, too
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
        self._check_present()  # first: nothing is opened or made in a folder that is not ours any more
        if self._failure is not None:
            self._reopen()
        now = time.monotonic()
        if now - self._checked_space > 1.0:
            if (full := self._no_room()) is not None:
                raise NoRoomError(full)
            self._checked_space = now

    def _no_room(self) -> str | None:
        """Why nothing is accepted for want of space, None with enough of it."""
        free = shutil.disk_usage(self.folder.root).free
        if free >= self.options.free_bytes:
            return None
        return (
            f"data folder {self.folder.root}: only {free // _MIB} MiB free on its volume, "
            f"{self.options.free_bytes // _MIB} MiB are kept back; make room, the senders will retry"
        )

    def _recover(self) -> None:
        """Open the store again after a failure, though nobody sends: who looks at /readyz first would never do so."""
        if self._failure is None or not self._write.acquire(blocking=False):
            return
        try:
            with contextlib.suppress(StoreBusyError):  # not yet; it is in the log
                self._check_writable()
        finally:
            self._write.release()

    def _fail(self, error: duckdb.Error) -> None:
        """Turn an engine error into StoreBusyError; a fatal one has killed the instance, so mark it."""
        fatal = isinstance(error, duckdb.FatalException) or "database has been invalidated" in str(error)
        if fatal:
            log.error("commit failed, instance lost: %s", error)
            self._failure = str(error).splitlines()[0]
        self.note_damage(error)
        words = f"commit failed, send again: {str(error).splitlines()[0]}"
        self._refused = time.monotonic(), words
        raise StoreBusyError(words) from error

    def _reopen(self) -> None:
        """Close the dead instance and open the files anew; every connection handed out before is dead."""
        with self._catalogue.lock:
            self._seldom.tell(logging.WARNING, "reopen", f"reopening the store after: {self._failure}")
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

    def _rotate_if_full(self) -> None:
        hot = self._catalogue.files[-1]
        if is_full(hot, self.options, _now().date()):
            try:
                self.rotate()
            except duckdb.Error as e:
                # The rows are committed: the hot file goes on being used and rotation is tried again.
                log.error("rotation failed, still writing %s: %s", hot.path, e)
                if isinstance(e, duckdb.FatalException):
                    self._failure = str(e).splitlines()[0]

    def _rotate_if_used(self) -> None:
        hot = self._catalogue.files[-1]
        if hot.rows and self._presence.missing() is None and is_full(hot, self.options, _now().date()):
            self.rotate()

    def rotate(self) -> None:
        """Close the hot file: a new one takes over, the closed one is checkpointed in another thread."""
        with self._write, self._catalogue.lock:
            closed = self._catalogue.files[-1]
            self._catalogue.add(self.folder.span_file(closed.place.last + 1))
            self._presence.hold(self._catalogue.files[-1])
            self._upkeep.queue.put(closed.database)
            log.info("rotated: %s closed with %d rows", closed.path.name, closed.rows)

    # ------------------------------------------------------------------ keeping and removing

    def tend(self) -> int:
        """Merge closed files where that pays, detach what was replaced; returns how many files were merged.

        Called by the store's own thread; safe to call from another.
        """
        return self._upkeep.tend()

    def files(self) -> list[SpanFile]:
        """The span files, oldest first; the last one is being written."""
        with self._catalogue.lock:
            return list(self._catalogue.files)

    def expired(self, keep_days: float | None, keep_bytes: int | None, now: dt.datetime) -> list[SpanFile]:
        """Closed files that retention removes at `now` (naive UTC), oldest first: too old, or beyond the bytes.

        A day is kept as a whole until its last row is `keep_days` old.
        """
        if self._presence.missing() is not None:  # what has their names now are not our files
            return []
        return span_files.expired(self.files(), keep_days, keep_bytes, now)

    def forget(self, files: list[SpanFile]) -> None:
        """Remove span files for good. Their rows are no longer part of `spans`."""
        if files:
            self._check_present()
            self._upkeep.forget(files, self._last_seq)

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
        return self._upkeep.rewrite_owed(others)

    # ------------------------------------------------------------------ catalogue

    def refresh_views(self) -> None:
        """Show every public table and view of `core` and `work` in `main`; safe under open readers."""
        with self._catalogue.lock:
            cursor = self._cursor()
            try:
                for statement in views.derived_views(cursor):
                    cursor.execute(statement)
            finally:
                cursor.close()

    # ------------------------------------------------------------------ opening and closing

    def _open(self) -> None:
        instance = Instance(self.folder, self.options, self.repairs)
        try:
            instance.attach(self.folder.core, "core")
            instance.attach(self.folder.work, "work")
            self._clear_leftovers()
            places = self.folder.span_files() or [self.folder.span_file(1)]
            catalogue = self._catalogue
            catalogue.begin(instance, places)
            if places[-1].merged or is_full(catalogue.files[-1], self.options, _now().date()):
                catalogue.files.append(catalogue.attach(self.folder.span_file(places[-1].last + 1)))
            for file in catalogue.files[:-1]:
                if log_size(file.path):
                    self._upkeep.queue.put(file.database)
            self._check_whole()
            self._last_seq = max(self._last_seq, self._forgotten_seq(), *(f.max_seq for f in catalogue.files))
            catalogue.swap_span_views()
            self._presence.hold(catalogue.files[-1])
            self._writer = instance.root.cursor()
            self.refresh_views()
            instance.lock()
        except BaseException as e:
            instance.close()
            if isinstance(e, duckdb.Error) and (found := damaged_file(str(e), self._paths())) is not None:
                raise StoreError(found[1]) from e
            raise

    def _paths(self) -> list[Path]:
        """The files that are, or are to be, attached."""
        return [*(f.path for f in self.folder.span_files()), self.folder.core, self.folder.work]

    def _check_whole(self) -> None:
        """Raises StoreError for a file that was cut off."""
        named = {f.database: f.path for f in self._catalogue.files}
        named |= {"core": self.folder.core, "work": self.folder.work}
        for path, missing in cut_off(self._catalogue.instance.root, named):
            raise StoreError(
                f"{path} is damaged: at least {missing} bytes at its end are missing; put a copy in its place, or "
                "move this file (and its .wal) out of the data folder to go on without it"
            )

    def _clear_leftovers(self) -> None:
        """Remove what a crash in the middle of merging or rewriting left behind."""
        for covered in self.folder.covered_files():
            log.info("%s was merged already: removed", covered.path.name)
            remove(covered.path)
        remove(self.folder.scratch)
        for path in (self.folder.core, self.folder.work):
            remove(path.with_name(path.name + ".new"))

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

    def close(self) -> None:
        """Stop. The logs are folded into the files, so that read-only readers start at once."""
        while not self._write.acquire(timeout=_STUCK_SECONDS):
            with contextlib.suppress(duckdb.Error):  # it ended just now
                self._writer.interrupt()  # a commit that does not end; its senders were told to send again
        try:
            if self._closed:
                return
            self._closed = True
            with self._committed:
                self._committed.notify_all()
            self._upkeep.stop(patience=5.0)
            with self._catalogue.lock:
                self.interrupt()
                if self._failure is None and self._presence.missing() is None:
                    self._upkeep.checkpoint_everything(self._catalogue.instance.root)
                self._close_instance()
        finally:
            self._write.release()

    def _close_instance(self) -> None:
        with contextlib.suppress(duckdb.Error):  # the instance may be dead already
            self._writer.close()
        self._catalogue.instance.close()

    def interrupt(self) -> None:
        """Stop whatever runs on connections that were handed out; each of them raises InterruptException."""
        self._catalogue.instance.interrupt()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        with self._catalogue.lock:
            if self._closed:
                raise StoreBusyError("the store is closed")
            self._check_present()  # who writes would make a log beside files that are not ours
            return self._catalogue.instance.cursor()


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


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC).replace(tzinfo=None)


def _program_version() -> str:
    try:
        return version("agent-slo")
    except PackageNotFoundError:
        return "unknown"
