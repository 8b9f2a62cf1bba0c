"""Export requests shaped like real agent traces, for the benchmarks.

One trace has 17 spans: a root, two agents, eight model calls with 16 attributes including a ~2 KB messages
text, six tools with arguments and result. A request holds six traces: 102 spans, about 1.5 KB a span.
"""

from __future__ import annotations

import json
import os
import random
import struct

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

TRACES_A_REQUEST = 6
SPANS_A_TRACE = 17
SPANS_A_REQUEST = TRACES_A_REQUEST * SPANS_A_TRACE

# First half of every trace id. Replace it by eight other bytes and a request becomes a new one, at the cost
# of one scan: the sender must not be what is measured.
MARK = bytes.fromhex("a9e175104d41524b")
# The same for whatever could join one task to another: names of tasks, conversations and orders, ids of calls and
# answers, what the user said. Without it every repetition of a body would be more work on the same tasks, which no
# real load is.
TEXT_MARK = b"@mark-8@"

_TEXT = """order refund customer please check status amount approved policy shipping address invoice the a of
to damaged item arrived late yesterday replacement credit card number ending thanks agent tool result"""
_WORDS = _TEXT.split()


def _pair(key: str, value: str | int | float | bool) -> KeyValue:
    if isinstance(value, bool):
        return KeyValue(key=key, value=AnyValue(bool_value=value))
    if isinstance(value, int):
        return KeyValue(key=key, value=AnyValue(int_value=value))
    if isinstance(value, float):
        return KeyValue(key=key, value=AnyValue(double_value=value))
    return KeyValue(key=key, value=AnyValue(string_value=value))


def _text(rnd: random.Random, size: int) -> str:
    out: list[str] = []
    length = 0
    while length < size:
        word = rnd.choice(_WORDS)
        out.append(word)
        length += len(word) + 1
    return " ".join(out)


def _trace(scope_spans: list[Span], rnd: random.Random, start: int) -> None:
    trace_id = MARK + rnd.randbytes(8)
    own = f"{TEXT_MARK.decode()}{trace_id[8:12].hex()}"
    task = f"task-{own}"
    order = f"ORD-{own}"

    def span(
        name: str, parent: bytes, at: int, took: int, attributes: dict[str, str | int | float | bool]
    ) -> Span:
        s = Span(
            trace_id=trace_id,
            span_id=rnd.randbytes(8),
            parent_span_id=parent,
            name=name,
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=start + at,
            end_time_unix_nano=start + at + took,
            attributes=[_pair(k, v) for k, v in attributes.items()],
        )
        scope_spans.append(s)
        return s

    conversation = {"gen_ai.conversation.id": f"conv-{own}"}
    root = span(
        "invoke_agent support",
        b"",
        0,
        9_000_000_000,
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "support",
            "agent_slo.task.id": task,
            **conversation,
        },
    )
    agents = [
        span(
            f"invoke_agent {name}",
            root.span_id,
            100_000_000 + i * 4_000_000_000,
            3_900_000_000,
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **conversation},
        )
        for i, name in enumerate(("triage", "refunds"))
    ]
    for i in range(8):
        messages = json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": f"{own} {_text(rnd, 1890)}"}]}]
        )
        span(
            "chat gpt-large",
            agents[i % 2].span_id,
            200_000_000 + i * 900_000_000,
            700_000_000,
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": "gpt-large",
                "gen_ai.response.model": "gpt-large-2026",
                "gen_ai.response.id": f"resp-{own}-{rnd.randrange(10**12)}",
                "gen_ai.usage.input_tokens": rnd.randint(300, 9000),
                "gen_ai.usage.output_tokens": rnd.randint(5, 900),
                "gen_ai.usage.cache_read.input_tokens": rnd.randint(0, 300),
                "gen_ai.request.temperature": 0.2,
                "gen_ai.request.max_tokens": 1024,
                "gen_ai.response.finish_reasons": "stop",
                "gen_ai.agent.name": "triage" if i % 2 == 0 else "refunds",
                "server.address": "models.invalid",
                "server.port": 443,
                "gen_ai.input.messages": messages,
                **conversation,
            },
        )
    for i in range(6):
        name = ("get_order", "check_policy", "issue_refund")[i % 3]
        span(
            f"execute_tool {name}",
            agents[i % 2].span_id,
            500_000_000 + i * 1_200_000_000,
            150_000_000,
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": name,
                "gen_ai.tool.call.id": f"call_{own}-{rnd.randrange(10**12)}",
                "gen_ai.tool.call.arguments": json.dumps(
                    {"order_id": order, "amount": rnd.randint(1, 400), "note": _text(rnd, 60)}
                ),
                "gen_ai.tool.call.result": json.dumps({"ok": True, "detail": _text(rnd, 220)}),
                **conversation,
            },
        )


def request(seed: int | None = None, start_ns: int = 1_790_000_000_000_000_000) -> bytes:
    """One ExportTraceServiceRequest of 102 spans; random ids unless a seed is given."""
    rnd = random.Random(struct.unpack("<Q", os.urandom(8))[0] if seed is None else seed)
    message = ExportTraceServiceRequest()
    resource_spans = message.resource_spans.add()
    resource_spans.resource.attributes.extend(
        [
            _pair("service.name", "support-agent"),
            _pair("service.version", "1.4.2"),
            _pair("deployment.environment.name", "production"),
            _pair("telemetry.sdk.language", "python"),
        ]
    )
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = "agent"
    scope_spans.scope.version = "1"
    spans: list[Span] = []
    for i in range(TRACES_A_REQUEST):
        _trace(spans, rnd, start_ns + i * 10_000_000_000)
    scope_spans.spans.extend(spans)
    return bytes(message.SerializeToString())


def renewed(body: bytes, mark: bytes) -> bytes:
    """The request as a new one: other trace ids, tasks, conversations, orders, calls, texts. `mark` has eight bytes."""
    return body.replace(MARK, mark).replace(TEXT_MARK, mark.hex()[:8].encode())


def with_addresses(body: bytes) -> bytes:
    """The request with a mail address for every `yesterday`: several in each model call's messages."""
    return body.replace(b"yesterday", b"a@bee.com")
