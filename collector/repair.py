"""Opening a DuckDB file whose write-ahead log was damaged, without losing what is whole.

DuckDB refuses a log with a zeroed tail or a flipped bit ("Corrupt WAL file: entry at byte position N").
Everything before N is whole transactions, so the log is copied aside, cut at N and opened again.
"""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

log = logging.getLogger("agent_slo.store")

_POSITION = re.compile(r"WAL file.*byte position (\d+)", re.DOTALL)
# A DuckDB file begins with three 4 KiB headers; a shorter one was never finished and holds nothing.
_SMALLEST_FILE = 12_288
_BLOCK = re.compile(r"stored checksum (\d+) in block at location (\d+)")
_NAMED = re.compile(r'(?:Could not read|Could not seek|Cannot read).*?file "([^"]+)"', re.DOTALL)


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


def cut_off(con: duckdb.DuckDBPyConnection, files: Mapping[str, Path]) -> list[tuple[Path, int]]:
    """Of the attached files, by name, those that are shorter than the blocks in use are long, and by how many bytes at
    least. Only what is in memory since the file was opened is asked, and its size: what the blocks hold is not read.

    The header's own count of blocks will not do: it counts free ones that a checkpoint cut off the end.
    """
    sizes = con.execute(
        "SELECT database_name, block_size, used_blocks FROM pragma_database_size()"
    ).fetchall()
    missing = (
        (files[name], _SMALLEST_FILE + block * used - files[name].stat().st_size)
        for name, block, used in sizes
        if name in files
    )
    return [(path, bytes_) for path, bytes_ in missing if bytes_ > 0]


def damaged_file(message: str, files: Sequence[Path]) -> tuple[Path, str] | None:
    """The file that DuckDB's complaint is about and a line about it; None when it complains of other things.

    A wrong checksum is told without a file, but with what is stored in front of the block: that finds it.
    """
    if (named := _NAMED.search(message)) is not None:
        found = next((f for f in files if f == Path(named[1])), None)
        return None if found is None else (found, _unreadable(found, "a part of it is missing"))
    block = _BLOCK.search(message)
    if block is None:
        return None
    # Not in this process: whoever closes a file gives up all locks that the process holds on it, the engine's too.
    look = [sys.executable, "-I", "-S", "-c", _FIND, block[2], int(block[1]).to_bytes(8, "little").hex()]
    try:
        answer = subprocess.run(
            [*look, *map(str, files)], capture_output=True, text=True, timeout=_FIND_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as e:
        log.warning("a file is damaged, which one cannot be told (%s): %s", e, message.splitlines()[0])
        return None
    name = answer.stdout.rstrip("\n")
    return (
        (Path(name), _unreadable(Path(name), f"bytes after {block[2]} are not what was written"))
        if name
        else None
    )


_FIND_SECONDS = 30.0
_FIND = """
import sys
for name in sys.argv[3:]:
    try:
        with open(name, "rb") as f:
            f.seek(int(sys.argv[1]))
            if f.read(8) == bytes.fromhex(sys.argv[2]):
                print(name)
                break
    except FileNotFoundError:
        continue
"""


def _unreadable(file: Path, what: str) -> str:
    return (
        f"{file}: damaged, {what}; queries over it fail. Stop the collector and put a copy of the file in its place, "
        "or move it (and its .wal) out of the data folder to go on without it"
    )


def cut_log(database: Path, position: int, copies: Path) -> Repair:
    """Copy the log of `database` into `copies`, then cut it at `position` bytes."""
    file = database.with_name(database.name + ".wal")
    size = file.stat().st_size
    copy = _copy_aside(file, copies)
    with file.open("r+b") as f:
        f.truncate(position)
    return Repair(file, position, size - position, copy)


def set_aside_unfinished(database: Path, copies: Path) -> Repair | None:
    """Move a file that was killed while being created out of the way.

    Such a file is shorter than its own headers and has no log, so no commit can have gone into it.
    """
    size = database.stat().st_size
    if size >= _SMALLEST_FILE or database.with_name(database.name + ".wal").exists():
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
