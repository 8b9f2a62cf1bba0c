"""What a model span's messages say, whatever generation of names carries them.

Chat history travels in four shapes: one JSON list of messages with parts (GenAI 1.37 and later), the provider's own
message list (role, content, tool_calls), flattened keys (`gen_ai.prompt.0.content`), and span events
(`gen_ai.user.message`, `gen_ai.choice`). SQL asks only for the facts below, so one reader serves all shapes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa

from metrics.canonical import canonical

_CALL = pa.struct([("id", pa.string()), ("name", pa.string()), ("arguments", pa.string())])
_ANSWER = pa.struct([("id", pa.string()), ("text", pa.string())])
_APPROVAL = pa.struct([("id", pa.string()), ("approved", pa.bool_())])

ARROW_TYPE = pa.struct(
    [
        ("user_text", pa.string()),
        ("output_text", pa.string()),
        ("requested", pa.list_(_CALL)),
        ("deferred", pa.list_(_CALL)),
        ("answered", pa.list_(_ANSWER)),
        ("approvals", pa.list_(_APPROVAL)),
    ]
)
SQL_TYPE = (
    "STRUCT(user_text VARCHAR, output_text VARCHAR, "
    "requested STRUCT(id VARCHAR, name VARCHAR, arguments VARCHAR)[], "
    "deferred STRUCT(id VARCHAR, name VARCHAR, arguments VARCHAR)[], "
    "answered STRUCT(id VARCHAR, text VARCHAR)[], "
    "approvals STRUCT(id VARCHAR, approved BOOLEAN)[])"
)

_FLAT = re.compile(r"^gen_ai\.(prompt|completion)\.(\d+)\.(.+)$")
_FLAT_CALL = re.compile(r"^tool_calls\.(\d+)\.(.+)$")
_MAX_TEXT = 4000


@dataclass
class Facts:
    """What was said: the last user text, the answer, and the tool calls asked for, put off, answered and decided."""

    user_text: str | None = None
    output_text: str | None = None
    requested: list[dict[str, Any]] = field(default_factory=list)
    deferred: list[dict[str, Any]] = field(default_factory=list)
    answered: list[dict[str, Any]] = field(default_factory=list)
    approvals: list[dict[str, Any]] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """Return the facts as one struct value; texts are cut at 4,000 characters."""
        return {
            "user_text": self.user_text and self.user_text[:_MAX_TEXT],
            "output_text": self.output_text and self.output_text[:_MAX_TEXT],
            "requested": self.requested,
            "deferred": self.deferred,
            "answered": self.answered,
            "approvals": self.approvals,
        }


def read(
    input_messages: str | None, output_messages: str | None, output: str | None, attributes: str | None, events: str | None
) -> Facts:
    """Read the facts out of whatever is there.

    `input_messages`, `output_messages`: JSON text or prose; `output`: the run's stated result; `attributes`,
    `events`: the span's own JSON, looked at only when the first two are absent.
    """
    facts = Facts()
    said, answer = _messages(input_messages, "user"), _messages(output_messages, "assistant")
    if not said and not answer:
        said, answer = _flattened(attributes)
        if not said and not answer:
            said, answer = _from_events(events)
    for message in said:
        _input(facts, message)
    for message in answer:
        _output(facts, message)
    _stated(facts, output)
    return facts


def _json(text: str | None) -> Any:
    if text is None or text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None  # prose that begins with a bracket


def _messages(text: str | None, role: str) -> list[dict[str, Any]]:
    if text is None or not text.strip():
        return []
    value = _json(text)
    if value is None:
        return [{"role": role, "content": text}]
    if isinstance(value, dict):
        value = value.get("messages", [value])
    if not isinstance(value, list):
        return []
    return [m if isinstance(m, dict) else {"role": role, "content": str(m)} for m in value]


def _flattened(attributes: str | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    if attributes is None or "gen_ai.prompt." not in attributes and "gen_ai.completion." not in attributes:
        return [], []
    sides: dict[str, dict[int, dict[str, Any]]] = {"prompt": {}, "completion": {}}
    for key, value in orjson.loads(attributes).items():
        found = _FLAT.match(key)
        if not found:
            continue
        message = sides[found[1]].setdefault(int(found[2]), {})
        call = _FLAT_CALL.match(found[3])
        if call:
            message.setdefault("calls", {}).setdefault(int(call[1]), {})[call[2]] = value
        else:
            message[found[3]] = value

    def ordered(side: str, role: str) -> list[dict[str, Any]]:
        out = []
        for _, message in sorted(sides[side].items()):
            calls = [call for _, call in sorted(message.pop("calls", {}).items())]
            out.append({"role": role, **message, "tool_calls": calls})
        return out

    return ordered("prompt", "user"), ordered("completion", "assistant")


_EVENT_ROLE = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def _from_events(events: str | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    said: list[dict[str, Any]] = []
    answer: list[dict[str, Any]] = []
    for event in _json(events) or []:
        name, attributes = event.get("name"), event.get("attributes") or {}
        if name in _EVENT_ROLE:
            said.append({"role": _EVENT_ROLE[name], **attributes})
        elif name == "gen_ai.choice":
            inner = attributes.get("message")
            parsed = _json(inner) if isinstance(inner, str) else inner
            if isinstance(parsed, dict):
                answer.append({"role": "assistant", **parsed})
            elif isinstance(parsed, list):
                answer.append({"role": "assistant", "content": parsed})
            else:
                answer.append({"role": "assistant", "content": inner or attributes.get("content"), **{
                    k: v for k, v in attributes.items() if k == "tool_calls"}})
        elif name == "gen_ai.client.inference.operation.details":
            said += _messages(_text(attributes.get("gen_ai.input.messages")), "user")
            answer += _messages(_text(attributes.get("gen_ai.output.messages")), "assistant")
    return said, answer


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value).decode()


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    parts = message.get("parts")
    if parts is None:
        content = message.get("content")
        if isinstance(content, str) and content.lstrip()[:1] == "[":
            content = _json(content) or content
        parts = content if isinstance(content, list) else [content]
    return [p if isinstance(p, dict) else {"type": "text", "content": p} for p in parts if p is not None]


def _kind(part: dict[str, Any]) -> str:
    """Name a part by what it is: text, call, response, approval_request, approval_response or other."""
    kind = str(part.get("type") or part.get("part_kind") or "").replace("-", "_").lower()
    if "approval" in kind:
        return "approval_request" if "request" in kind else "approval_response"
    if kind in ("tool_call", "tool_use", "function_call") or "toolUse" in part:
        return "call"
    if kind in ("tool_call_response", "tool_result", "function_result", "tool_return") or "toolResult" in part:
        return "response"
    if kind in ("", "text", "input_text", "output_text"):
        return "text"
    return "other"


def _call(part: dict[str, Any]) -> dict[str, Any]:
    body = part.get("toolUse") or part.get("function_call") or part
    function = body.get("function") or {}
    arguments = next(
        (v for v in (body.get("arguments"), body.get("args"), body.get("input"), function.get("arguments")) if v is not None), None
    )
    return {
        "id": _string(body.get("id") if part.get("function_call") is None else body.get("call_id"))
        or _string(body.get("tool_call_id") or body.get("toolUseId") or body.get("call_id")),
        "name": _string(body.get("name") or body.get("tool_name") or function.get("name")),
        "arguments": canonical(_text(arguments)),
    }


def _string(value: Any) -> str | None:
    return None if value is None else str(value)


def _words(part: dict[str, Any]) -> str:
    value = part.get("content", part.get("text"))
    return value.strip() if isinstance(value, str) else ""


def _input(facts: Facts, message: dict[str, Any]) -> None:
    role = message.get("role")
    texts: list[str] = []
    for part in _parts(message):
        kind = _kind(part)
        if kind == "response" or (kind == "text" and role == "tool"):
            body = part.get("toolResult") or part
            answer = next(
                (v for v in (body.get("response"), body.get("result"), body.get("content"), body.get("text")) if v is not None), None
            )
            facts.answered.append(
                {
                    "id": _string(
                        body.get("id") or body.get("tool_call_id") or body.get("toolUseId") or body.get("call_id")
                        or message.get("tool_call_id") or message.get("id")
                    ),
                    "text": (_text(answer) or "")[:_MAX_TEXT],
                }
            )
        elif kind == "approval_response":
            call = _call(part)
            approved = part.get("approved")
            facts.approvals.append(
                {"id": call["id"] or _string(part.get("id")), "approved": approved if isinstance(approved, bool) else None}
            )
        elif kind == "text" and role in ("user", "human"):
            texts.append(_words(part))
    joined = "\n".join(t for t in texts if t)
    if joined:
        facts.user_text = joined


def _output(facts: Facts, message: dict[str, Any]) -> None:
    if message.get("role") in ("tool", "user", "system"):
        return
    texts: list[str] = []
    for part in _parts(message):
        kind = _kind(part)
        if kind == "call":
            facts.requested.append(_call(part))
        elif kind == "approval_request":
            facts.deferred.append(_call(part))
        elif kind == "text":
            texts.append(_words(part))
    calls = message.get("tool_calls")
    for call in (_json(calls) if isinstance(calls, str) else calls) or []:
        if isinstance(call, dict):
            facts.requested.append(_call(call))
    # The answer is the last message's text: what stands beside an earlier tool call is thinking aloud.
    facts.output_text = "\n".join(t for t in texts if t) or None


def _stated(facts: Facts, output: str | None) -> None:
    """A run's own result: calls put off for a person (`approvals`, `calls`), else the answer."""
    if output is None or not output.strip():
        return
    value = _json(output)
    waiting = []
    if isinstance(value, dict):
        for name in ("approvals", "calls"):
            waiting += [call for call in value.get(name) or [] if isinstance(call, dict) and "tool_call_id" in call]
    if waiting:
        facts.deferred += [_call(call) for call in waiting]
    else:
        facts.output_text = output.strip()


def read_column(
    inputs: pa.ChunkedArray, outputs: pa.ChunkedArray, stated: pa.ChunkedArray, attributes: pa.ChunkedArray, events: pa.ChunkedArray
) -> pa.Array:
    """Vectorised `read` for DuckDB: five VARCHAR columns -> `SQL_TYPE`."""
    rows = zip(
        inputs.to_pylist(), outputs.to_pylist(), stated.to_pylist(), attributes.to_pylist(), events.to_pylist(), strict=True
    )
    return pa.array([read(*row).row() for row in rows], ARROW_TYPE)
