"""The picture of one task: every run and trace on one time axis.

A lane is one agent of one run. The agent's own span is a pale bar; model and tool calls lie on it, packed
into rows where they overlap. A line joins the attempts of one action; duplicates, errors and human waits
carry a mark of their own shape, so that nothing depends on colour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import plotly.graph_objects as go

from dashboard import charts, colours
from dashboard.format import CAUSE_WORDS, DUPLICATE_WORDS, duration, missing, plotly_text, words

Row = Mapping[str, Any]

CONTAINER_ROLES = frozenset({"agent", "workflow"})
SIDE_EFFECTS = frozenset({"write", "idempotent_write"})
ROW_PIXELS = 24
AXIS_PIXELS = 900
LETTER_PIXELS = 6.5
# A call must stay visible beside a run of hours: bars are never drawn thinner than this share of the axis.
MIN_BAR_SHARE = 0.004
# How wide a cut gap is drawn, as a share of the busy time.
GAP_SHARE = 0.09
BAR = 0.72
NICE_SECONDS = [
    factor * unit
    for unit, factors in (
        (0.001, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (1.0, (1, 2, 5, 10, 15, 30)),
        (60.0, (1, 2, 5, 10, 15, 30)),
        (3600.0, (1, 2, 3, 6, 12)),
        (86400.0, (1, 2, 7, 14, 28)),
    )
    for factor in factors
]


@dataclass
class Lane:
    """One agent of one run: its label and its steps packed into rows that do not overlap."""

    label: str
    containers: list[Row] = field(default_factory=list)
    rows: list[list[Row]] = field(default_factory=list)


def lanes(runs: Sequence[Row], steps: Sequence[Row]) -> list[Lane]:
    """Order lanes by run, then by first step; steps of no known run come last."""
    number = {run["run_id"]: position for position, run in enumerate(runs, start=1)}
    found: dict[tuple[int, str], Lane] = {}
    agent_of_run = {run["run_id"]: run["agent"] for run in runs}
    for step in steps:
        if missing(step["started_at"]):
            continue
        run = number.get(step["run_id"], len(runs) + 1)
        agent = step["agent"] if not missing(step["agent"]) else agent_of_run.get(step["run_id"])
        name = plotly_text(agent)[:40] if not missing(agent) else "agent not named"
        label = f"run {run} · {name}" if run <= len(runs) else f"no run · {name}"
        lane = found.setdefault((run, name), Lane(label))
        if step["role"] in CONTAINER_ROLES:
            lane.containers.append(step)
        else:
            _pack(lane, step)
    return [found[key] for key in sorted(found, key=lambda key: key[0])]


def _pack(lane: Lane, step: Row) -> None:
    for row in lane.rows:
        if _end(row[-1]) <= step["started_at"]:
            row.append(step)
            return
    lane.rows.append([step])


def _end(step: Row) -> datetime:
    end: datetime = step["started_at"] if missing(step["ended_at"]) else step["ended_at"]
    return end


def idle_gaps(steps: Sequence[Row]) -> list[tuple[datetime, datetime]]:
    """Stretches without any model, tool or other leaf step that are longer than all work together.

    Human waits, crashes and deadlines are such; drawn to scale they would squeeze the work into a line.
    """
    spans = sorted(
        (step["started_at"], _end(step))
        for step in steps
        if not missing(step["started_at"]) and step["role"] not in CONTAINER_ROLES
    )
    if len(spans) < 2:
        return []
    found = []
    busy = timedelta(0)
    low, covered = spans[0]
    for start, end in spans[1:]:
        if start > covered:
            busy += covered - low
            found.append((covered, start))
            low = start
        covered = max(covered, end)
    busy += covered - low
    return [(start, end) for start, end in found if end - start > busy]


class Clock:
    """Maps moments to drawn seconds since the first step; long idle gaps are drawn narrower than they are."""

    def __init__(self, first: datetime, last: datetime, gaps: Sequence[tuple[datetime, datetime]]) -> None:
        self.first = first
        self.cut = [(self._real(start), self._real(end)) for start, end in gaps]
        self.length = self._real(last)
        busy = self.length - sum(end - start for start, end in self.cut)
        # Without any cut the gap keeps its own width.
        self.gap_width = max(busy, 0.001) * GAP_SHARE
        self.drawn_length = max(self.at_seconds(self.length), 0.001)

    def _real(self, moment: datetime) -> float:
        return (moment - self.first) / timedelta(seconds=1)

    def at(self, moment: datetime) -> float:
        """The place of a moment on the drawn axis."""
        return self.at_seconds(self._real(moment))

    def at_seconds(self, real: float) -> float:
        """The place of a number of seconds since the first step."""
        drawn = real
        for start, end in self.cut:
            width = min(self.gap_width, end - start)
            if real >= end:
                drawn -= end - start - width
            elif real > start:
                drawn -= (real - start) * (1 - width / (end - start))
        return drawn

    def ticks(self) -> list[tuple[float, str]]:
        """About eight round steps of time since the start.

        After a cut gap they begin anew as `+2.0 s`, since `2 h 8 min` would read the same at every step; the
        length of the gap stands below it.
        """
        wanted = self.drawn_length / 8
        step = next((size for size in NICE_SECONDS if size >= wanted), wanted)
        edges = [0.0, *(edge for gap in self.cut for edge in gap), self.length]
        found: list[tuple[float, str]] = []
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            first = duration(start) if start else "start"
            sign = "+" if start else ""
            for number in range(math.floor((end - start) / step) + 1):
                label = f"{sign}{duration(number * step)}" if number else first
                found.append((self.at_seconds(start + number * step), label))
        for start, end in self.cut:
            middle = (self.at_seconds(start) + self.at_seconds(end)) / 2
            found.append((middle, f"<br>({duration(end - start)} idle)"))
        return found


def figure(
    runs: Sequence[Row],
    steps: Sequence[Row],
    interventions: Sequence[Row],
    *,
    cut_gaps: bool = True,
) -> go.Figure:
    """Draw the task. Times are naive UTC `datetime`s; rows come from `runs`, `steps` and `interventions`."""
    drawn = lanes(runs, steps)
    timed = [step for step in steps if not missing(step["started_at"])]
    first = min((step["started_at"] for step in timed), default=datetime(2000, 1, 1))
    last = max((_end(step) for step in timed), default=first)
    clock = Clock(first, last, idle_gaps(timed) if cut_gaps else [])

    chart = go.Figure()
    ticks: list[tuple[float, str]] = []
    bars = _Bars(clock)
    position: dict[Any, tuple[float, float]] = {}
    y = 0.0
    for lane in drawn:
        height = max(len(lane.rows), 1)
        middle = y + (height - 1) / 2
        ticks.append((middle, lane.label))
        for step in lane.containers:
            bars.add("agent span", colours.GREY, step, middle, height - 0.05, opacity=0.16)
        for offset, row in enumerate(lane.rows):
            for step in row:
                name, colour = _style(step)
                bars.add(name, colour, step, y + offset, BAR)
                position[(step["trace_id"], step["span_id"])] = (clock.at(step["started_at"]), y + offset)
        y += height + 0.35
    bars.draw(chart)
    _gaps(chart, clock)
    _waits(chart, interventions, clock, y)
    _joins(chart, timed, position)
    _marks(chart, timed, position)
    chart.update_layout(
        title={**charts.TITLE, "text": "Timeline of all runs and traces"},
        barmode="overlay",
        height=round(130 + ROW_PIXELS * max(y, 3)),
        margin={"l": 10, "r": 20, "t": 44, "b": 40},
        legend={**charts.LEGEND, "itemsizing": "constant"},
        hoverlabel={"align": "left"},
        xaxis={
            "title": {
                "text": f"time since the first step, {first.isoformat(sep=' ', timespec='milliseconds')} UTC"
            },
            "range": [-0.01 * clock.drawn_length, 1.03 * clock.drawn_length],
            "tickmode": "array",
            "tickvals": [place for place, _ in clock.ticks()],
            "ticktext": [text for _, text in clock.ticks()],
            "showgrid": True,
            "zeroline": False,
        },
        yaxis={
            "tickmode": "array",
            "tickvals": [value for value, _ in ticks],
            "ticktext": [text for _, text in ticks],
            "range": [y - 0.6, -0.6],
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
    )
    charts.legible(chart)
    return chart


def _style(step: Row) -> tuple[str, str]:
    role = step["role"]
    if role == "tool":
        if step["effect_class"] in SIDE_EFFECTS:
            return "tool call with side effect", colours.ROLE_STYLE["side_effect"]
        return "tool call", colours.ROLE_STYLE["tool"]
    names = {"model": "model call", "human": "human"}
    key = role if role in colours.ROLE_STYLE else "other"
    return names.get(key, key), colours.ROLE_STYLE[key]


def _fits(label: str, share: float) -> bool:
    """Whether a label fits into a bar of this share of the axis; plotly lets it run over its neighbour."""
    return len(label) * LETTER_PIXELS + 8 <= share * AXIS_PIXELS


class _Bars:
    """Bars collected per legend entry, since plotly draws one trace much faster than hundreds."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.groups: dict[str, dict[str, Any]] = {}

    def add(self, name: str, colour: str, step: Row, y: float, width: float, opacity: float = 1.0) -> None:
        group = self.groups.setdefault(
            name,
            {
                "colour": colour,
                "opacity": opacity,
                "base": [],
                "x": [],
                "y": [],
                "width": [],
                "text": [],
                "hover": [],
            },
        )
        start = self.clock.at(step["started_at"])
        group["base"].append(start)
        group["x"].append(max(self.clock.at(_end(step)) - start, self.clock.drawn_length * MIN_BAR_SHARE))
        group["y"].append(y)
        group["width"].append(width)
        label = step["tool"] if step["role"] == "tool" else step["model"] if step["role"] == "model" else None
        fits = not missing(label) and _fits(str(label), group["x"][-1] / self.clock.drawn_length)
        group["text"].append(plotly_text(label) if fits and opacity == 1 else "")
        group["hover"].append(_hover(step))

    def draw(self, chart: go.Figure) -> None:
        """Add the groups to the chart, pale agent spans first so that calls lie on them."""
        for name, group in sorted(self.groups.items(), key=lambda item: item[1]["opacity"]):
            dark_text = group["colour"] in (colours.SKY, colours.ORANGE, colours.YELLOW, colours.PURPLE)
            chart.add_bar(
                name=name,
                orientation="h",
                base=group["base"],
                x=group["x"],
                y=group["y"],
                width=group["width"],
                text=group["text"],
                textposition="inside",
                insidetextanchor="middle",
                constraintext="none",
                textfont={"size": 11, "color": "#111" if dark_text else "#fff"},
                marker={"color": group["colour"], "line": {"width": 0}},
                opacity=group["opacity"],
                customdata=group["hover"],
                hovertemplate="%{customdata}<extra></extra>",
            )


def _hover(step: Row) -> str:
    lines = [
        f"<b>{plotly_text(step['tool'] if step['role'] == 'tool' else step['model'] or step['agent'])}</b>"
    ]
    ended = (
        None if missing(step["ended_at"]) else (step["ended_at"] - step["started_at"]) / timedelta(seconds=1)
    )
    lines.append(f"{plotly_text(step['role'])}, {duration(ended) if ended is not None else 'never ended'}")
    lines.append(f"from {step['started_at'].isoformat(sep=' ', timespec='milliseconds')} UTC")
    for key, label in (
        ("outcome", "outcome"),
        ("disposition", "disposition"),
        ("attempt_no", "attempt"),
        ("error_class", "error"),
        ("finish_reason", "finish reason"),
    ):
        if not missing(step[key]):
            lines.append(f"{label}: {plotly_text(step[key])[:120]}")
    if not missing(step["duplicate"]):
        lines.append(
            f"{words(DUPLICATE_WORDS, step['duplicate'])}: {plotly_text(words(CAUSE_WORDS, step['cause']))}"
        )
    if not missing(step["arguments"]):
        lines.append(f"arguments: {plotly_text(step['arguments'])[:160]}")
    lines.append(f"span {plotly_text(step['span_id'])} in trace {plotly_text(step['trace_id'])}")
    return "<br>".join(lines)


def _joins(chart: go.Figure, steps: Sequence[Row], position: Mapping[Any, tuple[float, float]]) -> None:
    """One dotted line per action through the starts of its attempts."""
    actions: dict[Any, list[tuple[float, float]]] = {}
    for step in steps:
        place = position.get((step["trace_id"], step["span_id"]))
        if place is not None and not missing(step["action_id"]):
            actions.setdefault(step["action_id"], []).append(place)
    x: list[float | None] = []
    y: list[float | None] = []
    for places in actions.values():
        if len(places) > 1:
            x += [place for place, _ in places] + [None]
            y += [height for _, height in places] + [None]
    if x:
        chart.add_scatter(
            name="attempts of one action",
            x=x,
            y=y,
            mode="lines+markers",
            line={"color": colours.ORANGE, "width": 2, "dash": "dot"},
            marker={"size": 6, "color": colours.ORANGE},
            hoverinfo="skip",
        )


def _marks(chart: go.Figure, steps: Sequence[Row], position: Mapping[Any, tuple[float, float]]) -> None:
    """Marks of their own shape for errors, duplicates and suspected replays, at the start of the bar."""
    kinds = (
        ("error", "x", colours.VERMILION, lambda s: not missing(s["error_class"])),
        ("unprotected duplicate", "diamond", colours.VERMILION, lambda s: s["duplicate"] == "unprotected"),
        ("protected duplicate", "diamond-open", colours.VERMILION, lambda s: s["duplicate"] == "protected"),
        ("repeat without effect", "circle-open", colours.ORANGE, lambda s: s["duplicate"] == "no_op"),
        ("suspected replay", "triangle-up-open", colours.PURPLE, lambda s: bool(s["suspected"])),
    )
    for name, symbol, colour, applies in kinds:
        found = [
            (place, step)
            for step in steps
            if applies(step) and (place := position.get((step["trace_id"], step["span_id"]))) is not None
        ]
        if found:
            chart.add_scatter(
                name=name,
                x=[place[0] for place, _ in found],
                y=[place[1] for place, _ in found],
                mode="markers",
                marker={"symbol": symbol, "size": 13, "color": colour, "line": {"width": 2, "color": "#fff"}}
                if not symbol.endswith("-open")
                else {"symbol": symbol, "size": 13, "color": colour, "line": {"width": 3, "color": colour}},
                customdata=[_hover(step) for _, step in found],
                hovertemplate="%{customdata}<extra></extra>",
            )


def _gaps(chart: go.Figure, clock: Clock) -> None:
    for start, end in clock.cut:
        low, high = clock.at_seconds(start), clock.at_seconds(end)
        chart.add_vrect(x0=low, x1=high, fillcolor=colours.GREY, opacity=0.12, line_width=0, layer="below")


def _waits(chart: go.Figure, interventions: Sequence[Row], clock: Clock, bottom: float) -> None:
    """A hatched band over all lanes from the request to the human's decision."""
    shown = False
    for wait in interventions:
        start, end = wait["requested_at"], wait["decided_at"]
        if missing(start) and missing(end):
            continue
        start = end if missing(start) else start
        end = start if missing(end) else end
        low, high = clock.at(start), clock.at(end)
        text = plotly_text(words({}, wait["kind"]))
        decision = "" if missing(wait["decision"]) else f": {plotly_text(wait['decision'])}"
        chart.add_scatter(
            name="human took part",
            legendgroup="human",
            showlegend=not shown,
            x=[low, high, high, low, low],
            y=[-0.55, -0.55, bottom - 0.65, bottom - 0.65, -0.55],
            mode="lines",
            fill="toself",
            fillpattern={
                "shape": "/",
                "fgcolor": colours.ORANGE,
                "bgcolor": "rgba(0,0,0,0)",
                "size": 9,
                "solidity": 0.25,
            },
            line={"color": colours.ORANGE, "width": 2},
            hoveron="fills",
            hoverinfo="text",
            text=f"{text}{decision}, waited {duration(wait['wait_s'])}",
        )
        shown = True
