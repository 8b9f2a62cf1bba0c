"""Collector and dashboard as one thing: started, waited for until healthy, watched, stopped together."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import httpx

from agent_slo.commands.dashboard import ADDRESS, dashboard_environment, streamlit_command
from agent_slo.errors import CommandError
from agent_slo.options import Place
from agent_slo.output import say
from agent_slo.ports import free_port, require_free_port
from agent_slo.processes import Child

T = TypeVar("T")

START_SECONDS = 90.0
POLL_SECONDS = 0.1
RESTARTS, RESTART_SECONDS = 5, 600.0
"""How often in how many seconds a killed child is started again, before its death ends everything."""


@dataclass(frozen=True)
class Addresses:
    """Where everything listens: `http` and `grpc` as host:port (None: off), `dashboard` as a URL."""

    http: str
    grpc: str | None
    dashboard: str | None


class Stack:
    """The children of `agent-slo up`."""

    def __init__(self, place: Place, *, collect_options: list[str], dashboard_port: int | None) -> None:
        self._place = place
        self._collect_options = collect_options
        self._dashboard_port = dashboard_port
        self._children: list[Child] = []
        self._stop = threading.Event()

    def start(self) -> Addresses:
        """Start both and return once they answer. Raises `CommandError` with the reason when one ends."""
        port = self._dashboard_port
        if port == 0:
            port = free_port(ADDRESS)
        if port is not None:
            require_free_port(ADDRESS, port, "the dashboard", "--dashboard-port")
        data = ["--data", str(self._place.data)]
        config = ["--config", str(self._place.config_file)] if self._place.config_file else []
        command = [sys.executable, "-m", "agent_slo", "collect", *data, *config, *self._collect_options]
        collector = self._child("collector", command, dict(os.environ), forward=True)
        # Streamlit takes seconds to load, so it loads while the collector opens its files.
        dashboard = None
        if port is not None:
            environment = dashboard_environment(self._place.data, self._place.config_file)
            dashboard = self._child("dashboard", streamlit_command(port), environment)
        door = self._wait(collector, lambda: _door_of(self._place.data, collector.process.pid))
        url = None
        if dashboard is not None:
            url = f"http://{ADDRESS}:{port}"
            self._wait(dashboard, lambda: _answers(f"{url}/_stcore/health"))
        # started again, it must be found where senders found it before, also where it chose its ports itself
        for option, address in (("--http", door["http"]), ("--grpc", door["grpc"])):
            if address:
                collector.command += [option, address]
        return Addresses(door["http"] or "", door["grpc"], url)

    def _child(
        self, name: str, command: list[str], environment: dict[str, str], *, forward: bool = False
    ) -> Child:
        child = Child(name, command, environment, forward=forward)
        self._children.append(child)
        return child

    def _wait(self, child: Child, ready: Callable[[], T | None]) -> T:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            self.check()
            found = ready()
            if found is not None:
                return found
            if self._stop.wait(POLL_SECONDS):
                raise KeyboardInterrupt
        raise CommandError(
            f"the {child.name} did not answer within {START_SECONDS:.0f} s; its last words: {child.reason()}"
        )

    def check(self) -> None:
        """Raise `CommandError` with its reason when a child ended, KeyboardInterrupt when asked to stop."""
        if self._stop.is_set():
            raise KeyboardInterrupt
        for child in self._children:
            if not child.running:
                raise CommandError(f"the {child.name} ended: {child.reason()}")

    def watch(self) -> None:
        """Return when asked to stop; start again what was killed. Raises `CommandError` when a child ends by itself."""
        began: list[float] = []
        while not self._stop.wait(0.3):
            for place, child in enumerate(self._children):
                began = [moment for moment in began if time.monotonic() - moment < RESTART_SECONDS]
                if child.killed_by is not None and len(began) < RESTARTS:
                    began.append(time.monotonic())
                    say(f"the {child.name} ended {child.reason()}; starting it again")
                    self._children[place] = child.again()
            self.check()

    def request_stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Signal handler: ask `watch` to return."""
        del number, frame
        self._stop.set()

    def stop(self) -> None:
        """Stop the children, the dashboard first, so that the collector can close its files in peace."""
        for child in reversed(self._children):
            child.stop()


@contextmanager
def running(stack: Stack) -> Iterator[Addresses]:
    """Start the stack; SIGINT and SIGTERM stop it; whatever happens, no child stays behind."""
    before = {number: signal.signal(number, stack.request_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stack.start()
    finally:
        stack.stop()
        for number, handler in before.items():
            signal.signal(number, handler)


def _door_of(data: Path, pid: int) -> dict[str, Any] | None:
    """door.json once this very process has written it and answers."""
    try:
        door: dict[str, Any] = json.loads((data / "door.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    if door.get("pid") != pid or not _answers(f"{door['door']}/healthz"):
        return None
    return door


def _answers(url: str) -> bool | None:
    try:
        return httpx.get(url, timeout=2.0, trust_env=False).is_success or None
    except httpx.HTTPError:
        return None
