"""Opening a DuckDB file whose write-ahead log was damaged, without losing what is whole.

DuckDB refuses a log with a zeroed tail or a flipped bit ("Corrupt WAL file: entry at byte position N").
Everything before N is whole transactions, so the log is copied aside, cut at N and opened again.
"""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

_POSITION = re.compile(r"WAL file.*byte position (\d+)", re.DOTALL)
# A DuckDB file begins with three 4 KiB headers; a shorter one was never finished and holds nothing.
_SMALLEST_FILE = 12_288


@dataclass(frozen=True)
class Repair:
    """One repair at start-up: what was cut, and where the copy is."""

    file: Path
    kept_bytes: int
    cut_bytes: int
    copy: Path

    def __str__(self) -> str:
        return (
            f"{self.file}: damaged; kept the first {self.kept_bytes} bytes, cut {self.cut_bytes} bytes. "
            f"The original was copied to {self.copy}; spans committed after that point are lost "
            "unless their senders send them again."
        )


def damage_position(message: str) -> int | None:
    """The byte named by DuckDB's complaint about a damaged log, None when it complains of other things."""
    found = _POSITION.search(message)
    return int(found.group(1)) if found else None


def cut_log(database: Path, position: int, copies: Path) -> Repair:
    """Copy the log of `database` into `copies`, then cut it at `position` bytes."""
    log = database.with_name(database.name + ".wal")
    size = log.stat().st_size
    copy = _copy_aside(log, copies)
    with log.open("r+b") as f:
        f.truncate(position)
    return Repair(log, position, size - position, copy)


def set_aside_unfinished(database: Path, copies: Path) -> Repair | None:
    """Move a file that was killed while being created out of the way.

    Such a file is shorter than its own headers and has no log, so no commit can have gone into it.
    """
    log = database.with_name(database.name + ".wal")
    size = database.stat().st_size
    if size >= _SMALLEST_FILE or log.exists():
        return None
    copy = _copy_aside(database, copies)
    database.unlink()
    return Repair(database, 0, size, copy)


def _copy_aside(file: Path, copies: Path) -> Path:
    copies.mkdir(exist_ok=True)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    copy = copies / f"{file.name}.{stamp}"
    number = 1
    while copy.exists():
        copy = copies / f"{file.name}.{stamp}.{number}"
        number += 1
    shutil.copy2(file, copy)
    return copy
