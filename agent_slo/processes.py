"""Child processes that live and die together."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO

STOP_SECONDS = 15.0
"""Time a child has between SIGTERM and SIGKILL; the collector itself takes at most 8 s."""
REASON_LINES = 5


class Child:
    """One child process; the end of what it writes is kept, to be named as the reason of its death."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], *, forward: bool = False
    ) -> None:
        self.name = name
        self.command, self.environment = list(command), dict(environment)
        self._last: collections.deque[str] = collections.deque(maxlen=REASON_LINES)
        self._forward = forward
        self.process = subprocess.Popen(
            self.command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # Ctrl-C reaches the whole foreground group; only the parent may act on it, to stop in order.
            start_new_session=True,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
        )
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            text = line.rstrip()
            if text:
                self._last.append(text)
            if self._forward and text:
                print(text, file=sys.stderr, flush=True)
        stream.close()

    @property
    def running(self) -> bool:
        """Whether it is still alive."""
        return self.process.poll() is None

    @property
    def killed_by(self) -> str | None:
        """The signal that ended it (`SIGKILL`: often the system, short of memory); None if there was none."""
        status = self.process.poll()
        return signal.Signals(-status).name if status is not None and status < 0 else None

    def reason(self) -> str:
        """Why it ended: the signal, else the last lines it wrote, else its exit status."""
        self._reader.join(1.0)
        if self.killed_by is not None:
            return f"by signal {self.killed_by}"
        if self._last:
            return "\n".join(line.removeprefix("agent-slo: ") for line in self._last)
        return f"with exit status {self.process.returncode}"

    def again(self) -> Child:
        """A new process by the same command."""
        return Child(self.name, self.command, self.environment, forward=self._forward)

    def stop(self) -> None:
        """Ask it to end, wait, and end it by force after `STOP_SECONDS`."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join(1.0)


def _die_with_parent() -> None:
    """Have the kernel send SIGTERM when the parent is killed, so that no collector stays behind."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
