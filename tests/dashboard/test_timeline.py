"""The picture of a task: lanes, marks, cut gaps, and nothing a trace could inject."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from dashboard.timeline import Clock, figure, idle_gaps, lanes

START = datetime(2026, 11, 27, 9, 0, 0)
EMPTY = dict.fromkeys(
    ("agent", "tool", "model", "arguments", "error_class", "finish_reason", "action_id", "effect_class",
     "outcome", "disposition", "attempt_no", "duplicate", "cause", "suspected"),
)  # fmt: skip


def step(
    span: int, low: float, high: float | None, role: str = "model", run: str = "r1", **more: Any
) -> dict[str, Any]:
    return {
        **EMPTY,
        "trace_id": "t" * 32,
        "span_id": f"{span:016x}",
        "run_id": run,
        "role": role,
        "agent": "agent",
        "started_at": START + timedelta(seconds=low),
        "ended_at": None if high is None else START + timedelta(seconds=high),
        **more,
    }


RUNS = [{"run_id": "r1", "agent": "agent"}, {"run_id": "r2", "agent": "agent"}]


def names(chart: Any) -> list[str]:
    return [trace.name for trace in chart.data]


def test_steps_that_overlap_share_no_row() -> None:
    steps = [step(1, 0, 10, "agent"), step(2, 0, 4), step(3, 2, 5), step(4, 4, 6), step(5, 20, 21, run="r2")]
    first, second = lanes(RUNS, steps)
    assert (first.label, second.label) == ("run 1 · agent", "run 2 · agent")
    assert [len(row) for row in first.rows] == [2, 1]
    for row in first.rows:
        for before, after in pairwise(row):
            assert before["ended_at"] <= after["started_at"]


def test_attempts_of_one_action_are_joined_and_duplicates_marked() -> None:
    tool = {"tool": "refund", "effect_class": "write", "action_id": "a"}
    steps = [
        step(1, 0, 1, "tool", **tool, error_class="timeout"),
        step(2, 2, 3, "tool", run="r2", **tool, duplicate="unprotected", cause="retry_after_timeout"),
    ]
    chart = figure(RUNS, steps, [])
    assert "attempts of one action" in names(chart)
    assert "unprotected duplicate" in names(chart)
    assert "error" in names(chart)
    join = next(trace for trace in chart.data if trace.name == "attempts of one action")
    assert list(join.x) == [0.0, 2.0, None]
    duplicate = next(trace for trace in chart.data if trace.name == "unprotected duplicate")
    assert "retried after a timeout" in duplicate.customdata[0]


def test_a_single_attempt_is_not_joined() -> None:
    chart = figure(RUNS, [step(1, 0, 1, "tool", tool="x", action_id="a")], [])
    assert "attempts of one action" not in names(chart)


def test_a_long_wait_is_cut_and_its_length_said() -> None:
    steps = [step(1, 0, 5), step(2, 7205, 7210, run="r2")]
    wait = {
        "kind": "approval",
        "decision": "approved",
        "wait_s": 7200.0,
        "requested_at": START + timedelta(seconds=5),
        "decided_at": START + timedelta(seconds=7205),
    }
    assert idle_gaps(steps) == [(START + timedelta(seconds=5), START + timedelta(seconds=7205))]
    cut, whole = figure(RUNS, steps, [wait]), figure(RUNS, steps, [wait], cut_gaps=False)
    assert cut.layout.xaxis.range[1] < 15
    assert whole.layout.xaxis.range[1] > 7000
    assert "<br>(2 h idle)" in cut.layout.xaxis.ticktext
    human = next(trace for trace in cut.data if trace.name == "human took part")
    assert human.text == "approval: approved, waited 2 h"
    assert human.x[0] == pytest.approx(5)


def test_the_clock_keeps_order_and_ends() -> None:
    clock = Clock(
        START,
        START + timedelta(seconds=110),
        [(START + timedelta(seconds=5), START + timedelta(seconds=105))],
    )
    places = [clock.at_seconds(second) for second in range(0, 111)]
    assert places == sorted(places)
    assert clock.at_seconds(5) == 5
    assert clock.drawn_length == pytest.approx(10 + clock.gap_width)
    assert [text for _, text in clock.ticks()] == [
        "start", "2.0 s", "4.0 s", "1 min 45 s", "+2.0 s", "+4.0 s", "<br>(1 min 40 s idle)",
    ]  # fmt: skip


def test_a_step_that_never_ended_and_one_without_start() -> None:
    unended = step(1, 0, None)
    unstarted = {**step(2, 0, 1), "started_at": None}
    chart = figure(RUNS, [unended, unstarted], [])
    bar = next(trace for trace in chart.data if trace.name == "model call")
    assert len(bar.x) == 1
    assert "never ended" in bar.customdata[0]


def test_nothing_from_a_trace_is_markup() -> None:
    evil = "<img src=http://attacker.example/x>"
    steps = [
        step(
            1,
            0,
            100,
            "tool",
            tool=evil,
            arguments=evil,
            agent=evil,
            error_class=evil,
            duplicate="unprotected",
            cause=evil,
        )
    ]
    text = figure([{"run_id": "r1", "agent": evil}], steps, []).to_json()
    assert "<img" not in text
    assert "\\u003cimg" not in text
    assert "&lt;img" in text
