"""Actions: what was done to the outside world more than once, why, and which tools to fix first."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard import charts, colours
from dashboard.chrome import page, rows_height, table
from dashboard.days import drawn
from dashboard.door import Answers
from dashboard.facts import Fact, Here, facts, listed, turn
from dashboard.filters import SCOPE_KEYS, Scope, scope_filters
from dashboard.format import (
    CAUSE_WORDS,
    DUPLICATE_WORDS,
    count,
    counted,
    markdown_text,
    missing,
    one_line,
    percent,
    words,
)
from dashboard.repeats import repeats_table

Row = dict[str, Any]

ADVICE = {
    "key_not_honoured": "takes the key and acts twice all the same: mend the tool",
    "keys_differ": "keys differ between tries: keep one key for all tries of an action",
    "needs_key_now": "send an idempotency key: it has acted twice",
    "needs_key": "send an idempotency key before it acts twice",
    "key_missing_sometimes": "send the key on every call",
    "repeats": "find out why it is called again",
    "state_class": "its class is guessed from its name: state it",
    "nothing": "",
}
KIND_STYLE = {
    "unprotected": (colours.VERMILION, ""),
    "protected": (colours.GREEN, "/"),
    "no_op": (colours.GREY, "."),
}
SUSPECTED = "suspected"
KINDS = (*(words(DUPLICATE_WORDS, kind) for kind in KIND_STYLE), SUSPECTED)
"""What the list of repeats can show: the kinds of `KIND_STYLE` in words, and those that no trace proves."""
ALL = "all"
PARTS = {ALL: None, "proven to take effect twice": "proven", "undone later": "undone"}
"""Of these, what the list is narrowed to."""


def show(reader: Answers) -> None:
    """Draw the page."""
    scope = scope_filters(reader)
    reader.ahead("actions_tools", "actions_by", **scope)
    totals, *tools = reader.rows("actions_tools", **scope)
    if totals["executed"] == 0:
        st.info("No tool with a side effect was executed in this time. Widen the filters.")
        return
    _figures(totals)
    fixing = _tools(tools)
    repeats = reader.rows("actions_by", **scope)
    by_day = [row for row in repeats if row["dimension"] == "day" and not missing(row["day"])]
    _days(drawn(reader, by_day, scope["days"]))
    narrowed = _breakdown([row for row in repeats if row["dimension"] != "day"])
    narrowed["tool"] = narrowed["tool"] or fixing
    _repeats(reader, scope, narrowed)


def _figures(row: Row) -> None:
    unprotected, protected, no_op, suspected = (_here(kind) for kind in KINDS)
    tools = Here("tools", {})
    facts(
        "facts",
        [
            Fact("Executed side effects", count(row["executed"]), tools),
            Fact("Unprotected duplicates", count(row["unprotected"]), unprotected),
            Fact("Of all executed", percent(row["unprotected_share"]), unprotected),
            Fact(
                "Proven to take effect twice",
                count(row["proven"]),
                _here(KINDS[0], "proven to take effect twice"),
            ),
            Fact("Undone later", count(row["undone"]), _here(KINDS[0], "undone later")),
            Fact("Protected by a key", count(row["protected"]), protected),
            Fact("Without effect", count(row["no_op"]), no_op),
            Fact("Suspected", count(row["suspected"]), suspected),
            Fact("Calls with a key", percent(row["key_coverage"]), tools),
        ],
    )
    st.caption("A name leads to what it counts: the tools below, or the repeats at the end of this page.")


def advised(row: Row) -> str:
    """What to do about a tool; where repeats with a key and repeats without one ask for different things, both."""
    parts = []
    for number, what in (
        (row["key_not_honoured"], "carried a key and {were} done twice: mend the receiver"),
        (
            row["keys_differ"],
            "carried another key than the first try: keep one key for all tries of an action",
        ),
    ):
        if number:
            parts.append(f"{count(number)} {what.replace('{were}', 'was' if number == 1 else 'were')}")
    bare = row["repeats_without_key"]
    if bare:
        parts.append(f"{count(bare)} carried none: send a key on every call")
    return "; ".join(parts) if len(parts) > 1 else ADVICE.get(row["advice"], str(row["advice"]))


def _here(kind: str, part: str = ALL) -> Here:
    """The list of repeats, of this kind and part."""
    return Here("repeats", {"kind": kind, "only": part})


def _tools(rows: list[Row]) -> str | None:
    """Tools with what to do about them; returns the one that was clicked."""
    listed("tools")
    st.subheader("Tools to fix first", anchor=False)
    st.caption(
        "Every tool with a side effect. A call with an idempotency key that the tool honours cannot be done twice. "
        "Click a row to list its repeats below."
    )
    picked = table(
        [
            {
                **row,
                "class": words({}, row["effect_class"]) + (" (guessed)" if row["guessed"] else ""),
                "executed": count(row["executed"]),
                "unprotected": count(row["unprotected"]) if row["unprotected"] else "",
                "share": percent(row["unprotected_share"]) if row["unprotected"] else "",
                "protected": count(row["protected"]) if row["protected"] else "",
                "uncertain": count(row["uncertain"]) if row["uncertain"] else "",
                "advice": advised(row),
            }
            for row in rows
        ],
        {
            "tool": "Tool",
            "class": "Class",
            "executed": "Executed",
            "key_coverage": "With a key",
            "unprotected": "Unprotected",
            "share": "Of executed",
            "protected": "Protected",
            "uncertain": "Ended unknown",
            "advice": "What to do",
        },
        key=f"tools_{turn()}",
        raw=rows,
        selectable=True,
        height=rows_height(len(rows)),
        config={
            "Class": st.column_config.Column(width=112),
            "With a key": st.column_config.ProgressColumn(
                min_value=0, max_value=1, format="percent", width=100
            ),
            **{
                name: st.column_config.Column(alignment="right")
                for name in ("Executed", "Unprotected", "Of executed", "Protected", "Ended unknown")
            },
        },
    )
    # What asks for two things is too long for its cell.
    both = [f"{one_line(row['tool'], 60)}: {advised(row)}." for row in rows if ";" in advised(row)]
    if both:
        st.caption("  \n".join(markdown_text(line) for line in both))
    return None if picked is None else str(rows[picked]["tool"])


def _days(rows: list[Row]) -> None:
    if not rows:
        return
    chart = charts.chart("Repeats by day (UTC)", "repeats", stacked=True)
    for kind, style in KIND_STYLE.items():
        days = [row for row in rows if row[kind]]
        charts.bars(chart, days, "day", kind, words(DUPLICATE_WORDS, kind), style)
    charts.days_axis(chart, charts.span(rows))
    charts.draw(chart, "days")


def _breakdown(rows: list[Row]) -> Row:
    """Repeats by cause, tool and agent; returns what the clicked rows narrow the list to."""
    narrowed: Row = {"cause": None, "tool": None, "agent": None}
    if not rows:
        return narrowed
    st.subheader("By cause, tool and agent", anchor=False)
    st.caption("Click a row to list its repeats below.")
    for dimension, column in zip(
        ("cause", "tool", "agent"), st.columns([1.25, 1.05, 1], gap="small"), strict=True
    ):
        of = [row for row in rows if row["dimension"] == dimension]
        with column:
            picked = table(
                [
                    {
                        **row,
                        "name": words(CAUSE_WORDS, row["name"]) if dimension == "cause" else row["name"],
                        "unprotected": count(row["unprotected"]),
                        "protected": count(row["protected"]),
                        "no_op": count(row["no_op"]),
                    }
                    for row in of
                ],
                {
                    "name": dimension.capitalize(),
                    "unprotected": "Unprot.",
                    "protected": "Prot.",
                    "no_op": "No effect",
                },
                key=f"by_{dimension}_{turn()}",
                selectable=True,
                config={
                    name: st.column_config.Column(alignment="right", width=width)
                    for name, width in (("Unprot.", 62), ("Prot.", 50), ("No effect", 72))
                },
            )
        if picked is not None and not missing(of[picked]["name"]):
            narrowed[dimension] = of[picked]["name"]
    return narrowed


def _repeats(reader: Answers, scope: Scope, narrowed: Row) -> None:
    listed("repeats")
    st.subheader("Repeats", anchor=False)
    with st.container(horizontal=True):
        kind = st.segmented_control(
            "Kind", KINDS, default=KINDS[0], required=True, key="kind", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        part = st.segmented_control(
            "Only", list(PARTS), default=ALL, required=True, key="only", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
    chosen = next((key for key in KIND_STYLE if words(DUPLICATE_WORDS, key) == kind), None)
    rows = reader.rows(
        "actions_repeats", **scope, **narrowed, suspected=kind == SUSPECTED,
        kinds=None if chosen is None else f'["{chosen}"]', only=PARTS[part],
    )  # fmt: skip
    only = [words(CAUSE_WORDS, v) if k == "cause" else str(v) for k, v in narrowed.items() if v is not None]
    where = f" of {', '.join(only)}" if only else ""
    if part != ALL:
        where += f" ({part})"
    if not rows:
        st.caption(markdown_text(f"None{where}."))
        return
    more = "" if rows[0]["matching"] == len(rows) else f"; the newest {count(len(rows))} are shown"
    line = f"{counted(rows[0]['matching'], 'repeat')}{where}{more}. Click a row to open its task."
    st.caption(markdown_text(line))
    repeats_table(rows, "repeats")


page("Actions", show, keys=(*SCOPE_KEYS, "kind", "only"))
