"""JSON values and texts, whatever form they come in."""

from __future__ import annotations

from typing import Any

import orjson

from metrics.messages.printed import looks_printed, printed

MAX_DEPTH = 8
"""How deep objects within objects are looked into."""
MAX_TEXT = 4000
"""Characters kept of one text."""

ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "AIMessageChunk": "assistant",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
    "SystemMessage": "system",
}


def value_of(text: str | None) -> Any:
    """Return the JSON value of a text, or the text itself where it is prose."""
    if text is None:
        return None
    head = text.lstrip()[:1]
    if head in ("[", "{", '"') or text.strip() == "null":
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # prose that begins with a bracket, or an object of another language
    if looks_printed(text):
        return printed(text)
    return text if head else None


def text_of(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value).decode()


def first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def string(value: Any) -> str | None:
    return None if value is None else str(value)
