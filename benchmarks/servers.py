"""Server processes under measurement: started, watched, ended."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

MIB = 1 << 20
_START_SECONDS = 60.0


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Server:
    """A running server process. `start_s`: seconds from its start until it said that it is ready."""

    def __init__(self, pid: int, start_s: float) -> None:
        self.process = psutil.Process(pid)
        self.start_s = start_s
        self.peak = 0
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._sample, daemon=True)
        self._watch.start()

    def cpu_s(self) -> float:
        """User and system time since its start, children included."""
        times = self.process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)

    def rss(self) -> int:
        return int(self.process.memory_info().rss)

    def _sample(self) -> None:
        while not self._ended.wait(0.1):
            with contextlib.suppress(psutil.NoSuchProcess):
                self.peak = max(self.peak, self.rss())

    def stop_watching(self) -> None:
        self._ended.set()
        self._watch.join()


@contextlib.contextmanager
def server(command: Sequence[str | Path], port: int) -> Iterator[Server]:
    """Run until the end of the block; ready when /readyz answers. Ended gracefully, or killed after 20 s."""
    began = time.monotonic()
    child = subprocess.Popen([str(word) for word in command])
    try:
        while True:
            if child.poll() is not None:
                raise SystemExit(f"server ended with {child.returncode}: {' '.join(map(str, command))}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1):
                    break
            except OSError:
                if time.monotonic() - began > _START_SECONDS:
                    raise SystemExit(f"server not ready after {_START_SECONDS:.0f} s") from None
                time.sleep(0.02)
        running = Server(child.pid, time.monotonic() - began)
        try:
            yield running
        finally:
            running.stop_watching()
    finally:
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
