"""What follows every pass of the derivation: status of the objectives, history, counters, alerts, incidents."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from datetime import date, datetime, timedelta

import duckdb

from agent_slo.actions import LOG
from agent_slo.config import Config
from collector.store import Store
from incidents import grouping
from metrics.alerts.engine import AlertEngine
from metrics.alerts.tables import create_tables
from metrics.availability import write_availability
from metrics.drift.baselines import create as create_baselines
from metrics.drift.evaluate import DriftRow, drifts, write_drift
from metrics.slo.counters import CounterRow, advance, read_counters, write_counters
from metrics.slo.evaluate import evaluate, firing_now, split_objectives, write_status
from metrics.slo.exposition import exposition
from metrics.slo.history import histories, write_history
from metrics.slo.objective import Objective
from metrics.slo.revisions import Revisions, note_revisions, read_revisions
from metrics.slo.status import StatusRow

log = logging.getLogger("agent_slo.evaluation")

HISTORY_SECONDS = 3600.0
"""How often a quiet collector computes the history anew: its points are days apart."""
CHANGED_HISTORY_SECONDS = 10.0
"""How often at most it does so after tasks changed; longer where one takes long (see SHARE_OF_TIME)."""
SLICES_AGE = timedelta(minutes=5)
"""How often availability is judged anew when no task changed: no slice is shorter."""
SHARE_OF_TIME = 0.08
"""Share of its time a busy collector may spend on evaluations; over two million tasks one takes most of a second."""


class Evaluation:
    """Evaluates the objectives over a store; one object a store, usable from several threads.

    With `alerts` it also keeps alerts and the counters for Prometheus, as the collector does; without, it
    leaves both alone, as a command does that decides as of some other moment.
    """

    def __init__(self, config: Config, objectives: Sequence[Objective], *, alerts: bool) -> None:
        self._objectives = list(objectives)
        self._service_hours, self._maintenance = config.service_hours, config.maintenance
        self._sliced_at: datetime | None = None
        self.engine = AlertEngine(config.alerts, config.maintenance) if alerts else None
        self.lock = threading.Lock()
        """Held during an evaluation; whoever changes what it reads holds it too."""
        self._rows: Sequence[StatusRow] = ()
        self._counters: Sequence[CounterRow] = ()
        self._as_of: datetime | None = None
        self._history_at: float | None = None
        self._history_took = 0.0
        self._history_empty = False
        self._revisions: Revisions = {}
        self._history_stale = False
        self._drifts: Sequence[DriftRow] = ()
        self._drift_of: tuple[date, int] | None = None
        self.spent = 0.0
        """Seconds the last evaluation took."""

    def run(self, store: Store, as_of: datetime, *, changed: bool = True) -> None:
        """Evaluate as of a moment (naive UTC) and write everything; views are made where tables are new.

        On a connection of its own: the deriver's has temporary tables named `tasks` and `sli_events` with
        the rows of its last pass only, which hide the views of these names.
        """
        began = time.monotonic()
        first = self._as_of is None
        with self.lock:
            con = store.derivation()
            try:
                self._availability(con, as_of, changed)
                fired = firing_now(con, "core.slo_status")
                rows = evaluate(con, self._objectives, as_of, was_firing=fired)
                write_status(con, rows)
                if first:
                    note_revisions(con, self._objectives, as_of)
                every = split_objectives(self._objectives, rows)
                self._history(con, every, as_of, changed)
                self._drift(con, as_of)
                if first:
                    con.execute(LOG)
                    create_tables(con)
                if self.engine is not None:
                    counters = advance(con, read_counters(con), self._objectives, as_of)
                    write_counters(con, counters)
                    self._counters = counters
                    self.engine.evaluate(con, self._objectives, rows, as_of, self._drifts)
                new_columns = grouping.refresh(con)
            finally:
                con.close()
            self._rows, self._as_of = rows, as_of
        if new_columns or first:
            store.refresh_views()
        self.spent = time.monotonic() - began

    def _availability(self, con: duckdb.DuckDBPyConnection, as_of: datetime, changed: bool) -> None:
        """Service hours go by without any task, so slices are judged by the clock too, every few minutes."""
        due = self._sliced_at is None or as_of - self._sliced_at >= SLICES_AGE
        if self._sliced_at is not None and not (self._service_hours and (changed or due)):
            return
        write_availability(con, self._service_hours, self._maintenance, as_of)
        self._sliced_at = as_of

    def _history(
        self, con: duckdb.DuckDBPyConnection, objectives: Sequence[Objective], as_of: datetime, changed: bool
    ) -> None:
        # what changed since the last history stays to be shown, also when nothing changes any more
        self._history_stale = self._history_stale or changed
        revisions = read_revisions(con)
        if revisions != self._revisions:
            self._revisions, self._history_at = revisions, None
        began = time.monotonic()
        # whoever looks at the first tasks sees their line at once: nothing may change after them for long
        least = (
            0.0 if self._history_empty else max(CHANGED_HISTORY_SECONDS, self._history_took / SHARE_OF_TIME)
        )
        age = None if self._history_at is None else began - self._history_at
        if age is not None and age < (least if self._history_stale else HISTORY_SECONDS):
            return
        points = histories(con, objectives, as_of, revisions=revisions)
        write_history(con, points)
        self._history_empty = not any(point.n for point in points)
        self._history_at = time.monotonic()
        self._history_took = self._history_at - began
        self._history_stale = False

    @property
    def _history_age(self) -> float:
        """Seconds since the history was computed."""
        return float("inf") if self._history_at is None else time.monotonic() - self._history_at

    @property
    def _history_pause(self) -> float:
        """Least seconds between two histories. Whoever looks at the first tasks sees their line at once."""
        return (
            0.0 if self._history_empty else max(CHANGED_HISTORY_SECONDS, self._history_took / SHARE_OF_TIME)
        )

    @property
    def history_due(self) -> bool:
        """Whether tasks changed after the last history, which had come too early to hold them."""
        return self._history_stale and self._history_age >= self._history_pause

    def _drift(self, con: duckdb.DuckDBPyConnection, as_of: datetime) -> None:
        """Drift looks at whole days, so it is computed once a day, and when an operator moved a baseline."""
        create_baselines(con)
        words = con.execute("SELECT count(*) FROM core.drift_baselines").fetchone() or (0,)
        wanted = (as_of.date(), int(words[0]))
        if self._drift_of == wanted:
            return
        self._drifts = drifts(con, as_of)
        write_drift(con, self._drifts)
        self._drift_of = wanted

    @property
    def pause(self) -> float:
        """Least seconds until the next evaluation, so that evaluations do not eat the time for passes."""
        return self.spent / SHARE_OF_TIME

    def prometheus(self) -> str:
        """The objectives as Prometheus text, as of the last evaluation."""
        return exposition(self._rows, self._counters, self._as_of)
