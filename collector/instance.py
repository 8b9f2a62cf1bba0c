"""One in-memory DuckDB instance, its configuration, and the files attached to it."""

from __future__ import annotations

import contextlib
import logging
import re
import time
import weakref
from pathlib import Path

import duckdb
import psutil

from collector.layout import STORAGE_VERSION, DataFolder, StoreBusyError, StoreError, quoted
from collector.precedence import giving_way
from collector.repair import Repair, cut_log, damage_position, set_aside_unfinished
from collector.store_options import StoreOptions

log = logging.getLogger("agent_slo.store")

_LOCK_HOLDER = re.compile(r"Could not set lock on file.*?\(PID (\d+)\)", re.DOTALL)
_MIB = 1 << 20
# core.duckdb and work.duckdb, their logs, and the copies they are written anew from.
_DERIVED_ENDS = tuple(a + b for a in ("", ".new") for b in ("", ".wal", ".wal.checkpoint", ".wal.recovery"))


class Instance:
    """The instance of one data folder. `repairs`: what had to be mended while attaching, told by the store."""

    def __init__(self, folder: DataFolder, options: StoreOptions, repairs: list[Repair]) -> None:
        """Raises StoreError for a memory limit that is none."""
        self.folder = folder
        self.options = options
        self._repairs = repairs
        self._handed_out: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()
        # The engine's workers serve queries and the derivation; commits are small and run in their own thread.
        self.root = giving_way(self._begin) if options.workers_give_way else self._begin()

    def _begin(self) -> duckdb.DuckDBPyConnection:
        """The engine, configured, with all its threads."""
        root = duckdb.connect(":memory:")
        try:
            self._configure(root)
        except BaseException:
            root.close()
            raise
        return root

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

    def lock(self) -> None:
        """Close the configuration: from now on only what must be attached later can be opened.

        door.json with its token, the settings and everything else in the folder cannot.
        """
        # In this order; afterwards none can be undone.
        folders = ", ".join(quoted(f"{f}/") for f in (self.folder.spans, self.folder.temporary))
        names = [f"{p}{end}" for p in (self.folder.core, self.folder.work) for end in _DERIVED_ENDS]
        self.root.execute(f"SET allowed_directories = [{folders}]")
        self.root.execute(f"SET allowed_paths = [{', '.join(map(quoted, names))}]")
        self.root.execute("SET enable_external_access = false")
        self.root.execute("SET lock_configuration = true")

    def attach(self, path: Path, alias: str, *, read_only: bool = False) -> None:
        """Attach a file, made when it is not there. Waits for another process, repairs a damaged log once.

        Raises StoreError: in use by another process (named by its PID), or not to be opened.
        """
        new = not path.exists()
        how = "READ_ONLY" if read_only else f"STORAGE_VERSION '{STORAGE_VERSION}'"
        deadline = time.monotonic() + self.options.lock_wait
        repaired = False
        while True:
            try:
                self.root.execute(f"ATTACH {quoted(path)} AS {alias} ({how})")
                if new:
                    path.chmod(0o600)
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
                    self._repairs.append(repair)
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

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own, remembered so that it can be interrupted. Raises StoreBusyError."""
        try:
            cursor = self.root.cursor()
        except duckdb.Error as e:
            raise StoreBusyError(f"the store is not open: {e}") from e
        self._handed_out.add(cursor)
        return cursor

    def interrupt(self) -> None:
        """Stop whatever runs on connections that were handed out; each of them raises InterruptException."""
        for con in list(self._handed_out):
            with contextlib.suppress(duckdb.Error):  # nothing was running
                con.interrupt()

    def close(self) -> None:
        """Close every connection. The instance may be dead already."""
        self.interrupt()
        for con in (*self._handed_out, self.root):
            with contextlib.suppress(duckdb.Error):  # already closed by its user
                con.close()
        self._handed_out.clear()


def _default_memory_mib() -> int:
    return int(min(2048, max(512, psutil.virtual_memory().total // 4 // _MIB)))
