"""Who reads, and since when: no file may be detached under a reader."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

# A reader waits this long for the moment in which files change; the change takes milliseconds.
GATE_SECONDS = 10.0


class Gate:
    """Counts readers by turn. A turn begins whenever files were replaced, so an old file is free once all readers of
    turns before its replacement have left."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers: dict[int, int] = {}
        self._turn = 0
        self._shut = False

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Count this reader, so that no file is detached under it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._shut, GATE_SECONDS)
            turn = self._turn
            self._readers[turn] = self._readers.get(turn, 0) + 1
        try:
            yield
        finally:
            with self._changed:
                self._readers[turn] -= 1
                if not self._readers[turn]:
                    del self._readers[turn]
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self, patience: float) -> Iterator[bool]:
        """Whether no reader is left within `patience` seconds; new ones wait until the end of the block."""
        with self._changed:
            self._shut = True
            alone = self._changed.wait_for(lambda: not self._readers, patience)
        try:
            yield alone
        finally:
            with self._changed:
                self._shut = False
                self._changed.notify_all()

    def next_turn(self) -> int:
        """Begin a turn and return its number."""
        with self._changed:
            self._turn += 1
            return self._turn

    def oldest_turn(self) -> int:
        """The turn of the reader that has been here longest, the present one without readers."""
        with self._changed:
            return min(self._readers, default=self._turn)
