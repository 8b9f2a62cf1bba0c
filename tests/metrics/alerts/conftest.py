"""A data base like the collector's, a receiver, and an engine over both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from metrics.alerts.engine import AlertEngine, Evaluated
from metrics.alerts.outbox import Delivered, deliver
from metrics.alerts.settings import AlertSettings
from metrics.alerts.targets.send import send
from metrics.settings import MaintenanceWindow
from metrics.slo.evaluate import evaluate, firing_now, write_status
from metrics.slo.objective import Objective
from tests.metrics.alerts.receiver import Receiver, receiving
from tests.metrics.slo.conftest import AS_OF, EVENTS, event, insert, objective

MORE = """
CREATE TABLE tasks (task_id VARCHAR, agent VARCHAR, service VARCHAR, excluded_reason VARCHAR, started_at TIMESTAMP,
    ended_at TIMESTAMP, decided_at TIMESTAMP);
CREATE TABLE findings (finding_id VARCHAR, task_id VARCHAR, kind VARCHAR, detail VARCHAR, evidence VARCHAR[],
    found_at TIMESTAMP);
CREATE TABLE attempts (task_id VARCHAR, span_id VARCHAR, tool VARCHAR, started_at TIMESTAMP);
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@dataclass
class World:
    """A data base file, settings and a clock; `restart` forgets everything that is not in the file."""

    path: Path
    settings: AlertSettings
    objectives: Sequence[Objective]
    now: datetime = AS_OF
    maintenance: Sequence[MaintenanceWindow] = ()
    con: duckdb.DuckDBPyConnection | None = None

    @property
    def db(self) -> duckdb.DuckDBPyConnection:
        if self.con is None:
            self.con = duckdb.connect(":memory:")
            self.con.execute(f"ATTACH '{self.path / 'core.duckdb'}' AS core")
            self.con.execute(f"ATTACH '{self.path / 'raw.duckdb'}' AS raw")
            self.con.execute("USE raw")
            if not self.con.execute(
                "SELECT 1 FROM duckdb_tables() WHERE table_name = 'sli_events'"
            ).fetchall():
                self.con.execute(EVENTS)
                self.con.execute(MORE)
        return self.con

    def restart(self) -> None:
        if self.con is not None:
            self.con.close()
        self.con = None

    def add(self, verdict: str, number: int = 1, **other: Any) -> None:
        """Events at this moment, a second apart so that each is told from the other."""
        insert(
            self.db,
            "sli_events",
            [
                event(self.now - timedelta(seconds=i), verdict, task_id=f"task-{verdict}-{i}", **other)
                for i in range(number)
            ],
        )

    def tick(self, minutes: float = 1) -> Evaluated:
        """Let time pass and evaluate as the collector does."""
        self.now += timedelta(minutes=minutes)
        rows = evaluate(self.db, self.objectives, self.now, was_firing=firing_now(self.db, "core.slo_status"))
        write_status(self.db, rows)
        engine = AlertEngine(self.settings, self.maintenance)
        return engine.evaluate(self.db, self.objectives, rows, self.now)

    def deliver(self) -> Delivered:
        return deliver(self.db, self.settings.targets, send, self.now, self.settings.give_up)

    def state(self) -> list[tuple[str, str]]:
        rows = self.db.execute("SELECT slo, state FROM core.alerts ORDER BY ALL").fetchall()
        return [(str(slo), str(state)) for slo, state in rows]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """One objective of 90 % with the pairs its traffic gives it, and no target."""
    found = World(tmp_path, AlertSettings(), [objective()])
    yield found
    found.restart()
