"""What people say of tasks: whether they needed a human. Append-only; the last word of a task counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import duckdb

from metrics.manifest import pass_sql


@dataclass(frozen=True)
class Label:
    """One word of a person. `task_id`: the task it is about now; `needed` None: they could not tell.

    `asked`: whether the task asked a human, as far as it is derived. `frozen`: its spans are gone, so objectives
    keep what they counted, and only the view `human_labels` shows the label.
    """

    task_id: str
    needed: bool | None
    asked: bool
    frozen: bool


def add_label(
    con: duckdb.DuckDBPyConnection,
    now: datetime,
    *,
    task_id: str,
    needed: bool | None,
    note: str | None = None,
    said_by: str | None = None,
) -> Label:
    """Keep a label of a task; `con` may write `core`, `now` is naive UTC. The next pass decides the task with it.

    Raises ValueError when no such task is derived.
    """
    derived = con.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = 'core' AND table_name IN ('tasks', 'task_aliases')"
    ).fetchall()
    found = (
        derived == [(2,)]
        and con.execute(
            "SELECT t.task_id, t.frozen FROM core.tasks t LEFT JOIN core.task_aliases a ON a.task_id = t.task_id "
            "WHERE t.task_id = $id OR a.alias = $id LIMIT 1",
            {"id": task_id},
        ).fetchone()
    )
    if not found:
        raise ValueError(f"no task {task_id!r} is derived; `agent-slo tasks` lists them")
    con.execute(pass_sql("labels"))
    con.execute(
        "INSERT INTO core.label_log SELECT coalesce(max(said_no), 0) + 1, ?, ?, ?, ?, ? FROM core.label_log",
        [now, found[0], needed, note or None, said_by or None],
    )
    asked = con.execute(
        "SELECT count(*) FROM core.interventions WHERE task_id = ? AND kind <> 'take_over'", [found[0]]
    ).fetchall()
    return Label(found[0], needed, asked != [(0,)], bool(found[1]))
