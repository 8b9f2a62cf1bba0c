"""`agent-slo storage`: what takes the room in the data folder, and what retention keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import click

from agent_slo.config import StorageConfig
from agent_slo.options import Place, common
from agent_slo.output import print_json, print_table, say
from agent_slo.reading import reading
from collector.layout import DataFolder, SpanPath
from collector.reader import Reader, ReaderError
from dashboard.format import count

_TRIES = 3


@dataclass(frozen=True)
class Part:
    """One line: a file or a kind of files. `rows` and days are None where they say nothing."""

    what: str
    bytes: int
    rows: int | None = None
    first_day: date | None = None
    last_day: date | None = None


@click.command()
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@common
def storage(place: Place, form: str) -> None:
    """Show what takes the room in the data folder.

    Span files by day, derived files, logs of both, and what retention keeps. Works with the collector running or not.
    """
    parts = measure(place.data)
    kept = place.config().config.storage
    total = sum(part.bytes for part in parts)
    if form == "json":
        print_json({"bytes": total, "parts": [asdict(p) for p in parts], "storage": kept.model_dump()})
        return
    rows = [
        (
            part.what,
            _days(part),
            "" if part.rows is None else count(part.rows),
            f"{part.bytes / 1e6:,.1f} MB",
            f"{part.bytes / total:.0%}" if total else "",
        )
        for part in parts
    ]
    rows.append(("all", "", "", f"{total / 1e6:,.1f} MB", ""))
    print_table(("what", "received", "rows", "size", "share"), rows, right=(2, 3, 4))
    say(words(kept))


def words(kept: StorageConfig) -> str:
    """What retention does, in one line."""
    said = []
    if kept.keep_days is not None:
        said.append(f"spans, steps and attempts go after {kept.keep_days} days")
    if kept.keep_gb is not None:
        said.append(f"the oldest go above {kept.keep_gb:g} GB of span files")
    if kept.tasks_days is not None:
        said.append(f"tasks and SLI events go after {kept.tasks_days} days")
    if not said:
        return "everything is kept; storage.keep_days and storage.keep_gb in agent-slo.yaml say otherwise"
    return "; ".join(said)


def measure(data: Path) -> list[Part]:
    """All parts of a data folder, span files first, oldest first. Raises ReaderError."""
    folder = DataFolder(data.expanduser().resolve())
    for attempt in range(_TRIES):
        # files merge and go while this looks: then it looks again
        try:
            with reading(data) as reader:
                return [*_span_parts(reader, folder), *_derived_parts(reader, folder), *_other_parts(folder)]
        except (ReaderError, FileNotFoundError):
            if attempt == _TRIES - 1:
                raise
    return []


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


def _days(part: Part) -> str:
    if part.first_day is None:
        return ""
    return str(part.first_day) if part.first_day == part.last_day else f"{part.first_day} to {part.last_day}"
