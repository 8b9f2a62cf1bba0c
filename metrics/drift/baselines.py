"""Where baselines begin: with the first day of a stream, or where an operator says (after a deployment)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

import duckdb

from metrics.slo.cube import sql_text


class BaselineError(ValueError):
    """A baseline that makes no sense; says how to mend."""


@dataclass(frozen=True)
class Beginning:
    """Streams that match (globs) begin their baseline at `since` (naive UTC)."""

    metric: str
    agent: str
    task_type: str
    since: datetime

    def covers(self, metric: str, agent: str, task_type: str) -> bool:
        """Whether it is about this stream."""
        return (
            fnmatchcase(metric, self.metric)
            and fnmatchcase(agent, self.agent)
            and fnmatchcase(task_type, self.task_type)
        )


def create(con: duckdb.DuckDBPyConnection) -> None:
    """Create `core.drift_baselines` where it does not exist."""
    con.execute(sql_text("metrics.drift", "drift_baselines").replace("{target}", "core.drift_baselines"))


def begin_anew(
    con: duckdb.DuckDBPyConnection,
    now: datetime,
    *,
    since: datetime,
    reason: str,
    metric: str = "*",
    agent: str = "*",
    task_type: str = "*",
) -> None:
    """Let matching streams learn what is normal from `since` on. Raises BaselineError."""
    if since > now:
        raise BaselineError("a baseline cannot begin in the future; give an earlier time")
    if not reason.strip():
        raise BaselineError("a new baseline needs a reason; say why, for those who wonder later")
    create(con)
    con.execute(
        "INSERT INTO core.drift_baselines VALUES (?, ?, ?, ?, ?, ?)",
        [metric, agent, task_type, since, reason.strip(), now],
    )


def beginnings(con: duckdb.DuckDBPyConnection) -> list[Beginning]:
    """All of them, the latest word last."""
    try:
        rows = con.execute(
            "SELECT metric, agent, task_type, since FROM core.drift_baselines ORDER BY said_at"
        ).fetchall()
    except duckdb.CatalogException:
        return []
    return [Beginning(*row) for row in rows]


def since_of(
    found: Sequence[Beginning], metric: str, agent: str | None, task_type: str | None
) -> datetime | None:
    """Where the stream's baseline begins by an operator's last word; None: with its first day."""
    covering = [b.since for b in found if b.covers(metric, agent or "", task_type or "")]
    return covering[-1] if covering else None
