"""A row of figures. The name of each that can be looked into leads to what it counts, on this page or on another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dashboard.format import markdown_text


@dataclass(frozen=True)
class Here:
    """A list further down this page, and the controls that are to have these values for it to show what is counted."""

    place: str
    controls: Mapping[str, Any]


@dataclass(frozen=True)
class Fact:
    """A figure: its name and its value as text."""

    label: str
    value: str
    lead: Callable[[], None] | Here | None = None
    """What goes to another page, or a list on this one; None where nothing lists what is counted."""
    change: str | None = None
    """The difference from what is stated beside the row; None shows none."""
    worse: bool = False
    """Whether more of it is worse, which colours the difference."""


def facts(key: str, figures: Iterable[Fact], *, border: bool = True) -> None:
    """Draw a row of figures in a container of this key, which begins with `facts`."""
    with st.container(key=key, horizontal=True, gap="medium", border=border):
        for place, figure in enumerate(figures):
            moved = figure.change is not None and not figure.change.startswith("±")
            with st.container(width="content", gap=None):
                if figure.lead is not None:
                    _name(f"{key}_{place}", figure.label, figure.lead)
                st.metric(
                    markdown_text(figure.label),
                    markdown_text(figure.value),
                    delta=figure.change,
                    delta_color="inverse" if figure.worse and moved else "off",
                    delta_arrow="auto" if moved else "off",
                    label_visibility="visible" if figure.lead is None else "collapsed",
                    width="content",
                )


def _name(key: str, label: str, lead: Callable[[], None] | Here) -> None:
    """The name of a figure as a button."""
    here = isinstance(lead, Here)
    clicked = st.button(
        markdown_text(label),
        key=key,
        type="tertiary",
        icon=":material/arrow_downward:" if here else ":material/chevron_right:",
        icon_position="right",
        on_click=_set if here else None,
        args=(lead,) if here else (),
    )
    if clicked and callable(lead):
        lead()


def _set(lead: Here) -> None:
    st.session_state.update(lead.controls)
    st.session_state[_WANTED] = lead.place
    st.session_state[_TURN] = turn() + 1


def turn() -> int:
    """How often a figure led to a list of this session's pages.

    A table whose key holds it forgets the row that was clicked, which would narrow the list further.
    """
    return int(st.session_state.get(_TURN, 0))


def listed(place: str) -> None:
    """Mark where a list begins, and bring it into view when a figure just led to it."""
    with st.container(key=f"list_{place}"):
        if st.session_state.get(_WANTED) != place:
            return
        del st.session_state[_WANTED]
        # Constant text. The turn makes it another script, which a browser runs anew.
        st.html(
            f"<script>/* {turn()} */ document.querySelector('.st-key-list_{place}')"
            ".scrollIntoView({behavior: 'smooth', block: 'start'})</script>",
            unsafe_allow_javascript=True,
        )


_WANTED = "list_wanted"
_TURN = "list_turn"
