"""How every chart is laid out: title, axes with units, one hover, no button bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dashboard import colours
from dashboard.chrome import dark

BARE = {"displayModeBar": False}
FEWEST_DAYS = 7
"""A time axis is at least so long."""


TITLE = {"font": {"size": 14}, "yref": "container", "y": 1, "yanchor": "top", "pad": {"t": 12}}
LEGEND = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0}
"""Below the plot, with room of its own: above it, lines of a legend that wraps would run into the title."""


def chart(title: str, unit: str, *, height: int = 260, stacked: bool = False) -> go.Figure:
    """An empty figure with a title and a named vertical axis."""
    figure = go.Figure()
    figure.update_layout(
        barmode="stack" if stacked else "group",
        bargap=0.25,
        height=height,
        title={**TITLE, "text": title},
        margin={"l": 10, "r": 10, "t": 44, "b": 10},
        legend={**LEGEND, "traceorder": "normal"},
        yaxis={"title": {"text": unit}, "rangemode": "tozero"},
        hoverlabel={"namelength": -1},
    )
    legible(figure)
    return figure


def legible(figure: go.Figure) -> None:
    """Darken the marks and units of axes: Streamlit's grey is too faint on white for text this small."""
    if not dark():
        for update in (figure.update_xaxes, figure.update_yaxes):
            update(tickfont={"color": colours.TEXT_GREY}, title={"font": {"color": colours.TEXT_GREY}})


def span(rows: Sequence[Mapping[str, Any]]) -> int:
    """How many days lie from the first `day` of rows to the last, both counted."""
    days = [row["day"] for row in rows]
    return (max(days) - min(days)).days + 1 if days else 0


def days_axis(figure: go.Figure, days: int) -> None:
    """A time axis over so many days (UTC); up to ten days have a mark each, and none fills the whole chart."""
    figure.update_xaxes(type="date", tickformat="%b %-d", dtick=86_400_000 if 0 < days <= 10 else None)
    drawn = [moment for trace in figure.data for moment in trace.x]
    if drawn and days < FEWEST_DAYS:
        beside = timedelta(days=(FEWEST_DAYS - days) / 2 + 0.5)
        figure.update_xaxes(range=[min(drawn) - beside, max(drawn) + beside])


DAY_HOVER = "%{x|%Y-%m-%d} UTC"
DAY_WIDTH = 0.75 * 86_400_000
"""Of a bar, in milliseconds: where days without any lie between, plotly would draw one bar over all of them."""


def bars(
    figure: go.Figure,
    rows: Sequence[Mapping[str, Any]],
    x: str,
    y: str,
    name: str,
    style: tuple[str, str],
    hover: str = DAY_HOVER,
    **more: Any,
) -> None:
    """One stacked series of counts; `style` is a colour and a plotly pattern, so that it needs no colour to be told.

    A series without rows is left out of the legend. `more` goes to plotly.
    """
    if not rows:
        return
    colour, pattern = style
    if hover is DAY_HOVER:
        more["width"] = DAY_WIDTH
    figure.add_bar(
        name=name,
        x=[row[x] for row in rows],
        y=[row[y] for row in rows],
        marker={"color": colour, "pattern": {"shape": pattern, "size": 6}},
        hovertemplate=f"%{{y:,}} %{{fullData.name}}<br>{hover}<extra></extra>",
        **more,
    )


def draw(figure: go.Figure, key: str) -> None:
    """Show a figure in the page."""
    st.plotly_chart(figure, key=key, config=BARE)


def pick(figure: go.Figure, key: str) -> list[Any] | None:
    """Show a figure; returns the `customdata` of the mark that was clicked."""
    event = st.plotly_chart(figure, key=key, config=BARE, on_select="rerun", selection_mode="points")
    points = event["selection"]["points"]
    return list(points[0]["customdata"]) if points else None


def accent() -> str:
    """The colour of a single series, which must stand out from the page in both themes."""
    return colours.SKY if dark() else colours.BLUE


def line(figure: go.Figure, rows: list[dict[str, Any]], x: str, y: str, name: str, **more: Any) -> None:
    """One line through rows; unknown values leave a gap. `more` goes to plotly."""
    style = {"mode": "lines+markers", "marker": {"size": 5}, "connectgaps": False, **more}
    figure.add_scatter(name=name, x=[row[x] for row in rows], y=[row[y] for row in rows], **style)
