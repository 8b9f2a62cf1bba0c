"""The thread beside the collector: new spans become tasks, tasks become objectives.

It waits for committed spans or for a task that is due, runs a pass about once a second, evaluates the objectives
when something changed or a minute has gone by, and writes their status.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import duckdb

from agent_slo.config import Config
from collector.store import Store
from metrics.deriver import Deriver
from metrics.slo.evaluate import evaluate, write_status
from metrics.slo.objective import Objective

log = logging.getLogger("agent_slo.derivation")

PASS_SECONDS = 1.0
"""Least time between two passes: spans of one run arrive in several requests, and a pass takes them together."""
STATUS_SECONDS = 60.0
"""Burn rates change with the clock alone, so a quiet collector still evaluates this often."""
MOST_BACKOFF_SECONDS = 60.0


def now() -> datetime:
    """This moment as the derivation counts it: naive UTC."""
    return datetime.now(UTC).replace(tzinfo=None)


class Derivation:
    """Called by the collector with its store; returns when asked to stop and everything stored is derived.

    A failed pass is raised, so that the collector logs it and shows it on /healthz; it calls again, and the pass
    is repeated after a pause that doubles up to a minute.
    """

    def __init__(self, config: Config, objectives: Sequence[Objective]) -> None:
        self._config = config
        self._objectives = list(objectives)
        self._failures = 0

    def __call__(self, store: Store, stop: threading.Event) -> None:
        """Run until `stop` is set. Raises what a pass raises."""
        if self._failures:
            stop.wait(min(2.0**self._failures, MOST_BACKOFF_SECONDS))
        con = store.derivation()
        try:
            self._run(con, store, stop)
        except BaseException:
            self._failures += 1
            raise
        finally:
            con.close()

    def _run(self, con: duckdb.DuckDBPyConnection, store: Store, stop: threading.Event) -> None:
        deriver = Deriver(con, self._config)
        deriver.migrate()
        store.refresh_views()
        evaluated = 0.0
        while True:
            stopping = stop.is_set()
            began = time.monotonic()
            report = deriver.run(now())
            self._failures = 0
            changed = report.tasks > 0 or report.spans > 0
            if changed or began - evaluated >= STATUS_SECONDS or stopping:
                write_status(con, evaluate(con, self._objectives, now()))
                evaluated = began
            if stopping and report.derived_seq >= store.last_seq:
                return
            stop.wait(max(0.0, PASS_SECONDS - (time.monotonic() - began)))
            while not stop.is_set() and store.wait_for_spans(report.derived_seq, 1.0) <= report.derived_seq:
                if time.monotonic() - began >= PASS_SECONDS:
                    break


def derive_once(
    con: duckdb.DuckDBPyConnection, config: Config, objectives: Sequence[Objective], as_of: datetime
) -> None:
    """One full pass and evaluation as of a moment, on a connection that may write `core` and `work`."""
    deriver = Deriver(con, config)
    deriver.migrate()
    deriver.run(as_of)
    write_status(con, evaluate(con, list(objectives), as_of))
