"""Helpers that set our attributes on the current span (or on a given one)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from opentelemetry import trace

OUTCOMES = ("completed", "failed", "cancelled_user", "cancelled_system", "handed_over", "dead_letter")
CLAIMS = ("success", "failure")
DECISIONS = ("approved", "rejected", "edited", "answered", "took_over")
TRIGGERS = ("start", "resume", "retry", "redelivery")


def outcome(value: str, *, claimed: str | None = None, span: trace.Span | None = None) -> None:
    """State how the task ended: completed, failed, cancelled_user, cancelled_system, handed_over or dead_letter.

    `claimed`: what the agent itself reported, success or failure. Raises `ValueError` for any other word.
    """
    _set(
        span,
        {
            "agent_slo.task.outcome": _one_of(value, OUTCOMES, "outcome"),
            "agent_slo.task.claimed": claimed and _one_of(claimed, CLAIMS, "claim"),
        },
    )


def idempotency_key(key: str, *, attempt: int | None = None, span: trace.Span | None = None) -> None:
    """State the key that is sent to the tool, on the tool's span. `attempt`: 1, 2, ... of one call."""
    _set(span, {"agent_slo.action.idempotency_key": key, "agent_slo.action.attempt": attempt})


def human_decision(
    decision: str,
    *,
    arguments: Mapping[str, Any] | None = None,
    level: str | None = None,
    required_level: str | None = None,
    span: trace.Span | None = None,
) -> None:
    """State what a person decided: approved, rejected, edited, answered or took_over.

    `arguments`: what was approved; `level` and `required_level`: who decided, and who should have.
    Raises `ValueError` for any other decision.
    """
    _set(
        span,
        {
            "agent_slo.human.decision": _one_of(decision, DECISIONS, "decision"),
            "agent_slo.human.arguments": None
            if arguments is None
            else json.dumps(dict(arguments), default=str),
            "agent_slo.human.level": level,
            "agent_slo.human.required_level": required_level,
        },
    )


def task(
    *,
    id: str | None = None,
    type: str | None = None,
    input_id: str | None = None,
    deadline_s: float | None = None,
    trigger: str | None = None,
    span: trace.Span | None = None,
) -> None:
    """State which task this run belongs to, of what type, caused by which message, and by what trigger.

    `trigger`: start, resume, retry or redelivery. Raises `ValueError` for any other trigger.
    """
    _set(
        span,
        {
            "agent_slo.task.id": id,
            "agent_slo.task.type": type,
            "agent_slo.task.input_id": input_id,
            "agent_slo.task.deadline_s": deadline_s,
            "agent_slo.run.trigger": trigger and _one_of(trigger, TRIGGERS, "trigger"),
        },
    )


def _set(span: trace.Span | None, attributes: Mapping[str, str | int | float | None]) -> None:
    target = span or trace.get_current_span()
    for key, value in attributes.items():
        if value is not None:
            target.set_attribute(key, value)


def _one_of(value: str, known: tuple[str, ...], what: str) -> str:
    if value not in known:
        raise ValueError(f"{value!r} is no {what}; write one of {', '.join(known)}")
    return value
