"""Where everything lies in the data folder, and what a file there is called."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

FORMAT_VERSION = 2
STORAGE_VERSION = "v1.5.0"
_SPAN_FILE = re.compile(r"^(\d{6,})(?:-(\d{6,}))?\.duckdb$")


class StoreError(Exception):
    """The data folder cannot be used; the message says what, where and how to mend it."""


class StoreBusyError(StoreError):
    """The store cannot take data now; the same request may succeed in a few seconds."""


class NoRoomError(StoreBusyError):
    """There is too little space on the volume."""


class FolderGoneError(StoreBusyError):
    """The files that are open are not those in the data folder any more."""


@dataclass(frozen=True)
class SpanPath:
    """One file of spans: as it was received (`first` = `last`), or several of those merged."""

    first: int
    last: int
    path: Path

    @property
    def merged(self) -> bool:
        return self.first != self.last

    @property
    def database(self) -> str:
        """The name it is attached under."""
        return f"spans_{self.first:06d}" + (f"_{self.last:06d}" if self.merged else "")


@dataclass(frozen=True)
class DataFolder:
    """Paths inside one data folder. Nothing is created by looking."""

    root: Path

    @property
    def format_file(self) -> Path:
        return self.root / "format.json"

    @property
    def door_file(self) -> Path:
        return self.root / "door.json"

    @property
    def spans(self) -> Path:
        return self.root / "spans"

    @property
    def core(self) -> Path:
        return self.root / "core.duckdb"

    @property
    def work(self) -> Path:
        return self.root / "work.duckdb"

    @property
    def scratch(self) -> Path:
        """A merged file while it is being made."""
        return self.spans / "merging.duckdb"

    def owed(self, alias: str) -> Path:
        """There while rows were deleted of `core` or `work` whose bytes are still in the file."""
        return self.root / f"{alias}.rewrite"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    @property
    def damaged(self) -> Path:
        """Copies of what a repair cut off; never read again by the program."""
        return self.root / "damaged"

    @property
    def forgotten(self) -> Path:
        """What retention removed: numbers that must not be given out again."""
        return self.spans / "forgotten.json"

    def span_files(self) -> list[SpanPath]:
        """Every span file that counts, oldest first: a merged file stands for the files it was made of."""
        found = self._span_paths()
        return [f for f in found if not any(o.merged and o != f and _covers(o, f) for o in found)]

    def covered_files(self) -> list[SpanPath]:
        """Files that were merged into another and not yet removed: a crash came between."""
        kept = set(self.span_files())
        return [f for f in self._span_paths() if f not in kept]

    def _span_paths(self) -> list[SpanPath]:
        if not self.spans.is_dir():
            return []
        names = [(m, p) for p in self.spans.iterdir() if (m := _SPAN_FILE.match(p.name))]
        found = [SpanPath(int(m.group(1)), int(m.group(2) or m.group(1)), p) for m, p in names]
        return sorted(found, key=lambda f: (f.first, f.last))

    def span_file(self, first: int, last: int | None = None) -> SpanPath:
        """The file of this number, or the merged one of these numbers. Nothing is created."""
        name = f"{first:06d}" if last is None else f"{first:06d}-{last:06d}"
        return SpanPath(first, last or first, self.spans / f"{name}.duckdb")

    @staticmethod
    def size(database: Path) -> int:
        """Bytes of a DuckDB file with its write-ahead log, 0 when it is not there."""
        found = 0
        for path in (database, database.with_name(database.name + ".wal")):
            with contextlib.suppress(FileNotFoundError):
                found += path.stat().st_size
        return found

    def prepare(self, created_by: str) -> None:
        """Create the folder, for its owner only, if need be, and check that this program may write this format.

        Raises StoreError: not a folder, not writable, or written by a newer version.
        """
        try:
            for folder in (self.root, self.spans, self.temporary):
                folder.parent.mkdir(parents=True, exist_ok=True)
                folder.mkdir(mode=0o700, exist_ok=True)
        except FileExistsError as e:
            raise StoreError(
                f"data folder {self.root}: {e.filename} is a file, not a folder; name another one with --data"
            ) from e
        except OSError as e:
            raise StoreError(
                f"data folder {self.root}: cannot create it ({e.strerror}); "
                "name a writable one with --data or mend its permissions"
            ) from e
        for folder in (self.root, self.spans, self.temporary):
            if not os.access(folder, os.W_OK | os.X_OK):
                raise StoreError(
                    f"data folder {self.root}: {folder} is not writable by this user; "
                    "name another one with --data or mend its permissions"
                )
        if self.format_file.exists():
            self.check_format()
        else:
            self.write_format(FORMAT_VERSION, created_by)

    def open_to_others(self) -> str | None:
        """A warning when other users of this machine may look into the folder, None when not."""
        mode = stat.S_IMODE(self.root.stat().st_mode)
        if os.name != "posix" or not mode & 0o077:
            return None
        return (
            f"data folder {self.root}: other users of this machine may look into it (mode {mode:04o}), and it holds "
            f"prompts and results; `chmod -R go= {self.root}` keeps them out"
        )

    def write_format(self, version: int, created_by: str) -> None:
        """Write format.json in one step."""
        scratch = self.format_file.with_suffix(".json.new")
        scratch.write_text(json.dumps({"version": version, "created_by": created_by}) + "\n")
        scratch.replace(self.format_file)

    def check_format(self) -> int:
        """The version of the layout. Raises StoreError: format.json missing, broken or newer than this program."""
        try:
            version = json.loads(self.format_file.read_text())["version"]
        except FileNotFoundError as e:
            raise StoreError(
                f"data folder {self.root}: no format.json, so this is not an agent-slo data folder; "
                "name the right one with --data"
            ) from e
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise StoreError(
                f"data folder {self.root}: format.json cannot be read ({e}); "
                f'it should hold {{"version": {FORMAT_VERSION}}}'
            ) from e
        if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
            raise StoreError(
                f"data folder {self.root}: written in format {version}, this program knows up to "
                f"{FORMAT_VERSION}; use the newer agent-slo that wrote it, or another folder with --data"
            )
        return version


def _covers(outer: SpanPath, inner: SpanPath) -> bool:
    return outer.first <= inner.first and inner.last <= outer.last


def quoted(path: Path | str) -> str:
    """The path or text as an SQL string literal."""
    return "'" + str(path).replace("'", "''") + "'"
