"""The life of an alert: nothing, pending, firing, frozen, resolved. Pure functions over plain values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from metrics.alerts.signal import Identity, Signal

State = Literal["pending", "firing", "frozen", "resolved"]
Transition = Literal["fired", "resolved"]

ACTIVE: tuple[State, ...] = ("firing", "frozen")


@dataclass(frozen=True)
class Alert:
    """What is remembered of an alert; times are naive UTC.

    `told_at` is when its start was first handed to the outbox, None while it is silenced or pending.
    """

    identity: Identity
    state: State
    pending_since: datetime
    fired_at: datetime | None
    resolved_at: datetime | None
    told_at: datetime | None
    changed_at: datetime
    signal: Signal
    reason: str = ""
    """Why it ended."""

    @property
    def key(self) -> str:
        return self.identity.key

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE


def step(alert: Alert | None, signal: Signal | None, now: datetime) -> tuple[Alert | None, Transition | None]:
    """The alert after one evaluation, and what became of it.

    `signal` is None when what it was about is not evaluated any more: it ends. An alert ends only on a clear
    signal: silence freezes it.
    """
    if alert is None or alert.state == "resolved":
        return _begin(alert, signal, now)
    if signal is None:
        return _end(alert, alert.signal, now, "no longer evaluated")
    if alert.state == "pending":
        if signal.condition == "firing":
            held = (now - alert.pending_since).total_seconds()
            kept = replace(alert, signal=signal)
            return _fire(kept, now) if held >= signal.after_s else (kept, None)
        return (None, None) if signal.condition == "clear" else (alert, None)
    if signal.condition == "clear":
        return _end(alert, signal, now, "the condition is over")
    if signal.condition == "firing":
        changed = alert.changed_at if alert.state == "firing" else now
        return replace(alert, state="firing", signal=signal, changed_at=changed), None
    # Frozen: the last words that had numbers stay, since there are no new ones.
    changed = alert.changed_at if alert.state == "frozen" else now
    return replace(alert, state="frozen", changed_at=changed), None


def _begin(old: Alert | None, signal: Signal | None, now: datetime) -> tuple[Alert | None, Transition | None]:
    if signal is None or signal.condition != "firing":
        return old, None
    alert = Alert(signal.identity, "pending", now, None, None, None, now, signal)
    return _fire(alert, now) if signal.after_s <= 0 else (alert, None)


def _fire(alert: Alert, now: datetime) -> tuple[Alert, Transition]:
    since = alert.signal.since or now
    return replace(alert, state="firing", fired_at=min(since, now), changed_at=now), "fired"


def _end(alert: Alert, signal: Signal, now: datetime, reason: str) -> tuple[Alert | None, Transition | None]:
    if alert.state == "pending":
        return None, None
    # Who was told of the start is told of the end, whatever the signal says now.
    signal = replace(signal, targets=alert.signal.targets, tell_end=alert.signal.tell_end)
    ended = replace(alert, state="resolved", resolved_at=now, changed_at=now, signal=signal, reason=reason)
    return ended, "resolved"


def end(alert: Alert, now: datetime, reason: str) -> tuple[Alert | None, Transition | None]:
    """End an alert by an operator's word."""
    if alert.state == "resolved":
        return alert, None
    return _end(alert, alert.signal, now, reason)
