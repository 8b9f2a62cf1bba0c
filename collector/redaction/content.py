"""The policy `drop-content`: what people and models said is not stored, and repeats are still seen.

Of a tool's arguments each field becomes the HMAC of its canonical value, so that equal calls stay equal, also when
only some of the fields decide. Texts become an HMAC, results nothing at all: two answers `ok` must not look like one
answer that names the same new thing. Of messages the skeleton stays: roles, types, names and call ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import orjson

from collector.redaction.detectors import PLACEHOLDER
from collector.redaction.policy import RedactionRules

DROPPED = "<DROPPED>"
_SKELETON = frozenset(
    {
        *("role", "type", "kind", "id", "name", "object", "index", "status", "model", "is_error"),
        *("finish_reason", "finishReason", "stop_reason", "message_id", "messageId", "tool_name", "toolName"),
        *("tool_call_id", "toolCallId", "call_id", "callId", "tool_use_id", "toolUseId"),
    }
)
_ARGUMENTS = frozenset(
    ["arguments", "args", "input", "parameters", "kwargs", "tool_input", "toolInput", "partial_arguments"]
)
_WORD = re.compile(r"\S{1,64}")
_CLASS = re.compile(r"[A-Za-z_][\w.]{0,80}(?=[:(]|$)")


class ContentDropper:
    """Takes content out of parsed documents; `placeholder(type, value)` makes what stands in its place."""

    def __init__(self, rules: RedactionRules, placeholder: Callable[[str, str], str]) -> None:
        self._rules = rules
        self._placeholder = placeholder

    def document(self, column: str, value: Any) -> Any:
        """`column`: attributes (an object), events or links (a list of objects with attributes), body (anything)."""
        if column == "attributes" and isinstance(value, dict):
            return {key: self._attribute(key, item) for key, item in value.items()}
        if column in ("events", "links") and isinstance(value, list):
            return [
                {**item, "attributes": self.document("attributes", item.get("attributes") or {})}
                for item in value
            ]
        return self._skeleton(value)

    def message(self, text: str) -> str:
        """Of an error message its class stays, because verdicts depend on it."""
        if not text or PLACEHOLDER.fullmatch(text):
            return text
        found = _CLASS.match(text)
        if found is None:
            return self._placeholder("TEXT", text)
        rest = text[found.end() :]
        return found[0] + (": " + self._placeholder("TEXT", rest) if rest.strip(":() ") else rest)

    def _attribute(self, key: str, value: Any) -> Any:
        rules = self._rules
        if key in rules.arguments:
            return self._arguments(value)
        if key in rules.results:
            return DROPPED if value not in (None, "") else value
        if key in rules.content:
            return self._skeleton(value)
        if key in ("exception.message", "error.message"):
            return self.message(value) if isinstance(value, str) else value
        if key in rules.mapped or key.startswith("agent_slo."):
            return value
        return self._unknown(value)

    def _unknown(self, value: Any) -> Any:
        """An attribute nobody maps: a number or a word may stay, a text may not."""
        if isinstance(value, str):
            return (
                value
                if not value or (_WORD.fullmatch(value) and value[0] not in "{[")
                else self._skeleton(value)
            )
        return self._skeleton(value) if isinstance(value, (dict, list)) else value

    def _skeleton(self, value: Any) -> Any:
        if isinstance(value, str):
            if value[:1] in ("{", "["):
                try:
                    inner = orjson.loads(value)
                except ValueError:
                    return self._placeholder("TEXT", value)
                return json.dumps(self._skeleton(inner), ensure_ascii=False)
            return self._placeholder("TEXT", value) if value else value
        if isinstance(value, list):
            return [self._skeleton(item) for item in value]
        if isinstance(value, dict):
            return {key: self._part(key, item) for key, item in value.items()}
        return value

    def _part(self, key: str, value: Any) -> Any:
        if key in _ARGUMENTS and isinstance(value, (str, dict)):
            return self._arguments(value)
        if key in _SKELETON and not isinstance(value, (dict, list)):
            return value if not isinstance(value, str) or _WORD.fullmatch(value) else self._skeleton(value)
        return self._skeleton(value)

    def _arguments(self, value: Any) -> Any:
        """A text becomes a JSON text, an object stays an object; each field is its HMAC."""
        if value in (None, "", {}):
            return value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        canonical = (self._rules.canonical or _sorted)(text)
        held = orjson.loads(canonical) if canonical else text
        if isinstance(held, dict):
            fields = {key: self._field(item) for key, item in held.items()}
            return fields if isinstance(value, dict) else json.dumps(fields, ensure_ascii=False)
        return self._placeholder("ARGUMENTS", held if isinstance(held, str) else _plain(held))

    def _field(self, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return value
        return self._placeholder("VALUE", value if isinstance(value, str) else _plain(value))


def _sorted(text: str) -> str:
    try:
        return _plain(orjson.loads(text))
    except ValueError:
        return json.dumps(text)


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
