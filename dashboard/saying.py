"""What people say on the pages, on its way to the collector: their name, their notes, and what became of it.

A note is kept in the session besides its field, so that it outlives a collector that stops while somebody types.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from dashboard.door import ActionRefused, act, data_folder
from dashboard.format import markdown_text

MOST_LETTERS = 2000


def name_field() -> str | None:
    """Who says it: kept for the session, sent along and shown beside what was said. None when not given."""
    return _field("Your name", "by", "kept for this session", 200, 200) or None


def note_field(label: str, about: str, placeholder: str, width: int = 560) -> str:
    """A note about one thing; `about` is its id. Drawn with and without a collector, so that no text is lost."""
    return _field(label, f"note_{about}", placeholder, width, MOST_LETTERS)


def _field(label: str, key: str, placeholder: str, width: int, most: int) -> str:
    kept = f"kept_{key}"
    # Streamlit forgets what a field holds once a page is drawn without it.
    if key not in st.session_state and st.session_state.get(kept):
        st.session_state[key] = st.session_state[kept]
    text = st.text_input(label, key=key, placeholder=placeholder, width=width, max_chars=most)
    st.session_state[kept] = text
    return str(text or "").strip()


def forget_note(about: str) -> None:
    """Clear a note that was used, at the next drawing of its field."""
    st.session_state.pop(f"kept_note_{about}", None)
    st.session_state.setdefault(_CLEARED, []).append(f"note_{about}")


def keep_fields() -> None:
    """Keep what the fields hold and empty those whose text was used; before any is drawn, and if none will be."""
    for key in [str(key) for key in st.session_state if str(key) == "by" or str(key).startswith("note_")]:
        st.session_state[f"kept_{key}"] = st.session_state[key]
    for key in st.session_state.pop(_CLEARED, []):
        st.session_state[key] = st.session_state[f"kept_{key}"] = ""


def tell(
    action: str,
    arguments: Mapping[str, Any],
    *,
    by: str | None = None,
    command_id: str | None = None,
    done: Callable[[dict[str, Any]], str] | str = "Kept.",
    about: str | None = None,
) -> None:
    """Ask the collector for a change and draw the page anew; `answered` says what became of it.

    `done` is said when it was kept, of the collector's answer; `about`: whose note was used by it.
    """
    try:
        answer = act(data_folder(), action, arguments, by=by, command_id=command_id)
    except ActionRefused as error:
        st.session_state[_ANSWERED] = (False, str(error))
    else:
        st.session_state[_ANSWERED] = (True, done if isinstance(done, str) else done(answer))
        if about is not None:
            forget_note(about)
    st.rerun()


def answered() -> None:
    """Say what became of the last `tell`, once."""
    kept, text = st.session_state.pop(_ANSWERED, (None, ""))
    if kept:
        st.success(markdown_text(text), icon=":material/check_circle:")
        st.toast(markdown_text(text), icon=":material/check_circle:")
    elif kept is False:
        st.error("It was not kept.", icon=":material/error:")
        st.text(text)


def command_id(*said: Any) -> str:
    """An id made of what a form says: the collector answers the same one again and does nothing a second time."""
    return "page-" + hashlib.sha256(json.dumps(said, default=str).encode()).hexdigest()[:32]


def shell(*words: Any) -> str:
    """A command to be typed, with the data folder of this page: what is said in `words`, quoted where need be."""
    return shlex.join(["agent-slo", *map(str, words), "--data", str(data_folder())])


_ANSWERED = "answered"
_CLEARED = "cleared_fields"
