"""An objective as a card: k of n with its interval, what is left of the budget, how fast it burns, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dashboard import colours
from dashboard.charts import BARE, accent
from dashboard.chrome import badge
from dashboard.format import (
    STATE_WORDS,
    UNKNOWN,
    burn_line,
    count,
    counted,
    duration,
    interval,
    json_list,
    json_object,
    markdown_text,
    missing,
    number,
    one_line,
    percent,
    signed_percent,
    target_percent,
    usd,
    when,
    words,
)

Row = dict[str, Any]

MOST_IN_A_ROW = 3
_SIGNS = {"lt": "<", "lte": "≤", "gt": ">", "gte": "≥"}
EXCLUDED_WORDS = {
    "claim_not_verified": "claims that nobody verified",
    "cancelled_by_user_in_time": "cancelled by the user in time",
    "maintenance": "in a maintenance window",
}
MOST_REASONS = 3
"""A card names so many; the page of the objective names all."""


def grid(cards: int) -> list[int]:
    """How many cards stand in each row, so that none has a hole: 7 -> 3, 2, 2."""
    if cards <= MOST_IN_A_ROW:
        return [cards] if cards else []
    threes, left = divmod(cards, MOST_IN_A_ROW)
    if left == 0:
        return [3] * threes
    return [3] * (threes - 1) + [2, 2] if left == 1 else [3] * threes + [2]


def cards(rows: Sequence[Row], history: Sequence[Row], address: Mapping[str, list[str]]) -> None:
    """Draw all objectives in a grid without holes."""
    place = 0
    for width in grid(len(rows)):
        for column, row in zip(st.columns(width, gap="small"), rows[place : place + width], strict=True):
            with column:
                card(row, [h for h in history if key(h) == key(row)], address)
        place += width


def key(row: Row) -> tuple[Any, Any]:
    """What names an objective."""
    return row["slo"], row["objective"]


def card(row: Row, history: list[Row], address: Mapping[str, list[str]]) -> None:
    """Draw one objective; `history` are its points, `address` the filters a link takes along."""
    name = f"card_{row['slo']}_{row['objective']}"
    with st.container(border=True, key=name, height="stretch"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.page_link(
                "screens/objective.py",
                label=f"**{markdown_text(row['title'] or row['slo'])}**",
                query_params={**address, "slo": row["slo"], "objective": row["objective"]},
                icon=":material/chevron_right:",
                icon_position="right",
                width="content",
            )
            with st.container(horizontal=True, width="content", gap="xsmall"):
                badges(row)
        left, right = st.columns([1.3, 1], gap="small", vertical_alignment="bottom")
        label, value = share_figure(row)
        left.metric(
            markdown_text(label),
            markdown_text(value),
            help=markdown_text(row["description"]) if not missing(row["description"]) else None,
        )
        trend = [h for h in history if not missing(h["sli"])]
        if len(trend) > 1:
            right.plotly_chart(sparkline(row, trend), key=f"{name}_trend", config=BARE)
        budget_bar(row)
        lines = [target_line(row), f"Burn {burn_line(row['burn'])}{_exhaustion(row)}"]
        change = _change(row)
        if change:
            lines.append(change)
        notes = _notes(row)
        if notes:
            lines.append(" · ".join(notes))
        # Two spaces before a newline are Markdown's line break.
        st.caption("  \n".join(markdown_text(line) for line in lines))
        for alert in json_list(row["firing"]):
            severity = markdown_text(words({}, alert.get("severity")).capitalize())
            st.caption(
                f":material/notifications_active: **{severity} alert:** {markdown_text(alert.get('why'))}"
            )


def few(row: Row) -> bool:
    """Whether there are too few events for a verdict, so that a share or a full bar would praise by chance."""
    return bool(row["state"] == "insufficient_data")


def share_figure(row: Row) -> tuple[str, str]:
    """Label and value of the figure of a card: a share of enough events, else what was counted."""
    if not missing(row["n"]) and row["n"] > 0:
        counts = f"{count(row['good'])} of {count(row['n'])}"
        if few(row):
            return f"{unit_word(row)}, too few events", counts
        return f"{counts} {unit_word(row)}", percent(row["sli"])
    unknown, excluded = (0 if missing(row[name]) else int(row[name]) for name in ("unknown", "excluded"))
    if not unknown and not excluded:
        return f"no {unit_word(row)} yet", UNKNOWN
    if not excluded:
        return f"{counted(unknown, 'event')}, {'' if unknown == 1 else 'all '}unknown", UNKNOWN
    if not unknown:
        return f"{counted(excluded, 'event')}, {'' if excluded == 1 else 'all '}excluded", UNKNOWN
    return (
        f"{count(unknown + excluded)} events: {count(unknown)} unknown, {count(excluded)} excluded",
        UNKNOWN,
    )


def excluded_words(row: Row, most: int | None = None) -> str:
    """`880 excluded (743 claims that nobody verified, 137 environment:test)`, the most frequent reason first."""
    said = f"{count(row['excluded'])} excluded"
    reasons = sorted(json_object(row["excluded_by"]).items(), key=lambda item: (-item[1], item[0]))
    if len(reasons) == 1:
        return f"{said} ({exclusion(reasons[0][0])})"
    shown = [f"{count(n)} {exclusion(reason)}" for reason, n in reasons[:most]]
    if len(reasons) > len(shown):
        shown.append(f"{count(sum(n for _, n in reasons[len(shown) :]))} for other reasons")
    return f"{said} ({', '.join(shown)})" if shown else said


def exclusion(reason: str) -> str:
    """Why something is excluded, in words."""
    kind, _, name = one_line(reason, 80).partition(":")
    return f"of environment {name}" if kind == "environment" else words(EXCLUDED_WORDS, one_line(reason, 80))


def badges(row: Row) -> None:
    """The state in words; before one that sounds calm, the gravest alert that fires.

    Too few events for a verdict on the window may be enough for an alert.
    """
    severities = {str(alert.get("severity")) for alert in json_list(row["firing"])}
    if severities and row["state"] not in ("at_risk", "exhausted"):
        gravest = "page" if "page" in severities else min(severities)
        colour = "red" if gravest == "page" else "orange"
        badge(f"{words({}, gravest).capitalize()} alert", colour, ":material/notifications_active:")
    colour, icon = colours.STATE_BADGE.get(row["state"], ("gray", ":material/help:"))
    badge(words(STATE_WORDS, row["state"]), colour, icon)


def sparkline(row: Row, trend: Sequence[Row]) -> go.Figure:
    """The SLI over the kept evaluations, with the target as a dashed line."""
    points = tuple((p["at"], p["sli"], p["good"], p["n"]) for p in trend)
    return _drawn(points, None if missing(row["target"]) else row["target"], accent())


@lru_cache(maxsize=256)
def _drawn(points: tuple[tuple[Any, float, int, int], ...], target: float | None, colour: str) -> go.Figure:
    """Kept because every click draws all cards again, and the history changes once an hour."""
    line = go.Scatter(
        x=[at for at, *_ in points],
        y=[sli * 100 for _, sli, *_ in points],
        customdata=[
            [percent(sli), count(good), count(n), when(at, seconds=False)] for at, sli, good, n in points
        ],
        mode="lines",
        line={"color": colour, "width": 2},
        hovertemplate="%{customdata[0]} (%{customdata[1]} of %{customdata[2]})<br>"
        "%{customdata[3]}<extra></extra>",
    )
    dashed = {
        "type": "line", "xref": "x domain", "x0": 0, "x1": 1, "yref": "y",
        "line": {"color": colours.GREY, "width": 1, "dash": "dash"},
    }  # fmt: skip
    return go.Figure(
        line,
        {
            "height": 64,
            "margin": {"l": 0, "r": 0, "t": 4, "b": 4},
            "showlegend": False,
            "xaxis": {"visible": False, "fixedrange": True},
            "yaxis": {"visible": False, "fixedrange": True},
            "shapes": [] if target is None else [{**dashed, "y0": target * 100, "y1": target * 100}],
        },
    )


def unit_word(row: Row) -> str:
    """What is counted: with a cut, `unit` belongs to the measured value and tasks are counted."""
    if not missing(row["cut"]):
        return "tasks"
    return "events" if missing(row["unit"]) else one_line(row["unit"])


def target_line(row: Row) -> str:
    """Target, cut and interval on one line."""
    cut = "" if missing(row["cut"]) else f" {_SIGNS.get(row['op'], row['op'])} {cut_words(row)}"
    line = f"Target {target_percent(row['target'])}{cut}"
    return line if missing(row["lower"]) else f"{line} · 95% interval {interval(row['lower'], row['upper'])}"


def cut_words(row: Row) -> str:
    """The cut in its unit: `5 min`, `$0.50`."""
    if row["unit"] == "s":
        return duration(row["cut"])
    if row["unit"] == "USD":
        return f"${row['cut']:,.2f}" if row["cut"] == round(row["cut"], 2) else usd(row["cut"])
    return f"{number(row['cut'], 3)} {'' if missing(row['unit']) else row['unit']}".strip()


def budget_bar(row: Row) -> None:
    """What is left of the error budget, as a bar with words."""
    remaining = row["remaining"]
    if missing(remaining):
        st.caption("No budget yet: nothing was counted.")
        return
    allowed = (
        ""
        if missing(row["budget_events"])
        else f" · {count(row['bad'])} bad, {allowed_events(row['budget_events'])} allowed"
    )
    if few(row):
        # A full bar after one event would be praise, an empty one blame.
        st.caption(markdown_text(f"Budget: too few events to tell{allowed}"))
        return
    label = (
        f"Budget left {percent(remaining, 0)}"
        if remaining >= 0
        else f"Budget overspent by {percent(-remaining, 0)}"
    )
    st.progress(min(max(float(remaining), 0.0), 1.0), text=markdown_text(label + allowed))


def allowed_events(events: float) -> str:
    """Budgets are fractions of events; the fraction only matters while the budget is small, and is never lost."""
    return "fewer than 0.1" if 0 < events < 0.05 else number(events, 0 if events >= 100 else 1)


def _exhaustion(row: Row) -> str:
    value = json_object(row["exhaustion"]).get("rolling_s")
    if value is None or missing(value) or value <= 0 or row["state"] == "exhausted":
        return ""
    # With too few events for a verdict the state does not tell that the budget is gone.
    if not missing(row["remaining"]) and row["remaining"] <= 0:
        return ""
    return f" · spent in {duration(value)} at this rate"


def _change(row: Row) -> str:
    """What the last day did to the budget; nothing when it did nothing."""
    change = row["remaining_change"]
    if missing(change) or round(float(change), 3) == 0:
        return ""
    return f"Since yesterday {signed_percent(change)} of the budget"


def _notes(row: Row) -> list[str]:
    notes = []
    if not missing(row["unknown"]) and row["unknown"] > 0:
        between = ""
        if not missing(row["n"]) and row["n"] > 0:
            between = f": between {interval(row['sli_unknown_bad'], row['sli_unknown_good'])}"
        notes.append(f"{count(row['unknown'])} unknown{between}")
    if not missing(row["excluded"]) and row["excluded"] > 0:
        notes.append(excluded_words(row, MOST_REASONS))
    if not missing(row["inferred_share"]) and row["inferred_share"] > 0:
        notes.append(f"{percent(row['inferred_share'], 0)} of outcomes inferred")
    return notes
