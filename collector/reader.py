"""Reading a data folder from another process: through the door of a running collector, else the files."""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path
from typing import Any, Literal

import duckdb
import httpx
import pyarrow as pa

from collector import views
from collector.layout import DataFolder, StoreError, quoted
from collector.repair import cut_off, damage_position, damaged_file
from collector.statement import QueryRefused, check_statement

log = logging.getLogger("agent_slo.reader")

_LOCK_WAIT_SECONDS = 10.0
_DOOR_SECONDS = 120.0

Params = list[Any] | dict[str, Any] | None


class ReaderError(Exception):
    """The data cannot be read, or the query is wrong; the message says which and how to mend it."""


class Reader:
    """One SELECT at a time over the public views.

    `source` is "door" (a collector is running and answers) or "files" (opened read-only; `skipped` names
    files left out because their log needs the repair a collector does at its start).
    """

    def __init__(self, folder: DataFolder) -> None:
        self.folder = folder
        self.skipped: list[str] = []
        self.source: Literal["door", "files"]
        self._client: httpx.Client | None = None
        self._con: duckdb.DuckDBPyConnection | None = None

    def sql(self, sql: str, params: Params = None) -> pa.Table:
        """Run one SELECT. Parameters: a list for `?`, a dict for `$name`.

        Raises ReaderError: not one SELECT, an SQL error, a limit of the door, or no connection.
        """
        if self._client is not None:
            return self._ask(self._client, sql, params)
        if self._con is not None:
            return self._read(self._con, sql, params)
        raise ReaderError("this reader is closed")

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._con is not None:
            self._con.close()
            self._con = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, client: httpx.Client, sql: str, params: Params) -> pa.Table:
        try:
            answer = client.post("/sql", content=json.dumps({"sql": sql, "params": params}, default=str))
        except httpx.HTTPError as e:
            raise ReaderError(f"the collector stopped answering ({e}); ask again") from e
        if answer.status_code != 200:
            try:
                message = answer.json()["error"]
            except (ValueError, KeyError, TypeError):
                message = f"HTTP {answer.status_code}"
            raise ReaderError(message)
        return pa.ipc.open_stream(answer.content).read_all()

    def _read(self, con: duckdb.DuckDBPyConnection, sql: str, params: Params) -> pa.Table:
        try:
            check_statement(con, sql, params)
            return con.sql(sql, params=params or None).to_arrow_reader(65_536).read_all()
        except (QueryRefused, duckdb.Error) as e:
            folder = self.folder
            files = [*(f.path for f in folder.span_files()), folder.core, folder.work]
            found = damaged_file(str(e), files) if isinstance(e, duckdb.Error) else None
            raise ReaderError(found[1] if found is not None else str(e)) from e


def open_reader(data: Path | str) -> Reader:
    """Open a data folder for reading, whether or not a collector runs.

    Raises ReaderError: no data folder there, written by a newer version, or held by a process that does
    not answer (named by its PID).
    """
    folder = DataFolder(Path(data).expanduser().resolve())
    if not folder.root.is_dir():
        raise ReaderError(
            f"data folder {folder.root}: there is none; start `agent-slo collect`, import traces, "
            "or name another with --data"
        )
    try:
        folder.check_format()
    except StoreError as e:
        raise ReaderError(str(e)) from e
    deadline = time.monotonic() + _LOCK_WAIT_SECONDS
    while True:
        client = _open_door(folder)
        if client is not None:
            reader = Reader(folder)
            reader.source, reader._client = "door", client
            return reader
        try:
            return _open_files(folder)
        except _HeldError as e:
            # A collector that is just starting or stopping holds the files without an open door.
            if time.monotonic() >= deadline:
                raise ReaderError(
                    f"data folder {folder.root}: held by process {e.pid}, which does not answer queries; "
                    "wait for it or stop it"
                ) from e
            time.sleep(0.2)


class _HeldError(Exception):
    def __init__(self, pid: str) -> None:
        super().__init__(pid)
        self.pid = pid


def _open_door(folder: DataFolder) -> httpx.Client | None:
    """A client of the door when door.json is there and its collector answers, else None."""
    try:
        door = json.loads(folder.door_file.read_text())
        address, token, pid = door["door"], door["token"], int(door["pid"])
    except FileNotFoundError:
        return None
    except PermissionError as e:
        raise ReaderError(
            f"{folder.door_file} is readable by its owner only; run this as the user that runs the collector"
        ) from e
    except (ValueError, KeyError, TypeError) as e:
        log.warning("%s cannot be read (%s): trying the files", folder.door_file, e)
        return None
    if not _alive(pid):
        return None
    client = httpx.Client(
        base_url=address, headers={"authorization": f"Bearer {token}"}, timeout=_DOOR_SECONDS, trust_env=False
    )
    try:
        client.get("/healthz", timeout=5.0).raise_for_status()
    except httpx.HTTPError as e:
        log.warning("the door at %s does not answer (%s): trying the files", address, e)
        client.close()
        return None
    return client


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _open_files(folder: DataFolder) -> Reader:
    reader = Reader(folder)
    reader.source = "files"
    con = duckdb.connect(":memory:")
    try:
        con.execute("SET GLOBAL TimeZone = 'UTC'")
        con.execute(f"SET temp_directory = {quoted(folder.temporary)}")
        databases = [f.database for f in folder.span_files() if _attach(con, f.path, f.database, reader)]
        for path, alias in ((folder.core, "core"), (folder.work, "work")):
            if path.exists():
                _attach(con, path, alias, reader)
        named = {f.database: f.path for f in folder.span_files() if f.database in databases}
        for path, missing in cut_off(con, named | {"core": folder.core, "work": folder.work}):
            # What is still there can be read; a query over the rest says so.
            reader.skipped.append(f"{path.name}: at least {missing} bytes at its end are missing")
            log.warning("%s: at least %d bytes at its end are missing", path, missing)
        databases = [d for d in databases if _has_tables(con, d)]
        if not databases:
            con.execute("ATTACH ':memory:' AS spans_none")
            views.create_tables(con, "spans_none")
            databases = ["spans_none"]
        for statement in (*views.span_views(databases), *views.derived_views(con)):
            con.execute(statement)
        con.execute("SET enable_external_access = false")
        con.execute("SET lock_configuration = true")
    except BaseException:
        con.close()
        raise
    reader._con = con
    return reader


def _attach(con: duckdb.DuckDBPyConnection, path: Path, alias: str, reader: Reader) -> bool:
    try:
        con.execute(f"ATTACH {quoted(path)} AS {alias} (READ_ONLY)")
        return True
    except duckdb.Error as e:
        message = str(e)
        if "Could not set lock" in message and "PID " in message:
            raise _HeldError(message.split("PID ")[1].split(")")[0]) from e
        if damage_position(message) is not None or "not a valid DuckDB database file" in message:
            reason = "its log is damaged; `agent-slo collect` repairs it at its start"
        else:
            reason = message.splitlines()[0]
        reader.skipped.append(f"{path.name}: {reason}")
        log.warning("left out %s: %s", path, reason)
        return False


def _has_tables(con: duckdb.DuckDBPyConnection, database: str) -> bool:
    """Whether the tables are there; a collector killed while creating a file leaves one without."""
    found = con.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = ? AND table_name IN (SELECT unnest(?))",
        [database, list(views.table_names())],
    ).fetchone()
    return found is not None and found[0] == len(views.table_names())
