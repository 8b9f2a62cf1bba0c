"""Repeated attempts as a table, the same wherever they are listed."""

from __future__ import annotations

from typing import Any

from dashboard.chrome import open_task, table
from dashboard.format import CAUSE_WORDS, missing, when, words
from dashboard.verdict import reason

Row = dict[str, Any]


def repeats_table(rows: list[Row], key: str) -> None:
    """Draw it; a click opens the task. `rows`: when, agent, tool, cause, effect, compensated, rule, task, arguments."""
    picked = table(
        [
            {
                **row,
                "started_at": when(row["started_at"]),
                "cause": None if missing(row["cause"]) else words(CAUSE_WORDS, row["cause"]),
                "undone": None if missing(row["compensated"]) else "yes" if row["compensated"] else "no",
                "why": reason(row["rule"]),
                "idempotency_key": row.get("idempotency_key"),
            }
            for row in rows
        ],
        {
            "started_at": "When",
            "agent": "Agent",
            "tool": "Tool",
            "cause": "Cause",
            "effect": "Second effect",
            "undone": "Undone",
            "task_id": "Task",
            "why": "Why",
            "idempotency_key": "Key",
            "arguments": "Arguments",
        },
        key=key,
        raw=rows,
        selectable=True,
        drop_empty=True,
    )
    if picked is not None:
        open_task(rows[picked]["task_id"])
