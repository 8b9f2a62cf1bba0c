"""Alerts over a real data base and a real receiver: fire, remind, freeze, end, through restarts."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from metrics.alerts import outbox
from metrics.alerts.engine import AlertEngine, AlertError
from metrics.alerts.message import Message, stamp
from metrics.alerts.outbox import dead_letters
from metrics.alerts.settings import AlertSettings
from metrics.alerts.silences import SilenceError, add_silence, end_silence
from metrics.settings import MaintenanceWindow
from metrics.slo.objective import AlertPair
from tests.metrics.alerts.conftest import World
from tests.metrics.alerts.receiver import Receiver
from tests.metrics.slo.conftest import AS_OF, objective


def with_targets(*targets: dict[str, Any], **other: Any) -> AlertSettings:
    return AlertSettings.model_validate({"targets": list(targets), **other})


def burning(world: World) -> None:
    """A healthy day, then an outage."""
    world.now = AS_OF - timedelta(hours=30)
    world.add("good", 100)
    world.now = AS_OF
    world.add("bad", 30)


def test_fire_remind_and_resolve_keep_one_identity_through_restarts(world: World, receiver: Receiver) -> None:
    world.settings = with_targets(
        {"type": "alertmanager", "name": "am", "url": receiver.url, "severities": ["page"]},
        {
            "type": "webhook",
            "name": "hook",
            "url": f"{receiver.url}/hook",
            "severities": ["page"],
            "repeat": "5m",
        },
        dashboard="http://127.0.0.1:8501/",
    )
    burning(world)
    assert world.tick().fired == 2  # a page and a ticket, and only the page has receivers
    world.restart()  # before anything was sent
    assert world.deliver().sent == 2
    world.restart()
    for _ in range(6):
        world.tick()
        world.deliver()
        world.restart()
    world.tick(minutes=60 * 8)
    world.add("good", 400)
    world.restart()
    assert world.tick().resolved >= 1
    world.restart()
    world.deliver()
    world.restart()
    assert world.deliver().sent == 0
    posts = [b[0] for path, _, b in receiver.got if path == "/api/v2/alerts"]
    hooks = [b for path, _, b in receiver.got if path == "/hook"]
    assert len({tuple(sorted(p["labels"].items())) for p in posts}) == 1
    assert len({p["startsAt"] for p in posts}) == 1
    assert len(posts) >= 8  # fired, a reminder every minute, resolved
    assert posts[0]["endsAt"] > posts[0]["startsAt"]
    # A lasting alert is announced beyond now, an ended one is not.
    assert posts[-1]["endsAt"] == stamp(world.now)
    assert len({h["alerts"][0]["fingerprint"] for h in hooks}) == 1
    assert len({h["groupKey"] for h in hooks}) == 1
    statuses = [h["status"] for h in hooks]
    assert statuses == ["firing"] * (len(hooks) - 1) + ["resolved"]
    assert 3 <= len(hooks) < len(posts)


def test_what_is_told(world: World, receiver: Receiver) -> None:
    world.settings = with_targets(
        {"type": "webhook", "name": "hook", "url": receiver.url, "severities": ["page"]},
        dashboard="http://127.0.0.1:8501/",
    )
    world.objectives = [objective(runbook="https://runbooks.example/done")]
    burning(world)
    world.tick()
    world.deliver()
    (body,) = receiver.bodies()
    labels, notes = body["commonLabels"], body["commonAnnotations"]
    assert labels == {
        "alertname": "AgentSloBurn",
        "severity": "page",
        "slo": "completion",
        "objective": "o",
        "service": "s",
    }
    assert "30 of 30 bad in the last 6h" in notes["summary"]
    assert "overspent" in notes["budget"] or "left" in notes["budget"]
    assert notes["window"] == "30 bad of 130 in 28 d"
    assert "p = " in notes["why"]
    assert notes["runbook"] == "https://runbooks.example/done"
    tasks = notes["tasks"].split(", ")
    assert len(tasks) == 5
    assert all(t.startswith("http://127.0.0.1:8501/task?id=task-bad-") for t in tasks)


def test_an_empty_window_freezes_and_good_traffic_ends(world: World) -> None:
    burning(world)
    world.tick()
    assert world.state() == [("completion", "firing"), ("completion", "firing")]
    world.tick(minutes=60 * 24 * 3)
    assert world.state() == [("completion", "frozen"), ("completion", "frozen")]
    world.add("good", 1)
    world.tick()
    # One good task is no proof: three are asked for.
    assert ("completion", "frozen") in world.state()
    world.add("good", 600)
    world.tick()
    assert world.state() == [("completion", "resolved"), ("completion", "resolved")]


def test_a_lost_status_table_does_not_end_a_frozen_alert(world: World) -> None:
    burning(world)
    world.tick()
    world.tick(minutes=60 * 24 * 3)
    world.db.execute("DROP TABLE core.slo_status")
    world.tick()
    assert {s for _, s in world.state()} == {"frozen"}


def test_an_objective_that_is_gone_ends_its_alerts(world: World, receiver: Receiver) -> None:
    world.settings = with_targets({"type": "webhook", "name": "hook", "url": receiver.url})
    burning(world)
    world.tick()
    world.objectives = []
    assert world.tick().resolved == 2
    world.deliver()
    assert receiver.bodies()[-1]["commonAnnotations"]["ended"] == "no longer evaluated"


def test_a_silence_holds_back_and_its_end_tells(world: World, receiver: Receiver) -> None:
    world.settings = with_targets({"type": "webhook", "name": "hook", "url": receiver.url})
    burning(world)
    quiet = add_silence(
        world.db, world.now, ends_at=world.now + timedelta(hours=1), slo="comp*", reason="known"
    )
    done = world.tick()
    assert (done.fired, done.messages) == (2, 0)
    assert world.db.execute("SELECT DISTINCT silenced_by FROM core.alerts").fetchall() == [
        (quiet.silence_id,)
    ]
    end_silence(world.db, quiet.silence_id, world.now)
    assert world.tick().messages == 2
    world.deliver()
    assert [b["status"] for b in receiver.bodies()] == ["firing", "firing"]


def test_the_end_of_a_silenced_alert_is_not_told(world: World) -> None:
    world.settings = with_targets({"type": "webhook", "name": "hook", "url": "http://127.0.0.1:9"})
    add_silence(world.db, world.now, ends_at=world.now + timedelta(days=1), reason="known")
    burning(world)
    world.tick()
    world.objectives = []
    done = world.tick()
    assert (done.resolved, done.messages) == (2, 0)


@pytest.mark.parametrize(("agent", "messages"), [("*", 0), ("other", 2)])
def test_maintenance_windows_silence(world: World, agent: str, messages: int) -> None:
    window = {"start": AS_OF - timedelta(hours=1), "end": AS_OF + timedelta(hours=1), "agent": agent}
    world.maintenance = [MaintenanceWindow.model_validate(window)]
    world.settings = with_targets({"type": "webhook", "name": "hook", "url": "http://127.0.0.1:9"})
    burning(world)
    assert world.tick().messages == messages


def test_a_silence_that_makes_no_sense_is_refused(world: World) -> None:
    with pytest.raises(SilenceError, match="end in the future"):
        add_silence(world.db, world.now, ends_at=world.now - timedelta(hours=1), reason="x")
    with pytest.raises(SilenceError, match="reason"):
        add_silence(world.db, world.now, ends_at=world.now + timedelta(hours=1), reason=" ")
    with pytest.raises(SilenceError, match="no silence"):
        end_silence(world.db, "nothing", world.now)


def test_an_operator_ends_a_frozen_alert(world: World, receiver: Receiver) -> None:
    world.settings = with_targets(
        {"type": "webhook", "name": "hook", "url": receiver.url, "severities": ["page"]}
    )
    burning(world)
    world.tick()
    world.tick(minutes=60 * 24 * 3)
    world.deliver()
    (key,) = world.db.execute("SELECT alert_id FROM core.alerts WHERE severity = 'page'").fetchall()[0]
    engine = AlertEngine(world.settings)
    engine.resolve(world.db, key[:8], world.now, "mended by hand")
    world.deliver()
    assert receiver.bodies()[-1]["status"] == "resolved"
    assert receiver.bodies()[-1]["commonAnnotations"]["ended"] == "mended by hand"
    with pytest.raises(AlertError, match="no alert"):
        engine.resolve(world.db, "zz", world.now, "x")


def test_the_row_of_all_does_not_repeat_the_agent_that_burns(world: World) -> None:
    world.objectives = [objective(per=("agent",))]
    world.now = AS_OF - timedelta(hours=30)
    world.add("good", 40, agent="good one")
    world.now = AS_OF
    world.add("bad", 40, agent="bad one")
    world.add("good", 20, agent="good one")
    world.tick()
    rows = world.db.execute("SELECT agent, severity, state FROM core.alerts ORDER BY ALL").fetchall()
    assert rows == [("bad one", "page", "firing"), ("bad one", "ticket", "firing")]


def test_a_target_that_is_down_loses_nothing(world: World, receiver: Receiver) -> None:
    world.settings = with_targets(
        {"type": "webhook", "name": "hook", "url": receiver.url, "severities": ["page"], "repeat": "1m"}
    )
    receiver.answers = [500] * 3
    burning(world)
    world.tick()
    assert world.deliver().failed == 1
    for _ in range(4):
        world.tick()
        world.deliver()
    world.objectives = []
    world.tick(minutes=15)
    while world.deliver().sent:
        pass
    statuses = [b["status"] for b in receiver.bodies()]
    assert statuses[0] == "firing"
    assert statuses[-1] == "resolved"
    assert dead_letters(world.db) == []


def test_what_is_refused_for_good_is_a_dead_letter(world: World, receiver: Receiver) -> None:
    world.settings = with_targets(
        {"type": "webhook", "name": "hook", "url": receiver.url, "severities": ["page"]}
    )
    receiver.answers = [422]
    burning(world)
    world.tick()
    assert world.deliver().dead == 1
    (dead,) = dead_letters(world.db)
    assert (dead["target"], dead["event"]) == ("hook", "fired")
    assert "422" in dead["error"]


def test_a_target_that_never_comes_back_is_given_up(world: World, receiver: Receiver) -> None:
    hook = {"type": "webhook", "name": "hook", "url": receiver.url, "severities": ["page"]}
    world.settings = with_targets(hook, give_up="1h")
    receiver.answers = [503] * 1000
    burning(world)
    world.tick()
    for _ in range(30):
        world.now += timedelta(minutes=5)
        world.deliver()
    assert [d["error"] for d in dead_letters(world.db)] == ["given up: answer 503: said"]


def test_a_target_taken_out_of_the_configuration_is_a_dead_letter(world: World) -> None:
    world.settings = with_targets({"type": "webhook", "name": "hook", "url": "http://127.0.0.1:9"})
    burning(world)
    world.tick()
    world.settings = AlertSettings()
    assert world.deliver().dead == 2
    assert "no target of this name" in dead_letters(world.db)[0]["error"]


def test_a_missing_secret_waits(world: World, monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> None:
    hook = {
        "type": "webhook",
        "name": "h",
        "url": receiver.url,
        "token": "${SLO_TEST_TOKEN}",
        "severities": ["page"],
    }
    world.settings = with_targets(hook)
    burning(world)
    world.tick()
    assert world.deliver().failed == 1
    monkeypatch.setenv("SLO_TEST_TOKEN", "hush")
    world.now += timedelta(minutes=1)
    assert world.deliver().sent == 1
    assert receiver.got[0][1]["authorization"] == "Bearer hush"
    stored = world.db.execute("SELECT message FROM core.alert_outbox").fetchall()
    assert "hush" not in str(stored)


def test_a_policy_names_its_receivers_and_may_keep_the_end_to_itself(
    world: World, receiver: Receiver
) -> None:
    hook = {"type": "webhook", "name": "hook", "url": f"{receiver.url}/hook"}
    world.settings = with_targets(hook, hook | {"name": "team-a", "url": f"{receiver.url}/a"})
    pair = AlertPair("page", 86400, 7200, Decimal(3), targets=("team-a",), tell_end=False)
    other = replace(pair, targets=("nobody here",), tell_end=True)
    world.objectives = [objective(alerts=(pair,)), objective(slo="other", alerts=(other,))]
    burning(world)
    world.tick()
    world.restart()
    world.objectives = []
    world.tick()
    world.deliver()
    told = [(path, b["status"], b["commonLabels"]["slo"]) for path, _, b in receiver.got]
    assert sorted(told) == [
        ("/a", "firing", "completion"),
        ("/a", "firing", "other"),
        ("/a", "resolved", "other"),
        ("/hook", "firing", "other"),
        ("/hook", "resolved", "other"),
    ]


def test_tables_of_an_earlier_layout_go_on(world: World) -> None:
    burning(world)
    world.tick()
    world.db.execute("ALTER TABLE core.alerts DROP COLUMN tell_end")
    world.db.execute("ALTER TABLE core.alerts DROP COLUMN targets")
    assert world.tick().active == 2
    assert world.state() == [("completion", "firing"), ("completion", "firing")]


def test_a_delivery_at_the_same_moment_does_not_fail_the_evaluation(
    world: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reminder that is replaced is marked as delivered in the middle of the transaction that replaces it."""
    hook = {"type": "webhook", "name": "hook", "url": receiver.url, "severities": ["page"], "repeat": "1m"}
    world.settings = with_targets(hook)
    burning(world)
    world.tick()
    world.deliver()
    world.tick()
    other = world.db.cursor()
    put, clashes = outbox.put, []

    def late(con: duckdb.DuckDBPyConnection, target: str, message: Message, now: datetime) -> str:
        if not clashes:
            con.execute("SELECT count(*) FROM core.alert_outbox").fetchall()
            other.execute("UPDATE core.alert_outbox SET delivered_at = ? WHERE event = 'resend'", [now])
            clashes.append(message.event)
        return put(con, target, message, now)

    monkeypatch.setattr(outbox, "put", late)
    assert world.tick().messages == 1
    assert clashes == ["resend"]
    events = world.db.execute("SELECT event, delivered_at IS NULL FROM core.alert_outbox ORDER BY created_at")
    # Whichever of the two writes came first: the start is told, and one reminder waits.
    assert events.fetchall()[0] == ("fired", False)
    assert [w.event for w in outbox.waiting(world.db)] == ["resend"]
