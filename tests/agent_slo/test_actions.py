"""`POST /actions`: for administrators, logged, carried out once."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

from agent_slo.actions import perform, routes
from collector.access import Token
from collector.serve import Collector, CollectorSettings

CALLS: list[int] = []


def add(con: duckdb.DuckDBPyConnection, given: Mapping[str, Any]) -> Mapping[str, Any]:
    number = given.get("number")
    if not isinstance(number, int):
        raise ValueError("number: give a whole number")
    CALLS.append(number)
    return {"sum": sum(CALLS)}


@pytest.fixture
def collector(tmp_path: Path) -> Any:
    CALLS.clear()
    settings = CollectorSettings(
        data=tmp_path,
        http="127.0.0.1:0",
        grpc=None,
        tokens=(Token("read", "reader-1"), Token("admin", "boss-1")),
    )
    with Collector(settings, door_routes=routes({"add": add}, threading.Lock())) as running:
        yield running


def ask(collector: Any, token: str, content: Any) -> httpx.Response:
    return httpx.post(
        f"http://{collector.door}/actions",
        content=json.dumps(content),
        headers={"authorization": f"Bearer {token}"},
        trust_env=False,
    )


def log(collector: Any) -> list[tuple[Any, ...]]:
    with collector.store.reader() as con:
        rows = "SELECT action, command_id, answer, refused FROM operator_log ORDER BY acted_at"
        found: list[tuple[Any, ...]] = con.execute(rows).fetchall()
    return found


def test_a_command_is_carried_out_once_by_its_id(collector: Any) -> None:
    command = {"action": "add", "arguments": {"number": 2}, "id": "c-1"}
    first, again = ask(collector, "boss-1", command), ask(collector, "boss-1", command)
    assert (first.json(), again.json()) == ({"sum": 2}, {"sum": 2})
    assert CALLS == [2]
    other = ask(collector, "boss-1", {**command, "arguments": {"number": 3}})
    assert other.status_code == 400
    assert "another command" in other.json()["error"]
    assert ask(collector, "boss-1", {"action": "add", "arguments": {"number": 5}}).json() == {"sum": 7}
    assert [row[:2] for row in log(collector)] == [("add", "c-1"), ("add", None)]


def test_only_administrators_act(collector: Any) -> None:
    command = {"action": "add", "arguments": {"number": 2}}
    assert ask(collector, "reader-1", command).status_code == 403
    assert ask(collector, "nobody", command).status_code == 401
    assert CALLS == []


def test_what_is_refused_is_said_and_kept(collector: Any) -> None:
    refused = ask(collector, "boss-1", {"action": "add", "arguments": {"number": "two"}, "id": "c-2"})
    assert (refused.status_code, refused.json()["error"]) == (400, "number: give a whole number")
    assert log(collector) == [("add", "c-2", None, "number: give a whole number")]
    # a refused command may be mended and sent again under its id
    assert ask(collector, "boss-1", {"action": "add", "arguments": {"number": 1}, "id": "c-2"}).json() == {
        "sum": 1
    }
    assert ask(collector, "boss-1", {"action": "lift"}).status_code == 400
    for content in ({"arguments": {}}, [], {"action": "add", "id": ""}, {"action": "add", "id": 7}):
        assert ask(collector, "boss-1", content).status_code == 400


def test_an_older_log_goes_on() -> None:
    con = duckdb.connect(":memory:")
    con.execute("ATTACH ':memory:' AS core")
    con.execute(
        "CREATE TABLE core.operator_log (acted_at TIMESTAMP, action VARCHAR, arguments VARCHAR, answer VARCHAR)"
    )
    CALLS.clear()
    assert perform(con, {"add": add}, "add", {"number": 4}) == {"sum": 4}
    assert con.execute("SELECT count(*) FROM core.operator_log").fetchone() == (1,)
