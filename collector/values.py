"""OTLP attribute values as plain Python values and as JSON text.

int64 stays exact, bytes become {"base64": ...}, NaN and the infinities become the strings of the
protobuf JSON mapping, because JSON text in DuckDB has no other way to hold them.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from typing import Any

import orjson

from collector.policy import DUPLICATE_ATTRIBUTE, MAX_DEPTH, TOO_DEEP

Value = Any
"""str, bool, int, float, None, list or dict of Values."""


def json_text(value: Value) -> str:
    """JSON text of a value made by this module (finite floats, valid Unicode)."""
    return orjson.dumps(value).decode()


def double(value: float) -> Value:
    """A double as JSON can hold it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def from_bytes(value: bytes) -> Value:
    return {"base64": base64.b64encode(value).decode()}


def from_any(value: Any, flags: list[str], depth: int = 0) -> Value:
    """Value of a protobuf AnyValue; a part nested deeper than MAX_DEPTH becomes None and is flagged."""
    which = value.WhichOneof("value")
    if which == "string_value":
        return value.string_value
    if which == "int_value":
        return value.int_value
    if which == "bool_value":
        return value.bool_value
    if which == "double_value":
        return double(value.double_value)
    if which == "bytes_value":
        return from_bytes(value.bytes_value)
    if depth >= MAX_DEPTH:
        flags.append(TOO_DEEP)
        return None
    if which == "array_value":
        return [from_any(v, flags, depth + 1) for v in value.array_value.values]
    if which == "kvlist_value":
        return attributes(value.kvlist_value.values, flags, depth + 1)
    return None


def attributes(pairs: Iterable[Any], flags: list[str], depth: int = 0) -> dict[str, Value]:
    """Dict of protobuf KeyValues; of a repeated key the last wins, `duplicate_attribute` is flagged."""
    out: dict[str, Value] = {}
    number = 0
    for pair in pairs:
        number += 1
        value = pair.value
        # By far the most frequent; to ask for a text costs less than to ask what there is. Any other value has none.
        text = value.string_value
        if text:
            out[pair.key] = text
        elif value.WhichOneof("value") == "int_value":
            out[pair.key] = value.int_value
        else:
            out[pair.key] = from_any(value, flags, depth)
    if len(out) != number:
        flags.append(DUPLICATE_ATTRIBUTE)
    return out
