"""`POST /actions` at the door: what an operator may change while the collector owns the files.

The body is `{"action": NAME, "arguments": {...}}`, the answer what the action says. Each action is one function
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
CREATE TABLE IF NOT EXISTS core.operator_log (acted_at TIMESTAMP, action VARCHAR, arguments VARCHAR, answer VARCHAR)
"""


def perform(
    con: duckdb.DuckDBPyConnection, actions: Mapping[str, Action], name: str, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Run one action and log it. Raises ValueError for an unknown one or for what it refuses."""
    action = actions.get(name)
    if action is None:
        raise ValueError(f"no action {name!r}; there are {', '.join(sorted(actions))}")
    answer: dict[str, Any] = plain(dict(action(con, arguments)))
    con.execute(LOG)
    con.execute(
        "INSERT INTO core.operator_log VALUES (now()::TIMESTAMP, ?, ?, ?)",
        [name, json.dumps(plain(dict(arguments)), default=str), json.dumps(answer, default=str)],
    )
    return answer


def routes(actions: Mapping[str, Action], lock: threading.Lock) -> Callable[[Store, Door], list[BaseRoute]]:
    """Door routes for `Collector(door_routes=...)`; `lock` keeps actions and evaluations apart."""

    def made(store: Store, door: Door) -> list[BaseRoute]:
        def work(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
            with lock:
                con = store.derivation()
                try:
                    answer = perform(con, actions, name, arguments)
                finally:
                    con.close()
            store.refresh_views()
            return answer

        async def answer(request: Request) -> Response:
            if not door.authorised(request):
                return JSONResponse({"error": "a bearer token is needed; it is in door.json"}, 401)
            try:
                asked = json.loads(await request.body())
                name, arguments = str(asked["action"]), dict(asked.get("arguments") or {})
            except (ValueError, KeyError, TypeError, AttributeError):
                words = 'send a JSON object {"action": TEXT, "arguments": OBJECT}'
                return JSONResponse({"error": words}, 400)
            try:
                found = await asyncio.get_running_loop().run_in_executor(None, work, name, arguments)
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
