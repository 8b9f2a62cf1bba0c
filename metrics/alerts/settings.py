"""The section `alerts` of `agent-slo.yaml`.

Secrets come from the environment only: a value written `${NAME}` is read when it is used, and is never kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from metrics.settings import MOST_COUNT, Duration, Moment, Section

Severity = Literal["page", "ticket"]

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OPEN_SCHEMES = ("json", "jsons", "xml", "xmls", "form", "forms", "syslog", "dbus")
"""Apprise services whose address alone is no secret."""


class SecretMissing(ValueError):
    """An environment variable a target needs is not set; permanent until it is."""


def secret(text: str, environment: Mapping[str, str] | None = None) -> str:
    """`text` with every `${NAME}` replaced. Raises SecretMissing."""
    values = os.environ if environment is None else environment

    def value(match: re.Match[str]) -> str:
        found = values.get(match[1])
        if not found:
            raise SecretMissing(f"the environment variable {match[1]} is not set")
        return found

    return _VARIABLE.sub(value, text)


def _from_environment(text: str) -> str:
    if not _VARIABLE.search(text):
        raise ValueError("a secret does not belong into a file; write ${NAME} and set that variable")
    return text


def _http(text: str) -> str:
    # A variable may hold the whole address, so only what is written out can be checked.
    if not text.startswith("${"):
        parts = urlsplit(_VARIABLE.sub("x", text))
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"{text!r} is no address; write http://host:port or https://host/path")
        if parts.password and not _VARIABLE.search(text):
            raise ValueError("a password does not belong into a file; write ${NAME} in its place")
    return text


class _Target(Section):
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
    severities: list[Severity] = Field(default_factory=list)
    """Which alerts go there; empty: all."""
    resolved: bool = True
    """Whether the end of an alert is told as well."""
    repeat: Duration = timedelta(hours=4)
    """How often a lasting alert is told again."""

    def takes(self, severity: str) -> bool:
        """Whether an alert of this severity goes to this target."""
        return not self.severities or severity in self.severities


class _HttpTarget(_Target):
    url: str
    token: str | None = None
    """Sent as `Authorization: Bearer`."""

    _url = field_validator("url")(_http)

    @field_validator("token")
    @classmethod
    def _secret(cls, token: str | None) -> str | None:
        return None if token is None else _from_environment(token)


class AlertmanagerTarget(_HttpTarget):
    """Alertmanager's own interface, `POST <url>/api/v2/alerts`."""

    type: Literal["alertmanager"]
    repeat: Duration = timedelta(minutes=1)
    """Alertmanager forgets what it does not hear again: 30 s to 3 min."""


class WebhookTarget(_HttpTarget):
    """Any receiver that reads Alertmanager's webhook (version 4)."""

    type: Literal["webhook"]


class CloudEventsTarget(_HttpTarget):
    """CloudEvents 1.0 as structured JSON."""

    type: Literal["cloudevents"]


class PagerDutyTarget(_Target):
    """PagerDuty Events v2."""

    type: Literal["pagerduty"]
    routing_key: str
    url: str = "https://events.pagerduty.com/v2/enqueue"

    _url = field_validator("url")(_http)
    _key = field_validator("routing_key")(_from_environment)


class AppriseTarget(_Target):
    """Slack, mail, Teams, Telegram and a hundred more: an Apprise address."""

    type: Literal["apprise"]
    url: str

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme in _OPEN_SCHEMES and not parts.password and not parts.username:
            return url
        if not _VARIABLE.search(url):
            raise ValueError("an Apprise address holds its secret; write ${NAME} and set that variable")
        return url


Target = Annotated[
    AlertmanagerTarget | WebhookTarget | CloudEventsTarget | PagerDutyTarget | AppriseTarget,
    Field(discriminator="type"),
]


class EventRule(Section):
    """Findings that alert at once, one by one, whatever the budget says."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
    finding: str = "duplicate_action"
    tool: str = "*"
    agent: str = "*"
    severity: Severity = "page"
    quiet: Duration = timedelta(hours=1)
    """The alert ends when this long nothing further happened."""
    max_age: Duration = timedelta(hours=24)
    """What happened longer ago does not alert any more, as after an import."""


class NoData(Section):
    """Silence of an agent that used to work."""

    after: Duration
    agent: str = "*"
    severity: Severity = "ticket"


class Silence(Section):
    """Matching alerts are not told between `start` and `end`."""

    start: Moment
    end: Moment
    slo: str = "*"
    agent: str = "*"
    severity: str = "*"
    reason: str = Field(min_length=1)

    @model_validator(mode="after")
    def _ordered(self) -> Silence:
        if self.end <= self.start:
            raise ValueError("it ends before it starts; mend start or end")
        return self


class AlertSettings(Section):
    """When to alert, and whom."""

    targets: list[Target] = Field(default_factory=list)
    events: list[EventRule] = Field(default_factory=list)
    silences: list[Silence] = Field(default_factory=list)
    no_data: NoData | None = None
    burn: bool = True
    """Burn-rate alerts of the objectives."""
    budget_exhausted: bool = False
    """A ticket when an objective's budget is spent."""
    drift: bool = True
    """A ticket when cost or latency of an agent has drifted."""
    pending: Duration | None = None
    """How long a burn condition must hold before it alerts, where the objective's file says nothing."""
    resolve_events: int = Field(default=3, ge=1, le=MOST_COUNT)
    """Events the short window must hold before a burn alert may end."""
    give_up: Duration = timedelta(hours=24)
    """How long a target that does not answer is tried before a message is put to the dead letters."""
    dashboard: str | None = None
    """Address of the dashboard, for links."""
    source: str = "urn:agent-slo"
    """Who speaks, in CloudEvents and PagerDuty."""

    @field_validator("dashboard")
    @classmethod
    def _dashboard(cls, url: str | None) -> str | None:
        return None if url is None else _http(url).rstrip("/")

    @model_validator(mode="after")
    def _names(self) -> AlertSettings:
        for what, names in (
            ("targets", [t.name for t in self.targets]),
            ("events", [e.name for e in self.events]),
        ):
            twice = next((n for n in names if names.count(n) > 1), None)
            if twice is not None:
                raise ValueError(f"{what}: the name {twice!r} is used twice; give each its own")
        return self
