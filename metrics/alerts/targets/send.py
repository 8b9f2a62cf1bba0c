"""Sending one message to one target, and what its answer means."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from metrics.alerts.message import Message
from metrics.alerts.settings import (
    AlertmanagerTarget,
    AppriseTarget,
    CloudEventsTarget,
    PagerDutyTarget,
    Target,
    WebhookTarget,
    secret,
)
from metrics.alerts.targets import chat, shapes

SECONDS = 10.0

Sender = Callable[[Target, Message, str, datetime], None]
"""Sends (target, message, message id, now) or raises TryLater, Refused or SecretMissing."""


class TryLater(Exception):
    """Not taken, but it may be later; `after` is what the receiver asked for."""

    def __init__(self, words: str, after: timedelta | None = None) -> None:
        super().__init__(words)
        self.after = after


class Refused(Exception):
    """Not taken, and it never will be."""


def send(target: Target, message: Message, message_id: str, now: datetime) -> None:
    """Send over the network. Raises TryLater, Refused or SecretMissing."""
    if isinstance(target, AppriseTarget):
        problem = chat.notify(secret(target.url), message)
        if problem is not None:
            raise TryLater(problem)
        return
    url, headers, body = request(target, message, message_id, now)
    try:
        answer = httpx.post(url, json=body, headers=headers, timeout=SECONDS, trust_env=True)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise TryLater(f"{type(error).__name__}: {error}") from error
    judge_answer(answer)


def judge_answer(answer: httpx.Response) -> None:
    """Raise TryLater or Refused unless the receiver took the message."""
    status = answer.status_code
    if 200 <= status < 300:
        return
    words = f"answer {status}: {answer.text[:200]}"
    if status in (408, 425, 429) or status >= 500:
        raise TryLater(words, _retry_after(answer))
    # A wrong token or address can be mended while the message waits; a refused message cannot.
    if status in (401, 403, 404):
        raise TryLater(words)
    raise Refused(words)


def _retry_after(answer: httpx.Response) -> timedelta | None:
    text = answer.headers.get("retry-after")
    if text is None:
        return None
    if text.isdigit():
        return timedelta(seconds=min(int(text), 3600))
    with contextlib.suppress(ValueError):  # not a date either: as if it were not there
        moment = parsedate_to_datetime(text)
        wait = (moment - datetime.now(moment.tzinfo)).total_seconds()
        return timedelta(seconds=min(max(wait, 1.0), 3600))
    return None


def request(
    target: Target, message: Message, message_id: str, now: datetime
) -> tuple[str, dict[str, str], Any]:
    """(address, headers, JSON body) of an HTTP target. Raises SecretMissing."""
    headers = {"user-agent": "agent-slo"}
    if isinstance(target, PagerDutyTarget):
        return secret(target.url), headers, shapes.pagerduty(message, secret(target.routing_key))
    assert isinstance(target, (AlertmanagerTarget, WebhookTarget, CloudEventsTarget))
    if target.token is not None:
        headers["authorization"] = f"Bearer {secret(target.token)}"
    url = secret(target.url)
    if isinstance(target, AlertmanagerTarget):
        address = url if url.rstrip("/").endswith("/api/v2/alerts") else url.rstrip("/") + "/api/v2/alerts"
        return address, headers, shapes.alertmanager(message, now, target.repeat)
    if isinstance(target, WebhookTarget):
        return url, headers, shapes.webhook(message, target.name)
    headers["content-type"] = "application/cloudevents+json"
    return url, headers, shapes.cloudevent(message, message_id)
