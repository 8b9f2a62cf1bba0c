"""The store's housekeeping: checkpoints, merging of small files, removal of old ones, rewriting of derived ones.

Runs in a thread of its own, so that none of it stands in the way of a commit.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import logging
import queue
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import duckdb

from collector import compaction
from collector.catalogue import Catalogue
from collector.gate import GATE_SECONDS, Gate
from collector.layout import DataFolder, StoreBusyError, StoreError
from collector.precedence import give_way
from collector.span_files import SpanFile, log_size, remove, worth_merging
from collector.store_options import StoreOptions

log = logging.getLogger("agent_slo.store")

_MIB = 1 << 20
_GATE_TRIES = 40
_REWRITES = 3


class Upkeep:
    """What is done to files that are not being written.

    `cursor` gives a connection, `rotate_if_full` closes a hot file that holds something and is full, `idle` is called
    every few seconds, `failed` gets errors of the engine, `closed` says whether the store stops, `now` the time
    (naive UTC).
    """

    def __init__(
        self,
        folder: DataFolder,
        options: StoreOptions,
        catalogue: Catalogue,
        gate: Gate,
        *,
        cursor: Callable[[], duckdb.DuckDBPyConnection],
        rotate_if_full: Callable[[], None],
        idle: Callable[[], None],
        failed: Callable[[BaseException], object],
        closed: Callable[[], bool],
        now: Callable[[], dt.datetime],
    ) -> None:
        self.queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        """Databases to checkpoint; "" looks at the derived files only, None ends the thread."""
        self._folder, self._options = folder, options
        self._catalogue, self._gate = catalogue, gate
        self._cursor, self._rotate_if_full, self._closed, self._now = cursor, rotate_if_full, closed, now
        self._idle, self._failed = idle, failed
        self._tending = threading.RLock()
        self._rewriting = threading.RLock()
        self._tended = time.monotonic()
        self._merging: duckdb.DuckDBPyConnection | None = None
        self._thread = threading.Thread(target=self._run, name="checkpoint", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, patience: float) -> None:
        """End the thread; a merge is interrupted."""
        self.queue.put(None)
        merging = self._merging
        if merging is not None:
            with contextlib.suppress(duckdb.Error):  # it ended just now
                merging.interrupt()
        if self._thread.is_alive():
            self._thread.join(timeout=patience)

    # ------------------------------------------------------------------ checkpoints

    def _run(self) -> None:
        give_way()
        while (database := self._next()) is not None:
            self._idle()
            if database:
                self._checkpoint(database)
            for name, path in (("core", self._folder.core), ("work", self._folder.work)):
                if log_size(path) >= self._options.derived_log_bytes:
                    self._checkpoint(name)
            if time.monotonic() - self._tended >= self._options.tend_seconds:
                self._tended = time.monotonic()
                self.tend()

    def _next(self) -> str | None:
        """The next database to checkpoint, "" after a while without one, None at the end."""
        try:
            return self.queue.get(timeout=5.0)
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
            self._failed(e)

    def checkpoint_everything(self, root: duckdb.DuckDBPyConnection) -> None:
        """At the stop: fold the logs into the files, the smallest first, as far as `close_seconds` allow."""
        named = [(f.database, f.path) for f in self._catalogue.files]
        named += [("core", self._folder.core), ("work", self._folder.work)]
        deadline = time.monotonic() + self._options.close_seconds
        for database, path in sorted(named, key=lambda n: log_size(n[1])):
            if not log_size(path):
                continue
            if time.monotonic() > deadline:
                log.warning("no time left at stop to checkpoint %s, its log stays", database)
                continue
            try:
                # FORCE aborts transactions that readers left open; nobody may write any more.
                root.execute(f"FORCE CHECKPOINT {database}")
            except duckdb.Error as e:
                log.warning("checkpoint of %s at stop failed, its log stays: %s", database, e)

    # ------------------------------------------------------------------ merging

    def tend(self) -> int:
        """Merge closed files where that pays, detach what was replaced; returns how many files were merged."""
        merged = 0
        with self._tending:
            try:
                self._rotate_if_full()
                while not self._closed() and (group := self._group()):
                    self._merge(group)
                    merged += len(group)
                self._catalogue.detach_retired(self._options.retire_seconds)
            except duckdb.InterruptException:
                log.info("merging was interrupted; it is done again later")
            except (duckdb.Error, StoreError, OSError) as e:
                log.warning("files could not be merged, they stay as they are: %s", str(e).splitlines()[0])
                self._failed(e)
        return merged

    def _group(self) -> list[SpanFile] | None:
        return worth_merging(self._catalogue.closed(), self._options, self._now().date())

    def _merge(self, group: list[SpanFile]) -> None:
        started = time.monotonic()
        place = self._folder.span_file(group[0].place.first, group[-1].place.last)
        needed = sum(f.size() for f in group)
        if shutil.disk_usage(self._folder.root).free < needed + self._options.free_bytes:
            raise StoreBusyError(f"merging {len(group)} files needs {needed // _MIB} MiB of free space")
        with contextlib.closing(self._cursor()) as cursor:
            self._merging = cursor
            try:
                compaction.merge(cursor, [f.database for f in group], self._folder.scratch, place.path)
            finally:
                self._merging = None
        with self._catalogue.lock:
            merged = self._catalogue.attach(place, read_only=True)
            self._catalogue.replace(group, [merged])
        log.info(
            "merged %d files into %s: %d rows in %.1f s",
            len(group), place.path.name, merged.rows, time.monotonic() - started,
        )  # fmt: skip

    # ------------------------------------------------------------------ removing

    def forget(self, files: list[SpanFile], last_seq: int) -> None:
        """Remove span files for good; numbers up to `last_seq` are not given out again."""
        with self._tending, self._catalogue.lock:
            scratch = self._folder.forgotten.with_suffix(".new")
            scratch.write_text(json.dumps({"last_seq": last_seq}) + "\n")
            scratch.replace(self._folder.forgotten)
            self._catalogue.replace(files, [])
        log.info("removed %d span files", len(files))

    def rewrite_owed(self, others: AbstractContextManager[Any] | None) -> bool:
        """Write the derived files anew that are owed it; see Store.rewrite_owed."""
        done = True
        derived: tuple[tuple[Literal["core", "work"], Path], ...] = (
            ("work", self._folder.work),
            ("core", self._folder.core),
        )
        for alias, path in derived:
            if self._folder.owed(alias).exists():
                with self._rewriting:
                    written = any(self._rewrite(alias, path, others) for _ in range(_REWRITES))
                if written:
                    self._folder.owed(alias).unlink()
                else:
                    log.warning("%s is not written anew yet; it is tried again later", path.name)
                done = done and written
        return done

    def _rewrite(self, alias: str, path: Path, others: AbstractContextManager[Any] | None) -> bool:
        copy = path.with_name(path.name + ".new")
        free = shutil.disk_usage(self._folder.root).free
        if free < path.stat().st_size + log_size(path) + self._options.free_bytes:
            log.warning("%s cannot be copied: %d MiB free", path.name, free // _MIB)
            return False
        remove(copy)
        with contextlib.closing(self._cursor()) as cursor:
            cursor.execute(f"CHECKPOINT {alias}")
            compaction.copy(cursor, alias, copy)
        for _ in range(_GATE_TRIES):
            with others or contextlib.nullcontext(), self._gate.alone(GATE_SECONDS / 10) as alone:
                # A log that is there again means that somebody wrote after the copy was begun.
                if alone and not log_size(path):
                    with self._catalogue.lock:
                        self._catalogue.instance.root.execute(f"DETACH {alias}")
                        copy.replace(path)
                        compaction.sync(path.parent)
                        self._catalogue.instance.attach(path, alias)
                    return True
            if log_size(path):
                break
        remove(copy)
        return False
