"""`POST /actions` at the door: what an operator may change while the collector owns the files.

The body is `{"action": NAME, "arguments": {...}, "id": ID, "by": NAME}`, the answer what the action says. An `id` of
the sender's own makes a command safe to send again: it is carried out once. `GET /actions` lists what there is.

Each action is a model of its arguments and one function over a connection that may write `core`; without a collector
the same function runs on the opened store. What was asked is kept in `core.operator_log`, which nothing rewrites.
"""

from __future__ import annotations

import asyncio
import difflib
import getpass
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import duckdb
import httpx
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agent_slo.door import live_door
from agent_slo.errors import CommandError
from agent_slo.output import plain
from collector.door import Door, read_body
from collector.store import Store, StoreError

MOST_BYTES = 256 << 10
"""Largest body of a command."""
_TRIES = 3

LOG = """
CREATE TABLE IF NOT EXISTS core.operator_log (acted_at TIMESTAMP, action VARCHAR, arguments VARCHAR, answer VARCHAR);
ALTER TABLE core.operator_log ADD COLUMN IF NOT EXISTS command_id VARCHAR;
ALTER TABLE core.operator_log ADD COLUMN IF NOT EXISTS refused VARCHAR;
ALTER TABLE core.operator_log ADD COLUMN IF NOT EXISTS acted_by VARCHAR;
"""


class Arguments(BaseModel):
    """The arguments of one action; unknown ones are refused. The docstring is what `GET /actions` says of it."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


def _moment(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{value!r} is no time; write 2026-11-28T14:00Z") from None
    if not isinstance(value, datetime):
        raise ValueError(f"{value!r} is no time; write 2026-11-28T14:00Z")
    try:
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    except OverflowError:
        raise ValueError(f"{value.isoformat()} is before the year 1 or after 9999 in UTC") from None


Moment = Annotated[datetime, BeforeValidator(_moment)]
"""A time as arguments give it, ISO 8601 (UTC when it says no zone); the model holds naive UTC."""

A = TypeVar("A", bound=Arguments)
_Row = tuple[str, str, str | None, str | None]
"""Of the log: action, arguments, id, by."""


@dataclass(frozen=True)
class Action(Generic[A]):
    """One thing an operator may do."""

    name: str
    """`what.verb`, as `alerts.silence`."""
    arguments: type[A]
    do: Callable[[duckdb.DuckDBPyConnection, A], Mapping[str, Any]]
    """Writes `core` and returns what to answer (plain values and times), or raises ValueError with a line for the
    operator. It runs inside a transaction together with its row of the log, unless `atomic` is False."""
    after: Callable[[duckdb.DuckDBPyConnection], object] | None = None
    """Brings up to date what is computed from the change; runs after the commit."""
    atomic: bool = True
    """False when `do` commits by itself; then it must be harmless to do twice."""


class ArgumentsRefused(ValueError):
    """The arguments do not fit; `fields` holds what is wrong by the name of the argument."""

    def __init__(self, action: str, fields: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{action}: {name}: {what}" for name, what in fields.items()))
        self.fields = dict(fields)


def registry(*actions: Action[Any]) -> dict[str, Action[Any]]:
    """Actions by name. Raises ValueError when two have the same."""
    found: dict[str, Action[Any]] = {}
    for action in actions:
        if action.name in found:
            raise ValueError(f"two actions are named {action.name!r}")
        found[action.name] = action
    return found


def perform(
    con: duckdb.DuckDBPyConnection,
    actions: Mapping[str, Action[Any]],
    name: str,
    arguments: Mapping[str, Any],
    command_id: str | None = None,
    by: str | None = None,
) -> dict[str, Any]:
    """Run one action and log it. Raises ValueError for an unknown one or for what it refuses.

    A `command_id` that was already carried out is answered as it was then, and nothing is done again; with anything
    else in the command it is refused. `by`: who says to be asking, kept in the log.
    """
    con.execute(LOG)
    asked = json.dumps(plain(dict(arguments)), default=str, sort_keys=True)
    row = (name, asked, command_id, by)
    # Refusals are kept too: who reads the log sees what was tried.
    try:
        action = _named(actions, name)
        done = _done_before(con, row)
        if done is not None:
            return done
        answer = _carried_out(con, action, checked(action, arguments), row)
    except ValueError as error:
        _log(con, row, refused=str(error))
        raise
    if action.after is not None:
        action.after(con)
    return answer


def _named(actions: Mapping[str, Action[Any]], name: str) -> Action[Any]:
    action = actions.get(name)
    if action is None:
        near = difflib.get_close_matches(name, actions, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(actions))}"
        raise ValueError(f"no action {name!r}; {hint}")
    return action


def _done_before(con: duckdb.DuckDBPyConnection, row: _Row) -> dict[str, Any] | None:
    """The answer to a command that was carried out before, None when it was not. Raises ValueError when the id was
    that of another one, or of somebody else's."""
    name, asked, command_id, by = row
    if command_id is None:
        return None
    before = con.execute(
        "SELECT action, arguments, acted_by, answer FROM core.operator_log "
        "WHERE command_id = ? AND refused IS NULL",
        [command_id],
    ).fetchone()
    if before is None:
        return None
    if before[:3] != (name, asked, by):
        raise ValueError(
            f"id {command_id!r} was another command ({before[0]}{f' by {before[2]}' if before[2] else ''}); "
            "give each command its own"
        )
    done: dict[str, Any] = json.loads(before[3])
    return done


def checked(action: Action[A], arguments: Mapping[str, Any]) -> A:
    """The arguments as the action's model. Raises ArgumentsRefused naming each that does not fit."""
    try:
        # None means not given: forms and command lines send every field they have.
        return action.arguments.model_validate({k: v for k, v in arguments.items() if v is not None})
    except ValidationError as error:
        fields: dict[str, str] = {}
        for detail in error.errors(include_url=False):
            where = ".".join(str(part) for part in detail["loc"]) or "arguments"
            fields.setdefault(where, _wrong(action.arguments, detail))
        raise ArgumentsRefused(action.name, fields) from None


def _wrong(model: type[Arguments], detail: ErrorDetails) -> str:
    known = list(model.model_fields)
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(detail["loc"][-1]), known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known) or 'none'}"
        return f"no such argument; {hint}"
    if detail["type"] == "missing":
        field = model.model_fields.get(str(detail["loc"][0]))
        meaning = f": {field.description}" if field is not None and field.description else ""
        return f"is needed{meaning}"
    message = detail["msg"].removeprefix("Value error, ")
    return message[:1].lower() + message[1:] if message[:2].istitle() else message


def _carried_out(
    con: duckdb.DuckDBPyConnection, action: Action[A], arguments: A, row: _Row
) -> dict[str, Any]:
    if not action.atomic:
        answer: dict[str, Any] = plain(dict(action.do(con, arguments)))
        _log(con, row, answer=answer)
        return answer
    for attempt in range(_TRIES):
        con.execute("BEGIN TRANSACTION")
        try:
            answer = plain(dict(action.do(con, arguments)))
            _log(con, row, answer=answer)
        except BaseException:
            con.execute("ROLLBACK")
            raise
        try:
            con.execute("COMMIT")
        except duckdb.TransactionException:  # the derivation changed the same rows; nothing was kept
            if attempt == _TRIES - 1:
                raise
        else:
            return answer
    raise AssertionError("unreachable: the last try returns or raises")


def _log(
    con: duckdb.DuckDBPyConnection,
    row: _Row,
    *,
    answer: Mapping[str, Any] | None = None,
    refused: str | None = None,
) -> None:
    name, asked, command_id, by = row
    con.execute(
        "INSERT INTO core.operator_log (acted_at, action, arguments, answer, command_id, refused, acted_by) "
        "VALUES (now()::TIMESTAMP, ?, ?, ?, ?, ?, ?)",
        [name, asked, None if answer is None else json.dumps(answer, default=str), command_id, refused, by],
    )


def described(actions: Mapping[str, Action[Any]]) -> list[dict[str, Any]]:
    """What `GET /actions` answers: name, what it does, JSON schema of its arguments; by name."""
    return [
        {
            "action": name,
            "does": (actions[name].arguments.__doc__ or "").strip().splitlines()[0],
            "arguments": actions[name].arguments.model_json_schema(),
        }
        for name in sorted(actions)
    ]


def _command(body: bytes) -> tuple[str, dict[str, Any], str | None, str | None]:
    """Name, arguments, id and sender of a command. Raises ValueError with a line for the sender."""
    words = 'send a JSON object {"action": TEXT, "arguments": OBJECT, "id": TEXT of your own and "by": TEXT, optional}'
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(words) from error
    if not isinstance(asked, dict) or not isinstance(asked.get("action"), str):
        raise ValueError(words)
    if unknown := sorted(set(asked) - {"action", "arguments", "id", "by"}):
        raise ValueError(f"{unknown[0]}: no such key; {words}")
    arguments = asked.get("arguments") or {}
    if not isinstance(arguments, dict):
        raise ValueError(f"arguments: an object is needed; {words}")
    for key in ("id", "by"):
        text = asked.get(key)
        if text is not None and not (isinstance(text, str) and 0 < len(text) <= 200):
            raise ValueError(f"{key}: a text of 1 to 200 characters is needed")
    return asked["action"], arguments, asked.get("id"), asked.get("by")


def routes(
    actions: Mapping[str, Action[Any]], lock: threading.Lock
) -> Callable[[Store, Door], list[BaseRoute]]:
    """Door routes for `Collector(door_routes=...)`; `lock` keeps actions and evaluations apart."""

    def made(store: Store, door: Door) -> list[BaseRoute]:
        def work(body: bytes) -> dict[str, Any]:
            command = _command(body)
            with lock:
                con = store.derivation()
                try:
                    answer = perform(con, actions, *command)
                finally:
                    con.close()
                    store.refresh_views()
            return answer

        async def act(request: Request) -> Response:
            if (refused := door.refusal(request, "admin")) is not None:
                return refused
            body = await read_body(request, MOST_BYTES)
            if body is None:
                return JSONResponse({"error": f"a command has at most {MOST_BYTES} bytes"}, 413)
            try:
                found = await asyncio.get_running_loop().run_in_executor(None, work, body)
            except ArgumentsRefused as error:
                return JSONResponse({"error": str(error), "fields": error.fields}, 400)
            except (ValueError, duckdb.Error) as error:
                return JSONResponse({"error": str(error)}, 400)
            except StoreError as error:  # closed, or its folder is gone
                return JSONResponse({"error": str(error)}, 503)
            return JSONResponse(found)

        async def tell(request: Request) -> Response:
            if (refused := door.refusal(request, "read")) is not None:
                return refused
            return JSONResponse({"actions": described(actions)})

        return [Route("/actions", act, methods=["POST"]), Route("/actions", tell, methods=["GET"])]

    return made


def act(
    data: Path, actions: Mapping[str, Action[Any]], name: str, arguments: Mapping[str, Any]
) -> dict[str, Any]:
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
                return perform(con, actions, name, arguments, by=account())
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
            json={"action": name, "arguments": plain(dict(arguments)), "by": account()},
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


def account() -> str | None:
    """The account that runs this command, for the log."""
    try:
        return getpass.getuser()[:200] or None
    except (OSError, KeyError):  # an account without a name, as in some containers
        return None
