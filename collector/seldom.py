"""Log lines that many requests would write at once, written once a minute with their number."""

from __future__ import annotations

import logging
import threading
import time

SECONDS = 60.0


class Seldom:
    """One line a minute and cause at most; those in between are counted and told with the next."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._told: dict[str, tuple[float, int]] = {}

    def tell(self, level: int, cause: str, message: str, error: BaseException | None = None) -> None:
        """Log `message`, unless a line of this `cause` (a word of ours, never a sender's) came within the minute.

        `error`: its traceback is written below.
        """
        now = time.monotonic()
        with self._lock:
            at, untold = self._told.get(cause, (now - SECONDS, 0))
            if now - at < SECONDS:
                self._told[cause] = at, untold + 1
                return
            self._told[cause] = now, 0
        more = f" (and {untold} more since the last such line)" if untold else ""
        self._log.log(level, "%s%s", message, more, exc_info=error)
