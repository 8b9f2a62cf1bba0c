"""The thread that sends alerts, so that a slow receiver never holds up the derivation."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime

import duckdb

from collector.store import Store, StoreError
from metrics.alerts.outbox import deliver
from metrics.alerts.settings import AlertSettings
from metrics.alerts.targets.send import Sender, send

log = logging.getLogger("agent_slo.delivery")

IDLE_SECONDS = 5.0
STOP_SECONDS = 2.0


class Delivery:
    """Sends what waits in the outbox from `start` to `stop`; what is left then waits for the next start."""

    def __init__(self, store: Store, settings: AlertSettings, sender: Sender = send) -> None:
        self._store = store
        self._settings = settings
        self._sender = sender
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name="alerts", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def wake(self) -> None:
        """Look into the outbox now: something was put there."""
        self._wake.set()

    def stop(self) -> None:
        """Stop after the message that is being sent; a receiver that hangs is not waited for."""
        self._stopping = True
        self._wake.set()
        self._thread.join(STOP_SECONDS)

    def _loop(self) -> None:
        while not self._stopping:
            pause = IDLE_SECONDS
            try:
                pause = self._round()
            except (duckdb.Error, StoreError) as error:
                # The store may be reopening or closing; what was not marked is sent again.
                if not self._stopping:
                    log.warning("alerts are sent later: %s", error)
            self._wake.wait(pause)
            self._wake.clear()

    def _round(self) -> float:
        now = datetime.now(UTC).replace(tzinfo=None)
        con = self._store.derivation()
        try:
            done = deliver(con, self._settings.targets, self._sender, now, self._settings.give_up)
        finally:
            con.close()
        if done.next_at is None:
            return IDLE_SECONDS
        return min(max((done.next_at - now).total_seconds(), 0.1), IDLE_SECONDS)
