"""The filters the pages share. They live in the address, so a link shows a colleague the same picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.door import Answers
from dashboard.format import markdown_text, one_line

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
SCOPE_KEYS = ("range", *(key for key, _ in _DIMENSIONS.values()))
"""What the address of a page with these filters may say of them."""

EVERYTHING: Mapping[str, Any] = {"days": None, **dict.fromkeys(_DIMENSIONS)}
"""The scope without any filter."""


_MOST_ASKED = 50
"""Values of one filter that an address may ask for beyond those there are."""


def offered(key: str, known: Iterable[Any] | None) -> list[Any]:
    """The choices of a filter whose values come from the data, with those that the address asks for besides.

    A link to an agent that is gone, or misspelt, shows that nothing is there of it; it must not show everything.
    """
    there = list(known or ())
    names = set(map(str, there))
    more = [value for value in st.query_params.get_all(key) if value not in names and value.strip()]
    return there + list(dict.fromkeys(more))[:_MOST_ASKED]


def heed(key: str, label: str, options: Iterable[Any], shown: Callable[[Any], str] = str) -> None:
    """Settle what the address asks of a filter with a closed list of options, before the control is drawn.

    The names that the command line and the views use are taken for the words shown; what is neither is told.
    """
    asked = st.query_params.get_all(key)
    words = {str(option): shown(option) for option in options}
    told = set(words.values())
    settled = [value if value in told else words.get(value, "") for value in asked]
    unread = [value for value, word in zip(asked, settled, strict=True) if not word]
    if unread:
        known = ", ".join(words.values())
        st.warning(
            markdown_text(
                f"{label}: the link asks for {one_line(', '.join(unread)[:200])}, which is none of {known}."
            )
        )
    if any(value != word for value, word in zip(asked, settled, strict=True) if word):
        st.query_params[key] = [word for word in settled if word]
        st.rerun()


_OTHER_NAMES = {
    "environment": "env",
    "task_type": "type",
    "app_version": "version",
    "days": "range",
    "task": "id",
}
"""What the views and the command line call some of the filters."""


def heed_keys(known: Iterable[str]) -> None:
    """Tell of names in the address that no page or not this one has, which would else be passed over in silence.

    `known`: the names this page has. Those of the shared filters may stand in any: links carry them along.
    """
    names = list(known)
    for key in st.query_params:
        if key in names or key in SCOPE_KEYS or key.startswith("embed"):
            continue
        near = _OTHER_NAMES.get(key) or next(iter(get_close_matches(key, names, n=1)), None)
        meant = f" Did you mean {near}?" if near in names else ""
        st.warning(
            markdown_text(
                f"The address asks for {one_line(key, 60)}, which this page does not know.{meant} "
                f"It knows {', '.join(names)}."
            )
        )


def filter_bar(key: str, *, border: bool = True) -> DeltaGenerator:
    """A row for filters, in which those that a narrow window has no room for come below the others."""
    return st.container(key=key, border=border, horizontal=True, vertical_alignment="bottom", gap="small")


def scope_filters(reader: Answers) -> Scope:
    """Draw the filter row and return what it says."""
    choices = reader.row("filter_choices") or {}
    heed("range", "Time range", RANGES)
    with filter_bar("scope"):
        chosen = st.segmented_control(
            "Tasks started in the last",
            list(RANGES),
            default=USUAL_RANGE,
            required=True,
            key="range",
            bind="query-params",
        )
        scope: Scope = {"days": RANGES[chosen or USUAL_RANGE]}
        for parameter, (key, label) in _DIMENSIONS.items():
            values = st.multiselect(
                label, offered(key, choices.get(parameter)), key=key, bind="query-params", placeholder="any",
                format_func=str,
            )  # fmt: skip
            scope[parameter] = json.dumps(values) if values else None
    return scope


def narrowed(scope: Scope) -> bool:
    """Whether any filter but that of the time is set."""
    return any(scope[parameter] is not None for parameter in _DIMENSIONS)


def scope_address() -> dict[str, list[str]]:
    """The filters as they stand in the address, for a link to a page that has them too."""
    return {key: st.query_params.get_all(key) for key in SCOPE_KEYS if key in st.query_params}


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
    here = {key: st.session_state[key] for key in SCOPE_KEYS if key in st.session_state}
    st.session_state[_BROUGHT] = {**here, **(narrowed or {}), "range": time_range}
    # Without any, it would refuse to clear those that controls of this page are bound to.
    st.switch_page(page, query_params=controls)


def arrive() -> dict[str, Any]:
    """Give the filters of this page what `go` brought along, and return that; before any of them is drawn."""
    brought: dict[str, Any] = st.session_state.pop(_BROUGHT, {})
    st.session_state.update(brought)
    # Whatever somebody changed since is theirs.
    again: dict[str, Any] = st.session_state.pop(_UNSAID, {})
    st.session_state.update({key: v for key, v in again.items() if st.session_state.get(key) == v})
    return brought


def arrived(brought: dict[str, Any]) -> None:
    """Note what the address does not say of that, as it should; after all filters were drawn.

    Streamlit writes a value that the session gives to a control into the address only where it knew the control
    before. It does, from the page that was left, unless that page's timer went off just as it was left.
    """
    unsaid = {key: value for key, value in brought.items() if value and key not in st.query_params}
    if unsaid:
        st.session_state[_UNSAID] = unsaid


def unsaid() -> bool:
    """Whether the filters are to be drawn once more for the address to say them."""
    return _UNSAID in st.session_state


_BROUGHT = "brought"
_UNSAID = "unsaid"
