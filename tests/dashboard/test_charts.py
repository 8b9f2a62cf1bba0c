"""How charts are laid out: a day is as wide as a day, whatever lies beside it."""

from __future__ import annotations

from datetime import datetime, timedelta

import plotly.graph_objects as go
import pytest

from dashboard import charts

FIRST = datetime(2026, 11, 20)


def drawn(*offsets: int) -> go.Figure:
    figure = go.Figure()
    rows = [{"day": FIRST + timedelta(days=offset), "n": 1} for offset in offsets]
    charts.bars(figure, rows, "day", "n", "tasks", ("#000000", ""))
    charts.days_axis(figure, charts.span(rows))
    return figure


@pytest.mark.parametrize("offsets", [(0,), (0, 1), (0, 7, 14)])
def test_a_bar_is_narrower_than_its_day(offsets: tuple[int, ...]) -> None:
    assert drawn(*offsets).data[0].width == charts.DAY_WIDTH < timedelta(days=1) / timedelta(milliseconds=1)


@pytest.mark.parametrize(("offsets", "days"), [((0,), 8), ((0, 1), 8), ((0, 5), 8)])
def test_few_days_do_not_fill_a_chart(offsets: tuple[int, ...], days: int) -> None:
    first, last = drawn(*offsets).layout.xaxis.range
    assert first < FIRST
    assert last > FIRST + timedelta(days=offsets[-1])
    assert last - first == timedelta(days=days - 1)


def test_many_days_take_the_room_they_need() -> None:
    assert drawn(0, 7, 14).layout.xaxis.range is None


def test_bars_of_lengths_are_left_to_the_chart() -> None:
    figure = go.Figure()
    charts.bars(
        figure, [{"label": "under 1 min", "n": 2}], "label", "n", "approval", ("#000000", ""), hover="%{x}"
    )
    assert figure.data[0].width is None
