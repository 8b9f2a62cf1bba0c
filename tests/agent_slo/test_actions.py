"""`POST /actions`: for administrators, logged, carried out once."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest
from pydantic import Field

from agent_slo.actions import Action, Arguments, ArgumentsRefused, Moment, checked, perform, registry, routes
from agent_slo.operator_actions import operator_actions
from collector.access import Token
from collector.serve import Collector, CollectorSettings
from metrics.alerts.engine import AlertEngine
from metrics.alerts.settings import AlertSettings

CALLS: list[int] = []


class AddArguments(Arguments):
    """Add a number to the sum."""

    number: int = Field(description="what to add")
    at: Moment | None = None


def add(con: duckdb.DuckDBPyConnection, given: AddArguments) -> Mapping[str, Any]:
    if given.number == 13:
        raise ValueError("number: not this one")
    con.execute("CREATE TABLE IF NOT EXISTS core.numbers (number INTEGER)")
    con.execute("INSERT INTO core.numbers VALUES (?)", [given.number])
    if given.number == 99:
        raise RuntimeError("the power went")
    CALLS.append(given.number)
    return {"sum": sum(CALLS)}


ACTIONS = registry(Action("numbers.add", AddArguments, add))


@pytest.fixture
def collector(tmp_path: Path) -> Any:
    CALLS.clear()
    settings = CollectorSettings(
        data=tmp_path,
        http="127.0.0.1:0",
        grpc=None,
        tokens=(Token("read", "reader-1"), Token("admin", "boss-1")),
    )
    with Collector(settings, door_routes=routes(ACTIONS, threading.Lock())) as running:
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
    command = {"action": "numbers.add", "arguments": {"number": 2}, "id": "c-1"}
    first, again = ask(collector, "boss-1", command), ask(collector, "boss-1", command)
    assert (first.json(), again.json()) == ({"sum": 2}, {"sum": 2})
    assert CALLS == [2]
    other = ask(collector, "boss-1", {**command, "arguments": {"number": 3}})
    assert other.status_code == 400
    assert "another command" in other.json()["error"]
    else_s = ask(collector, "boss-1", {**command, "by": "somebody"})
    assert (else_s.status_code, "another command" in else_s.json()["error"]) == (400, True)
    assert ask(collector, "boss-1", {"action": "numbers.add", "arguments": {"number": 5}}).json() == {
        "sum": 7
    }
    assert ask(collector, "boss-1", {"action": "numbers.ad", "id": "c-2"}).status_code == 400
    assert [(*row[:2], row[3] is None) for row in log(collector)] == [
        ("numbers.add", "c-1", True),
        ("numbers.add", "c-1", False),
        ("numbers.add", "c-1", False),
        ("numbers.add", None, True),
        ("numbers.ad", "c-2", False),
    ]


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
def test_a_time_that_utc_cannot_hold_is_refused(collector: Any, at: str) -> None:
    refused = ask(collector, "boss-1", {"action": "numbers.add", "arguments": {"number": 2, "at": at}})
    assert refused.status_code == 400
    assert "after 9999 in UTC" in refused.json()["fields"]["at"]
    assert CALLS == []


def test_only_administrators_act(collector: Any) -> None:
    command = {"action": "numbers.add", "arguments": {"number": 2}}
    assert ask(collector, "reader-1", command).status_code == 403
    assert ask(collector, "nobody", command).status_code == 401
    assert CALLS == []


def test_what_is_refused_is_said_and_kept(collector: Any) -> None:
    refused = ask(collector, "boss-1", {"action": "numbers.add", "arguments": {"number": "two"}, "id": "c-2"})
    words = "numbers.add: number: input should be a valid integer, unable to parse string as an integer"
    assert (refused.status_code, refused.json()["error"]) == (400, words)
    assert refused.json()["fields"].keys() == {"number"}
    assert log(collector) == [("numbers.add", "c-2", None, words)]
    # a refused command may be mended and sent again under its id
    assert ask(
        collector, "boss-1", {"action": "numbers.add", "arguments": {"number": 1}, "id": "c-2"}
    ).json() == {"sum": 1}
    assert ask(collector, "boss-1", {"action": "lift"}).status_code == 400
    contents: tuple[Any, ...] = (
        {"arguments": {}},
        [],
        {"action": "numbers.add", "id": ""},
        {"action": "numbers.add", "id": 7},
        {"action": "numbers.add", "arguments": [1]},
        {"action": "numbers.add", "argument": {}},
    )
    for content in contents:
        assert ask(collector, "boss-1", content).status_code == 400
    assert ask(collector, "boss-1", {"action": "numbers.add", "note": "x" * 300_000}).status_code == 413


@pytest.fixture
def core() -> duckdb.DuckDBPyConnection:
    CALLS.clear()
    con = duckdb.connect(":memory:")
    con.execute("ATTACH ':memory:' AS core")
    return con


def test_every_wrong_argument_is_named() -> None:
    with pytest.raises(ArgumentsRefused) as refused:
        checked(ACTIONS["numbers.add"], {"nubmer": 1, "at": "noon"})
    assert refused.value.fields == {
        "number": "is needed: what to add",
        "nubmer": "no such argument; did you mean 'number'?",
        "at": "'noon' is no time; write 2026-11-28T14:00Z",
    }


def test_times_are_held_as_naive_utc() -> None:
    given = checked(ACTIONS["numbers.add"], {"number": 1, "at": "2026-11-28T14:00+02:00"})
    assert given.at == datetime(2026, 11, 28, 12)


def test_a_change_and_its_log_are_one(core: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(RuntimeError, match="the power went"):
        perform(core, ACTIONS, "numbers.add", {"number": 99}, "c-1")
    assert core.execute("SELECT count(*) FROM core.operator_log").fetchone() == (0,)
    assert core.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'numbers'").fetchone() == (
        0,
    )
    assert perform(core, ACTIONS, "numbers.add", {"number": 4}, "c-1", "anybody") == {"sum": 4}
    assert core.execute("SELECT acted_by FROM core.operator_log").fetchall() == [("anybody",)]


def test_what_follows_an_action_sees_it_committed(core: duckdb.DuckDBPyConnection) -> None:
    seen: list[Any] = []
    after = lambda con: seen.append(con.execute("SELECT number FROM core.numbers").fetchall())  # noqa: E731
    perform(
        core, registry(Action("numbers.add", AddArguments, add, after=after)), "numbers.add", {"number": 4}
    )
    assert seen == [[(4,)]]
    with pytest.raises(ValueError, match="not this one"):
        perform(
            core,
            registry(Action("numbers.add", AddArguments, add, after=after)),
            "numbers.add",
            {"number": 13},
        )
    assert len(seen) == 1


def test_the_nearest_action_is_named(core: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(ValueError, match=r"did you mean 'numbers\.add'"):
        perform(core, ACTIONS, "number.add", {})
    with pytest.raises(ValueError, match="two actions are named"):
        registry(*ACTIONS.values(), *ACTIONS.values())


def test_misspelt_severities_and_metrics_are_refused(core: duckdb.DuckDBPyConnection) -> None:
    actions = operator_actions(AlertEngine(AlertSettings(), []))
    silence = {"ends_at": "2126-01-01", "reason": "r"}
    for severity in ("page", "ticket", "*", "p*"):
        assert perform(core, actions, "alerts.silence", {**silence, "severity": severity})["silence_id"]
    for severity in ("pgae", "Page"):
        with pytest.raises(
            ValueError, match=rf"severity: '{severity}' is none; there are page, ticket, or a glob"
        ):
            perform(core, actions, "alerts.silence", {**silence, "severity": severity})
    core.execute(
        'CREATE TABLE core.slo_status AS SELECT \'[{"severity": "Info"}, {"severity": "high"}]\' AS pairs'
    )
    perform(core, actions, "alerts.silence", {**silence, "severity": "info"})  # an objective alerts with that
    for metric in ("cost", "*", "l*"):
        perform(core, actions, "alerts.rebaseline", {"reason": "r", "metric": metric})
    for metric in ("csot", "x*"):
        with pytest.raises(ArgumentsRefused, match="is no metric with a baseline; there are cost, latency"):
            perform(core, actions, "alerts.rebaseline", {"reason": "r", "metric": metric})


def test_readers_may_ask_what_there_is(collector: Any) -> None:
    answer = httpx.get(
        f"http://{collector.door}/actions", headers={"authorization": "Bearer reader-1"}, trust_env=False
    )
    (found,) = answer.json()["actions"]
    assert (found["action"], found["does"]) == ("numbers.add", "Add a number to the sum.")
    assert found["arguments"]["required"] == ["number"]


def test_every_action_and_argument_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "actions.md").read_text(encoding="utf-8")
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n## ")[1:]}
    actions = operator_actions(AlertEngine(AlertSettings(), []))
    assert sections.keys() == actions.keys()
    for name, action in actions.items():
        told = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", sections[name], re.M))))
        assert told == set(action.arguments.model_fields), name


def test_an_older_log_goes_on(core: duckdb.DuckDBPyConnection) -> None:
    core.execute(
        "CREATE TABLE core.operator_log (acted_at TIMESTAMP, action VARCHAR, arguments VARCHAR, answer VARCHAR)"
    )
    assert perform(core, ACTIONS, "numbers.add", {"number": 4}) == {"sum": 4}
    assert core.execute("SELECT count(*) FROM core.operator_log").fetchone() == (1,)
