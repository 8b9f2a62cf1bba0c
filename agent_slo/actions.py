"""`POST /actions` at the door: what an operator may change while the collector owns the files.

The body is `{"action": NAME, "arguments": {...}, "id": ID}`, the answer what the action says. An `id` of the
sender's own makes a command safe to send again: it is carried out once. Each action is one function
over a connection that may write `core`; without a collector the same function runs on the opened store. What was
asked is kept in `core.operator_log`, which nothing rewrites.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agent_slo.door import live_door
from agent_slo.errors import CommandError
from agent_slo.output import plain
from collector.door import Door
from collector.store import Store

Action = Callable[[duckdb.DuckDBPyConnection, Mapping[str, Any]], Mapping[str, Any]]
"""Does it, or raises ValueError with a line for the operator. Arguments and answer are plain JSON values."""

LOG = """
CREATE TABLE IF NOT EXISTS core.operator_log (acted_at TIMESTAMP, action VARCHAR, arguments VARCHAR, answer VARCHAR);
ALTER TABLE core.operator_log ADD COLUMN IF NOT EXISTS command_id VARCHAR;
ALTER TABLE core.operator_log ADD COLUMN IF NOT EXISTS refused VARCHAR;
"""


def perform(
    con: duckdb.DuckDBPyConnection,
    actions: Mapping[str, Action],
    name: str,
    arguments: Mapping[str, Any],
    command_id: str | None = None,
) -> dict[str, Any]:
    """Run one action and log it. Raises ValueError for an unknown one or for what it refuses.

    A `command_id` that was already carried out is answered as it was then, and nothing is done again.
    """
    action = actions.get(name)
    if action is None:
        raise ValueError(f"no action {name!r}; there are {', '.join(sorted(actions))}")
    con.execute(LOG)
    asked = json.dumps(plain(dict(arguments)), default=str, sort_keys=True)
    if command_id is not None:
        before = con.execute(
            "SELECT action, arguments, answer FROM core.operator_log WHERE command_id = ? AND refused IS NULL",
            [command_id],
        ).fetchone()
        if before is not None and before[:2] != (name, asked):
            raise ValueError(
                f"id {command_id!r} was another command ({before[0]}); give each command its own"
            )
        if before is not None:
            done: dict[str, Any] = json.loads(before[2])
            return done
    # Refusals are kept too: who reads the log sees what was tried.
    try:
        answer: dict[str, Any] = plain(dict(action(con, arguments)))
    except ValueError as error:
        _log(con, name, asked, None, command_id, str(error))
        raise
    _log(con, name, asked, json.dumps(answer, default=str), command_id, None)
    return answer


def _log(
    con: duckdb.DuckDBPyConnection,
    name: str,
    asked: str,
    answer: str | None,
    command_id: str | None,
    refused: str | None,
) -> None:
    con.execute(
        "INSERT INTO core.operator_log (acted_at, action, arguments, answer, command_id, refused) "
        "VALUES (now()::TIMESTAMP, ?, ?, ?, ?, ?)",
        [name, asked, answer, command_id, refused],
    )


def routes(actions: Mapping[str, Action], lock: threading.Lock) -> Callable[[Store, Door], list[BaseRoute]]:
    """Door routes for `Collector(door_routes=...)`; `lock` keeps actions and evaluations apart."""

    def made(store: Store, door: Door) -> list[BaseRoute]:
        def work(name: str, arguments: Mapping[str, Any], command_id: str | None) -> dict[str, Any]:
            with lock:
                con = store.derivation()
                try:
                    answer = perform(con, actions, name, arguments, command_id)
                finally:
                    con.close()
                    store.refresh_views()
            return answer

        async def answer(request: Request) -> Response:
            if (refused := door.refusal(request, "admin")) is not None:
                return refused
            try:
                asked = json.loads(await request.body())
                name, arguments, command_id = (
                    str(asked["action"]),
                    dict(asked.get("arguments") or {}),
                    asked.get("id"),
                )
                if command_id is not None and not (
                    isinstance(command_id, str) and 0 < len(command_id) <= 200
                ):
                    raise ValueError
            except (ValueError, KeyError, TypeError, AttributeError):
                words = 'send a JSON object {"action": TEXT, "arguments": OBJECT, "id": TEXT of your own, optional}'
                return JSONResponse({"error": words}, 400)
            try:
                found = await asyncio.get_running_loop().run_in_executor(
                    None, work, name, arguments, command_id
                )
            except (ValueError, duckdb.Error) as error:
                return JSONResponse({"error": str(error)}, 400)
            return JSONResponse(found)

        return [Route("/actions", answer, methods=["POST"])]

    return made


def act(data: Path, actions: Mapping[str, Action], name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Run an action on a data folder: through the running collector, else on the store itself.

    Raises CommandError with what was refused.
    """
    door = live_door(data)
    if door is None:
        if not (data / "format.json").is_file():
            raise CommandError(f"{data}: there is no data folder; name it with --data")
        store = Store.open(data)
        try:
            con = store.derivation()
            try:
                return perform(con, actions, name, arguments)
            except ValueError as error:
                raise CommandError(str(error)) from error
            finally:
                con.close()
        finally:
            store.close()
    token = json.loads((data / "door.json").read_text(encoding="utf-8"))["token"]
    try:
        answer = httpx.post(
            f"{door.address}/actions",
            json={"action": name, "arguments": plain(dict(arguments))},
            headers={"authorization": f"Bearer {token}"},
            timeout=60.0,
            trust_env=False,
        )
        found: dict[str, Any] = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise CommandError(f"the collector of {data} does not answer ({error}); try again") from error
    if answer.status_code != 200:
        raise CommandError(str(found.get("error", f"answer {answer.status_code}")))
    return found
