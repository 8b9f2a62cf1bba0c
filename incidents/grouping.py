"""Groups findings into incidents after a pass of the derivation, and keeps what operators say of them.

The tables are computed anew from the findings, so they are the same whether the findings came at once or over
weeks. What a person decided is a log of its own that no derivation touches.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, get_args

import duckdb

from incidents import reviews
from incidents.queries import query_text
from metrics.transaction import transaction

State = Literal["open", "acknowledged", "resolved", "ignored"]
Review = Literal["real", "false_alarm"]
STATES: tuple[str, ...] = get_args(State)
REVIEWS: tuple[str, ...] = get_args(Review)

_LOG = """
CREATE TABLE IF NOT EXISTS core.incident_log (
  incident_id VARCHAR, said_at TIMESTAMP, state VARCHAR, note VARCHAR, verdict VARCHAR)
"""
_KEPT = ("incident_findings", "incidents", "incident_accuracy", "cases")
_SAID = ("incident_log", "case_log", "case_revisions")


def refresh(con: duckdb.DuckDBPyConnection) -> bool:
    """Group all findings. Return whether the shape of a kept table changed, so that views must be made anew.

    `con`: a connection with `core` attached read-write and the public views; not the deriver's own, whose temporary
    tables hide the views of the same names. Nothing is written when nothing changed.
    """
    con.execute(_LOG)
    con.execute(reviews.TABLES)
    for name in _SAID:
        con.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM core.{name}")
    changed = False
    for name in _KEPT:
        con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS\n{query_text(name)}")
    with transaction(con):
        for name in _KEPT:
            if _columns(con, f"core.{name}") != _columns(con, f"temp.{name}"):
                con.execute(f"DROP TABLE IF EXISTS core.{name}")
                con.execute(f"CREATE TABLE core.{name} AS SELECT * FROM temp.{name}")
                changed = True
            elif _differ(con, name):
                con.execute(f"DELETE FROM core.{name}")
                con.execute(f"INSERT INTO core.{name} SELECT * FROM temp.{name}")
    for name in _KEPT:
        con.execute(f"DROP TABLE temp.{name}")
    for name in _SAID:
        con.execute(f"DROP VIEW temp.{name}")
    return changed


def say(
    con: duckdb.DuckDBPyConnection,
    incident_id: str,
    at: datetime,
    *,
    state: State | None = None,
    note: str | None = None,
    verdict: Review | None = None,
) -> None:
    """Keep what a person said of an incident at a moment (UTC, naive). Raises `ValueError` for an unknown incident."""
    found = con.execute("SELECT 1 FROM core.incidents WHERE incident_id = ?", [incident_id]).fetchall()
    if not found:
        raise ValueError(f"no incident {incident_id!r}; `agent-slo incidents` lists them")
    con.execute(_LOG)
    con.execute(
        "INSERT INTO core.incident_log VALUES (?, ?, ?, ?, ?)", [incident_id, at, state, note, verdict]
    )


def _columns(con: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str]]:
    database, name = table.split(".")
    found = con.execute(
        """
        SELECT column_name, data_type FROM duckdb_columns()
        WHERE database_name = ? AND table_name = ? ORDER BY column_index
        """,
        [database, name],
    ).fetchall()
    return [(str(column), str(kind)) for column, kind in found]


def _differ(con: duckdb.DuckDBPyConnection, name: str) -> bool:
    found = con.execute(
        f"""
        SELECT (SELECT count(*) FROM core.{name}) <> (SELECT count(*) FROM temp.{name})
          OR EXISTS (SELECT * FROM temp.{name} EXCEPT SELECT * FROM core.{name})
        """
    ).fetchall()
    return bool(found[0][0])
