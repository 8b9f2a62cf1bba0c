"""The thread beside the collector: new spans become tasks, tasks become objectives.

It waits for committed spans or for a task that is due, runs a pass about once a second, evaluates the
objectives when something changed or a minute has gone by, and writes their status.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb
import pyarrow as pa

from agent_slo.config import Config
from agent_slo.delivery import Delivery
from agent_slo.errors import CommandError
from agent_slo.evaluation import Evaluation
from agent_slo.retention import Retention
from collector.store import Store
from metrics.deriver import Deriver, PassReport
from metrics.prices import PriceBook, PriceOverride
from metrics.slo.objective import Objective

log = logging.getLogger("agent_slo.derivation")

PASS_SECONDS = 1.0
"""Least time between two passes: a run's spans arrive in several requests, and a pass takes them together."""
STATUS_SECONDS = 60.0
"""Burn rates change with the clock alone, so a quiet collector still evaluates this often."""
BUSY_STATUS_SECONDS = 10.0
"""How often the status is brought up to date while a backlog is worked off."""
MOST_BACKOFF_SECONDS = 60.0
RECEIVING_RATE = 12_000.0
"""Rows a second from which on receiving goes first: senders wait for it, the derivation can catch up later."""


def now() -> datetime:
    """This moment as the derivation counts it: naive UTC."""
    return datetime.now(UTC).replace(tzinfo=None)


class Derivation:
    """Called by the collector with its store; returns when asked to stop and everything stored is derived.

    A failed pass is raised, so that the collector logs it and shows it on /healthz; it calls again, and the
    pass is repeated after a pause that doubles up to a minute.
    """

    def __init__(self, config: Config, objectives: Sequence[Objective]) -> None:
        self._config = config
        self.evaluation = Evaluation(config, objectives, alerts=True)
        self._retention = Retention(config.storage, self.evaluation.lock)
        self._failures = 0
        self._derived_seq = 0
        self.redelivered = 0
        """Spans that came again since the folder was made, as far as they are derived."""

    def lag(self, last_seq: int) -> int:
        """Rows up to `last_seq` that are not derived yet."""
        return max(0, last_seq - self._derived_seq)

    def __call__(self, store: Store, stop: threading.Event) -> None:
        """Run until `stop` is set. Raises what a pass raises."""
        if self._failures:
            stop.wait(min(2.0**self._failures, MOST_BACKOFF_SECONDS))
        con = store.derivation()
        delivery = Delivery(store, self._config.alerts)
        delivery.start()
        try:
            self._run(con, store, stop, delivery)
        except BaseException:
            self._failures += 1
            raise
        finally:
            delivery.stop()
            con.close()

    def _run(
        self, con: duckdb.DuckDBPyConnection, store: Store, stop: threading.Event, delivery: Delivery
    ) -> None:
        deriver = _deriver(con, store, self._config)
        # Tables made anew fill pass by pass: until they hold everything, objectives and alerts stay as they were.
        partial = deriver.migrate()
        store.refresh_views()
        evaluated: float | None = None
        changed = False
        while True:
            stopping = stop.is_set()
            # Read before the pass: what is committed during it wakes the next wait at once.
            seen = store.last_seq
            began = time.monotonic()
            report = deriver.run(now())
            self._failures = 0
            self._derived_seq = report.derived_seq
            if report.traces or evaluated is None:
                self.redelivered = deriver.redelivered()
            changed = changed or report.traces > 0
            behind = report.spans > 0 and report.derived_seq < seen
            age = STATUS_SECONDS if evaluated is None else began - evaluated
            # With a backlog the next pass is worth more than a status that is about to change.
            worth = not behind or age >= BUSY_STATUS_SECONDS
            waited = stopping or age >= self.evaluation.pause
            partial = partial and behind
            # What came last before it grew quiet is in the history soon, not with the next look at the clock.
            last = not changed and not behind and self.evaluation.history_due
            if not partial and (age >= STATUS_SECONDS or last or (changed and worth and waited)):
                self.evaluation.run(store, now(), changed=changed)
                delivery.wake()
                evaluated, changed = began, False
            if behind:
                stop.wait(_rest(store.last_seq - seen, report.seconds))
                continue
            self._retention.run(store, deriver, now())
            if stopping:
                return
            stop.wait(max(0.0, PASS_SECONDS - (time.monotonic() - began)))
            if not stop.is_set():
                store.wait_for_spans(seen, PASS_SECONDS)


def _rest(arrived: int, seconds: float) -> float:
    """How long to leave the processors to the receivers after a pass in which so many rows arrived; seconds."""
    return seconds if arrived > RECEIVING_RATE * seconds else 0.0


class _Prices:
    """The price book as the deriver asks it: one model at a time, '' for what is not stated."""

    def __init__(self, overrides: Sequence[PriceOverride]) -> None:
        self._book = PriceBook(list(overrides))

    @property
    def by_service(self) -> bool:
        """Whether an override is for some services only."""
        return self._book.by_service

    def rows(self, provider: str, model: str, service: str | None) -> list[tuple[object, ...]]:
        """Rows of `core.model_prices`; none when the model is unpriced."""
        found = self._book.rows([(provider or None, model, service or None)])
        return [(provider, *row[1:10], service) for row in found]


def _deriver(con: duckdb.DuckDBPyConnection, store: Store, config: Config) -> Deriver:
    return Deriver(con, config, prices=_Prices(config.price_overrides()), sources=store.spans_since)


@dataclass
class Derived:
    """What one or several passes did."""

    spans: int = 0
    tasks: int = 0
    seconds: float = 0.0

    def add(self, report: PassReport) -> None:
        """Add one pass."""
        self.spans += report.spans
        self.tasks += report.tasks
        self.seconds += report.seconds


def derive_once(
    store: Store, config: Config, objectives: Sequence[Objective], as_of: datetime, *, again: bool = False
) -> Derived:
    """Derive what is new or due, then evaluate, as of a moment (naive UTC). `again`: from all raw spans."""
    con = store.derivation()
    done = Derived()
    try:
        deriver = _deriver(con, store, config)
        deriver.migrate()
        if again:
            deriver.rebuild(as_of, done.add)
        else:
            deriver.catch_up(as_of, done.add)
    finally:
        con.close()
    # The views first: the evaluation reads them.
    store.refresh_views()
    Evaluation(config, objectives, alerts=False).run(store, as_of)
    return done


def explain_once(store: Store, config: Config, file: str, task_id: str, as_of: datetime) -> pa.Table:
    """The rows that one SQL file of the derivation gives for one task, as of a moment (naive UTC). Keeps nothing.

    Raises `CommandError` for a file or a task that does not exist.
    """
    con = store.derivation()
    try:
        deriver = _deriver(con, store, config)
        deriver.migrate()
        try:
            rows = deriver.explain(file, task_id, as_of).to_arrow_table()
        except ValueError as error:
            raise CommandError(str(error)) from error
        if con.execute("SELECT count(*) FROM core.tasks WHERE task_id = ?", [task_id]).fetchall() == [(0,)]:
            raise CommandError(f"no task {task_id!r} is derived; `agent-slo tasks` lists them")
        return rows
    finally:
        con.close()
