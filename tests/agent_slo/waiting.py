"""Waiting for a real process to get somewhere."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

PATIENCE = 90.0


def until(reached: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    """Return once `reached()` is true. Fails when the process ends or patience runs out."""
    deadline = time.monotonic() + PATIENCE
    while not reached():
        if process is not None and process.poll() is not None:
            out, err = process.communicate()
            raise AssertionError(f"the process ended with {process.returncode}: {out}{err}")
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
