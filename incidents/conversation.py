"""The words a task began with, and the tools it was given, as its first model call had them.

Which attributes carry messages is known to `metrics/conventions`; here the four shapes they come in are read: one
JSON list with parts, a provider's own list, flattened keys, and span events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from metrics.conventions import shipped

INSTRUCTIONS = ("gen_ai.system_instructions", "gen_ai.agent.instructions", "llm.system_instructions")
DEFINITIONS = ("gen_ai.tool.definitions", "ai.prompt.tools", "agent.tools", "llm.tools")
_FLAT = (
    re.compile(r"^gen_ai\.prompt\.(\d+)\.(role|content)$"),
    re.compile(r"^llm\.input_messages\.(\d+)\.message\.(role|content)$"),
)
_FLAT_TOOL = re.compile(r"^llm\.tools\.(\d+)\.tool\.(json_schema|name|description)$")
_EVENT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
}
_ROLES = {"system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "assistant",
          "ai": "assistant", "model": "assistant"}  # fmt: skip


@dataclass(frozen=True)
class Told:
    """What one span carries. `dropped` counts messages that are no text: earlier tool calls, images."""

    messages: list[dict[str, str]] = field(default_factory=list)
    dropped: int = 0
    definitions: list[dict[str, Any]] = field(default_factory=list)


@cache
def _message_keys() -> tuple[str, ...]:
    keys: dict[str, None] = {}
    for family in shipped():
        keys.update(dict.fromkeys(family.fields.get("input_messages", [])))
    return tuple(keys)


def read(attributes: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> Told:
    """Read one span: instructions and messages up to now, and tool definitions. Empty where nothing was captured."""
    raw = _stated(attributes) or _flattened(attributes) or _from_events(events)
    messages, dropped = [], 0
    for message in raw:
        role = _ROLES.get(str(message.get("role", "user")).lower())
        text = _text(message)
        if role is None or not text:
            dropped += 1
            continue
        messages.append({"role": role, "content": text})
    if not any(message["role"] == "system" for message in messages):
        system = next((t for key in INSTRUCTIONS if (t := _instructions(attributes.get(key)))), "")
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
    for key in _message_keys():
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


def _flattened(attributes: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        match = next((m for pattern in _FLAT if (m := pattern.match(key))), None)
        if match:
            found.setdefault(int(match[1]), {})[match[2]] = value
    return [found[number] for number in sorted(found)]


def _from_events(events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for event in events:
        attributes = event.get("attributes") or {}
        name = str(event.get("name"))
        if name in _EVENT_ROLES:
            found.append({"role": _EVENT_ROLES[name], **attributes})
        elif name == "gen_ai.client.inference.operation.details":
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
    for key in DEFINITIONS:
        value = parsed(attributes.get(key))
        if isinstance(value, list) and value:
            found = [parsed(item) for item in value]
            break
    if not found:
        flat: dict[int, dict[str, Any]] = {}
        for key, value in attributes.items():
            if match := _FLAT_TOOL.match(key):
                flat.setdefault(int(match[1]), {})[match[2]] = parsed(value)
        found = [flat[n].get("json_schema") or flat[n] for n in sorted(flat)]
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
