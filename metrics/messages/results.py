"""A tool span's own content: its arguments and result in events, and the result inside a framework's envelope."""

from __future__ import annotations

from typing import Any

from metrics.canonical import UNREADABLE, parse
from metrics.messages.values import MAX_DEPTH, ROLES, first, string, text_of, value_of


def event_content(events: str | None) -> dict[str, str | None]:
    """Return a tool call's arguments and result where the span carries them as events (JSON text)."""
    arguments = result = None
    for event in value_of(events) or []:
        attributes = event.get("attributes") or {}
        if event.get("name") == "gen_ai.tool.message":
            arguments = text_of(attributes.get("content"))
        elif event.get("name") == "gen_ai.choice":
            result = text_of(first(attributes.get("message"), attributes.get("content")))
    return {"arguments": arguments, "result": result}


def plain_result(result: str | None) -> dict[str, str | None]:
    """Return the text a tool gave back, out of the object a framework wraps around it, and the call id it names."""
    try:
        return _plain_result(result)
    except UNREADABLE:
        return {"text": result, "call_id": None}


def _plain_result(result: str | None) -> dict[str, str | None]:
    value = value_of(result)
    if isinstance(value, str):
        # an object as Python prints it
        value = parse(value)
    if not isinstance(value, (dict, list)):
        return {"text": result, "call_id": None}
    call_id, failed = None, False
    for _ in range(MAX_DEPTH):
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
        failed = failed or value.get("isError") is True or value.get("status") == "error"
        call_id = call_id or (value.get("id") if "response" in value else None)
        value = inner
    if isinstance(value, list) and value and all(isinstance(p, dict) and _failing(p) for p in value):
        failed = True
    if isinstance(value, (dict, list)):
        told = _failure_first(value)
        unchanged = call_id is None and told is value and not failed
        text = result if unchanged else text_of(told)
    else:
        text = string(value)
    # The envelope's own word that the call failed; what it holds need not say so.
    if failed and not (text or "").lstrip().lower().startswith("error"):
        text = f"Error: {text}" if text else "Error"
    return {"text": text, "call_id": string(call_id)}


def _failure_first(value: Any) -> Any:
    """Return a result with what it says of its failure before all else, so that it is seen however long the rest is."""
    if isinstance(value, list):
        return value
    if len(value) == 1:
        [(name, inner)] = value.items()
        held = _failure_first(inner) if name in _HOLDERS and isinstance(inner, dict) else inner
        return value if held is inner else {name: held}
    told = _failing(value)
    # errors beside nothing else: beside a result they may be warnings
    told += [
        name
        for name in value
        if str(name).lower() in _TROUBLES
        and value[name]
        and not any(v for n, v in value.items() if n != name)
    ]
    if not told:
        return value
    return {**{name: value[name] for name in told}, **value}


def _failing(value: dict[str, Any]) -> list[str]:
    return [name for name in value if str(name).lower() in _FLAGS and value[name] is False]


_FLAGS = frozenset({"success", "ok", "succeeded"})
_TROUBLES = frozenset({"error", "errors", "exception"})
_HOLDERS = frozenset({"data", "result", "output", "response"})


def _unwrapped(value: dict[str, Any]) -> Any:
    """Return what a known envelope holds, or None when the object is the result itself."""
    if value.get("lc") and isinstance(value.get("kwargs"), dict):
        return value["kwargs"]
    if isinstance(value.get("data"), dict) and value.get("type") in ROLES:
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
