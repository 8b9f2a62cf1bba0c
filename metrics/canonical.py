"""One spelling for equal arguments.

Two calls are the same call when their arguments mean the same: key order, spaces, `10` against `10.0`, JSON inside
JSON, a Python literal instead of JSON and the envelopes some frameworks wrap around arguments must not matter.
"""

from __future__ import annotations

import ast
import json
import math
import re
from typing import Any

import orjson
import pyarrow as pa

from collector.redaction.detectors import PLACEHOLDER

# Envelopes around the real arguments: all keys of the object are in the set, and the payload is under the first.
_ENVELOPES: tuple[tuple[str, frozenset[str]], ...] = (
    ("kwargs", frozenset({"kwargs", "args", "sanitize_inputs_outputs"})),
    ("input_str", frozenset({"input_str", "tags", "metadata", "inputs", "kwargs", "name"})),
)
_MAX_DEPTH = 64
_MAX_LITERAL = 100_000
_MAX_SEARCHED = 4_000
"""Characters of a result that are searched for what it names: ids stand at its beginning, and a page of prose names
no entity of ours."""

UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
)
"""What reading a hostile or broken text can raise. The readers answer with less then, never with an exception: one
span must not cost its neighbours their tasks."""
_LONG_NUMBER = re.compile(r"\d{19}")


def canonical(text: str | None) -> str | None:
    """Return the canonical JSON text of a tool's arguments; `None` stays `None`.

    Sorted keys, no spaces, whole floats as integers, trimmed strings. Text that is neither JSON nor a Python literal
    becomes a JSON string.
    """
    if text is None:
        return None
    try:
        value = _plain(unwrapped(parse(text)))
        try:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        except orjson.JSONEncodeError:  # an integer beyond 64 bits
            return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    except UNREADABLE:
        # a sender's text that no reader of ours can take is still a text: equal ones stay equal
        return json.dumps(_whole(text.strip()), ensure_ascii=False)


def _whole(text: str) -> str:
    """Replace halves of characters (a text cut in the middle of an emoji), which no column can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def parse(text: str) -> Any:
    """Read JSON, else a Python literal, else keep the text."""
    stripped = text.strip()
    try:
        # orjson reads an integer beyond 64 bits as a float, and two ids that differ at their end as one
        return json.loads(stripped) if _LONG_NUMBER.search(stripped) else orjson.loads(stripped)
    except ValueError:
        pass  # not JSON: next spelling
    if stripped[:1] in ("{", "[", "(") and len(stripped) <= _MAX_LITERAL:
        try:
            return ast.literal_eval(stripped)
        except (*UNREADABLE, SyntaxError):
            return stripped
    return stripped


def unwrapped(value: Any) -> Any:
    """Take framework envelopes and JSON-in-a-string off the arguments."""
    for _ in range(4):
        if isinstance(value, str) and value.strip()[:1] in ("{", "["):
            inner = parse(value)
            if isinstance(inner, str):
                return value
            value = inner
            continue
        if isinstance(value, dict):
            for payload, keys in _ENVELOPES:
                if _holds(value, payload, keys):
                    value = value[payload]
                    break
            else:
                return value
            continue
        return value
    return value


def _holds(value: dict[str, Any], payload: str, keys: frozenset[str]) -> bool:
    """Whether an object is an envelope; `kwargs` alone is one, since no caller names an argument so."""
    alone = payload == "kwargs" and isinstance(value.get(payload), dict)
    return payload in value and (len(value) > 1 or alone) and set(value) <= keys and not value.get("args")


def _plain(value: Any, depth: int = 0) -> Any:
    if depth > _MAX_DEPTH:
        return str(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return _whole(value.strip())
    if isinstance(value, dict):
        return {_whole(str(key)): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item, depth + 1) for item in value), key=repr)
    return str(value)


def leaves(text: str | None) -> list[str]:
    """Return the scalar values inside canonical arguments as text, without duplicates: what the call was about."""
    if text is None:
        return []
    found: dict[str, None] = {}

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)
        elif value is not None and not isinstance(value, bool):
            found[str(value)] = None

    walk(orjson.loads(text))
    return list(found)


def without(text: str | None, names: frozenset[str]) -> str | None:
    """Drop the named top-level arguments if any other remains; else return the text unchanged."""
    if text is None:
        return None
    value = orjson.loads(text)
    if not isinstance(value, dict):
        return text
    rest = {key: item for key, item in value.items() if key.lower() not in names}
    if not rest or len(rest) == len(value):
        return text
    return json.dumps(rest, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


_MOMENTS = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\b\d{1,2}:\d{2}(?::\d{2})?\b|\b1\d{9,18}(?:\.\d+)?\b"
)
_WORD = re.compile(r"[A-Za-z0-9_.-]+")
_DIGIT = re.compile(r"[0-9]")
_RANDOM_ID = re.compile(r"^[a-z]{2,5}_[A-Za-z0-9]{6,}$")
_ID_KEY = re.compile(
    r"(?:^|_|-)(?:id|uuid|ref|reference|number|no|key|code|confirmation|ticket)$|[a-z](?:Id|Uuid|Ref|Number|Key|Code)$"
)
_WHOLE_FLOAT = re.compile(r"^(\d+)\.0+$")


def entities(result: str | None, arguments: str | None) -> list[str]:
    """Return what a result names that the arguments did not: entity ids, counters, balances.

    `arguments`: canonical JSON text. Points in time are left out, and so is every word that repeats an argument:
    `refunded 500 for A-1` names nothing new when 500 and A-1 were asked for.
    """
    if not result:
        return []
    asked = leaves(arguments)
    known = {word for leaf in asked for word in _named(leaf)}
    try:
        found = {_whole(word): None for word in _named_by_key(parse(result)) if word not in asked}
    except UNREADABLE:
        found = {}
    said = PLACEHOLDER.sub(" ", _whole(result[:_MAX_SEARCHED]))
    for word in _named(_MOMENTS.sub(" ", said) if _DIGIT.search(said) else said):
        plain = _WHOLE_FLOAT.sub(r"\1", word.strip("-_.")) or word
        if plain not in known and not any(len(part) > 1 and part in plain for part in known):
            found[plain] = None
    return list(found)


def _named(text: str) -> list[str]:
    """Return the words of a text that look like an id or a number. Linear: one long word is looked at once."""
    found = _WORD.findall(text[:_MAX_SEARCHED])
    # an id has a digit or an underscore; most words of a result have neither
    likely = [word.lstrip(".") for word in found if _DIGIT.search(word) or "_" in word]
    return [word for word in likely if _DIGIT.search(word) or _RANDOM_ID.match(word)]


def _named_by_key(value: Any, key: str = "") -> list[str]:
    """Return the texts that stand under a key which says that they are an id."""
    if isinstance(value, dict):
        return [word for name, item in value.items() for word in _named_by_key(item, str(name))]
    if isinstance(value, list):
        return [word for item in value for word in _named_by_key(item, key)]
    return [value.strip()] if isinstance(value, str) and value.strip() and _ID_KEY.search(key) else []


def entities_column(results: pa.ChunkedArray, arguments: pa.ChunkedArray) -> pa.Array:
    """Vectorised `entities` for DuckDB: VARCHAR, VARCHAR -> VARCHAR[]."""
    pairs = zip(results.to_pylist(), arguments.to_pylist(), strict=True)
    return pa.array([entities(result, asked) for result, asked in pairs], pa.list_(pa.string()))


def canonical_column(column: pa.ChunkedArray) -> pa.Array:
    """Vectorised `canonical` for DuckDB: VARCHAR -> VARCHAR."""
    memo: dict[str | None, str | None] = {}
    out = []
    for text in column.to_pylist():
        if text not in memo:
            memo[text] = canonical(text)
        out.append(memo[text])
    return pa.array(out, pa.string())


def leaves_column(column: pa.ChunkedArray) -> pa.Array:
    """Vectorised `leaves` for DuckDB: VARCHAR -> VARCHAR[]."""
    return pa.array([leaves(text) for text in column.to_pylist()], pa.list_(pa.string()))
