"""What a span's messages say, whatever generation of names carries them.

Chat history travels in many shapes: one JSON list of messages with parts (GenAI 1.37 and later), the providers' own
lists (role, content, tool_calls; Responses items; Gemini contents), LangChain's serialised objects, flattened keys
(`gen_ai.prompt.0.content`, `llm.input_messages.0.message.content`) and span events (`gen_ai.user.message`,
`gen_ai.choice`). SQL asks only for the facts below, so one reader serves all shapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import orjson
import pyarrow as pa

from metrics.canonical import UNREADABLE, canonical
from metrics.conventions import words

_CALL = pa.struct([("id", pa.string()), ("name", pa.string()), ("arguments", pa.string())])
_ANSWER = pa.struct([("id", pa.string()), ("text", pa.string())])
_APPROVAL = pa.struct([("id", pa.string()), ("decision", pa.string())])

ARROW_TYPE = pa.struct(
    [
        ("user_text", pa.string()),
        ("output_text", pa.string()),
        ("finish", pa.string()),
        ("requested", pa.list_(_CALL)),
        ("deferred", pa.list_(_CALL)),
        ("answered", pa.list_(_ANSWER)),
        ("approvals", pa.list_(_APPROVAL)),
    ]
)
SQL_TYPE = (
    "STRUCT(user_text VARCHAR, output_text VARCHAR, finish VARCHAR, "
    "requested STRUCT(id VARCHAR, name VARCHAR, arguments VARCHAR)[], "
    "deferred STRUCT(id VARCHAR, name VARCHAR, arguments VARCHAR)[], "
    "answered STRUCT(id VARCHAR, text VARCHAR)[], "
    "approvals STRUCT(id VARCHAR, decision VARCHAR)[])"
)
CONTENT_ARROW_TYPE = pa.struct([("arguments", pa.string()), ("result", pa.string())])
CONTENT_SQL_TYPE = "STRUCT(arguments VARCHAR, result VARCHAR)"
RESULT_ARROW_TYPE = pa.struct([("text", pa.string()), ("call_id", pa.string())])
RESULT_SQL_TYPE = "STRUCT(text VARCHAR, call_id VARCHAR)"

_FLAT = re.compile(
    r"^(?:gen_ai\.(prompt|completion)\.(\d+)\.(.+)|llm\.(input|output)_messages\.(\d+)\.message\.(.+))$"
)
_FLAT_CALL = re.compile(r"^tool_calls\.(\d+)\.(?:tool_call\.)?(?:function\.)?(.+)$")
_FLAT_PART = re.compile(r"^contents\.(\d+)\.message_content\.(.+)$")
_MAX_TEXT = 4000
_MAX_DEPTH = 8

_ROLES = {
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


@dataclass
class Facts:
    """What was said: the last user text, the answer, and the tool calls asked for, put off, answered and decided."""

    user_text: str | None = None
    output_text: str | None = None
    finish: str | None = None
    requested: list[dict[str, Any]] = field(default_factory=list)
    deferred: list[dict[str, Any]] = field(default_factory=list)
    answered: list[dict[str, Any]] = field(default_factory=list)
    approvals: list[dict[str, Any]] = field(default_factory=list)


_NOTHING = Facts()


def read(
    input_messages: str | None,
    output_messages: str | None,
    output: str | None,
    tool_calls: str | None = None,
    attributes: str | None = None,
    events: str | None = None,
    *,
    inputs: bool = True,
) -> Facts:
    """Read the facts out of whatever is there.

    `input_messages`, `output_messages`: JSON text or prose; `output`: the run's stated result; `tool_calls`: JSON of
    the calls asked for where they stand apart from the answer; `attributes`, `events`: the span's own JSON, which
    holds messages as flattened keys or as events. `inputs`: whether what was said before is wanted.
    """
    try:
        return _read(input_messages, output_messages, output, tool_calls, attributes, events, inputs)
    except UNREADABLE:
        # what cannot be read says nothing; its neighbours are not touched
        return Facts()


def _read(
    input_messages: str | None,
    output_messages: str | None,
    output: str | None,
    tool_calls: str | None,
    attributes: str | None,
    events: str | None,
    inputs: bool,
) -> Facts:
    facts = Facts()
    said, answer = _flattened(attributes, inputs) if attributes else ([], [])
    if not said and input_messages is not None and inputs:
        said = list(_turns(_value(input_messages), "user"))
    if not answer and output_messages is not None:
        answer = list(_turns(_value(output_messages), "assistant"))
    if not said and not answer and events:
        said, answer = _from_events(events)
        said = said if inputs else []
    for message in said:
        _input(facts, message)
    for message in answer:
        _output(facts, message)
    if tool_calls is not None:
        facts.requested += [_call(call) for call in _value(tool_calls) or [] if isinstance(call, dict)]
    if output is not None:
        _stated(facts, output)
    return facts


def _value(text: str | None) -> Any:
    """Return the JSON value of a text, or the text itself where it is prose."""
    if text is None:
        return None
    head = text.lstrip()[:1]
    if head in ("[", "{", '"') or text.strip() == "null":
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text  # prose that begins with a bracket
    return text if head else None


def _turns(value: Any, role: str, depth: int = 0) -> Iterator[Message]:
    """Find the messages in a value; what stands bare gets `role`."""
    if value is None or depth > _MAX_DEPTH:
        return
    if isinstance(value, str):
        inner = _value(value) if depth < 3 else value
        if isinstance(inner, (dict, list)):
            yield from _turns(inner, role, depth + 1)
        elif value.strip():
            yield {"role": role, "parts": [{"type": "text", "content": value}]}
        return
    if isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES and isinstance(value[1], str):
            yield {"role": _ROLES[value[0]], "parts": [{"type": "text", "content": value[1]}]}
        elif value and all(isinstance(item, dict) and _is_part(item) for item in value):
            yield {"role": role, "parts": value}
        else:
            for item in value:
                yield from _turns(item, role, depth + 1)
        return
    if not isinstance(value, dict):
        yield {"role": role, "parts": [{"type": "text", "content": str(value)}]}
        return
    yield from _object(value, role, depth)


def _object(value: dict[str, Any], role: str, depth: int) -> Iterator[Message]:
    if value.get("lc") and isinstance(value.get("kwargs"), dict):
        kind = (value.get("id") or [""])[-1]
        yield _message(value["kwargs"], _ROLES.get(str(kind), role))
    elif isinstance(value.get("data"), dict) and value.get("type") in _ROLES:
        yield _message(value["data"], _ROLES[value["type"]])
    elif value.get("role") is not None:
        yield _message(value, role)
    elif value.get("type") in _ROLES and "content" in value:
        yield _message(value, _ROLES[value["type"]])
    elif value.get("resume") is not None and ({"goto", "update", "graph", "lg_name"} & value.keys()):
        yield {"role": "user", "parts": [], "resume": value["resume"]}
    elif isinstance(value.get("approved"), bool) and ({"toolCallId", "tool_call_id", "id"} & value.keys()):
        yield {"role": "user", "parts": [{**value, "type": "approval_response"}]}
    elif _is_part(value):
        yield {"role": role, "parts": [value]}
    elif isinstance(value.get("content"), dict) and "parts" in value["content"]:
        yield _message({**value["content"], "finish_reason": value.get("finish_reason")}, role)
    elif "text" in value and ("toolCalls" in value or isinstance(value.get("message"), dict)):
        # a LangChain generation, or a runtime's own result object
        inner = list(_turns(value["message"], role, depth + 1)) if "message" in value else []
        yield from inner or [{"role": role, "parts": [{"type": "text", "content": value["text"]}]}]
    else:
        finish = value.get("finish_reason")
        found = False
        for name in _HOLDERS:
            if value.get(name) is not None:
                found = True
                for message in _turns(value[name], role, depth + 1):
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


def _message(value: dict[str, Any], role: str) -> Message:
    """Return one message in our own shape: role, parts, calls beside them, finish reason, id of the call it answers."""
    stated = value.get("role") or value.get("type")
    parts = value.get("parts")
    if parts is None:
        content = value.get("content")
        if isinstance(content, str):
            inner = _value(content) if content[:1] == "[" else content
            content = inner if isinstance(inner, list) and all(map(_is_part_or_none, inner)) else content
        parts = content if isinstance(content, list) else [content]
    metadata = value.get("response_metadata") or {}
    calls = value.get("tool_calls") or value.get("toolCalls")
    if not calls and isinstance(value.get("additional_kwargs"), dict):
        calls = value["additional_kwargs"].get("tool_calls")
    return {
        "role": _ROLES.get(str(stated), role) if stated is not None else role,
        "parts": [
            p if isinstance(p, dict) else {"type": "text", "content": p} for p in parts if p not in (None, "")
        ],
        "tool_calls": _value(calls) if isinstance(calls, str) else calls,
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


def _kind(part: dict[str, Any]) -> str:
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


def _flattened(attributes: str, inputs: bool) -> tuple[list[Message], list[Message]]:
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
            out.append({**_message(flat, role), "tool_calls": calls})
        return out

    return ordered("in", "user"), ordered("out", "assistant")


_EVENT_ROLE = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def _from_events(events: str | None) -> tuple[list[Message], list[Message]]:
    said: list[Message] = []
    answer: list[Message] = []
    for event in _value(events) or []:
        name, attributes = event.get("name"), event.get("attributes") or {}
        if name in _EVENT_ROLE:
            said.append(_message({"role": _EVENT_ROLE[name], **attributes}, "user"))
        elif name == "gen_ai.choice":
            inner = attributes.get("message", attributes.get("content"))
            turns = list(_turns(inner, "assistant"))
            finish = attributes.get("finish_reason")
            calls = attributes.get("tool_calls")
            answer += [
                {**turn, "finish_reason": finish or turn.get("finish_reason")}
                for turn in turns or [{"role": "assistant", "parts": []}]
            ]
            if calls:
                answer[-1]["tool_calls"] = _value(calls) if isinstance(calls, str) else calls
        elif name == "gen_ai.client.inference.operation.details":
            said += _turns(attributes.get("gen_ai.input.messages"), "user")
            answer += _turns(attributes.get("gen_ai.output.messages"), "assistant")
    return said, answer


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value).decode()


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _call(part: dict[str, Any]) -> dict[str, Any]:
    body = _first(part.get("toolUse"), part.get("functionCall"))
    if body is None:
        body = part["function_call"] if isinstance(part.get("function_call"), dict) else part
    function = body.get("function") if isinstance(body.get("function"), dict) else {}
    arguments = _first(
        body.get("arguments"),
        body.get("args"),
        body.get("input"),
        body.get("toolInput"),
        function.get("arguments"),
    )
    # a Responses item has an id of its own beside the id of the call
    return {
        "id": _string(
            _first(
                body.get("call_id"),
                body.get("tool_call_id"),
                body.get("toolCallId"),
                body.get("toolUseId"),
                body.get("id"),
            )
        ),
        "name": _string(
            _first(body.get("name"), body.get("tool_name"), body.get("toolName"), function.get("name"))
        ),
        "arguments": canonical(_text(arguments)),
    }


def _string(value: Any) -> str | None:
    return None if value is None else str(value)


def _words(part: dict[str, Any]) -> str:
    value = part.get("content", part.get("text"))
    return value.strip() if isinstance(value, str) else ""


def _input(facts: Facts, message: Message) -> None:
    role = message.get("role")
    if "resume" in message:
        facts.approvals.append({"id": None, "decision": decision(message["resume"])})
    texts: list[str] = []
    for part in message.get("parts") or []:
        kind = _kind(part)
        if kind == "response" or (kind == "text" and role == "tool"):
            _answer(facts, part, message)
        elif kind == "approval_response":
            call = _call(part)
            facts.approvals.append({"id": call["id"], "decision": decision(part.get("approved"))})
        elif kind == "text" and role == "user":
            texts.append(_words(part))
    joined = "\n".join(t for t in texts if t)
    if joined:
        facts.user_text = joined
        # what was answered and decided before the last word of the user belongs to earlier work
        facts.answered.clear()
        facts.approvals.clear()


_CONFIRMATIONS = frozenset(("confirmed", "approved"))


def _answer(facts: Facts, part: dict[str, Any], message: Message) -> None:
    body = _first(part.get("toolResult"), part.get("function_response"), part.get("functionResponse"), part)
    content = _first(
        body.get("response"), body.get("result"), body.get("output"), body.get("content"), body.get("text")
    )
    if isinstance(content, dict) and len(content) == 1 and _CONFIRMATIONS & content.keys():
        # the runtime's own confirmation "tool": a person's word, not a result
        facts.approvals.append({"id": None, "decision": decision(content)})
        return
    identity = _first(
        body.get("call_id"),
        body.get("tool_call_id"),
        body.get("toolCallId"),
        body.get("toolUseId"),
        message.get("answers"),
        body.get("id"),
        message.get("id"),
    )
    facts.answered.append({"id": _string(identity), "text": (_text(content) or "")[:_MAX_TEXT]})


def _output(facts: Facts, message: Message) -> None:
    if message.get("role") in ("tool", "user", "system"):
        if message.get("role") != "system":
            # a state that ends on a tool's answer or a question ends without an answer of the agent
            facts.output_text = None
        return
    texts: list[str] = []
    for part in message.get("parts") or []:
        kind = _kind(part)
        if kind == "call":
            facts.requested.append(_call(part))
        elif kind == "approval_request":
            facts.deferred.append(_call(part))
        elif kind == "text":
            texts.append(_words(part))
    for call in message.get("tool_calls") or []:
        if isinstance(call, dict):
            facts.requested.append(_call(call))
    if message.get("finish_reason"):
        facts.finish = str(message["finish_reason"])
    # The answer is the last message's text: what stands beside an earlier tool call is thinking aloud.
    facts.output_text = "\n".join(t for t in texts if t) or None


def _stated(facts: Facts, output: str | None) -> None:
    """A run's own result: calls put off for a person (`approvals`, `calls`, `suspended`), else the answer."""
    if output is None or not output.strip():
        return
    value = _value(output)
    waiting: list[dict[str, Any]] = []
    if isinstance(value, dict):
        for name in ("approvals", "calls"):
            waiting += [
                call for call in value.get(name) or [] if isinstance(call, dict) and "tool_call_id" in call
            ]
        if str(value.get("status")).lower() in words()["pauses"]["statuses"]:
            waiting.append(value)
    if waiting:
        facts.deferred += [_call(call) for call in waiting]
        facts.output_text = None
    else:
        for message in _turns(value, "assistant"):
            _output(facts, message)


@cache
def _decision_words() -> dict[str, str]:
    return {word: name for name, listed in words()["decisions"].items() for word in listed}


def decision(payload: Any) -> str | None:
    """Return what a person decided: approved, rejected, edited or answered; None where it does not say.

    `payload`: what a runtime hands back into the paused run (a boolean, a word, an object or a list of them).
    """
    if payload is None:
        return None
    if isinstance(payload, bool):
        return "approved" if payload else "rejected"
    if isinstance(payload, str):
        inner = _value(payload)
        if isinstance(inner, (dict, list)):
            return decision(inner)
        return _decision_words().get(payload.strip().lower(), "answered")
    if isinstance(payload, list):
        found = {decision(item) for item in payload}
        return next((word for word in ("rejected", "edited", "answered", "approved") if word in found), None)
    if isinstance(payload, dict):
        for name in ("approved", "confirmed", "accepted", "approve", "accept"):
            if isinstance(payload.get(name), bool):
                if payload[name] and ({"edited_action", "edited_args", "modified_args"} & payload.keys()):
                    return "edited"
                return "approved" if payload[name] else "rejected"
        for name in ("decisions", "decision", "action", "type", "status", "response"):
            if isinstance(payload.get(name), (list, str)):
                return decision(payload[name])
        if len(payload) == 1:
            return decision(next(iter(payload.values())))
        return "answered"
    return "answered"


# ---- a tool span's own content ------------------------------------------------------------------------------------


def event_content(events: str | None) -> dict[str, str | None]:
    """Return a tool call's arguments and result where the span carries them as events (JSON text)."""
    arguments = result = None
    for event in _value(events) or []:
        attributes = event.get("attributes") or {}
        if event.get("name") == "gen_ai.tool.message":
            arguments = _text(attributes.get("content"))
        elif event.get("name") == "gen_ai.choice":
            result = _text(_first(attributes.get("message"), attributes.get("content")))
    return {"arguments": arguments, "result": result}


def plain_result(result: str | None) -> dict[str, str | None]:
    """Return the text a tool gave back, out of the object a framework wraps around it, and the call id it names."""
    try:
        return _plain_result(result)
    except UNREADABLE:
        return {"text": result, "call_id": None}


def _plain_result(result: str | None) -> dict[str, str | None]:
    value = _value(result)
    if not isinstance(value, (dict, list)):
        return {"text": result, "call_id": None}
    call_id = None
    for _ in range(_MAX_DEPTH):
        if isinstance(value, list):
            if not value or not all(isinstance(p, dict) and "text" in p for p in value):
                break
            value = "\n".join(str(p["text"]) for p in value)
        if not isinstance(value, dict):
            break
        call_id = call_id or value.get("tool_call_id")
        inner = _unwrapped(value)
        if inner is None:
            break
        call_id = call_id or (value.get("id") if "response" in value else None)
        value = inner
    if isinstance(value, (dict, list)):
        unchanged = call_id is None
        return {"text": result if unchanged else _text(value), "call_id": _string(call_id)}
    return {"text": _string(value), "call_id": _string(call_id)}


def _unwrapped(value: dict[str, Any]) -> Any:
    """Return what a known envelope holds, or None when the object is the result itself."""
    if value.get("lc") and isinstance(value.get("kwargs"), dict):
        return value["kwargs"]
    if isinstance(value.get("data"), dict) and value.get("type") in _ROLES:
        return value["data"]
    if value.get("tool_call_id") and "content" in value:
        return value["content"]
    if isinstance(value.get("output"), dict) and set(value) <= {"output", "kwargs"}:
        return value["output"]
    if set(value) == {"id", "name", "response"}:
        return value["response"]
    if isinstance(value.get("blocks"), list) and "tool_name" in value:
        return value["blocks"]
    if isinstance(value.get("content"), list) and set(value) <= {
        "content",
        "isError",
        "structuredContent",
        "_meta",
        "meta",
    }:
        return value["content"]
    if set(value) == {"result"}:
        return value["result"]
    return None


# ---- the same, by column ------------------------------------------------------------------------------------------


def _facts_array(facts: list[Facts | None]) -> pa.Array:
    """Facts as one struct column. Built column by column: a list of dicts costs Arrow three times as much."""
    present = [fact or _NOTHING for fact in facts]
    built = [
        pa.array([fact.user_text and fact.user_text[:_MAX_TEXT] for fact in present], pa.string()),
        pa.array([fact.output_text and fact.output_text[:_MAX_TEXT] for fact in present], pa.string()),
        pa.array([fact.finish for fact in present], pa.string()),
        pa.array([fact.requested for fact in present], pa.list_(_CALL)),
        pa.array([fact.deferred for fact in present], pa.list_(_CALL)),
        pa.array([fact.answered for fact in present], pa.list_(_ANSWER)),
        pa.array([fact.approvals for fact in present], pa.list_(_APPROVAL)),
    ]
    return pa.StructArray.from_arrays(
        built, fields=list(ARROW_TYPE), mask=pa.array([fact is None for fact in facts])
    )


def _fits(fact: Facts | None) -> bool:
    try:
        _facts_array([fact])
    except (*UNREADABLE, pa.ArrowException):
        return False
    return True


def read_column(
    wanted: pa.ChunkedArray,
    inputs: pa.ChunkedArray,
    outputs: pa.ChunkedArray,
    stated: pa.ChunkedArray,
    calls: pa.ChunkedArray,
    attributes: pa.ChunkedArray,
    events: pa.ChunkedArray,
) -> pa.Array:
    """Vectorised `read` for DuckDB: a BOOLEAN (inputs wanted) and six VARCHAR columns -> `SQL_TYPE`.

    NULL where all are NULL.
    """
    columns = (inputs, outputs, stated, calls, attributes, events)
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    facts = [
        read(*row, inputs=bool(want)) if any(row) else None
        for want, row in zip(wanted.to_pylist(), rows, strict=True)
    ]
    try:
        return _facts_array(facts)
    except (*UNREADABLE, pa.ArrowException):  # some value is not of the type its place wants: find whose
        return _facts_array([fact if _fits(fact) else Facts() for fact in facts])


def _each(values: list[str | None], reader: Any, kind: pa.DataType, nothing: Any) -> pa.Array:
    """A reader over a column; the rows it cannot read are `nothing`."""
    try:
        return pa.array([value and reader(value) for value in values], kind)
    except (*UNREADABLE, pa.ArrowException):  # some value cannot be read, or not into the type: find whose
        return pa.array([_one(value, reader, kind, nothing) for value in values], kind)


def _one(value: str | None, reader: Any, kind: pa.DataType, nothing: Any) -> Any:
    try:
        row = value and reader(value)
        pa.array([row], kind)
    except (*UNREADABLE, pa.ArrowException):
        return nothing
    return row


def event_content_column(events: pa.ChunkedArray) -> pa.Array:
    """Vectorised `event_content` for DuckDB: VARCHAR -> `CONTENT_SQL_TYPE`."""
    return _each(events.to_pylist(), event_content, CONTENT_ARROW_TYPE, None)


def plain_result_column(results: pa.ChunkedArray) -> pa.Array:
    """Vectorised `plain_result` for DuckDB: VARCHAR -> `RESULT_SQL_TYPE`."""
    return _each(results.to_pylist(), plain_result, RESULT_ARROW_TYPE, None)
