"""Python objects as `repr` prints them, which some instrumentations put into an attribute instead of JSON."""

from __future__ import annotations

import ast
import re
from typing import Any

from metrics.canonical import UNREADABLE

MAX_PRINTED = 200_000
"""Characters of a printed object that are looked at; a longer one is prose."""

_BEGINS = re.compile(r"\s*\[?\s*[A-Za-z_]\w*\(\w+=")
# A text is left alone; `<Name.MEMBER: 'value'>` is its value, and `<Name object at 0x...>` says nothing.
_ANGLES = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|<(?:[^<>'"]*: ([^<>]*)|[^<>]*)>""", re.DOTALL)


def looks_printed(text: str) -> bool:
    """Whether a text begins like an object, or a list of objects, printed with its fields (`Name(field=`)."""
    return len(text) <= MAX_PRINTED and _BEGINS.match(text) is not None


def printed(text: str) -> Any:
    """Read a printed object as a dict of its fields; the text itself where it cannot be read.

    Nothing is evaluated: calls are taken as objects, names as texts.
    """
    try:
        plain = _ANGLES.sub(lambda found: found[1] or found[2] or "None", text.strip())
        return _value(ast.parse(plain, mode="eval").body)
    except (*UNREADABLE, SyntaxError):
        return text


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {
            str(_value(key)): _value(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }
    if isinstance(node, ast.Call):
        return {word.arg: _value(word.value) for word in node.keywords if word.arg is not None}
    return ast.unparse(node)
