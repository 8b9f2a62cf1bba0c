"""Events, silence, spent budgets: what raises an alert besides burn rates."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from metrics.alerts.conditions import severity_of
from metrics.alerts.settings import AlertSettings
from metrics.alerts.words import length
from tests.metrics.alerts.conftest import World
from tests.metrics.alerts.receiver import Receiver
from tests.metrics.slo.conftest import AS_OF, insert, objective

RULE: dict[str, Any] = {"name": "money-twice", "tool": "pay*"}


def a_task(
    world: World, task_id: str, agent: str = "refunds", at: datetime | None = None, **other: Any
) -> None:
    start = at or world.now
    row = {
        "task_id": task_id, "agent": agent, "service": "s", "excluded_reason": None, "started_at": start,
        "ended_at": start, "decided_at": start, **other,
    }  # fmt: skip
    insert(world.db, "tasks", [row])


def a_duplicate(
    world: World, task_id: str, tool: str = "pay_out", happened: datetime | None = None, **task: Any
) -> None:
    at = happened or world.now
    a_task(world, task_id, at=at, **task)
    span = f"span-{task_id}"
    insert(world.db, "attempts", [{"task_id": task_id, "span_id": span, "tool": tool, "started_at": at}])
    insert(
        world.db,
        "findings",
        [
            {
                "finding_id": f"f-{task_id}", "task_id": task_id, "kind": "duplicate_action", "detail": "paid twice",
                "evidence": [span], "found_at": world.now,
            }
        ],
    )  # fmt: skip


def events(world: World, *rules: dict[str, Any], **other: Any) -> None:
    world.objectives = []
    world.settings = AlertSettings.model_validate({"events": list(rules or (RULE,)), **other})


def test_one_duplicate_of_a_configured_tool_pages_at_once(world: World, receiver: Receiver) -> None:
    events(
        world,
        targets=[{"type": "pagerduty", "name": "pd", "url": receiver.url, "routing_key": "${HOME}"}],
        dashboard="http://d",
    )
    a_duplicate(world, "task 1")
    done = world.tick()
    assert (done.fired, done.messages) == (1, 1)
    world.deliver()
    (body,) = receiver.bodies()
    assert body["event_action"] == "trigger"
    assert body["payload"]["severity"] == "critical"
    assert body["payload"]["summary"] == "duplicate action (refunds, pay_out): paid twice"
    assert body["links"][-1]["href"] == "http://d/task?id=task%201"


def test_further_ones_belong_to_the_same_alert_until_it_is_quiet(world: World) -> None:
    events(world)
    a_duplicate(world, "1")
    world.tick()
    a_duplicate(world, "2")
    done = world.tick()
    assert (done.fired, done.active) == (0, 1)
    assert (
        world.db.execute("SELECT summary FROM core.alerts")
        .fetchall()[0][0]
        .startswith("duplicate action (refunds, pay_out), 2 in the last 1h")
    )
    assert world.tick(minutes=50).active == 1
    assert world.tick(minutes=15).resolved == 1
    a_duplicate(world, "3")
    assert world.tick().fired == 1


@pytest.mark.parametrize(
    ("rule", "task", "fired"),
    [
        ({"tool": "refund"}, {}, 0),
        ({"agent": "other"}, {}, 0),
        ({"finding": "lost"}, {}, 0),
        ({"tool": "*"}, {}, 1),
        ({}, {"excluded_reason": "environment"}, 0),
        ({}, {"excluded_reason": "maintenance"}, 1),
        ({}, {"happened": AS_OF - timedelta(days=30)}, 0),
        ({"max_age": "60d"}, {"happened": AS_OF - timedelta(days=30)}, 1),
    ],
)
def test_what_a_rule_is_about(world: World, rule: dict[str, Any], task: dict[str, Any], fired: int) -> None:
    events(world, RULE | rule)
    a_duplicate(world, "1", **task)
    assert world.tick().fired == fired


def test_every_agent_and_tool_has_an_alert_of_its_own(world: World) -> None:
    events(world, RULE | {"tool": "*"})
    a_duplicate(world, "1")
    a_duplicate(world, "2", tool="mail")
    a_duplicate(world, "3", agent="other")
    assert world.tick().fired == 3


def test_an_agent_that_falls_silent(world: World) -> None:
    world.objectives = []
    world.settings = AlertSettings.model_validate({"no_data": {"after": "6h", "agent": "ref*"}})
    a_task(world, "1")
    a_task(world, "2", agent="quiet by nature")
    assert world.tick(minutes=300).fired == 0
    assert world.tick(minutes=70).fired == 1
    rows = world.db.execute("SELECT kind, agent, severity, summary FROM core.alerts").fetchall()
    assert rows == [("no_data", "refunds", "ticket", "refunds: no task for 6.2 h")]
    a_task(world, "3")
    assert world.tick().resolved == 1


def test_an_objective_whose_policy_asks_for_an_alert_on_silence(world: World) -> None:
    world.objectives = [objective(no_data=True), objective(slo="other")]
    world.add("good", 3)
    assert world.tick().fired == 0
    assert world.tick(minutes=60 * 25).fired == 1
    assert world.state() == [("completion", "firing")]


def test_silence_is_no_burn(world: World) -> None:
    """The two kinds are told apart: nothing burns while nothing happens."""
    world.settings = AlertSettings.model_validate({"no_data": {"after": "1h"}})
    a_task(world, "1")
    world.add("good", 50)
    world.tick(minutes=180)
    kinds = world.db.execute("SELECT kind FROM core.alerts").fetchall()
    assert kinds == [("no_data",)]


@pytest.mark.parametrize(("bad", "fired"), [(3, 0), (12, 1)])
def test_a_spent_budget_is_told_when_it_is_hardly_chance(world: World, bad: int, fired: int) -> None:
    world.settings = AlertSettings(budget_exhausted=True, burn=False)
    world.add("bad", bad)
    world.add("good", 22)
    assert world.tick().fired == fired


def test_severities_of_other_tools() -> None:
    assert [severity_of(s) for s in ("Critical", "warning", "page", "p3")] == ["page", "ticket", "page", "p3"]


@pytest.mark.parametrize(
    ("seconds", "words"), [(3, "3 s"), (300, "5 min"), (5400, "1.5 h"), (311040, "3.6 d")]
)
def test_lengths(seconds: float, words: str) -> None:
    assert length(seconds) == words
