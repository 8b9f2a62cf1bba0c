"""From an older layout of the data folder to this program's, with a copy of what is changed."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from collector.layout import FORMAT_VERSION, DataFolder

log = logging.getLogger("agent_slo.store")


@dataclass(frozen=True)
class Migration:
    """From format `origin` to the one after it.

    `databases`: which attached databases (`core`, `work`) it changes, copied before; `apply` changes them. It may run
    twice over the same files: a crash in the middle begins it again.
    """

    origin: int
    why: str
    databases: Sequence[str] = ()
    apply: Callable[[duckdb.DuckDBPyConnection], None] = lambda con: None


MIGRATIONS = (
    Migration(
        1, "span files may be merged ones, which a program of format 1 would not see: nothing to rewrite"
    ),
)


def upgrade(
    folder: DataFolder,
    con: duckdb.DuckDBPyConnection,
    created_by: str,
    migrations: Sequence[Migration] = MIGRATIONS,
    target: int = FORMAT_VERSION,
) -> list[int]:
    """Bring the folder to format `target`; returns the formats it came from, none when it is up to date.

    `con` has the folder's files attached, so nobody else writes them. What changes is copied to `before-format-N`
    first. Raises OSError without room for the copies, StoreError when format.json cannot be read.
    """
    done = []
    version = folder.check_format()
    while version < target:
        migration = next(m for m in migrations if m.origin == version)
        copies = folder.root / f"before-format-{version + 1}"
        copies.mkdir(exist_ok=True)
        for name in migration.databases:
            con.execute(f"CHECKPOINT {name}")
            _keep(folder.core if name == "core" else folder.work, copies)
        _keep(folder.format_file, copies)
        migration.apply(con)
        log.warning("data folder upgraded from format %d to %d (%s)", version, version + 1, migration.why)
        done.append(version)
        version += 1
        folder.write_format(version, created_by)
    return done


def _keep(file: Path, copies: Path) -> None:
    """Copy a file unless an interrupted upgrade did: then the copy is the older one, and counts."""
    if not (copies / file.name).exists():
        scratch = copies / f"{file.name}.part"
        shutil.copy2(file, scratch)
        scratch.replace(copies / file.name)
