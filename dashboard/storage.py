"""What takes the room in a data folder, part by part; shown by the data page and `agent-slo storage`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from collector.layout import DataFolder, SpanPath
from collector.reader import Reader, ReaderError

_TRIES = 3


@dataclass(frozen=True)
class Part:
    """One line: a file or a kind of files. `rows` and days are None where they say nothing."""

    what: str
    bytes: int
    rows: int | None = None
    first_day: date | None = None
    last_day: date | None = None


def measure(reader: Reader) -> list[Part]:
    """All parts of a data folder, span files first, oldest first. Raises ReaderError."""
    folder = reader.folder
    for attempt in range(_TRIES):
        # files merge and go while this looks: then it looks again
        try:
            return [*_span_parts(reader, folder), *_derived_parts(reader, folder), *_other_parts(folder)]
        except (ReaderError, FileNotFoundError):
            if attempt == _TRIES - 1:
                raise
    return []


def total(parts: Sequence[Part]) -> int:
    """Bytes of the whole folder."""
    return sum(part.bytes for part in parts)


def _span_parts(reader: Reader, folder: DataFolder) -> Iterator[Part]:
    files = folder.span_files()
    asked = " UNION ALL ".join(
        f"SELECT '{f.database}' AS file, count(*) AS rows, "
        "min(received_at)::DATE AS first, max(received_at)::DATE AS last "
        f"FROM (SELECT received_at FROM {f.database}.spans UNION ALL SELECT received_at FROM {f.database}.logs)"
        for f in files
        if not any(skipped.startswith(f.path.name) for skipped in reader.skipped)
    )
    found = {row["file"]: row for row in reader.sql(asked).to_pylist()} if asked else {}
    for file in files:
        row = found.get(file.database, {"rows": None, "first": None, "last": None})
        yield Part(_name(file, files[-1]), _size(file.path), row["rows"], row["first"], row["last"])


def _name(file: SpanPath, newest: SpanPath) -> str:
    kind = "being written" if file == newest else "merged" if file.merged else "closed"
    return f"spans/{file.path.name} ({kind})"


def _derived_parts(reader: Reader, folder: DataFolder) -> Iterator[Part]:
    rows = reader.sql(
        "SELECT database_name AS file, sum(estimated_size)::BIGINT AS rows FROM duckdb_tables() "
        "WHERE database_name IN ('core', 'work') GROUP BY ALL"
    ).to_pylist()
    known = {row["file"]: row["rows"] for row in rows}
    for path, name, what in (
        (folder.work, "work", "steps and attempts"),
        (folder.core, "core", "tasks, verdicts, objectives"),
    ):
        if path.exists():
            yield Part(f"{path.name} ({what})", _size(path), known.get(name))


def _other_parts(folder: DataFolder) -> Iterator[Part]:
    for path, what in ((folder.temporary, "scratch"), (folder.damaged, "copies made by repairs")):
        size = sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) if path.is_dir() else 0
        if size:
            yield Part(f"{path.name}/ ({what})", size)


def _size(path: Path) -> int:
    """Bytes of a file with its write-ahead log."""
    log = path.with_name(path.name + ".wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)
