"""Payload shapes, answers of receivers, Apprise, and what the configuration refuses."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from metrics.alerts.engine import trial
from metrics.alerts.message import Message, TaskLink, from_text, moment, stamp
from metrics.alerts.settings import AlertSettings, SecretMissing, secret
from metrics.alerts.targets.send import Refused, TryLater, judge_answer, request, send
from metrics.alerts.targets.shapes import alertmanager, cloudevent, pagerduty, webhook
from tests.metrics.alerts.receiver import Receiver

NOW = datetime(2026, 11, 29, 12)
FIRED = Message(
    alert_id="0123456789abcdef0123",
    event="fired",
    kind="burn",
    labels={"alertname": "AgentSloBurn", "severity": "page", "slo": "done", "service": "s"},
    summary="Done: 30 of 60 bad in the last 1d",
    annotations={"budget": "12 % of the budget left", "runbook": "https://r.example"},
    starts_at="2026-11-29T11:00:00.000Z",
    ends_at=None,
    at="2026-11-29T11:00:00.000Z",
    tasks=(TaskLink("t1", "11:59", "http://d/task?id=t1"),),
    url="http://d",
    extra={"source": "urn:here"},
)
OVER = Message(
    **{**FIRED.__dict__, "event": "resolved", "ends_at": "2026-11-29T12:00:00.000Z", "reason": "over"}
)


def targets(*given: dict[str, Any]) -> AlertSettings:
    return AlertSettings.model_validate({"targets": list(given)})


def test_messages_survive_the_outbox() -> None:
    assert from_text(FIRED.text()) == FIRED
    assert moment(stamp(NOW)) == NOW


def test_alertmanager_takes_an_array_and_learns_when_to_forget() -> None:
    (alert,) = alertmanager(FIRED, NOW, timedelta(minutes=1))
    assert set(alert) == {"labels", "annotations", "startsAt", "endsAt", "generatorURL"}
    assert (alert["startsAt"], alert["endsAt"]) == (FIRED.starts_at, "2026-11-29T12:04:00.000Z")
    assert all(isinstance(v, str) for part in ("labels", "annotations") for v in alert[part].values())
    assert alertmanager(OVER, NOW, timedelta(minutes=1))[0]["endsAt"] == OVER.ends_at


def test_the_webhook_has_the_fields_receivers_read() -> None:
    body = webhook(FIRED, "hook")
    assert set(body) == {
        "version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels", "commonLabels",
        "commonAnnotations", "externalURL", "alerts",
    }  # fmt: skip
    assert (body["version"], body["status"], body["receiver"]) == ("4", "firing", "hook")
    (alert,) = body["alerts"]
    assert alert["endsAt"] == "0001-01-01T00:00:00Z"
    assert webhook(OVER, "hook")["alerts"][0]["endsAt"] == OVER.ends_at
    assert webhook(OVER, "hook")["status"] == "resolved"


def test_pagerduty_has_one_incident_an_alert() -> None:
    body = pagerduty(FIRED, "key")
    assert (body["routing_key"], body["event_action"]) == ("key", "trigger")
    assert len(body["dedup_key"]) <= 255
    assert set(body["payload"]) >= {"summary", "source", "severity", "timestamp", "custom_details"}
    assert [link["href"] for link in body["links"]] == [
        "http://d",
        "http://d/task?id=t1",
        "https://r.example",
    ]
    over = pagerduty(OVER, "key")
    assert over == {"routing_key": "key", "event_action": "resolve", "dedup_key": body["dedup_key"]}


def test_cloudevents_have_what_is_required_and_an_id_a_transition() -> None:
    body = cloudevent(FIRED, "m1")
    assert {"id", "source", "specversion", "type"} <= set(body)
    assert (body["type"], body["source"], body["subject"]) == ("agent_slo.alert.fired", "urn:here", "done")
    assert cloudevent(FIRED, "m2")["id"] == body["id"] != cloudevent(OVER, "m3")["id"]
    assert cloudevent(OVER, "m3")["type"] == "agent_slo.alert.resolved"
    kinds = {"budget": "agent_slo.budget.exhausted", "drift": "agent_slo.drift.opened"}
    for kind, name in kinds.items():
        assert cloudevent(Message(**{**FIRED.__dict__, "kind": kind}), "m")["type"] == name


def test_words_for_people() -> None:
    assert FIRED.title() == "[FIRING page] Done: 30 of 60 bad in the last 1d"
    assert OVER.title().startswith("[RESOLVED page]")
    assert "- 11:59: http://d/task?id=t1" in FIRED.body()
    assert "runbook: https://r.example" in FIRED.body()
    assert "(over)" in OVER.body()


@pytest.mark.parametrize(
    ("status", "error"),
    [(200, None), (202, None), (400, Refused), (422, Refused), (401, TryLater), (404, TryLater), (429, TryLater),
     (500, TryLater), (503, TryLater)],
)  # fmt: skip
def test_what_an_answer_means(status: int, error: type[Exception] | None) -> None:
    answer = httpx.Response(status, text="words")
    if error is None:
        judge_answer(answer)
        assert answer.is_success
    else:
        with pytest.raises(error, match=f"answer {status}: words"):
            judge_answer(answer)


def test_a_receiver_may_say_when_to_come_back() -> None:
    with pytest.raises(TryLater) as caught:
        judge_answer(httpx.Response(429, headers={"retry-after": "17"}))
    assert caught.value.after == timedelta(seconds=17)
    with pytest.raises(TryLater) as caught:
        judge_answer(httpx.Response(503, headers={"retry-after": "nonsense"}))
    assert caught.value.after is None


def test_nobody_listening_is_no_loss() -> None:
    target = targets({"type": "webhook", "name": "h", "url": "http://127.0.0.1:9"}).targets[0]
    with pytest.raises(TryLater, match="ConnectError"):
        send(target, FIRED, "m", NOW)


def test_every_http_target_reaches_its_address(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLO_TEST_KEY", "hush")
    settings = targets(
        {"type": "alertmanager", "name": "a", "url": f"{receiver.url}/am"},
        {"type": "webhook", "name": "b", "url": f"{receiver.url}/b", "token": "${SLO_TEST_KEY}"},
        {"type": "cloudevents", "name": "c", "url": f"{receiver.url}/c"},
        {"type": "pagerduty", "name": "d", "url": f"{receiver.url}/d", "routing_key": "${SLO_TEST_KEY}"},
    )
    for target in settings.targets:
        send(target, trial(settings, NOW), "test", NOW)
    paths = [path for path, _, _ in receiver.got]
    assert paths == ["/am/api/v2/alerts", "/b", "/c", "/d"]
    assert receiver.got[1][1]["authorization"] == "Bearer hush"
    assert receiver.got[2][1]["content-type"] == "application/cloudevents+json"
    assert receiver.got[3][2]["routing_key"] == "hush"
    assert "nothing is wrong" in str(receiver.got[0][2])


def test_chats_go_through_apprise(receiver: Receiver) -> None:
    address = receiver.url.replace("http://", "json://")
    target = targets({"type": "apprise", "name": "chat", "url": address}).targets[0]
    send(target, FIRED, "m", NOW)
    send(target, OVER, "m", NOW)
    first, last = receiver.bodies()
    assert first["title"] == FIRED.title()
    assert (first["type"], last["type"]) == ("failure", "success")
    assert "12 % of the budget left" in first["message"]


def test_apprise_that_fails_says_why_without_the_address(receiver: Receiver) -> None:
    receiver.answers = [500]
    target = targets(
        {"type": "apprise", "name": "chat", "url": receiver.url.replace("http://", "json://")}
    ).targets[0]
    with pytest.raises(TryLater) as caught:
        send(target, FIRED, "m", NOW)
    assert str(caught.value)
    assert "127.0.0.1" not in str(caught.value)


def test_secrets_come_from_the_environment() -> None:
    assert secret("https://x/${A}/${B_2}", {"A": "1", "B_2": "2"}) == "https://x/1/2"
    with pytest.raises(SecretMissing, match="variable A is not set"):
        secret("${A}", {"A": ""})
    target = targets({"type": "pagerduty", "name": "p", "routing_key": "${SLO_TEST_NOWHERE}"}).targets[0]
    with pytest.raises(SecretMissing, match="SLO_TEST_NOWHERE"):
        request(target, FIRED, "m", NOW)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"targets": [{"type": "pagerduty", "name": "p", "routing_key": "abc"}]},
            "does not belong into a file",
        ),
        ({"targets": [{"type": "apprise", "name": "p", "url": "slack://a/b/c"}]}, "holds its secret"),
        ({"targets": [{"type": "webhook", "name": "p", "url": "http://u:secret@h/"}]}, "password"),
        ({"targets": [{"type": "webhook", "name": "p", "url": "example.org"}]}, "no address"),
        (
            {"targets": [{"type": "webhook", "name": "p", "url": "http://h", "token": "abc"}]},
            "does not belong",
        ),
        ({"targets": [{"type": "carrier-pigeon", "name": "p"}]}, "carrier-pigeon"),
        ({"targets": [{"type": "webhook", "name": "p", "url": "http://h"}] * 2}, "used twice"),
        ({"events": [{"name": "e"}, {"name": "e"}]}, "used twice"),
        ({"silences": [{"start": NOW, "end": NOW, "reason": "r"}]}, "ends before it starts"),
        ({"pending": "soon"}, "no duration"),
    ],
)
def test_what_the_configuration_refuses(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        AlertSettings.model_validate(given)
