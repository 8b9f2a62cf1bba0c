"""Rewriting DuckDB files: many small span files into one, and a derived file without the bytes of deleted rows.

DELETE gives no byte back to the disk and leaves the old ones in free blocks; only a new file does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import duckdb

from collector import views
from collector.batch import LOG_SCHEMA, SPAN_SCHEMA
from collector.layout import STORAGE_VERSION, quoted

_MERGED = "merging"
_COPY = "copying"


def merge(con: duckdb.DuckDBPyConnection, databases: Sequence[str], scratch: Path, target: Path) -> None:
    """Write the rows of attached span files into one file at `target`, made at `scratch` and moved there when whole.

    A row that came again without any difference is left out, the copy received last stays. Rows lie in the order of
    the files, those of each file by start: sorting millions of long rows at once would take the ingest's memory, and
    zone maps need no more.
    """
    for left in (scratch, scratch.with_name(scratch.name + ".wal")):
        left.unlink(missing_ok=True)
    con.execute(f"ATTACH {quoted(scratch)} AS {_MERGED} (STORAGE_VERSION '{STORAGE_VERSION}')")
    try:
        views.create_tables(con, _MERGED)
        for table, order in (("spans", "start_ns, seq"), ("logs", "time_ns, seq")):
            union = " UNION ALL ".join(f"SELECT * FROM {database}.{table}" for database in databases)
            con.execute(f"CREATE OR REPLACE TEMP TABLE again AS {_again(table, union)}")
            for database in databases:
                con.execute(
                    f"INSERT INTO {_MERGED}.{table} "
                    f"SELECT * FROM {database}.{table} WHERE seq NOT IN (SELECT seq FROM again) ORDER BY {order}"
                )
        con.execute("DROP TABLE again")
        con.execute(f"CHECKPOINT {_MERGED}")
    finally:
        con.execute(f"DETACH {_MERGED}")
    scratch.replace(target)
    sync(target.parent)


def _again(table: str, union: str) -> str:
    """The seq of every row that is no different from a later one. Only rows that share their ids are compared."""
    names = (SPAN_SCHEMA if table == "spans" else LOG_SCHEMA).names
    content = (
        "md5(concat_ws(chr(31), " + ", ".join(f"coalesce(e.{c}::VARCHAR, chr(30))" for c in names) + "))"
    )
    return f"""
    WITH every AS ({union}),
    shared AS (SELECT trace_id, span_id FROM every GROUP BY ALL HAVING count(*) > 1),
    ranked AS (
      SELECT e.seq, row_number() OVER (PARTITION BY {content} ORDER BY e.seq DESC) AS place
      FROM every e JOIN shared s
        ON s.trace_id IS NOT DISTINCT FROM e.trace_id AND s.span_id IS NOT DISTINCT FROM e.span_id)
    SELECT seq FROM ranked WHERE place > 1
    """


def copy(con: duckdb.DuckDBPyConnection, alias: str, target: Path) -> None:
    """Write an attached database into a new file, whole when this returns."""
    con.execute(f"ATTACH {quoted(target)} AS {_COPY} (STORAGE_VERSION '{STORAGE_VERSION}')")
    try:
        con.execute(f"COPY FROM DATABASE {alias} TO {_COPY}")
        con.execute(f"CHECKPOINT {_COPY}")
    finally:
        con.execute(f"DETACH {_COPY}")


def sync(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
