"""The collector process: receivers, intake, store, door, and one background thread of its caller."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import uvicorn
from starlette.routing import BaseRoute

from collector.counters import Counters
from collector.door import Door, write_door_file
from collector.http_protocol import LimitedProtocol, raise_file_limit
from collector.intake import Budget, Intake
from collector.layout import FolderGoneError
from collector.otlp_grpc import OtlpGrpc
from collector.otlp_http import READY, OtlpHttp
from collector.precedence import give_way, tune_interpreter
from collector.redaction.key import load_key
from collector.redaction.redactor import Redactor
from collector.request_size import allow
from collector.settings import Address, CollectorError, CollectorSettings
from collector.store import Store, StoreError, StoreOptions

__all__ = ["Background", "Collector", "CollectorError", "CollectorSettings", "StoreError"]

log = logging.getLogger("agent_slo.collector")

Background = Callable[[Store, threading.Event], None]
"""Runs in a thread of its own from start to stop: gets the store and an event that asks it to return."""

_BACKGROUND_RETRY_SECONDS = 1.0
_HEALTH_SECONDS = 1.0
# Of the time a stop may take, kept back for interrupting background work that does not end by itself.
_INTERRUPT_SECONDS = 2.0


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers: the collector stops several things in order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Collector:
    """Everything `agent-slo collect` runs.

    `run()` blocks until SIGTERM or SIGINT and returns an exit code; `start()` and `stop()` do the same
    from another thread. `background` is called as `background(store, stop_event)` in its own thread; when
    it raises, that is logged, shown on /healthz, and it is called again. `door_routes(store, door)` adds
    routes to the door.
    """

    def __init__(
        self,
        settings: CollectorSettings,
        *,
        background: Background | None = None,
        door_routes: Callable[[Store, Door], Sequence[BaseRoute]] | None = None,
    ) -> None:
        self.settings = settings
        self.counters = Counters()
        self.http: Address | None = None
        """Address of the HTTP receiver once started, with the real port."""
        self.grpc: Address | None = None
        self.door: Address | None = None
        self._background = background
        self._door_routes = door_routes
        self._background_failure: str | None = None
        self._store: Store | None = None
        self._started = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._left_running = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    @property
    def store(self) -> Store:
        """The open store. Raises CollectorError before the start."""
        if self._store is None:
            raise CollectorError("the collector is not running")
        return self._store

    # ------------------------------------------------------------------ running

    def run(self, ready: Callable[[Collector], None] | None = None) -> int:
        """Run until SIGTERM or SIGINT; call in the main thread. `ready` is called once it listens.

        Returns 0 after a graceful stop. Raises CollectorError or StoreError when it cannot start.
        """

        def tuned(collector: Collector) -> None:
            tune_interpreter()
            if ready is not None:
                ready(collector)

        raise_file_limit()
        # The engine makes its files as the system's default has it, which lets everybody read. The process is ours.
        os.umask(0o077)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._main(tuned, signals=True))
        if self._left_running:
            # Everything is committed and closed. A thread inside the engine cannot be ended, and
            # tearing the interpreter down under it would abort the process.
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        return 0

    def start(self) -> None:
        """Run in a thread; returns when it listens. Raises CollectorError or StoreError."""
        self._thread = threading.Thread(target=self._run_in_thread, name="collector", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error

    def stop(self) -> None:
        """Stop gracefully: commit and answer what is in flight, close the files."""
        if self._thread is None or self._loop is None or self._stop is None:
            return
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def __enter__(self) -> Collector:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run_in_thread(self) -> None:
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(self._main(None, signals=False))
        except BaseException as e:  # noqa: BLE001 - handed to the thread that called start()
            self._error = e
        finally:
            self._started.set()

    def health(self) -> dict[str, Any]:
        """What /healthz shows; `state` is "ok", "degraded" (the derivation fails, or a file cannot be read), "full",
        "failed", "starting" or "closed"."""
        state = self._store.state() if self._store else {"state": "starting"}
        if self._background_failure and state["state"] == "ok":
            state["state"] = "degraded"
        return {**state, "background_failure": self._background_failure}

    async def _main(self, ready: Callable[[Collector], None] | None, signals: bool) -> None:
        settings = self.settings
        self._loop = loop = asyncio.get_running_loop()
        self._stop = stop = asyncio.Event()
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, stop.set)
        http_address, grpc_address = settings.addresses()
        if settings.max_request_items is not None:
            allow(settings.max_request_items)
        if (warning := settings.checked_tls()) is not None:
            log.warning("%s", warning)
        # Ports first: a taken port must be said before the files are opened.
        http_socket = _listen(http_address, "OTLP/HTTP", "--http")
        door_socket = _listen(Address("127.0.0.1", settings.door), "the query door", "--door")
        self.http = Address(http_address.host, http_socket.getsockname()[1])
        self.door = Address("127.0.0.1", door_socket.getsockname()[1])
        with contextlib.ExitStack() as sockets:
            sockets.callback(http_socket.close)
            sockets.callback(door_socket.close)
            store = await loop.run_in_executor(None, self._open_store)
            self._store = store
            if (warning := store.folder.open_to_others()) is not None:
                log.warning("%s", warning)
            try:
                await self._serve(store, http_address, grpc_address, http_socket, door_socket, ready, stop)
            finally:
                await loop.run_in_executor(None, store.close)

    def _open_store(self) -> Store:
        s = self.settings
        return Store.open(
            s.data,
            StoreOptions(
                rotate_spans=s.rotate_spans,
                rotate_seconds=s.rotate_seconds,
                memory_limit=s.memory_limit,
                threads=s.threads,
                workers_give_way=True,
                merge_days=s.merge_days,
                redactor=None
                if s.redaction.idle
                else Redactor(s.redaction, load_key(s.data, s.redaction.key_file)),
            ),
        )

    async def _serve(
        self,
        store: Store,
        http_address: Address,
        grpc_address: Address | None,
        http_socket: socket.socket,
        door_socket: socket.socket,
        ready: Callable[[Collector], None] | None,
        stop: asyncio.Event,
    ) -> None:
        settings = self.settings
        intake = Intake(store, self.counters, Budget(settings.queue_bytes, settings.queue_requests))
        folder = store.folder
        for name, text, read in (
            ("span_files", "Files of spans.", lambda: len(store.files())),
            (
                "span_bytes",
                "Bytes of the span files with their logs.",
                lambda: sum(f.size() for f in store.files()),
            ),
            ("core_bytes", "Bytes of core.duckdb.", lambda: folder.size(folder.core)),
            ("work_bytes", "Bytes of work.duckdb.", lambda: folder.size(folder.work)),
            ("free_bytes", "Free bytes on the volume.", lambda: _free_bytes(folder.root)),
        ):
            self.counters.gauge(name, text, read)
        self.counters.gauge("last_seq", "Highest committed seq.", lambda: store.last_seq)
        otlp = OtlpHttp(
            intake,
            max_bytes=settings.max_request_bytes,
            access=settings.access(),
            check_host=http_address.loopback,
            origins=settings.checked_origins(),
            health=self.health,
        )
        grpc_server = OtlpGrpc(intake, settings, grpc_address) if grpc_address else None
        self.grpc = grpc_server.address if grpc_server else None
        door = Door(store, settings, self.health)
        if self._door_routes is not None:
            door.app.router.routes.extend(self._door_routes(store, door))
        store.on_memory_pressure = door.interrupt
        http_server = _server(otlp.app, settings, tls=True)
        door_server = _server(door.app, settings, tls=False)
        intake.start()
        tasks = [
            asyncio.create_task(http_server.serve([http_socket])),
            asyncio.create_task(door_server.serve([door_socket])),
        ]
        if grpc_server:
            await grpc_server.start()
        while not (http_server.started and door_server.started):
            await asyncio.sleep(0.01)
        asked = threading.Event()
        background = self._start_background(store, asked)
        telling = asyncio.create_task(self._tell_health(grpc_server)) if grpc_server else None
        write_door_file(
            store.folder.door_file,
            door,
            self.door.port if self.door else 0,
            str(self.http),
            str(self.grpc) if self.grpc else None,
            program_version(),
        )
        self._started.set()
        if ready is not None:
            ready(self)
        try:
            await stop.wait()
        finally:
            if telling is not None:
                telling.cancel()
            await self._shut_down(
                store, intake, otlp, grpc_server, door, http_server, door_server, tasks, asked, background
            )

    async def _tell_health(self, grpc_server: OtlpGrpc) -> None:
        """Keep grpc.health.v1 saying what /readyz says."""
        serving = True
        while True:
            await asyncio.sleep(_HEALTH_SECONDS)
            if (now := self.health()["state"] in READY) != serving:
                serving = now
                await grpc_server.tell_health(serving)

    async def _shut_down(
        self,
        store: Store,
        intake: Intake,
        otlp: OtlpHttp,
        grpc_server: OtlpGrpc | None,
        door: Door,
        http_server: uvicorn.Server,
        door_server: uvicorn.Server,
        tasks: list[asyncio.Task[None]],
        asked: threading.Event,
        background: threading.Thread | None,
    ) -> None:
        """Stop accepting, answer what is in flight after its commit, then close. Bounded by stop_seconds.

        What is not committed in time is answered too, before the servers would cut it off: send again.
        """
        loop = asyncio.get_running_loop()
        deadline = time.monotonic() + self.settings.stop_seconds
        store.folder.door_file.unlink(missing_ok=True)
        asked.set()
        otlp.closing = True
        http_server.should_exit = True
        grace = self.settings.stop_seconds / 2

        def give_up() -> None:
            intake.give_up()
            otlp.give_up()

        loop.call_later(grace - min(1.0, grace / 4), give_up)
        if grpc_server:
            await grpc_server.stop(grace)
        await tasks[0]
        door.close()
        door_server.should_exit = True
        await tasks[1]
        if not await loop.run_in_executor(None, intake.close, max(0.5, deadline - time.monotonic())):
            self._left_running = True
            log.error("the last commit did not end in time; its senders were told to send again")
        if background is not None:
            patience = max(0.5, deadline - _INTERRUPT_SECONDS - time.monotonic())
            await loop.run_in_executor(None, background.join, patience)
            while background.is_alive() and time.monotonic() < deadline:
                # In the middle of a pass: its transaction is undone, the next start repeats it.
                store.interrupt()
                await loop.run_in_executor(None, background.join, 0.1)
            if background.is_alive():
                self._left_running = True
                log.warning("the derivation is cut off in the middle; it is repeated at the next start")

    def _start_background(self, store: Store, asked: threading.Event) -> threading.Thread | None:
        run = self._background
        if run is None:
            return None

        def loop() -> None:
            give_way()
            while not asked.is_set():
                try:
                    run(store, asked)
                    self._background_failure = None
                    return
                except FolderGoneError as e:  # the store tells of it
                    self._background_failure = str(e)
                    asked.wait(_BACKGROUND_RETRY_SECONDS)
                except Exception as e:
                    if asked.is_set():
                        return
                    self._background_failure = f"{type(e).__name__}: {e}".splitlines()[0]
                    store.note_damage(e)
                    self.counters.add("background_failures")
                    log.exception("the background work failed; trying again")
                    asked.wait(_BACKGROUND_RETRY_SECONDS)

        thread = threading.Thread(target=loop, name="background", daemon=True)
        thread.start()
        return thread


def _free_bytes(folder: Path) -> int:
    """Free bytes on the volume of a folder; 0 when the folder is gone."""
    try:
        return shutil.disk_usage(folder).free
    except FileNotFoundError:
        return 0


def program_version() -> str:
    """Version of the installed distribution."""
    try:
        return version("agent-slo")
    except PackageNotFoundError:
        return "unknown"


def _server(app: Any, settings: CollectorSettings, *, tls: bool) -> uvicorn.Server:
    secure = tls and settings.tls_certificate is not None
    config = uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=max(1, int(settings.stop_seconds / 2)),
        ssl_certfile=settings.tls_certificate if secure else None,
        ssl_keyfile=settings.tls_key if secure else None,
        ssl_ca_certs=str(settings.tls_client_ca) if secure and settings.tls_client_ca else None,
        ssl_cert_reqs=ssl.CERT_REQUIRED if secure and settings.tls_client_ca else ssl.CERT_NONE,
    )
    return _Server(config)


def _listen(address: Address, what: str, option: str) -> socket.socket:
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as e:
        raise CollectorError(f"{option} {address}: unknown host ({e.strerror})") from e
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(target)
        sock.listen(2048)
    except OSError as e:
        sock.close()
        if e.errno == errno.EADDRINUSE:
            raise CollectorError(
                f"port {address.port} on {address.host} is taken, another process listens there for {what} "
                f"or something else; stop it or choose another with {option} "
                + ("PORT" if option == "--door" else "HOST:PORT")
            ) from e
        raise CollectorError(f"{option} {address}: cannot listen there ({e.strerror})") from e
    sock.setblocking(False)
    return sock


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # the extra `fast` is not installed
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
