"""The shapes in which messages travel, brought to one: role, parts, calls beside them, finish reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from metrics.messages.values import MAX_DEPTH, ROLES, value_of

_FLAT = re.compile(
    r"^(?:gen_ai\.(prompt|completion)\.(\d+)\.(.+)|llm\.(input|output)_messages\.(\d+)\.message\.(.+))$"
)
_FLAT_CALL = re.compile(r"^tool_calls\.(\d+)\.(?:tool_call\.)?(?:function\.)?(.+)$")
_FLAT_PART = re.compile(r"^contents\.(\d+)\.message_content\.(.+)$")
# Objects that only hold messages, and the role of what stands bare inside them.
_HOLDERS = (
    "messages",
    "inputs",
    "input",
    "outputs",
    "output",
    "new_message",
    "contents",
    "update",
    "generations",
    "choices",
    "message",
    "kwargs",
    "data",
    "task",
    "raw",
    "prompt",
)
Message = dict[str, Any]


def turns_in(value: Any, role: str, depth: int = 0) -> Iterator[Message]:
    """Find the messages in a value; what stands bare gets `role`."""
    if value is None or depth > MAX_DEPTH:
        return
    if isinstance(value, str):
        inner = value_of(value) if depth < 3 else value
        if isinstance(inner, (dict, list)):
            yield from turns_in(inner, role, depth + 1)
        elif value.strip():
            yield {"role": role, "parts": [{"type": "text", "content": value}]}
        return
    if isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], str) and value[0] in ROLES and isinstance(value[1], str):
            yield {"role": ROLES[value[0]], "parts": [{"type": "text", "content": value[1]}]}
        elif value and all(isinstance(item, dict) and _is_part(item) for item in value):
            yield {"role": role, "parts": value}
        else:
            for item in value:
                yield from turns_in(item, role, depth + 1)
        return
    if not isinstance(value, dict):
        yield {"role": role, "parts": [{"type": "text", "content": str(value)}]}
        return
    yield from _object(value, role, depth)


def _object(value: dict[str, Any], role: str, depth: int) -> Iterator[Message]:
    if value.get("lc") and isinstance(value.get("kwargs"), dict):
        kind = (value.get("id") or [""])[-1]
        yield message_of(value["kwargs"], ROLES.get(str(kind), role))
    elif isinstance(value.get("data"), dict) and value.get("type") in ROLES:
        yield message_of(value["data"], ROLES[value["type"]])
    elif value.get("role") is not None:
        yield message_of(value, role)
    elif value.get("type") in ROLES and "content" in value:
        yield message_of(value, ROLES[value["type"]])
    elif value.get("resume") is not None and ({"goto", "update", "graph", "lg_name"} & value.keys()):
        yield {"role": "user", "parts": [], "resume": value["resume"]}
    elif isinstance(value.get("approved"), bool) and ({"toolCallId", "tool_call_id", "id"} & value.keys()):
        yield {"role": "user", "parts": [{**value, "type": "approval_response"}]}
    elif _is_part(value):
        yield {"role": role, "parts": [value]}
    elif isinstance(value.get("content"), dict) and "parts" in value["content"]:
        yield message_of({**value["content"], "finish_reason": value.get("finish_reason")}, role)
    elif "text" in value and ("toolCalls" in value or isinstance(value.get("message"), dict)):
        # a LangChain generation, or a runtime's own result object
        inner = list(turns_in(value["message"], role, depth + 1)) if "message" in value else []
        yield from inner or [{"role": role, "parts": [{"type": "text", "content": value["text"]}]}]
    else:
        finish = value.get("finish_reason")
        found = False
        for name in _HOLDERS:
            if value.get(name) is not None:
                found = True
                for message in turns_in(value[name], role, depth + 1):
                    yield (
                        {**message, "finish_reason": message.get("finish_reason") or finish}
                        if finish
                        else message
                    )
                break
        # an object that holds nothing we know is itself what was said: structured input or output
        known = found or any(name in value for name in _HOLDERS)
        if not known and value:
            yield {"role": role, "parts": [{"type": "text", "content": orjson.dumps(value).decode()}]}


def message_of(value: dict[str, Any], role: str) -> Message:
    """Return one message in our own shape: role, parts, calls beside them, finish reason, id of the call it answers."""
    stated = value.get("role") or value.get("type")
    parts = value.get("parts")
    if parts is None:
        content = value.get("content")
        if isinstance(content, str):
            inner = value_of(content) if content[:1] == "[" else content
            content = inner if isinstance(inner, list) and all(map(_is_part_or_none, inner)) else content
        parts = content if isinstance(content, list) else [content]
    metadata = value.get("response_metadata") or {}
    calls = value.get("tool_calls") or value.get("toolCalls")
    if not calls and isinstance(value.get("additional_kwargs"), dict):
        calls = value["additional_kwargs"].get("tool_calls")
    return {
        "role": ROLES.get(str(stated), role) if stated is not None else role,
        "parts": [
            p if isinstance(p, dict) else {"type": "text", "content": p} for p in parts if p not in (None, "")
        ],
        "tool_calls": value_of(calls) if isinstance(calls, str) else calls,
        "finish_reason": value.get("finish_reason")
        or value.get("stop_reason")
        or metadata.get("finish_reason")
        or metadata.get("stop_reason"),
        "answers": value.get("tool_call_id") or value.get("toolCallId"),
        "id": value.get("id"),
    }


_PART_KEYS = frozenset(
    (
        "toolUse",
        "toolResult",
        "function_call",
        "function_response",
        "functionCall",
        "functionResponse",
    )
)
_PART_KINDS = frozenset(
    (
        "text",
        "input_text",
        "output_text",
        "tool_call",
        "tool_use",
        "function_call",
        "tool_call_response",
        "tool_result",
        "tool_return",
        "function_result",
        "function_call_output",
        "reasoning",
        "thinking",
        "refusal",
    )
)


def _is_part(value: dict[str, Any]) -> bool:
    if "role" in value or value.get("lc"):
        return False
    kind = _name(value)
    if kind in _PART_KINDS or "approval" in kind:
        return True
    return bool(_PART_KEYS & value.keys()) or (set(value) <= {"text", "citations"} and "text" in value)


def _is_part_or_none(value: Any) -> bool:
    return isinstance(value, dict) and _is_part(value)


def _name(part: dict[str, Any]) -> str:
    return str(part.get("type") or part.get("part_kind") or part.get("kind") or "").replace("-", "_").lower()


def kind_of(part: dict[str, Any]) -> str:
    """Name a part by what it is: text, call, response, approval_request, approval_response or other."""
    kind = _name(part)
    if "approval" in kind:
        return "approval_request" if "request" in kind else "approval_response"
    if kind in ("tool_call", "tool_use", "function_call") or (
        {"toolUse", "function_call", "functionCall"} & part.keys()
    ):
        return "call"
    if kind in (
        "tool_call_response",
        "tool_result",
        "function_result",
        "tool_return",
        "function_call_output",
    ) or ({"toolResult", "function_response", "functionResponse"} & part.keys()):
        return "response"
    if kind in ("", "text", "input_text", "output_text"):
        return "text"
    return "other"


_ANSWER_KEYS = ("llm.output_messages.", "gen_ai.completion.")
_HISTORY_KEYS = ("llm.input_messages.", "gen_ai.prompt.")


def flattened(attributes: str, inputs: bool) -> tuple[list[Message], list[Message]]:
    wanted = _ANSWER_KEYS + _HISTORY_KEYS if inputs else _ANSWER_KEYS
    sides: dict[str, dict[int, dict[str, Any]]] = {"in": {}, "out": {}}
    for key, value in orjson.loads(attributes).items():
        if not key.startswith(wanted):
            continue
        found = _FLAT.match(key)
        if not found:
            continue
        side = "in" if (found[1] or found[4]) in ("prompt", "input") else "out"
        message = sides[side].setdefault(int(found[2] or found[5]), {})
        rest = found[3] or found[6]
        call = _FLAT_CALL.match(rest)
        part = _FLAT_PART.match(rest)
        if call:
            message.setdefault("calls", {}).setdefault(int(call[1]), {})[call[2]] = value
        elif part:
            message.setdefault("contents", {}).setdefault(int(part[1]), {})[part[2]] = value
        else:
            message[rest] = value

    def ordered(side: str, role: str) -> list[Message]:
        out = []
        for _, flat in sorted(sides[side].items()):
            calls = [call for _, call in sorted(flat.pop("calls", {}).items())]
            parts = [part for _, part in sorted(flat.pop("contents", {}).items())]
            if parts and not flat.get("content"):
                flat["content"] = parts
            out.append({**message_of(flat, role), "tool_calls": calls})
        return out

    return ordered("in", "user"), ordered("out", "assistant")


_EVENT_ROLE = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def from_events(events: str | None) -> tuple[list[Message], list[Message]]:
    said: list[Message] = []
    answer: list[Message] = []
    for event in value_of(events) or []:
        name, attributes = event.get("name"), event.get("attributes") or {}
        if name in _EVENT_ROLE:
            said.append(message_of({"role": _EVENT_ROLE[name], **attributes}, "user"))
        elif name == "gen_ai.choice":
            inner = value_of(told) if isinstance(told := attributes.get("message"), str) else told
            if isinstance(inner, dict) and ({"tool_calls", "content"} & inner.keys()):
                inner = {"role": "assistant", **inner}  # who answers goes without saying
            elif inner is None:
                inner = attributes.get("content")
            turns = list(turns_in(inner, "assistant"))
            finish = attributes.get("finish_reason")
            calls = attributes.get("tool_calls")
            answer += [
                {**turn, "finish_reason": finish or turn.get("finish_reason")}
                for turn in turns or [{"role": "assistant", "parts": []}]
            ]
            if calls:
                answer[-1]["tool_calls"] = value_of(calls) if isinstance(calls, str) else calls
        elif name == "gen_ai.client.inference.operation.details":
            said += turns_in(attributes.get("gen_ai.input.messages"), "user")
            answer += turns_in(attributes.get("gen_ai.output.messages"), "assistant")
    return said, answer


def words_in(part: dict[str, Any]) -> str:
    value = part.get("content", part.get("text"))
    return value.strip() if isinstance(value, str) else ""
