"""The life of an alert, and what of it survives a restart."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.alerts.machine import Alert, end, step
from metrics.alerts.signal import Identity, Signal

NOW = datetime(2026, 11, 29, 12)
WHO = Identity("burn", "done", "o", "page", service="s")


def signal(condition: str, after_s: float = 0.0) -> Signal:
    return Signal(WHO, condition, "words", after_s=after_s)  # type: ignore[arg-type]


def run(conditions: list[str | None], after_s: float = 0.0) -> list[tuple[str | None, str | None]]:
    """(state, transition) after each minute's condition; None: not evaluated any more."""
    alert: Alert | None = None
    found = []
    for minute, condition in enumerate(conditions):
        given_signal = None if condition is None else signal(condition, after_s)
        alert, transition = step(alert, given_signal, NOW + timedelta(minutes=minute))
        found.append((alert.state if alert else None, transition))
    return found


def test_fires_at_once_and_ends_on_a_clear_signal() -> None:
    assert run(["clear", "firing", "firing", "clear", "clear", "firing"]) == [
        (None, None),
        ("firing", "fired"),
        ("firing", None),
        ("resolved", "resolved"),
        ("resolved", None),
        ("firing", "fired"),
    ]


def test_pending_until_the_condition_has_held() -> None:
    assert run(["firing", "firing", "firing", "clear"], 120) == [
        ("pending", None),
        ("pending", None),
        ("firing", "fired"),
        ("resolved", "resolved"),
    ]
    assert run(["firing", "clear", "firing", "firing"], 120)[-1] == ("pending", None)


def test_silence_freezes_and_never_ends_or_begins_anything() -> None:
    assert run(["frozen", "firing", "frozen", "frozen", "firing", "frozen", "clear"]) == [
        (None, None),
        ("firing", "fired"),
        ("frozen", None),
        ("frozen", None),
        ("firing", None),
        ("frozen", None),
        ("resolved", "resolved"),
    ]
    assert run(["firing", "frozen", "firing"], 120) == [
        ("pending", None),
        ("pending", None),
        ("firing", "fired"),
    ]


def test_what_is_not_evaluated_any_more_ends() -> None:
    assert run(["firing", None, None])[1:] == [("resolved", "resolved"), ("resolved", None)]
    assert run(["firing", None], 300)[-1] == (None, None)


def test_an_operator_ends_what_is_frozen() -> None:
    alert, _ = step(None, signal("firing"), NOW)
    assert alert is not None
    frozen, _ = step(alert, signal("frozen"), NOW)
    assert frozen is not None
    ended, transition = end(frozen, NOW + timedelta(hours=1), "mended")
    assert ended is not None
    assert (ended.state, transition, ended.reason) == ("resolved", "resolved", "mended")
    assert end(ended, NOW, "again") == (ended, None)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["firing", "frozen", "clear"]), max_size=40), st.sampled_from([0.0, 60.0, 180.0])
)
def test_every_end_follows_a_start(conditions: list[str], after_s: float) -> None:
    transitions = [t for _, t in run(list(conditions), after_s) if t]
    assert transitions == (["fired", "resolved"] * len(transitions))[: len(transitions)]


def test_identity_holds_no_number_and_tells_alerts_apart() -> None:
    keys = {
        WHO.key,
        replace(WHO, severity="ticket").key,
        replace(WHO, objective="p").key,
        replace(WHO, agent="a").key,
        replace(WHO, task_type="a").key,
        replace(WHO, kind="budget").key,
    }
    assert len(keys) == 6
    assert WHO.key == replace(WHO, service="moved").key
    assert WHO.labels() == {
        "alertname": "AgentSloBurn",
        "severity": "page",
        "slo": "done",
        "objective": "o",
        "service": "s",
    }


@pytest.mark.parametrize("kind", ["burn", "budget", "event", "no_data", "drift"])
def test_every_kind_has_a_name(kind: str) -> None:
    assert replace(WHO, kind=kind).labels()["alertname"].startswith("AgentSlo")  # type: ignore[arg-type]
