"""Spans of 1970 and 2262 are counted and listed, and no chart is stretched over the time between."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dashboard.days import MOST_DAYS, clipped
from tests.dashboard.conftest import Ids, OpenPage, texts
from tests.dashboard.test_pages import PAGES, frame_with

AS_OF = datetime(2026, 11, 29, 12, 0)
MIDNIGHT = datetime(2026, 11, 29)


def _days(*days: datetime) -> list[dict[str, Any]]:
    return [{"day": day} for day in days]


def test_days_of_no_clock_are_left_out() -> None:
    rows = _days(datetime(1970, 1, 1), MIDNIGHT - timedelta(days=40), MIDNIGHT, datetime(2262, 4, 11))
    assert clipped(rows, None, AS_OF) == rows[1:3]
    assert clipped(rows, 28, AS_OF) == rows[2:3]


def test_a_range_keeps_the_day_it_begins_in_and_a_clock_that_is_a_little_ahead() -> None:
    rows = _days(*(MIDNIGHT + timedelta(days=day) for day in (-8, -7, 0, 1, 2)))
    assert clipped(rows, 7, AS_OF) == rows[1:4]


def test_a_chart_has_no_more_days_than_it_can_draw() -> None:
    rows = _days(*(MIDNIGHT - timedelta(days=day) for day in range(3000)))
    assert clipped(rows, None, AS_OF) == rows[:MOST_DAYS]


def test_traces_that_are_all_old_keep_their_days() -> None:
    rows = _days(datetime(2019, 5, 1), datetime(2019, 5, 2))
    assert clipped(rows, None, AS_OF) == rows
    assert clipped(_days(datetime(2262, 1, 1)), None, AS_OF) == []


def _opened(open_page: OpenPage, data: Path, ids: Ids, page: str, time_range: str) -> Any:
    named = {"screens/incidents.py": {"id": ids.incident}, "screens/task.py": {"id": ids.longest}}
    return open_page(data, page, **{**PAGES[page], **named.get(page, {}), "range": time_range})


@pytest.mark.parametrize("time_range", ["28d", "all"])
@pytest.mark.parametrize("page", list(PAGES))
def test_no_chart_of_a_page_is_longer_than_it_can_draw(
    open_page: OpenPage, odd_clocks: Path, odd_ids: Ids, page: str, time_range: str
) -> None:
    test = _opened(open_page, odd_clocks, odd_ids, page, time_range)
    said = texts(test)
    assert "cannot be read" not in said
    assert "cannot be told" not in said
    for chart in test.get("plotly_chart"):
        shown = json.loads(chart.proto.spec)
        axis = shown["layout"].get("xaxis", {})
        if axis.get("type") != "date":
            assert axis.get("dtick") is None
            continue
        at = [datetime.fromisoformat(x) for trace in shown["data"] for x in trace["x"]]
        length = max(at) - min(at)
        assert length < timedelta(days=MOST_DAYS)
        assert len(at) <= 10 * MOST_DAYS
        assert axis.get("dtick") is None or length < timedelta(days=10)


@pytest.mark.parametrize("page", ["overview", "actions", "humans", "cost"])
def test_what_is_not_drawn_is_said(open_page: OpenPage, odd_clocks: Path, odd_ids: Ids, page: str) -> None:
    said = texts(_opened(open_page, odd_clocks, odd_ids, f"screens/{page}.py", "all"))
    assert "Not drawn: 2 days (1970-01-01 to 2262-04-11)" in said


def test_their_tasks_stay_listed(open_page: OpenPage, odd_clocks: Path) -> None:
    started = list(frame_with(open_page(odd_clocks, "screens/tasks.py"), "Started")["Started"])
    assert len(started) == 6
    assert (started[0][:4], started[-1][:4]) == ("2262", "1970")
    test = open_page(odd_clocks, "screens/cost.py", range="all")
    assert len(frame_with(test, "Started (UTC)")) == 6
