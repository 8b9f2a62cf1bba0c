"""The pages' only way to data: `collector.reader` on the folder named by `AGENT_SLO_DATA`.

While the collector runs, one client to its door is kept for all sessions. When it is down, files are opened
for one page and closed after it, because an open reader would keep the collector from starting.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pyarrow as pa
import streamlit as st

from collector.reader import Reader, ReaderError, open_reader
from dashboard.queries import changes_with_a_pass, query_text

DATA_VARIABLE = "AGENT_SLO_DATA"
DEFAULT_ADDRESSES = {"http": "127.0.0.1:4318", "grpc": "127.0.0.1:4317"}

ACTION_SECONDS = 10.0
"""For what somebody waits for; a second asking with the same id is answered as the first."""
ALIVE_SECONDS = 3.0
"""Within which a collector that runs says that it does."""
PATIENCE_SECONDS = 5.0
"""After so long without an answer to a question the collector is asked whether it still runs."""
REMEMBERED = 256
"""Answers kept; most are a few hundred rows."""

AHEAD = ThreadPoolExecutor(4, thread_name_prefix="ahead")
"""Asks while a page draws; more at once would only wait for each other at the door."""

_ASKING = ThreadPoolExecutor(32, thread_name_prefix="asking")
"""Waits for the door, so that a page need not when the collector hangs."""

Row = dict[str, Any]


def data_folder() -> Path:
    """The data folder this dashboard shows."""
    return Path(os.environ.get(DATA_VARIABLE, "agent-slo-data"))


def door_file(data: Path) -> Path:
    """The file a running collector writes: where its door is, and how to ask there."""
    return data / "door.json"


def addresses(data: Path) -> Mapping[str, str]:
    """Where to send spans: the running collector's addresses, else the default ones."""
    try:
        door = json.loads(door_file(data).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return DEFAULT_ADDRESSES
    return {key: str(door.get(key) or default) for key, default in DEFAULT_ADDRESSES.items()}


class DoesNotAnswer(ReaderError):
    """The collector is there and says nothing."""


class ActionRefused(Exception):
    """What was asked for is not done; the message says why."""


def act(
    data: Path,
    action: str,
    arguments: Mapping[str, Any],
    *,
    by: str | None = None,
    command_id: str | None = None,
) -> dict[str, Any]:
    """Ask the running collector for a change, by its `POST /actions`, and return its answer.

    `by`: who asks. A `command_id` that was carried out before is answered as it was then. Raises `ActionRefused`.
    """
    said = {"action": action, "arguments": dict(arguments), "by": by, "id": command_id}
    try:
        door = json.loads(door_file(data).read_text(encoding="utf-8"))
        # One that hangs takes a request and says nothing; this tells it at once, and with nothing asked of it.
        httpx.get(f"{door['door']}/healthz", timeout=ALIVE_SECONDS, trust_env=False)
        answer = httpx.post(
            f"{door['door']}/actions",
            json={key: value for key, value in said.items() if value is not None},
            headers={"authorization": f"Bearer {door['token']}"},
            timeout=ACTION_SECONDS,
            trust_env=False,
        )
        told = answer.json()
    except (OSError, ValueError, KeyError, httpx.HTTPError) as error:
        raise ActionRefused(
            f"the collector does not answer ({type(error).__name__}); is it running? What you wrote is still there: "
            "try again when it does"
        ) from error
    if answer.status_code != 200:
        raise ActionRefused(str(told.get("error", f"answer {answer.status_code}")))
    return dict(told)


def alive(data: Path) -> bool:
    """Whether a collector answers at the address in `door.json`, within `ALIVE_SECONDS`."""
    try:
        door = json.loads(door_file(data).read_text(encoding="utf-8"))
        httpx.get(f"{door['door']}/healthz", timeout=ALIVE_SECONDS, trust_env=False)
    except (OSError, ValueError, KeyError, httpx.HTTPError):
        return False
    return True


class Answers:
    """Answers to the pages' named queries, from one open reader."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._mark: tuple[Any, ...] | None = None
        self._views: frozenset[str] | None = None
        self._ahead: dict[tuple[str, str], Future[pa.Table]] = {}
        # Files are one connection, which answers one question at a time; the door takes several.
        self._turn = threading.Lock() if reader.source == "files" else None
        self.source: str = reader.source

    @property
    def source_of_spans(self) -> Reader:
        """The reader itself, for the queries of other packages."""
        # It is asked past `_turn`, so nothing else may be under way.
        self.finish()
        return self._reader

    @property
    def skipped(self) -> list[str]:
        """Files left out because they need a repair."""
        return list(self._reader.skipped)

    def health(self) -> Row:
        """What the running collector says of itself; empty when none runs or it does not answer in time."""
        if self.source != "door":
            return {}
        try:
            door = json.loads(self._reader.folder.door_file.read_text(encoding="utf-8"))
            return dict(httpx.get(f"{door['door']}/healthz", timeout=2.0, trust_env=False).json())
        except (OSError, ValueError, KeyError, httpx.HTTPError):
            # Its answers to queries are shown all the same; a dead collector is told by the page's head.
            return {}

    def table(self, name: str, **parameters: Any) -> pa.Table:
        """Run `dashboard/sql/<name>.sql`. Raises `ReaderError`.

        What changes with a pass alone is remembered until the next one: a click or a toggle runs the whole page
        again, and these are its dear questions.
        """
        asked = json.dumps(parameters, sort_keys=True, default=str)
        waiting = self._ahead.pop((name, asked), None)
        return waiting.result() if waiting is not None else self._answer(name, asked)

    def ahead(self, *names: str, **parameters: Any) -> None:
        """Ask these with these parameters now, so that their answers are there when the page comes to them."""
        asked = json.dumps(parameters, sort_keys=True, default=str)
        for name in names:
            self._ahead[name, asked] = AHEAD.submit(self._answer, name, asked)

    def finish(self) -> None:
        """Wait for what was asked ahead, so that the reader can be closed or given away."""
        wait(self._ahead.values())

    def mark(self) -> tuple[Any, ...]:
        """Which state of the derived data the answers are of."""
        if self._mark is None:
            self._mark = tuple(self._ask(query_text("mark"), {}).to_pylist()[0].values())
        return self._mark

    def _answer(self, name: str, asked: str) -> pa.Table:
        if not changes_with_a_pass(name):
            return self._ask(query_text(name), json.loads(asked))
        return _remembered(self._ask, str(self._reader.folder.root), self.mark(), name, asked)

    def ask(self, sql: str, parameters: Mapping[str, Any]) -> pa.Table:
        """Run one SELECT of another package. Raises `ReaderError`."""
        return self._ask(sql, dict(parameters))

    def _ask(self, sql: str, parameters: Row) -> pa.Table:
        if self.source != "door":
            with self._turn or nullcontext():
                return self._reader.sql(sql, parameters or None)
        asking = _ASKING.submit(self._reader.sql, sql, parameters or None)
        while True:
            try:
                return asking.result(PATIENCE_SECONDS)
            except TimeoutError:
                # A dear question takes longer; a collector that hangs does not even say that it is there.
                if not alive(self._reader.folder.root):
                    raise DoesNotAnswer(_SILENT) from None

    def rows(self, name: str, **parameters: Any) -> list[Row]:
        """The same as dicts; NULL is None and timestamps are naive UTC `datetime`s."""
        rows: list[Row] = self.table(name, **parameters).to_pylist()
        return rows

    def row(self, name: str, **parameters: Any) -> Row | None:
        """The first row, or None."""
        rows = self.rows(name, **parameters)
        return rows[0] if rows else None

    def views(self) -> frozenset[str]:
        """The names of the public views that exist; an untouched data folder has few or none."""
        if self._views is None:
            self._views = frozenset(self.table("views").column("view_name").to_pylist())
        return self._views


@st.cache_resource(max_entries=REMEMBERED, ttl=600, show_spinner=False)  # type: ignore[untyped-decorator]
def _remembered(
    _ask: Callable[[str, Row], pa.Table], folder: str, mark: tuple[Any, ...], name: str, asked: str
) -> pa.Table:
    """The answer to one query over one state of the data. Tables cannot be changed, so sessions may share them."""
    del folder, mark
    return _ask(query_text(name), json.loads(asked))


@st.cache_resource(max_entries=2, on_release=lambda reader: reader.close())  # type: ignore[untyped-decorator]
def _door(folder: str, changed_ns: int) -> Reader:
    """The shared door client; a restarted collector writes a new door.json, hence a new entry."""
    del changed_ns
    return open_reader(Path(folder))


_SILENT = (
    "the collector is there but does not answer: wait for it, or stop it and start it again. It keeps its files to "
    "itself for as long, so they cannot be read in its place. This page looks again every few seconds"
)


def _check_files(data: Path) -> None:
    """Raise `DoesNotAnswer` when a process that is silent holds the files, which would be waited for in vain."""
    core = data / "core.duckdb"
    if not core.is_file():
        return
    try:
        duckdb.connect(str(core), read_only=True).close()
    except duckdb.IOException as error:
        if "Could not set lock" in str(error):
            raise DoesNotAnswer(_SILENT) from error
    except duckdb.Error:
        # Whatever else is wrong with the file, the reader says it.
        return


@contextmanager
def answers(data: Path) -> Iterator[Answers]:
    """Open the data for one page. Raises `ReaderError` whose text is fit to be shown."""
    try:
        changed_ns = door_file(data).stat().st_mtime_ns
    except FileNotFoundError:
        changed_ns = 0
    if changed_ns:
        # Asked before a client is opened or used: a collector that hangs keeps both waiting.
        answering = alive(data)
        reader = _door(str(data), changed_ns) if answering else None
        if reader is None:
            # The collector died without taking its door.json along, or hangs and keeps its files to itself.
            _door.clear()
            _check_files(data)
        elif reader.source == "door":
            try:
                reader.sql("SELECT 1")
            except ReaderError:
                _door.clear()
            else:
                found = Answers(reader)
                try:
                    yield found
                finally:
                    found.finish()
                return
        else:
            _door.clear()
    reader = open_reader(data)
    found = Answers(reader)
    try:
        yield found
    finally:
        found.finish()
        reader.close()
