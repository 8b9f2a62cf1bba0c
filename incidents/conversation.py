"""The words a task began with, and the tools it was given, as its first model call had them.

Which keys carry them is known to `metrics/conventions`; here the four shapes they come in are read: one JSON list with
parts, a provider's own list, flattened keys, and span events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from metrics.conventions import shipped

_ROLES = {"system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "assistant",
          "ai": "assistant", "model": "assistant"}  # fmt: skip


@dataclass(frozen=True)
class Told:
    """What one span carries. `dropped` counts messages that are no text: earlier tool calls, images."""

    messages: list[dict[str, str]] = field(default_factory=list)
    dropped: int = 0
    definitions: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class _Keys:
    """What all families say together, each key once, the base's first."""

    messages: tuple[str, ...]
    instructions: tuple[str, ...]
    definitions: tuple[str, ...]
    flat_messages: tuple[re.Pattern[str], ...]
    flat_definitions: tuple[re.Pattern[str], ...]
    message_events: Mapping[str, str]
    detail_events: frozenset[str]


@cache
def _keys() -> _Keys:
    told = [family.conversation for family in shipped()]
    return _Keys(
        messages=_once(family.fields.get("input_messages", []) for family in shipped()),
        instructions=_once(one.instructions for one in told),
        definitions=_once(one.definitions for one in told),
        flat_messages=_patterns((one.flat_messages for one in told), "role|content"),
        flat_definitions=_patterns((one.flat_definitions for one in told), "json_schema|name|description"),
        message_events={name: role for one in told for name, role in one.message_events.items()},
        detail_events=frozenset(name for one in told for name in one.detail_events),
    )


def _once(listed: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for keys in listed for key in keys))


def _patterns(listed: Iterable[Iterable[str]], parts: str) -> tuple[re.Pattern[str], ...]:
    """`llm.tools.{n}.tool.{part}` as a pattern with the number and the part."""
    return tuple(
        re.compile(re.escape(key).replace(r"\{n\}", r"(\d+)").replace(r"\{part\}", f"({parts})"))
        for key in _once(listed)
    )


def _flat(attributes: Mapping[str, Any], patterns: tuple[re.Pattern[str], ...]) -> list[dict[str, Any]]:
    """Numbered keys as the objects they were flattened from, in order."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        match = next((m for pattern in patterns if (m := pattern.fullmatch(key))), None)
        if match:
            found.setdefault(int(match[1]), {})[match[2]] = value
    return [found[number] for number in sorted(found)]


def read(attributes: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> Told:
    """Read one span: instructions and messages up to now, and tool definitions. Empty where nothing was captured."""
    raw = _stated(attributes) or _flat(attributes, _keys().flat_messages) or _from_events(events)
    messages, dropped = [], 0
    for message in raw:
        role = _ROLES.get(str(message.get("role", "user")).lower())
        text = _text(message)
        if role is None or not text:
            dropped += 1
            continue
        messages.append({"role": role, "content": text})
    if not any(message["role"] == "system" for message in messages):
        system = next((t for key in _keys().instructions if (t := _instructions(attributes.get(key)))), "")
        if system:
            messages.insert(0, {"role": "system", "content": system})
    return Told(messages, dropped, _definitions(attributes))


def parsed(value: Any) -> Any:
    """JSON text as its value, anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value  # prose that begins with a bracket


def _stated(attributes: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    for key in _keys().messages:
        value = parsed(attributes.get(key))
        if isinstance(value, Mapping):
            value = value.get("messages", value.get("contents", [value]))
        if isinstance(value, str) and value.strip():
            return [{"role": "user", "content": value}]
        if isinstance(value, list) and value:
            # some frameworks nest one list per prompt
            flat = value[0] if isinstance(value[0], list) else value
            return [m if isinstance(m, Mapping) else {"role": "user", "content": str(m)} for m in flat]
    return []


def _from_events(events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for event in events:
        attributes = event.get("attributes") or {}
        name = str(event.get("name"))
        if (role := _keys().message_events.get(name)) is not None:
            found.append({"role": role, **attributes})
        elif name in _keys().detail_events:
            found += _stated(attributes)
    return found


def _text(message: Mapping[str, Any]) -> str:
    parts = message.get("parts")
    if parts is None:
        parts = parsed(message.get("content"))
    if isinstance(parts, Mapping):
        parts = parts.get("parts", [parts])
    if not isinstance(parts, list):
        parts = [parts]
    texts = []
    for part in parts:
        if isinstance(part, Mapping):
            kind = str(part.get("type") or part.get("part_kind") or "text").replace("-", "_").lower()
            part = part.get("content", part.get("text")) if kind.endswith(("text", "prompt")) else None
        if isinstance(part, str) and part.strip():
            texts.append(part.strip())
    return "\n".join(texts)


def _instructions(value: Any) -> str:
    value = parsed(value)
    if isinstance(value, list):
        return "\n".join(
            t for item in value if (t := _text(item if isinstance(item, Mapping) else {"content": item}))
        )
    return value.strip() if isinstance(value, str) else ""


def _definitions(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[Any] = []
    for key in _keys().definitions:
        value = parsed(attributes.get(key))
        if isinstance(value, list) and value:
            found = [parsed(item) for item in value]
            break
    if not found:
        flat = _flat(attributes, _keys().flat_definitions)
        found = [parsed(item.get("json_schema")) or item for item in flat]
    return [tool for item in found if (tool := _definition(item))]


def _definition(item: Any) -> dict[str, Any] | None:
    if not isinstance(item, Mapping):
        return None
    inner = item.get("function")
    body: Mapping[str, Any] = inner if isinstance(inner, Mapping) else item
    name = body.get("name")
    if not isinstance(name, str) or not name:
        return None
    schema = next(
        (
            value
            for key in ("parameters", "inputSchema", "input_schema", "parameters_json_schema")
            if isinstance(value := parsed(body.get(key)), Mapping)
        ),
        {},
    )
    return {
        "name": name,
        "description": str(body.get("description") or ""),
        "parameters": dict(schema),
        "annotations": dict(hints) if isinstance(hints := body.get("annotations"), Mapping) else {},
    }
