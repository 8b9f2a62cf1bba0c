"""How one conversation is written on a model span, in three generations of the GenAI conventions.

``latest``: `gen_ai.input.messages` / `gen_ai.output.messages` as JSON text, `gen_ai.provider.name`.
``flattened``: `gen_ai.prompt.N.*` / `gen_ai.completion.N.*`, `gen_ai.system`, prompt and completion tokens.
``events``: one span event a message (`gen_ai.user.message`, `gen_ai.choice`), `gen_ai.system`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Dialect = Literal["latest", "flattened", "events"]
Attributes = dict[str, Any]


def compact(value: object) -> str:
    """JSON text without spaces, keys in their given order."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class Call:
    """A tool call the model asked for."""

    id: str
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Message:
    """One turn: text, requested calls, or the answer to one call."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[Call, ...] = ()
    answers: str = ""  # id of the call that `text` answers

    def as_parts(self) -> dict[str, Any]:
        if self.answers:
            parts: list[dict[str, Any]] = [
                {"type": "tool_call_response", "id": self.answers, "response": self.text}
            ]
        else:
            parts = [{"type": "text", "content": self.text}] if self.text else []
            parts += [
                {"type": "tool_call", "id": c.id, "name": c.tool, "arguments": dict(c.arguments)}
                for c in self.calls
            ]
        return {"role": self.role, "parts": parts}


@dataclass(frozen=True)
class Usage:
    """Tokens of one model call; ``input`` includes the cached ones."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


def messages_json(messages: Sequence[Message], finish: str | None = None) -> str:
    """The value of `gen_ai.input.messages`, or of `gen_ai.output.messages` when ``finish`` is given."""
    rows = [m.as_parts() for m in messages]
    if finish is not None:
        for row in rows:
            row["finish_reason"] = finish
    return compact(rows)


def model_attributes(
    dialect: Dialect, provider: str, model: str, history: Sequence[Message], output: Message | None,
    finish: str, usage: Usage | None,
) -> Attributes:  # fmt: skip
    """Attributes of a finished model call; ``output`` and ``usage`` are None when it failed."""
    shared: Attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
    if output is not None:
        shared["gen_ai.response.model"] = model
        shared["gen_ai.response.finish_reasons"] = [finish]
    if dialect == "latest":
        shared["gen_ai.provider.name"] = provider
        shared["gen_ai.input.messages"] = messages_json(history)
        if output is not None:
            shared["gen_ai.output.messages"] = messages_json([output], finish)
        return shared | _tokens(usage)
    shared["gen_ai.system"] = provider
    if dialect == "flattened":
        shared["llm.request.type"] = "chat"
        for n, message in enumerate(history):
            shared |= _flat(f"gen_ai.prompt.{n}", message)
        if output is not None:
            shared |= _flat("gen_ai.completion.0", output)
            shared["gen_ai.completion.0.finish_reason"] = finish
        return shared | _old_tokens(usage)
    return shared | _tokens(usage)


def model_events(
    dialect: Dialect, history: Sequence[Message], output: Message | None, finish: str
) -> list[tuple[str, Attributes]]:
    """The span events that carry messages in the ``events`` generation; empty in the others."""
    if dialect != "events":
        return []
    events: list[tuple[str, Attributes]] = []
    for message in history:
        body: Attributes = {"content": message.text}
        if message.calls:
            body["tool_calls"] = compact([_openai_call(c) for c in message.calls])
        if message.answers:
            body["id"] = message.answers
        events.append((f"gen_ai.{message.role}.message", body))
    if output is not None:
        choice: Attributes = {"role": "assistant", "content": output.text}
        if output.calls:
            choice["tool_calls"] = [_openai_call(c) for c in output.calls]
        events.append(("gen_ai.choice", {"index": 0, "finish_reason": finish, "message": compact(choice)}))
    return events


def _tokens(usage: Usage | None) -> Attributes:
    if usage is None:
        return {}
    found: Attributes = {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
    }
    if usage.cache_read:
        found["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read
    if usage.cache_write:
        found["gen_ai.usage.cache_write.input_tokens"] = usage.cache_write
    return found


def _old_tokens(usage: Usage | None) -> Attributes:
    if usage is None:
        return {}
    found: Attributes = {
        "gen_ai.usage.prompt_tokens": usage.input,
        "gen_ai.usage.completion_tokens": usage.output,
        "llm.usage.total_tokens": usage.input + usage.output,
    }
    if usage.cache_read:
        found["gen_ai.usage.cache_read_input_tokens"] = usage.cache_read
    return found


def _flat(prefix: str, message: Message) -> Attributes:
    found: Attributes = {f"{prefix}.role": message.role}
    if message.text:
        found[f"{prefix}.content"] = message.text
    if message.answers:
        found[f"{prefix}.tool_call_id"] = message.answers
    for n, call in enumerate(message.calls):
        found[f"{prefix}.tool_calls.{n}.id"] = call.id
        found[f"{prefix}.tool_calls.{n}.name"] = call.tool
        found[f"{prefix}.tool_calls.{n}.arguments"] = compact(dict(call.arguments))
    return found


def _openai_call(call: Call) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": compact(dict(call.arguments))}
    return {"id": call.id, "type": "function", "function": function}
