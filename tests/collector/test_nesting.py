from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector import nesting
from collector.nesting import shallow

values = st.recursive(
    st.none() | st.integers() | st.text(alphabet='ab"\\[]{}é', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(alphabet='k"\\{', max_size=3), inner, max_size=3)
    ),
    max_leaves=25,
)


def cut(value: Any, levels: int) -> Any:
    """The plain way to say what `shallow` does."""
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        return None
    if isinstance(value, list):
        return [cut(v, levels - 1) for v in value]
    return {k: cut(v, levels - 1) for k, v in value.items()}


@settings(deadline=None)
@given(values, st.integers(1, 5), st.sampled_from([1, 2, 3, 7, 1 << 20]), st.booleans())
def test_what_lies_deeper_becomes_null(value: Any, levels: int, step: int, ascii_only: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "_STEP", step)
        text = json.dumps(value, ensure_ascii=ascii_only).encode()
        assert json.loads(shallow(text, levels)) == cut(value, levels)


def test_a_shallow_text_is_not_copied() -> None:
    text = json.dumps([[1]] * 5000).encode()
    assert shallow(text) is text


def test_an_unfinished_text_keeps_its_fault() -> None:
    deep = b"[" * 2000
    assert shallow(deep).count(b"[") > nesting.MOST_LEVELS
    assert shallow(b"[" * 2000 + b"]" * 2000) == b"[" * 900 + b"null" + b"]" * 900
