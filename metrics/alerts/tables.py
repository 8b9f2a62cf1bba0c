"""The tables of alerts in `core`, read and written as plain rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import duckdb

from metrics.alerts.machine import Alert
from metrics.alerts.signal import Identity, Signal
from metrics.slo.cube import sql_text

TABLES = ("alerts", "alert_outbox", "alert_silences")


def ddl(name: str) -> str:
    """CREATE TABLE text of one of the tables."""
    return sql_text("metrics.alerts", name).replace("{target}", f"core.{name}")


@cache
def columns(name: str) -> dict[str, str]:
    """Columns of a table and their types, in order."""
    with duckdb.connect(":memory:") as scratch:
        scratch.execute("ATTACH ':memory:' AS core")
        scratch.execute(ddl(name))
        found = scratch.execute(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index",
            [name],
        ).fetchall()
    return dict(found)


def create(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Create `core.<name>` where it does not exist, and give an older one the columns it lacks."""
    con.execute(ddl(name))
    have = {
        row[0]
        for row in con.execute(
            "SELECT column_name FROM duckdb_columns() "
            "WHERE database_name = 'core' AND schema_name = 'main' AND table_name = ?",
            [name],
        ).fetchall()
    }
    for column, kind in columns(name).items():
        if column not in have:
            con.execute(f'ALTER TABLE core.{name} ADD COLUMN "{column}" {kind}')


def create_tables(con: duckdb.DuckDBPyConnection) -> None:
    """Create all tables of alerts that do not exist."""
    for name in TABLES:
        create(con, name)


def rows_of(con: duckdb.DuckDBPyConnection, name: str) -> list[dict[str, Any]]:
    """All rows of `core.<name>` as dicts; none before it exists."""
    try:
        found = con.execute(f"SELECT * FROM core.{name}")
    except duckdb.CatalogException:
        return []
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def alert_row(alert: Alert, tasks: str, silenced_by: str | None) -> list[Any]:
    """The values of an alert in the order of `alerts.sql`; `tasks` is JSON text."""
    i, s = alert.identity, alert.signal
    return [
        alert.key, i.kind, i.slo, i.objective, i.severity, i.service, i.agent, i.task_type, i.tool, alert.state,
        alert.pending_since, alert.fired_at, alert.resolved_at, alert.told_at, alert.changed_at, s.summary,
        json.dumps(dict(s.annotations), ensure_ascii=False), json.dumps(s.subjects), tasks, s.after_s, s.longest_s,
        silenced_by, alert.reason, json.dumps(s.targets), s.tell_end,
    ]  # fmt: skip


def alert_of(row: dict[str, Any]) -> Alert:
    """The alert of a row."""
    identity = Identity(
        row["kind"],
        row["slo"],
        row["objective"],
        row["severity"],
        row["service"],
        row["agent"],
        row["task_type"],
        row["tool"],
    )
    condition = "firing" if row["state"] == "firing" else "clear" if row["state"] == "resolved" else "frozen"
    signal = Signal(
        identity,
        condition,  # type: ignore[arg-type]  # one of three literals
        row["summary"],
        json.loads(row["annotations"]),
        row["after_s"],
        tuple(json.loads(row["subjects"])),
        targets=tuple(json.loads(row["targets"] or "[]")),
        tell_end=row["tell_end"] is not False,
        longest_s=row["longest_s"],
    )
    return Alert(
        identity,
        row["state"],
        row["pending_since"],
        row["fired_at"],
        row["resolved_at"],
        row["told_at"],
        row["changed_at"],
        signal,
        row["reason"],
    )


def write_alerts(con: duckdb.DuckDBPyConnection, keys: Iterable[str], rows: list[list[Any]]) -> None:
    """Replace the alerts of these keys by `rows`; the caller holds the transaction."""
    con.execute("DELETE FROM core.alerts WHERE list_contains($keys, alert_id)", {"keys": list(keys)})
    if rows:
        names = ", ".join(f'"{c}"' for c in columns("alerts"))
        marks = ", ".join("?" for _ in rows[0])
        con.executemany(f"INSERT INTO core.alerts ({names}) VALUES ({marks})", rows)
