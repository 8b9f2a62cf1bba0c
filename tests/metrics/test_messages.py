"""One reader for every shape in which runtimes tell what was said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.messages import Facts, decision, event_content, plain_result, read
from metrics.messages.printed import looks_printed, printed

ASK = "Refund order A-17"
CALL = {"id": "c1", "name": "issue_refund", "arguments": '{"amount":25,"order_id":"A-17"}'}
ARGS = {"order_id": "A-17", "amount": 25}
LC = ["langchain", "schema", "messages"]

HISTORIES: dict[str, Any] = {
    "GenAI parts": [
        {"role": "user", "parts": [{"type": "text", "content": ASK}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "issue_refund", "arguments": ARGS}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "done"}]},
    ],
    "chat completions": [
        {"role": "user", "content": ASK},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "issue_refund", "arguments": json.dumps(ARGS)}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ],
    "Responses items": [
        {"role": "user", "content": ASK},
        {"type": "function_call", "id": "fc_9", "call_id": "c1", "name": "issue_refund", "arguments": json.dumps(ARGS)},
        {"type": "function_call_output", "call_id": "c1", "output": "done"},
    ],
    "LangChain constructors": {"messages": [[
        {"lc": 1, "type": "constructor", "id": [*LC, "HumanMessage"], "kwargs": {"content": ASK, "type": "human"}},
        {"lc": 1, "type": "constructor", "id": [*LC, "AIMessage"], "kwargs": {"content": "", "type": "ai",
            "tool_calls": [{"name": "issue_refund", "args": ARGS, "id": "c1", "type": "tool_call"}]}},
        {"lc": 1, "type": "constructor", "id": [*LC, "ToolMessage"],
         "kwargs": {"content": "done", "type": "tool", "tool_call_id": "c1"}},
    ]]},
    "LangChain dumps": {"messages": [
        {"type": "human", "data": {"content": ASK}},
        {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "issue_refund", "args": ARGS, "id": "c1"}]}},
        {"type": "tool", "data": {"content": "done", "tool_call_id": "c1"}},
    ]},
    "Vercel": {"messages": [
        {"role": "user", "content": [{"type": "text", "text": ASK}]},
        {"role": "assistant", "content": [
            {"type": "tool-call", "toolCallId": "c1", "toolName": "issue_refund", "input": ARGS}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "output": "done"}]},
    ]},
    "Gemini": {"contents": [
        {"role": "user", "parts": [{"text": ASK}]},
        {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "issue_refund", "args": ARGS}}]},
        {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "issue_refund", "response": "done"}}]},
    ]},
    "Bedrock": [
        {"role": "user", "content": [{"text": ASK}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "issue_refund", "input": ARGS}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": "done"}}]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("shape", HISTORIES)
def test_a_history_is_read_in_every_shape(shape: str) -> None:
    facts = read(json.dumps(HISTORIES[shape]), None, None)
    assert facts.user_text == ASK
    assert facts.answered == [{"id": "c1", "text": "done"}]


@pytest.mark.parametrize("shape", HISTORIES)
def test_a_request_for_a_tool_is_read_in_every_shape(shape: str) -> None:
    history = HISTORIES[shape]
    if isinstance(history, dict):
        (name, turns), *_ = history.items()
        nested = isinstance(turns[0], list)
        answer: Any = {name: [[turns[0][1]]] if nested else [turns[1]]}
    else:
        answer = [history[1]]
    facts = read(None, json.dumps(answer), None)
    assert facts.requested == [CALL]
    assert facts.output_text is None


@pytest.mark.parametrize(
    ("answer", "text", "finish"),
    [
        ("Done.", "Done.", None),
        ({"text": "Done.", "files": [], "toolCalls": []}, "Done.", None),
        ({"raw": "Done.", "pydantic": None}, "Done.", None),
        ({"choices": [{"message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}]},
         "Done.", "stop"),
        ({"generations": [[{"text": "Done.", "generation_info": {"finish_reason": "stop"},
            "message": {"lc": 1, "id": [*LC, "AIMessage"], "kwargs": {"content": "Done.", "type": "ai",
            "response_metadata": {"finish_reason": "stop"}}}}]]}, "Done.", "stop"),
        ({"content": {"parts": [{"text": "Done."}], "role": "model"}, "finish_reason": "STOP"}, "Done.", "STOP"),
        ([{"role": "assistant", "parts": [{"type": "text", "content": "Done."}], "finish_reason": "end_turn"}],
         "Done.", "end_turn"),
        ({"refunded": True}, '{"refunded":true}', None),
        ({"messages": [{"role": "user", "content": "q"}]}, None, None),
        (None, None, None),
    ],
)  # fmt: skip
def test_an_answer_is_read_in_every_shape(answer: Any, text: str | None, finish: str | None) -> None:
    facts = read(None, answer if isinstance(answer, str) else json.dumps(answer), None)
    assert (facts.output_text, facts.finish) == (text, finish)


def test_flattened_keys_and_events_say_the_same() -> None:
    flat = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": ASK,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "issue_refund",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": json.dumps(ARGS),
    }
    events = [
        {"name": "gen_ai.user.message", "attributes": {"content": json.dumps([{"text": ASK}])}},
        {"name": "gen_ai.choice", "attributes": {"finish_reason": "tool_use", "message": json.dumps(
            [{"toolUse": {"toolUseId": "c1", "name": "issue_refund", "input": ARGS}}])}},
    ]  # fmt: skip
    for facts in (
        read(None, None, None, attributes=json.dumps(flat)),
        read(None, None, None, events=json.dumps(events)),
    ):
        assert (facts.user_text, facts.requested) == (ASK, [CALL])
    assert read(None, None, None, attributes=json.dumps(flat), inputs=False).user_text is None


@pytest.mark.parametrize(
    ("payload", "wanted"),
    [
        (True, "approved"),
        (False, "rejected"),
        ("yes", "approved"),
        ("no", "rejected"),
        ("Use the blue one", "answered"),
        ({"approved": True, "reason": ""}, "approved"),
        ({"confirmed": False}, "rejected"),
        ({"decisions": [{"type": "approve"}]}, "approved"),
        ({"decisions": [{"type": "approve"}, {"type": "reject", "message": "m"}]}, "rejected"),
        ([{"type": "edit", "args": {"amount": 5}}], "edited"),
        ([{"type": "response", "args": "hello"}], "answered"),
        ({"approved": True, "edited_args": {"amount": 5}}, "edited"),
        ({"73ef": {"approved": True}}, "approved"),
        (None, None),
    ],
)
def test_what_a_person_handed_back_is_a_decision(payload: Any, wanted: str | None) -> None:
    assert decision(payload) == wanted


@pytest.mark.parametrize(
    "resumed",
    [
        {"graph": None, "update": None, "resume": {"approved": True}, "goto": []},
        {"lg_name": "Command", "resume": {"decisions": [{"type": "approve"}]}},
        {"input": {"graph": None, "resume": True, "goto": []}},
        {"inputs": {"resume": "approve", "goto": []}, "tags": []},
        {"new_message": {"role": "user", "parts": [
            {"function_response": {"id": "x", "name": "ask", "response": {"confirmed": True}}}]}},
        {"approved": True, "toolName": "issue_refund", "toolCallId": "c1"},
        [{"role": "user", "parts": [{"type": "function_approval_response", "id": "c1", "approved": True}]}],
        [{"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "a", "approved": True}]}],
    ],
)  # fmt: skip
def test_a_resume_payload_is_read(resumed: Any) -> None:
    assert [a["decision"] for a in read(json.dumps(resumed), None, None).approvals] == ["approved"]


def test_what_lies_before_the_last_word_of_the_user_is_earlier_work() -> None:
    turns = [
        *HISTORIES["GenAI parts"],
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "And A-18?"},
    ]
    facts = read(json.dumps(turns), None, None)
    assert (facts.user_text, facts.answered, facts.approvals) == ("And A-18?", [], [])


@pytest.mark.parametrize(
    "stated",
    [
        {
            "status": "suspended",
            "reason": "tool-call-approval",
            "toolName": "issue_refund",
            "toolCallId": "c1",
        },
        {"calls": [], "approvals": [{"tool_name": "issue_refund", "tool_call_id": "c1", "args": ARGS}]},
    ],
)
def test_a_run_that_put_a_call_off_says_so(stated: Any) -> None:
    facts = read(None, None, json.dumps(stated))
    assert [(c["id"], c["name"]) for c in facts.deferred] == [("c1", "issue_refund")]
    assert facts.output_text is None


@pytest.mark.parametrize(
    ("result", "text", "call_id"),
    [
        ("plain", "plain", None),
        ('{"refunded": 25}', '{"refunded": 25}', None),
        ({"type": "tool", "data": {"content": "done", "tool_call_id": "c1"}}, "done", "c1"),
        (
            {
                "output": {"lc": 1, "kwargs": {"content": "done", "tool_call_id": "c1"}},
                "kwargs": {"tags": []},
            },
            "done",
            "c1",
        ),
        ({"content": "done", "type": "tool", "tool_call_id": "c1", "status": "success"}, "done", "c1"),
        ({"id": "c1", "name": "t", "response": {"result": "done"}}, "done", "c1"),
        ([{"text": "done"}], "done", None),
        ({"content": [{"type": "text", "text": "done"}], "isError": False}, "done", None),
        ({"blocks": [{"text": "done"}], "tool_name": "t", "raw_input": {}}, "done", None),
        ("[broken", "[broken", None),
    ],
)
def test_a_result_leaves_its_envelope(result: Any, text: str, call_id: str | None) -> None:
    told = plain_result(result if isinstance(result, str) else json.dumps(result))
    assert told == {"text": text, "call_id": call_id}


def test_a_tool_span_may_carry_its_content_as_events() -> None:
    events = [
        {"name": "gen_ai.tool.message", "attributes": {"content": json.dumps(ARGS), "id": "c1"}},
        {"name": "gen_ai.choice", "attributes": {"message": '[{"text": "done"}]'}},
    ]
    assert event_content(json.dumps(events)) == {
        "arguments": json.dumps(ARGS),
        "result": '[{"text": "done"}]',
    }


KEYS = (
    *(
        "role",
        "content",
        "parts",
        "type",
        "text",
        "messages",
        "tool_calls",
        "kwargs",
        "lc",
        "id",
        "data",
        "output",
    ),
    *("input", "resume", "goto", "choices", "message", "generations", "function_call", "function_response"),
    *("toolUse", "toolResult", "approved", "status", "calls", "approvals", "response"),
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(ANY, ANY, ANY)
def test_no_message_breaks_the_reader(said: Any, answer: Any, stated: Any) -> None:
    facts = read(json.dumps(said), json.dumps(answer), json.dumps(stated))
    assert isinstance(facts, Facts)
    assert plain_result(json.dumps(said)).keys() == {"text", "call_id"}
    assert decision(answer) in (None, "approved", "rejected", "edited", "answered")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[Out(raw='a', kind=<Kind.RAW: 'raw'>)]", [{"raw": "a", "kind": "raw"}]),
        ("Out(agent=<desk.Agent object at 0x7f>, n=[1, None], d={'k': \"it's <b>\"})",
         {"agent": None, "n": [1, None], "d": {"k": "it's <b>"}}),
        ("Out(when=datetime.datetime(2026, 1, 1), of=Name)", {"when": {}, "of": "Name"}),
    ],
)  # fmt: skip
def test_a_printed_object_is_read_as_its_fields(text: str, value: Any) -> None:
    assert looks_printed(text)
    assert printed(text) == value


@pytest.mark.parametrize(
    "text", ["Out(a='never ends", "Out(a=<never ends", "Out(a=1", "[Out(a=" + "[" * 5000]
)
def test_what_cannot_be_read_stays_a_text(text: str) -> None:
    assert printed(text) == text


@pytest.mark.parametrize("piece", ["<: ", '"\\', "<a'", ": ", "-", "[1],", "1+", "Name(x="])
def test_a_text_made_to_be_slow_is_read_in_its_length(piece: str) -> None:
    """A reader that looks back over it would not come back."""
    for begin in ("[Name(x=", "[Name(x=<"):
        text = begin + piece * (180_000 // len(piece))
        assert printed(text) == text
