"""Python objects as `repr` prints them, which some instrumentations put into an attribute instead of JSON."""

from __future__ import annotations

import ast
import re
from typing import Any

from metrics.canonical import UNREADABLE

MAX_PRINTED = 200_000
"""Characters of a printed object that are looked at; a longer one is prose."""

_BEGINS = re.compile(r"\s*\[?\s*[A-Za-z_]\w*\(\w+=")
_MARK = re.compile("['\"<]")
_REST_OF_TEXT = {
    "'": re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL),
    '"': re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL),
}


def looks_printed(text: str) -> bool:
    """Whether a text begins like an object, or a list of objects, printed with its fields (`Name(field=`)."""
    return len(text) <= MAX_PRINTED and _BEGINS.match(text) is not None


def printed(text: str) -> Any:
    """Read a printed object as a dict of its fields; the text itself where it cannot be read.

    Nothing is evaluated: calls are taken as objects, names as texts.
    """
    try:
        return _value(ast.parse(_without_angles(text.strip()), mode="eval").body)
    except (*UNREADABLE, SyntaxError):
        return text


def _without_angles(text: str) -> str:
    """Put values where no syntax is: `<Name.MEMBER: 'value'>` is its value, `<Name object at 0x...>` nothing.

    One walk from the left, so that a text made to be slow is not. Raises `ValueError` where a text or an angle
    never ends.
    """
    parts, at = [], 0
    while mark := _MARK.search(text, at):
        begin = mark.start()
        if mark[0] == "<":
            end = text.index(">", begin) + 1
            parts += [text[at:begin], text[begin + 1 : end - 1].partition(": ")[2] or "None"]
        else:
            closed = _REST_OF_TEXT[mark[0]].match(text, begin + 1)
            if closed is None:
                raise ValueError(f"a text that begins at {begin} never ends")
            end = closed.end()
            parts.append(text[at:end])
        at = end
    return "".join([*parts, text[at:]])


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
