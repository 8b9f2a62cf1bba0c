"""What is true of one possible alert at one moment, before anything is remembered or told."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Kind = Literal["burn", "budget", "event", "no_data", "drift"]
Condition = Literal["firing", "frozen", "clear"]

ALERT_NAMES: Mapping[Kind, str] = {
    "burn": "AgentSloBurn",
    "budget": "AgentSloBudgetExhausted",
    "event": "AgentSloEvent",
    "no_data": "AgentSloNoData",
    "drift": "AgentSloDrift",
}


@dataclass(frozen=True)
class Identity:
    """What makes an alert the same alert: no number is part of it, so it survives restarts and resends.

    The fast and the slow pair of one objective and severity are one alert: one outage is one incident.
    """

    kind: Kind
    slo: str
    """Name of the SLO, of the event rule, or of what is silent or drifting."""
    objective: str
    severity: str
    service: str = ""
    agent: str = ""
    task_type: str = ""
    tool: str = ""

    @property
    def key(self) -> str:
        """Twenty hex digits, stable over processes and versions."""
        parts = (self.kind, self.slo, self.objective, self.severity, self.agent, self.task_type, self.tool)
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:20]

    def labels(self) -> dict[str, str]:
        """Labels for receivers; empty ones are left out, as Prometheus understands them."""
        every = {
            "alertname": ALERT_NAMES[self.kind],
            "severity": self.severity,
            "slo": self.slo,
            "objective": self.objective,
            "service": self.service,
            "agent": self.agent,
            "task_type": self.task_type,
            "tool": self.tool,
        }
        return {k: v for k, v in every.items() if v}


@dataclass(frozen=True)
class Signal:
    """One possible alert judged at one moment.

    `frozen` means that there is nothing new to judge by: whatever the alert is, it stays. `subjects` are the
    windows pairs or findings behind it.
    """

    identity: Identity
    condition: Condition
    summary: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    after_s: float = 0.0
    subjects: tuple[str, ...] = ()
    since: datetime | None = None
    """When it began, where that is known better than by the evaluation."""
    targets: tuple[str, ...] = ()
    """Receivers asked for by name; empty: whoever takes the severity."""
    tell_end: bool = True
    longest_s: int = 0
    """Length of the longest window behind it, for examples."""
