"""The filters the pages share. They live in the address, so a link shows a colleague the same picture."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard.door import Answers

Scope = dict[str, Any]
"""The parameters of `sql/scope.sql`."""

# The address holds what the control shows, so both are short.
RANGES: Mapping[str, int | None] = {"24h": 1, "7d": 7, "28d": 28, "90d": 90, "all": None}
USUAL_RANGE = "28d"
# Parameter of scope.sql -> key in the address, label.
_DIMENSIONS: Mapping[str, tuple[str, str]] = {
    "services": ("service", "Service"),
    "agents": ("agent", "Agent"),
    "task_types": ("type", "Task type"),
    "environments": ("env", "Environment"),
    "versions": ("version", "Version"),
}
_KEYS = ("range", *(key for key, _ in _DIMENSIONS.values()))

EVERYTHING: Mapping[str, Any] = {"days": None, **dict.fromkeys(_DIMENSIONS)}
"""The scope without any filter."""


def scope_filters(reader: Answers) -> Scope:
    """Draw the filter row and return what it says."""
    choices = reader.row("filter_choices") or {}
    with st.container(key="scope", border=True):
        columns = st.columns([2.0, *[1.0] * len(_DIMENSIONS)], gap="small", vertical_alignment="bottom")
        chosen = columns[0].segmented_control(
            "Tasks started in the last",
            list(RANGES),
            default=USUAL_RANGE,
            required=True,
            key="range",
            bind="query-params",
        )
        scope: Scope = {"days": RANGES[chosen or USUAL_RANGE]}
        for column, (parameter, (key, label)) in zip(columns[1:], _DIMENSIONS.items(), strict=True):
            values = column.multiselect(
                label, choices.get(parameter) or [], key=key, bind="query-params", placeholder="any",
                format_func=str,
            )  # fmt: skip
            scope[parameter] = json.dumps(values) if values else None
    return scope


def scope_address() -> dict[str, list[str]]:
    """The filters as they stand in the address, for a link to a page that has them too."""
    return {key: st.query_params.get_all(key) for key in _KEYS if key in st.query_params}


def go(
    page: str,
    *,
    time_range: str,
    narrowed: Mapping[str, list[str]] | None = None,
    **controls: str | list[str],
) -> None:
    """Go to another page with the filters as they are here, another time range, and controls it alone has.

    `narrowed`: filters that are to have these values there, by their keys in the address.

    `controls` are written as in the address. The filters travel in the session: Streamlit drops a parameter of the
    address that a control of the page before was bound to.
    """
    here = {key: st.session_state[key] for key in _KEYS if key in st.session_state}
    st.session_state[_BROUGHT] = {**here, **(narrowed or {}), "range": time_range}
    # Without any, it would refuse to clear those that controls of this page are bound to.
    st.switch_page(page, query_params=controls)


def arrive() -> None:
    """Give the filters of this page what `go` brought along; before any of them is drawn."""
    st.session_state.update(st.session_state.pop(_BROUGHT, {}))


_BROUGHT = "brought"
