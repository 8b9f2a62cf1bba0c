"""The files that spans lie in, and the decisions over them: when one is full, which are merged, which go."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from collector.layout import SpanPath
from collector.store_options import StoreOptions


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
            return self.path.stat().st_size + log_size(self.path)
        except FileNotFoundError:
            return 0


def log_size(database: Path) -> int:
    """Bytes of the write-ahead log of a DuckDB file, 0 without one."""
    try:
        return database.with_name(database.name + ".wal").stat().st_size
    except FileNotFoundError:
        return 0


def remove(database: Path) -> None:
    """Unlink a DuckDB file and its log."""
    database.unlink(missing_ok=True)
    database.with_name(database.name + ".wal").unlink(missing_ok=True)


def is_full(file: SpanFile, options: StoreOptions, today: dt.date) -> bool:
    """Whether the hot file is to be closed."""
    if file.rows >= options.rotate_spans:
        return True
    # By age alone a quiet installation would collect 24 nearly empty files a day: a small hot file
    # waits for the end of the day.
    age = time.time() - file.opened
    if age >= options.rotate_seconds and file.rows >= options.rotate_spans // 10:
        return True
    # Each day its own files, so that a day can be removed as a whole.
    if file.first_at is not None and file.first_at.date() != today:
        return True
    return log_size(file.path) >= options.rotate_log_bytes


def worth_merging(closed: Sequence[SpanFile], options: StoreOptions, today: dt.date) -> list[SpanFile] | None:
    """Neighbouring closed files worth merging: those of a past day, many of today, many small days."""
    groups: list[list[SpanFile]] = [[]]
    for file in closed:
        group = groups[-1]
        fits = sum(f.rows for f in group) + file.rows <= options.merge_rows
        if log_size(file.path) or not (group and fits and group[-1].day == file.day):
            groups.append([])
        if not log_size(file.path):
            groups[-1].append(file)
    for group in groups:
        past = bool(group) and group[-1].day != today
        if len(group) >= (2 if past else options.merge_files):
            return group
    if not options.merge_days:
        return None
    run: list[SpanFile] = []
    for file in closed:
        if (
            log_size(file.path)
            or file.day == today
            or sum(f.rows for f in run) + file.rows > options.merge_rows
        ):
            run = []
        else:
            run.append(file)
        if len(run) >= options.merge_files:
            return run
    return None


def expired(
    files: Sequence[SpanFile], keep_days: float | None, keep_bytes: int | None, now: dt.datetime
) -> list[SpanFile]:
    """Closed files that retention removes at `now` (naive UTC), oldest first: too old, or beyond the bytes.

    `files`: all of them, the hot one last. A day is kept as a whole until its last row is `keep_days` old.
    """
    total = sum(f.size() for f in files)
    found = []
    for file in files[:-1]:
        end = dt.datetime.combine(file.day, dt.time()) + dt.timedelta(days=1) if file.day else None
        old = keep_days is not None and (end is None or now - end >= dt.timedelta(days=keep_days))
        if not old and (keep_bytes is None or total <= keep_bytes):
            break
        total -= file.size()
        found.append(file)
    return found
