"""Payloads: Alertmanager v2, its webhook (version 4), PagerDuty Events v2, CloudEvents 1.0.

No number is ever a label: receivers take the set of labels for the alert's identity.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from metrics.alerts.message import Message, stamp

_NEVER = "0001-01-01T00:00:00Z"
_PAGERDUTY = {"page": "critical", "ticket": "warning"}
_CUSTOM_LIMIT = 1024


def alertmanager(message: Message, now: datetime, repeat: timedelta) -> list[dict[str, Any]]:
    """Body of POST /api/v2/alerts.

    A lasting alert ends by itself four reminders after the last one (Prometheus does the same), so an
    Alertmanager does not keep what nobody speaks of any more.
    """
    ends = message.ends_at if message.is_over else stamp(now + 4 * max(repeat, timedelta(seconds=30)))
    return [
        {
            "labels": dict(message.labels),
            "annotations": message.notes(),
            "startsAt": message.starts_at,
            "endsAt": ends,
            "generatorURL": message.url,
        }
    ]


def webhook(message: Message, receiver: str) -> dict[str, Any]:
    """Alertmanager's webhook payload, version 4: one group with one alert."""
    status = "resolved" if message.is_over else "firing"
    labels, notes = dict(message.labels), message.notes()
    group = {"alertname": labels.get("alertname", "")}
    return {
        "version": "4",
        "groupKey": f'{{}}:{{alertname="{group["alertname"]}", id="{message.alert_id}"}}',
        "truncatedAlerts": 0,
        "status": status,
        "receiver": receiver,
        "groupLabels": group,
        "commonLabels": labels,
        "commonAnnotations": notes,
        "externalURL": message.url,
        "alerts": [
            {
                "status": status,
                "labels": labels,
                "annotations": notes,
                "startsAt": message.starts_at,
                "endsAt": message.ends_at if message.is_over else _NEVER,
                "generatorURL": message.url,
                "fingerprint": message.alert_id[:16],
            }
        ],
    }


def pagerduty(message: Message, routing_key: str) -> dict[str, Any]:
    """PagerDuty Events v2; the dedup key is the alert's identity, so one outage is one incident."""
    labels = message.labels
    event: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": "resolve" if message.is_over else "trigger",
        "dedup_key": f"agent-slo/{message.alert_id}",
    }
    if message.is_over:
        return event
    links = [{"href": message.url, "text": "dashboard"}] if message.url else []
    links += [{"href": t.url, "text": t.words} for t in message.tasks if t.url]
    runbook = message.annotations.get("runbook", "")
    if runbook.startswith(("http://", "https://")):
        links.append({"href": runbook, "text": "runbook"})
    return event | {
        "client": "agent-slo",
        "links": links,
        "payload": {
            "summary": message.summary[:1024],
            "source": labels.get("agent") or labels.get("service") or "agent-slo",
            "severity": _PAGERDUTY.get(message.severity, "error"),
            "timestamp": message.starts_at,
            "component": labels.get("slo", ""),
            "group": labels.get("service", ""),
            "class": labels.get("alertname", ""),
            "custom_details": {k: v[:_CUSTOM_LIMIT] for k, v in message.notes().items()},
        },
    }


_TYPES = {"budget": "agent_slo.budget.exhausted", "drift": "agent_slo.drift.opened"}


def cloudevent(message: Message, message_id: str) -> dict[str, Any]:
    """CloudEvents 1.0, structured JSON; the id is the transition's, so a receiver can drop what came twice."""
    kind = (
        "agent_slo.alert.resolved" if message.is_over else _TYPES.get(message.kind, "agent_slo.alert.fired")
    )
    at = message.ends_at if message.is_over else message.at
    return {
        "specversion": "1.0",
        "id": f"{message.alert_id}-{at}",
        "source": message.extra.get("source", "urn:agent-slo"),
        "type": "agent_slo.alert.test" if message.event == "test" else kind,
        "subject": message.labels.get("slo", ""),
        "time": at,
        "datacontenttype": "application/json",
        "data": {
            "alertId": message.alert_id,
            "messageId": message_id,
            "event": message.event,
            "labels": dict(message.labels),
            "annotations": message.notes(),
            "startsAt": message.starts_at,
            "endsAt": message.ends_at,
            "tasks": [{"id": t.task_id, "words": t.words, "url": t.url} for t in message.tasks],
        },
    }
