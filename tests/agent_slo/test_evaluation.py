"""When the objectives' history is computed anew: soon where nobody saw any yet, seldom where it takes long."""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

import agent_slo.evaluation as module
from agent_slo.config import Config
from agent_slo.evaluation import Evaluation


def test_the_first_tasks_are_in_the_history_at_once_and_later_ones_in_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, written = [0.0], []
    counted = {"n": 0}

    def histories(*_: object, **__: object) -> list[Any]:
        clock[0] += 6  # it takes six seconds
        return [SimpleNamespace(n=counted["n"])]

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(module, "histories", histories)
    monkeypatch.setattr(module, "write_history", lambda con, points: written.append(points[0].n))
    monkeypatch.setattr(module, "read_revisions", lambda con: {})
    evaluation = Evaluation(Config(), [], alerts=False)

    def at(second: float, *, changed: bool = True) -> list[int]:
        clock[0] = second
        evaluation._history(None, [], datetime(2026, 11, 30), changed)  # type: ignore[arg-type]
        return list(written)

    assert at(0) == [0]
    counted["n"] = 5
    assert at(8) == [0, 5]  # two seconds after the last
    counted["n"] = 6
    # six seconds are a twelfth of seventy-five
    assert at(40) == [0, 5]
    assert not evaluation.history_due
    clock[0] = 100
    assert evaluation.history_due
    assert at(100, changed=False) == [0, 5, 6]
    assert not evaluation.history_due
    assert at(200, changed=False) == [0, 5, 6]
