"""Objective: one objective over time, what its budget and its alerts rest on, and what another would have said."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dashboard import charts, colours
from dashboard.cards import (
    badges,
    budget_bar,
    cut_words,
    excluded_words,
    exclusion,
    share_figure,
    target_line,
    unit_word,
)
from dashboard.chrome import badge, open_task, page, rows_height, tab, table
from dashboard.configuration import ConfigurationError, objective_files
from dashboard.counted import kept_rows
from dashboard.definitions import changed, definition, openslo_text
from dashboard.door import Answers, data_folder
from dashboard.facts import Fact, Here, facts, listed
from dashboard.filters import heed
from dashboard.format import (
    STATE_WORDS,
    budget_words,
    burn,
    chance,
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
    plotly_text,
    target_percent,
    usd,
    when,
    words,
)
from dashboard.incident_words import incident_title
from dashboard.preview import DAYS_BACK, LONGEST_WINDOW, back_test
from metrics.openslo import OpenSLOError
from metrics.slo.counted import EventClass
from metrics.slo.objective import EventSource, Objective

Row = dict[str, Any]

SEPARATOR = "/"
LEAST_TARGET, MOST_TARGET = 1.0, 99.999


def show(reader: Answers) -> None:
    """Draw the page of the objective named by `?slo=NAME&objective=NAME`."""
    st.page_link("screens/overview.py", label="All objectives", icon=":material/arrow_back:")
    names = reader.rows("objective_names") if "slo_status" in reader.views() else []
    if not names:
        st.info("No objective has been evaluated yet.")
        return
    chosen = _choice(names)
    row = reader.row("objective_status", slo=chosen[0], objective=chosen[1])
    if row is None:
        st.warning("There is no such objective; it may have been removed from its file.")
        return
    tab(str(row["title"] or row["slo"]))
    try:
        objective = definition(data_folder(), row)
    except (OpenSLOError, ConfigurationError) as error:
        objective = None
        st.warning("The objective files cannot be read, so the counted events and the preview are left out.")
        st.text(str(error))
    incidents = _incidents(reader, row, objective)
    _head(row, objective)
    _over_time(reader, row, incidents)
    _burn(row)
    _formula(row)
    _events(reader, row, objective)
    _behind(incidents)
    _parts(reader, row)
    _preview(reader, row, objective)


def _choice(names: list[Row]) -> tuple[str, str]:
    """The selection box of objectives; the address follows it."""
    keys = [(n["slo"], n["objective"]) for n in names]
    titles = {key: f"{one_line(n['title'], 90)}" for key, n in zip(keys, names, strict=True)}
    asked = (st.query_params.get("slo", ""), st.query_params.get("objective", ""))
    # A link may name the SLO alone.
    found = next((k for k in keys if k == asked), next((k for k in keys if k[0] == asked[0]), None))
    if asked[0] and found is None:
        st.warning("There is no objective of this name; another one is shown.")
    chosen: tuple[str, str] = st.selectbox(
        "Objective", keys, index=keys.index(found) if found else 0, format_func=lambda key: titles[key],
        key="objective_choice", width=560,
    )  # fmt: skip
    if chosen != asked:
        st.query_params.update({"slo": chosen[0], "objective": chosen[1]})
    return chosen


def _here(row: Row, objective: Objective | None, which: EventClass) -> Here | None:
    """The list of counted events with these, if there is one."""
    return Here("events", {"show": which}) if _no_list(row, objective) is None else None


def _head(row: Row, objective: Objective | None) -> None:
    with st.container(border=True, key="card_head"):
        with st.container(horizontal=True, vertical_alignment="center"):
            badges(row)
            st.text(one_line(row["title"] or row["slo"]))
        if not missing(row["description"]):
            st.caption(markdown_text(one_line(row["description"], 1000)))
        facts(
            "facts",
            [
                Fact(*share_figure(row), _here(row, objective, "good")),
                Fact("Bad", count(row["bad"]), _here(row, objective, "bad")),
                Fact("95% interval", interval(row["lower"], row["upper"])),
                Fact("Target", target_percent(row["target"])),
                *([Fact("Cut", cut_words(row))] if not missing(row["cut"]) else []),
                Fact("Chance that the target is met", chance(row["p_met"])),
                Fact("Unknown", count(row["unknown"]), _here(row, objective, "unknown")),
                Fact("Excluded", count(row["excluded"]), _here(row, objective, "excluded")),
            ],
            border=False,
        )
        budget_bar(row)
        lines = [
            f"Window {when(row['window_start'], seconds=False)} to {when(row['window_end'], seconds=False)}; "
            f"alerts count what is settled until {when(row['settled_until'], seconds=False)}"
        ]
        lines += [
            one_line(note) for note in json_list(row["notes"]) if not str(note).startswith("no alert pair")
        ]
        if not missing(row["excluded"]) and row["excluded"] > 0:
            lines.append(excluded_words(row))
        if not missing(row["runbook"]):
            lines.append(f"Runbook: {one_line(row['runbook'])}")
        st.caption("  \n".join(markdown_text(line) for line in lines))


def _incidents(reader: Answers, row: Row, objective: Objective | None) -> list[Row]:
    """Incidents behind the bad events; only built-in SLIs say which events those are."""
    if "incident_findings" not in reader.views() or objective is None:
        return []
    source = objective.source
    if not isinstance(source, EventSource):
        return []
    seen = reader.rows(
        "objective_seen", sli=source.sli, since=str(row["window_start"]), until=str(row["window_end"]),
        agent=row["agent"], task_type=row["task_type"], op=row["op"], cut=row["cut"],
    )  # fmt: skip
    if not seen:
        return []
    tasks = {found["fingerprint"]: found["bad_tasks"] for found in seen}
    incidents = reader.rows("objective_incidents", fingerprints=json.dumps(list(tasks)))
    behind = [{**incident, "bad_tasks": tasks[incident["fingerprint"]]} for incident in incidents]
    return sorted(behind, key=lambda incident: -incident["bad_tasks"])


def _over_time(reader: Answers, row: Row, incidents: list[Row]) -> None:
    points = reader.rows("objective_history", slo=row["slo"], objective=row["objective"])
    if len(points) < 2:
        st.caption("No history yet: a point is kept every hour.")
        return
    versions = reader.rows("objective_versions", slo=row["slo"], objective=row["objective"])
    sli = charts.chart("SLI over the window that ends at each point", "share", height=280)
    charts.line(
        sli,
        points,
        "at",
        "sli",
        "SLI",
        line={"color": charts.accent(), "width": 2},
        customdata=[
            [
                percent(p["sli"]),
                f"{count(p['good'])} of {count(p['n'])}",
                f"{count(p['step_bad'])} of {count(p['step_n'])}",
            ]
            for p in points
        ],
        hovertemplate="%{customdata[0]} (%{customdata[1]}); bad in the last step: %{customdata[2]}<br>"
        "%{x|%Y-%m-%d %H:%M} UTC<extra></extra>",
    )  # fmt: skip
    if not missing(row["target"]):
        sli.add_hline(
            y=row["target"], line={"color": colours.GREY, "width": 1, "dash": "dash"},
            annotation={"text": f"target {target_percent(row['target'])}", "font": {"color": colours.GREY}},
        )  # fmt: skip
    sli.update_yaxes(tickformat=",.1%", range=share_range([p["sli"] for p in points], row["target"]))
    # What lies on the edge of the plot is drawn whole.
    sli.update_traces(cliponaxis=False)

    left = charts.chart("Error budget left at each point", "share of the budget", height=240)
    charts.line(
        left,
        points,
        "at",
        "remaining",
        "budget left",
        line={"color": charts.accent(), "width": 2},
        fill="tozeroy",
        customdata=[[percent(p["remaining"], 0), burn(p["burn"])] for p in points],
        hovertemplate="%{customdata[0]} left; burn %{customdata[1]} in the last step<br>"
        "%{x|%Y-%m-%d %H:%M} UTC<extra></extra>",
    )
    left.update_yaxes(tickformat=",.0%")
    left.add_hline(y=0, line={"color": colours.VERMILION, "width": 1})
    first, last = points[0]["at"], points[-1]["at"]
    for figure in (sli, left):
        _marks(figure, versions, incidents, first, last)
        charts.days_axis(figure, (last - first).days)
        figure.update_xaxes(range=[first, last + timedelta(hours=6)])
    charts.draw(sli, "sli")
    charts.draw(left, "budget")


def share_range(shares: list[Any], target: Any) -> list[float]:
    """From where to where an axis of shares goes: around them and the target, and within 0 and 1."""
    known = [float(share) for share in (*shares, target) if not missing(share)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    beside = max((high - low) * 0.1, 0.005)
    return [max(0.0, low - beside), min(1.0, high + beside)]


def _marks(figure: go.Figure, versions: list[Row], incidents: list[Row], first: Any, last: Any) -> None:
    """Vertical lines where a version first ran, triangles on the upper edge where an incident was first seen."""
    # All at once: plotly takes milliseconds for each line that is added alone.
    dotted = {"color": colours.PURPLE, "width": 1, "dash": "dot"}
    uprights = [
        {"type": "line", "x0": at, "x1": at, "yref": "y domain", "y0": 0, "y1": 1, "line": dotted}
        for at in (version["first_seen"] for version in versions)
        if first <= at <= last
    ]
    figure.update_layout(shapes=[*figure.layout.shapes, *uprights])
    kinds = (
        ("new version", "line-ns-open", colours.PURPLE, versions, _version_hover),
        ("incident first seen", "triangle-down", colours.VERMILION, incidents, _incident_hover),
    )
    for name, symbol, colour, rows, hover in kinds:
        shown = [r for r in rows if first <= r["first_seen"] <= last]
        if shown:
            figure.add_scatter(
                name=name,
                x=[r["first_seen"] for r in shown],
                y=[1.0] * len(shown),
                yaxis="y2",
                mode="markers",
                marker={"symbol": symbol, "size": 11, "color": colour, "line": {"width": 2, "color": colour}},
                customdata=[hover(r) for r in shown],
                hovertemplate="%{customdata}<br>%{x|%Y-%m-%d %H:%M} UTC<extra></extra>",
            )
    figure.update_layout(yaxis2={"overlaying": "y", "visible": False, "range": [0, 1.04], "fixedrange": True})


def _version_hover(row: Row) -> str:
    return f"{plotly_text(row['service'])} {plotly_text(row['app_version'])}"


def _incident_hover(row: Row) -> str:
    return plotly_text(f"{incident_title(row)}: {counted(row['bad_tasks'], 'bad task')}")


def _burn(row: Row) -> None:
    st.subheader("Burn rate and alerts", anchor=False)
    rates = json_object(row["burn"])
    pairs = json_list(row["pairs"])
    if not rates:
        st.caption("Nothing to count yet.")
        return
    st.caption(
        "1× spends the whole budget exactly within the window. An alert fires when the burn rate is above its "
        "factor over the long and the short window, and the numbers are too many to be chance."
    )
    chart = charts.chart(
        "Burn rate by window, with the factors alerts fire at", "× the allowed rate", height=260
    )
    windows = [w for w in rates if not missing(rates[w]["value"])]
    chart.add_bar(
        name="burn rate",
        x=windows,
        y=[rates[w]["value"] for w in windows],
        marker={"color": charts.accent()},
        customdata=[
            [burn(rates[w]["value"]), f"{count(rates[w]['bad'])} bad of {count(rates[w]['n'])}"] for w in windows
        ],
        hovertemplate="%{x}: %{customdata[0]} (%{customdata[1]})<extra></extra>",
    )  # fmt: skip
    for severity, colour in (("page", colours.VERMILION), ("ticket", colours.ORANGE)):
        of_severity = [p for p in pairs if p["severity"] == severity]
        marks = [
            (p[side], p["factor"], side)
            for p in of_severity
            for side in ("long", "short")
            if p[side] in windows
        ]
        if marks:
            chart.add_scatter(
                name=f"{severity} threshold",
                x=[m[0] for m in marks],
                y=[m[1] for m in marks],
                mode="markers",
                marker={
                    "symbol": "line-ew-open",
                    "size": 46,
                    "color": colour,
                    "line": {"width": 3, "color": colour},
                },
                customdata=[[number(m[1], 2), m[2]] for m in marks],
                hovertemplate=f"{severity} above %{{customdata[0]}}×, %{{customdata[1]}} window %{{x}}<extra></extra>",
            )
    chart.update_xaxes(type="category", title={"text": "window"})
    charts.draw(chart, "burn")
    if pairs:
        table(
            [
                {
                    "severity": words({}, p["severity"]),
                    "state": "firing" if p["firing"] else "held" if p["frozen"] else "quiet",
                    "windows": f"{p['long']} and {p['short']}",
                    "factor": f"{number(p['factor'], 2)}×",
                    "gate": f"at least {count(p['min_bad'])} bad, p ≤ {p['max_p']:g}",
                    "why": p["why"],
                    "chosen": p["chosen"],
                }
                for p in pairs
            ],
            {
                "severity": "Severity",
                "state": "State",
                "windows": "Windows",
                "factor": "Factor",
                "gate": "Gate",
                "why": "Now",
                "chosen": "Why this pair",
            },
            key="pairs",
        )
    else:
        st.caption("No alert pair fits this objective and its traffic.")
    left_out = [one_line(n) for n in json_list(row["notes"]) if str(n).startswith("no alert pair")]
    if left_out:
        st.caption("  \n".join(markdown_text(note[:1].upper() + note[1:]) for note in left_out))
    _exhaustion(row)


def _exhaustion(row: Row) -> None:
    times = json_object(row["exhaustion"])
    if not missing(row["remaining"]) and row["remaining"] <= 0:
        st.caption("The budget is already spent.")
        return
    lines = []
    rate = f"At the rate of the last {times['window']}" if times.get("window") else "At the present rate"
    for key, label in (
        ("rolling_s", f"{rate}, as old events leave the window, the budget is spent in"),
        ("from_now_s", f"{rate}, if nothing left the window, what is left would be spent in"),
        ("naive_s", f"{rate}, a whole budget, with nothing leaving the window, would last"),
    ):
        if not missing(times.get(key)):
            lines.append(f"{label} {duration(times[key])}.")
    if times.get("never"):
        lines.insert(
            0,
            f"{rate}, as old events leave the window, the budget is never spent: bad ones leave it as fast.",
        )
    if lines:
        st.caption("  \n".join(markdown_text(line) for line in lines))


def _formula(row: Row) -> None:
    if not row["counted"] or row["is_floor"]:
        return
    st.subheader("The formula with these numbers", anchor=False)
    unit = unit_word(row)
    # As exact as whoever checks the last line with a calculator needs it.
    budget = number(row["budget_events"], 3)
    lines = [
        f"SLI        good / (good + bad)  =  {count(row['good'])} / ({count(row['good'])} + {count(row['bad'])})"
        f"  =  {percent(row['sli'], 3)}",
        f"allowed    1 - target  =  1 - {target_percent(row['target'])}  =  {percent(row['allowed_share'], 3)} bad",
        f"budget     allowed x {unit}  =  {percent(row['allowed_share'], 3)} x {count(row['n'])}"
        f"  =  {budget} bad {unit} allowed",
        f"left       1 - bad / budget  =  1 - {count(row['bad'])} / {budget}"
        f"  =  {percent(row['remaining'], 1)}",
    ]
    rates = json_object(row["burn"])
    for window in [w for w in ("1h", "6h", "1d", "3d") if w in rates and not missing(rates[w]["value"])][:2]:
        rate = rates[window]
        lines.append(
            f"burn {window:<5} (bad / all) / allowed  =  ({count(rate['bad'])} / {count(rate['n'])}) / "
            f"{percent(row['allowed_share'], 3)}  =  {burn(rate['value'])}"
        )
    st.code("\n".join(lines), language=None)
    if row["unknown"]:
        st.caption(
            markdown_text(
                f"{count(row['unknown'])} outcomes are unknown and not in these numbers: the SLI lies between "
                f"{percent(row['sli_unknown_bad'])} (all bad) and {percent(row['sli_unknown_good'])} (all good)."
            )
        )


SHOWN: tuple[EventClass, ...] = ("bad", "unknown", "good", "excluded")


def _no_list(row: Row, objective: Objective | None) -> str | None:
    """Why the events of an objective cannot be listed; None when they can."""
    if row["sli_name"] == "composite":
        return (
            "A composite counts no events of its own: it weighs the burn of its objectives, each with a list."
        )
    if row["is_floor"]:
        return "The floor of a band counts the events of the objective above it, which lists them."
    if objective is None:
        return "The definition of this objective is not known here, so what it counted cannot be listed."
    return None


def _events(reader: Answers, row: Row, objective: Objective | None) -> None:
    """What was counted, an event a row: the worst of the bad ones, or those behind the other figures."""
    listed("events")
    st.subheader("Counted events", anchor=False)
    reason = _no_list(row, objective)
    if reason is not None or objective is None:
        st.caption(reason or "")
        return
    heed("show", "Show", SHOWN)
    which: EventClass = st.segmented_control(
        "Show", list(SHOWN), default="bad", required=True, key="show", bind="query-params"
    )
    mark = (str(data_folder()), reader.mark())
    as_of = row["window_end"] if missing(row.get("evaluated_at")) else row["evaluated_at"]
    found = kept_rows(reader, objective, repr(objective), mark, which, as_of)
    if not found:
        st.caption("None.")
        return
    beyond = which == "bad" and objective.cut is not None
    order = "the farthest beyond the cut first" if beyond else "the newest first"
    line = f"{counted(found[0]['matching'], f'{which} event')}, {order}"
    if found[0]["matching"] > len(found):
        line += f"; {count(len(found))} are shown"
    if objective.method != "Occurrences":
        line += ". The objective counts slices of time; these are the events in them"
    st.caption(markdown_text(f"{line}. Click a row to open its task."))
    picked = table(
        [
            {
                **event,
                "at": when(event["counted_at"]),
                "value": None if missing(event["value"]) else _value(row, event["value"]),
                "turns_bad": "" if missing(event["turns_bad_at"]) else when(event["turns_bad_at"]),
                "reason": "" if missing(event["reason"]) else exclusion(event["reason"]),
            }
            for event in found
        ],
        {
            "at": "Counted at",
            "task_id": "Task",
            "agent": "Agent",
            "task_type": "Type",
            "value": "Value",
            "turns_bad": "Counts as bad from",
            "reason": "Why",
        },
        key=f"events_{which}",
        raw=found,
        selectable=True,
        drop_empty=True,
        height=rows_height(len(found), 460),
    )
    if picked is not None and not missing(found[picked]["task_id"]):
        open_task(found[picked]["task_id"])


def _value(row: Row, value: float) -> str:
    spelt = {"s": duration, "USD": usd}.get(str(row["unit"]))
    return spelt(value) if spelt else number(value, 3)


def _behind(incidents: list[Row]) -> None:
    if not incidents:
        return
    st.subheader("Incidents behind the bad events", anchor=False)
    st.caption("Click a row to read its story.")
    picked = table(
        [
            {
                **row,
                "title": incident_title(row),
                "tasks": count(row["bad_tasks"]),
                "first": when(row["first_seen"], seconds=False),
                "last": when(row["last_seen"], seconds=False),
            }
            for row in incidents
        ],
        {
            "severity": "Severity",
            "title": "What happened",
            "agent": "Agent",
            "tasks": "Bad tasks",
            "state": "State",
            "first": "First seen",
            "last": "Last seen",
        },
        key="behind",
        selectable=True,
    )
    if picked is not None:
        st.switch_page("screens/incidents.py", query_params={"id": incidents[picked]["incident_id"]})


def _parts(reader: Answers, row: Row) -> None:
    rows = [] if row["split"] else reader.rows("objective_parts", slo=row["slo"])
    if not rows:
        return
    st.subheader("By agent and task type", anchor=False)
    st.caption("Click a row to see its budget and burn.")
    picked = table(
        [
            {
                **part,
                "share": percent(part["sli"]),
                "kn": f"{count(part['good'])} of {count(part['n'])}",
                "interval": interval(part["lower"], part["upper"]),
                "left": budget_words(part["remaining"]),
                "state": words(STATE_WORDS, part["state"]),
            }
            for part in rows
        ],
        {
            "agent": "Agent",
            "task_type": "Task type",
            "share": "SLI",
            "kn": "k of n",
            "interval": "95% interval",
            "left": "Budget",
            "state": "State",
        },
        key="parts",
        selectable=True,
        drop_empty=True,
    )
    if picked is not None:
        part = rows[picked]
        st.session_state.pop("objective_choice", None)
        st.switch_page(
            "screens/objective.py", query_params={"slo": part["slo"], "objective": part["objective"]}
        )


def _preview(reader: Answers, row: Row, objective: Objective | None) -> None:
    st.subheader("Try another target or window", anchor=False)
    if objective is None:
        st.caption("The definition of this objective is not known here, so it cannot be tried out.")
        return
    if row["is_floor"] or objective.composite or objective.window.duration.is_calendar:
        st.caption("Only objectives over rolling windows with one SLI of their own can be tried out.")
        return
    # All events of two windows are read for it, so only when asked for.
    if not st.toggle("Try it over the last 28 days", key="try", bind="query-params"):
        return
    wanted = _wanted(row, objective)
    as_of = row["settled_until"] + timedelta(seconds=objective.settle_s)
    state = reader.row("pipeline") or {}
    status, points = back_test(reader, data_folder(), wanted, as_of, state.get("derived_seq"))
    changed_row = {**row, **{name: getattr(status, name) for name in ("n", "good", "bad", "sli", "target", "op", "cut",
                   "budget_events", "remaining", "state", "lower", "upper")}}  # fmt: skip
    with st.container(border=True, key="card_preview"):
        colour, icon = colours.STATE_BADGE.get(status.state, ("gray", ":material/help:"))
        badge(words(STATE_WORDS, status.state), colour, icon)
        label, value = share_figure(changed_row)
        st.metric(markdown_text(label), markdown_text(value))
        st.caption(markdown_text(target_line(changed_row)))
        budget_bar(changed_row)
        for pair in json_list(status.pairs):
            state_word = "would fire" if pair["firing"] else "would be quiet"
            st.caption(
                markdown_text(
                    f"{pair['severity']} {pair['long']}/{pair['short']} {state_word}: {pair['why']}"
                )
            )
    chart = charts.chart(
        "Error budget left on each of the last 28 days: as it is, and as tried", "share of the budget"
    )
    now = reader.rows("objective_history", slo=row["slo"], objective=row["objective"])
    for name, colour, dash, series in (
        ("as it is", colours.GREY, "dot", [(p["at"], p["remaining"]) for p in now]),
        ("as tried", charts.accent(), "solid", [(p.at, p.remaining) for p in points]),
    ):
        shown = [
            (at, left)
            for at, left in series
            if not missing(left) and at >= as_of - timedelta(days=DAYS_BACK + 1)
        ]
        chart.add_scatter(
            name=name,
            x=[at for at, _ in shown],
            y=[left for _, left in shown],
            customdata=[percent(left, 0) for _, left in shown],
            mode="lines+markers",
            marker={"size": 5},
            line={"color": colour, "width": 2, "dash": dash},
            hovertemplate=f"{name}: %{{customdata}}<br>%{{x|%Y-%m-%d}} UTC<extra></extra>",
        )
    chart.update_yaxes(tickformat=",.0%")
    chart.add_hline(y=0, line={"color": colours.VERMILION, "width": 1})
    charts.days_axis(chart, DAYS_BACK)
    charts.draw(chart, "tried")
    _save(wanted)


def _wanted(row: Row, objective: Objective) -> Objective:
    """The three numbers that can be moved."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        target = st.number_input(
            "Target (%)", LEAST_TARGET, MOST_TARGET, value=float(objective.target * 100), step=0.1, format="%.3f",
            key="try_target", bind="query-params", width=180,
        )  # fmt: skip
        days = st.number_input(
            "Window (days)", 1, LONGEST_WINDOW, value=int(max(1, objective.window.duration.seconds // 86400)),
            key="try_days", bind="query-params", width=180,
        )  # fmt: skip
        cut = objective.cut
        if cut is not None:
            moved = st.number_input(
                f"Cut ({one_line(row['unit'], 20)})", 0.0, value=float(cut), format="%.3f", key="try_cut",
                bind="query-params", width=180,
            )  # fmt: skip
            cut = Decimal(f"{moved:.3f}")
    return changed(objective, Decimal(f"{target:.3f}") / 100, int(days), cut)


def _save(objective: Objective) -> None:
    try:
        files = objective_files(data_folder())
        whole = openslo_text(data_folder(), objective, whole_pack=True)
    except (OpenSLOError, ConfigurationError) as error:
        st.caption("This objective cannot be saved:")
        st.text(str(error))
        return
    st.caption(
        "A file named under `objectives:` in agent-slo.yaml takes the place of the default pack: save all objectives "
        "with this one changed to keep the others, name that file, and start the collector again. "
        "`agent-slo slo export` writes them as they are."
        if not files
        else "The files under `objectives:` in agent-slo.yaml hold what holds now. Name the file of all objectives in "
        "their place, or put this one in the place of the one it changes (the same name must not stand in two files), "
        "and start the collector again."
    )
    with st.container(horizontal=True):
        _offer("Save all objectives, with this one changed", whole, "objectives.yaml")
        try:
            alone = openslo_text(data_folder(), objective)
        except OpenSLOError as error:
            st.caption("This objective cannot be saved on its own:")
            st.text(str(error))
            return
        _offer("Save this one alone", alone, f"{objective.slo}.yaml")


def _offer(label: str, text: str, file_name: str) -> None:
    st.download_button(
        label,
        text,
        file_name=file_name,
        mime="application/yaml",
        icon=":material/download:",
        on_click="ignore",
    )


page(
    "Objective",
    show,
    needs="slo_status",
    keys=("slo", "objective", "show", "try", "try_target", "try_days", "try_cut"),
)
