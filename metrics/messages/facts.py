"""The facts that SQL asks of messages: what was asked for, answered, put off and decided."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from metrics.canonical import UNREADABLE, canonical
from metrics.conventions import words
from metrics.messages.shapes import Message, flattened, from_events, kind_of, turns_in, words_in
from metrics.messages.values import MAX_TEXT, first, string, text_of, value_of


@dataclass
class Facts:
    """What was said: the last user text, the answer, and the tool calls asked for, put off, answered and decided.

    `answered`: results among what the model was given; `returned`: results among what came out, where an agent's
    own output is its whole conversation.
    """

    user_text: str | None = None
    output_text: str | None = None
    finish: str | None = None
    requested: list[dict[str, Any]] = field(default_factory=list)
    deferred: list[dict[str, Any]] = field(default_factory=list)
    answered: list[dict[str, Any]] = field(default_factory=list)
    returned: list[dict[str, Any]] = field(default_factory=list)
    approvals: list[dict[str, Any]] = field(default_factory=list)
    unanswered: OrderedDict[str | None, None] = field(default_factory=OrderedDict)
    """Ids of the calls of the last answer read that no result was seen for yet, in order; no column has them."""
    repeated_text: str | None = None
    """The user's last words as an output repeats them; they stand for the input where none was captured."""


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
    said, answer = flattened(attributes, inputs) if attributes else ([], [])
    if not said and input_messages is not None and inputs:
        said = list(turns_in(value_of(input_messages), "user"))
    if not answer and output_messages is not None:
        answer = list(turns_in(value_of(output_messages), "assistant"))
    if not said and not answer and events:
        said, answer = from_events(events)
        said = said if inputs else []
    for message in said:
        _input(facts, message)
    for message in answer:
        _output(facts, message)
    if tool_calls is not None:
        facts.requested += [_call(call) for call in value_of(tool_calls) or [] if isinstance(call, dict)]
    if output is not None:
        _stated(facts, output)
    facts.user_text = facts.user_text or facts.repeated_text
    return facts


def _call(part: dict[str, Any]) -> dict[str, Any]:
    body = first(part.get("toolUse"), part.get("functionCall"))
    if body is None:
        body = part["function_call"] if isinstance(part.get("function_call"), dict) else part
    function = body.get("function") if isinstance(body.get("function"), dict) else {}
    arguments = first(
        body.get("arguments"),
        body.get("args"),
        body.get("input"),
        body.get("toolInput"),
        function.get("arguments"),
    )
    # a Responses item has an id of its own beside the id of the call
    return {
        "id": string(
            first(
                body.get("call_id"),
                body.get("tool_call_id"),
                body.get("toolCallId"),
                body.get("toolUseId"),
                body.get("id"),
            )
        ),
        "name": string(
            first(body.get("name"), body.get("tool_name"), body.get("toolName"), function.get("name"))
        ),
        "arguments": canonical(text_of(arguments)),
    }


def _calls(message: Message) -> list[dict[str, Any]]:
    """Read the tool calls that a message asks for: among its parts, and beside them."""
    calls = [part for part in message.get("parts") or [] if kind_of(part) == "call"]
    calls += [call for call in message.get("tool_calls") or [] if isinstance(call, dict)]
    return [_call(call) for call in calls]


def _input(facts: Facts, message: Message) -> None:
    role = message.get("role")
    if "resume" in message:
        facts.approvals.append({"id": None, "decision": decision(message["resume"])})
    texts: list[str] = []
    if role == "assistant":
        facts.unanswered = OrderedDict.fromkeys(call["id"] for call in _calls(message))
    for part in message.get("parts") or []:
        kind = kind_of(part)
        if kind == "response" or (kind == "text" and role == "tool"):
            answer = _answer(facts, part, message)
            facts.answered += [answer] if answer else []
        elif kind == "approval_response":
            call = _call(part)
            facts.approvals.append({"id": call["id"], "decision": decision(part.get("approved"))})
        elif kind == "text" and role == "user":
            texts.append(words_in(part))
    joined = "\n".join(t for t in texts if t)
    if joined:
        facts.user_text = joined
        # what was answered and decided before the last word of the user belongs to earlier work
        facts.answered.clear()
        facts.approvals.clear()


_CONFIRMATIONS = frozenset(("confirmed", "approved"))


def _answer(facts: Facts, part: dict[str, Any], message: Message) -> dict[str, Any] | None:
    """Read one tool's answer; None where it is a person's word, which is kept as that."""
    body = first(part.get("toolResult"), part.get("function_response"), part.get("functionResponse"), part)
    content = first(
        body.get("response"), body.get("result"), body.get("output"), body.get("content"), body.get("text")
    )
    if isinstance(content, dict) and len(content) == 1 and _CONFIRMATIONS & content.keys():
        # the runtime's own confirmation "tool": a person's word, not a result
        facts.approvals.append({"id": None, "decision": decision(content)})
        return None
    identity = first(
        body.get("call_id"),
        body.get("tool_call_id"),
        body.get("toolCallId"),
        body.get("toolUseId"),
        message.get("answers"),
        body.get("id"),
        message.get("id"),
    )
    if identity is None and facts.unanswered:
        # some exporters leave the id off: results follow the calls in their order
        identity, _ = facts.unanswered.popitem(last=False)
    else:
        facts.unanswered.pop(string(identity), None)
    return {"id": string(identity), "text": (text_of(content) or "")[:MAX_TEXT]}


def _output(facts: Facts, message: Message) -> None:
    if message.get("role") in ("tool", "user", "system"):
        if message.get("role") != "system":
            # a state that ends on a tool's answer or a question ends without an answer of the agent
            facts.output_text = None
        if message.get("role") == "user":
            # an output that is the whole conversation: what came before the last word of the user is earlier work
            words = "\n".join(text for text in map(words_in, message.get("parts") or []) if text)
            facts.repeated_text = words or facts.repeated_text
            facts.requested.clear()
            facts.returned.clear()
        if message.get("role") == "tool":
            for part in message.get("parts") or []:
                answer = _answer(facts, part, message) if kind_of(part) in ("response", "text") else None
                facts.returned += [answer] if answer else []
        return
    texts: list[str] = []
    for part in message.get("parts") or []:
        kind = kind_of(part)
        if kind == "approval_request":
            facts.deferred.append(_call(part))
        elif kind == "text":
            texts.append(words_in(part))
    # what the provider itself carried out is answered beside the call
    answered = {
        answer["id"]
        for part in message.get("parts") or []
        if kind_of(part) == "response" and (answer := _answer(Facts(), part, message))
    }
    asked = [call for call in _calls(message) if call["id"] is None or call["id"] not in answered]
    facts.requested += asked
    facts.unanswered = OrderedDict.fromkeys(call["id"] for call in asked)
    if message.get("finish_reason"):
        facts.finish = str(message["finish_reason"])
    # The answer is the last message's text: what stands beside an earlier tool call is thinking aloud.
    facts.output_text = "\n".join(t for t in texts if t) or None


def _stated(facts: Facts, output: str | None) -> None:
    """A run's own result: calls put off for a person (`approvals`, `calls`, `suspended`), else the answer."""
    if output is None or not output.strip():
        return
    value = value_of(output)
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
        for message in turns_in(value, "assistant"):
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
        inner = value_of(payload)
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
