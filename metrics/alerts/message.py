"""What is told about an alert: whole in itself, so that it can be sent after a restart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

Event = Literal["fired", "resend", "resolved", "test"]


@dataclass(frozen=True)
class TaskLink:
    """An example task; `url` is empty without an address of the dashboard."""

    task_id: str
    words: str
    url: str


@dataclass(frozen=True)
class Message:
    """One message about one alert; times are ISO 8601 with Z."""

    alert_id: str
    event: Event
    kind: str
    labels: Mapping[str, str]
    summary: str
    annotations: Mapping[str, str]
    starts_at: str
    ends_at: str | None
    at: str
    tasks: tuple[TaskLink, ...] = ()
    url: str = ""
    reason: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return self.event == "resolved"

    @property
    def severity(self) -> str:
        return self.labels.get("severity", "ticket")

    def notes(self) -> dict[str, str]:
        """Summary, numbers and links as annotations, for receivers that know labels and annotations."""
        found = {"summary": self.summary, **self.annotations}
        if self.tasks:
            found["tasks"] = ", ".join(t.url or t.task_id for t in self.tasks)
        if self.url:
            found["dashboard"] = self.url
        if self.reason:
            found["ended"] = self.reason
        return found

    def title(self) -> str:
        """A line for chats and mails."""
        state = {"resolved": "RESOLVED", "test": "TEST", "resend": "STILL FIRING"}.get(self.event, "FIRING")
        return f"[{state} {self.severity}] {self.summary}"

    def body(self) -> str:
        """The rest of a mail: numbers, example tasks, links."""
        skipped = {"runbook"}
        lines = [f"{k.replace('_', ' ')}: {v}" for k, v in self.annotations.items() if k not in skipped]
        lines.append(f"since: {self.starts_at}")
        if self.is_over:
            lines.append(f"until: {self.ends_at} ({self.reason})")
        if self.tasks:
            lines += ["", "tasks:", *(f"- {t.words}: {t.url or t.task_id}" for t in self.tasks)]
        if self.url:
            lines += ["", f"dashboard: {self.url}"]
        if "runbook" in self.annotations:
            lines.append(f"runbook: {self.annotations['runbook']}")
        return "\n".join(lines)

    def text(self) -> str:
        """As JSON, for the outbox."""
        return json.dumps(asdict(self), ensure_ascii=False)


def from_text(text: str) -> Message:
    """The message of an outbox row."""
    value: dict[str, Any] = json.loads(text)
    value["tasks"] = tuple(TaskLink(**t) for t in value["tasks"])
    return Message(**value)


def stamp(moment: datetime) -> str:
    """A naive UTC moment as ISO 8601 with Z, whole milliseconds."""
    return moment.replace(tzinfo=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text: str) -> datetime:
    """The naive UTC moment of `stamp`."""
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
