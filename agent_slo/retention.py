"""Removes what the `storage` section no longer keeps: spans, what was made of them, and in the end the tasks.

It runs in the thread of the derivation, between two passes, so that nobody else writes `core` or `work` meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime, timedelta

from agent_slo.config import StorageConfig
from collector.store import Store
from metrics.deriver import Deriver

log = logging.getLogger("agent_slo.retention")

CHECK_SECONDS = 900.0
_GB = 10**9
# Writing the derived files anew costs the same for little as for much, so a tenth goes at once.
_KEPT_WHEN_FULL = 0.9


class Retention:
    """Looks now and then whether something is to go. `lock` is held while derived files change."""

    def __init__(self, config: StorageConfig, lock: threading.Lock) -> None:
        self._config = config
        self._lock = lock
        self._checked: float | None = None

    def run(self, store: Store, deriver: Deriver, as_of: datetime, *, now: bool = False) -> int:
        """Remove what is due at `as_of` (naive UTC); `now`: even if it looked a moment ago. Returns files removed.

        Spans that are not derived yet stay. The order is such that a crash at any moment is mended by the next run:
        first the tasks become final, then the steps go, then the span files, then the bytes of what was deleted.
        """
        kept = self._config
        if kept.keep_days is None and kept.keep_gb is None and kept.tasks_days is None:
            return 0
        if not now and self._checked is not None and time.monotonic() - self._checked < CHECK_SECONDS:
            return 0
        self._checked = time.monotonic()
        keep_bytes = None
        if kept.keep_gb is not None:
            full = sum(f.size() for f in store.files()) > kept.keep_gb * _GB
            keep_bytes = int(kept.keep_gb * _GB * (_KEPT_WHEN_FULL if full else 1))
        with self._lock:
            derived = deriver.derived_seq()
            gone = [f for f in store.expired(kept.keep_days, keep_bytes, as_of) if f.max_seq <= derived]
            if gone:
                store.owe_rewrite("core", "work")
                tasks = deriver.freeze(max(f.max_seq for f in gone))
                store.forget(gone)
                log.info("retention: %d span files removed, %d tasks are final", len(gone), tasks)
            if kept.tasks_days is not None and deriver.forget_tasks(as_of - timedelta(days=kept.tasks_days)):
                store.owe_rewrite("core")
        # What was deleted is still in free blocks of the files: only a new file is without it. The copy of a large
        # file takes a while; operators' actions go on meanwhile.
        store.rewrite_owed(self._lock)
        return len(gone)
