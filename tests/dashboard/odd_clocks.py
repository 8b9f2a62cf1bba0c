"""Traces of senders whose clocks are wrong by decades, as an OTLP request."""

from __future__ import annotations

from typing import Any

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
LAST = 2**63 - 1
"""The last nanosecond that a signed clock can say: in 2262."""


def odd_traces(now: int) -> dict[str, Any]:
    """An OTLP request with six tasks, each with a priced model call, the same payment twice and an approval.

    `now`: nanoseconds since 1970.
    """
    starts = [
        (1, 60 * SECOND),
        (LAST - 100 * SECOND, LAST),
        (now - 1000 * SECOND, now),
        (now - 3 * DAY, now),
        (1, now),
        (now - 500 * SECOND, LAST),
    ]
    spans = [
        span for number, (start, end) in enumerate(starts, start=1) for span in _task(number, start, end)
    ]
    resource = {"attributes": [_attribute("service.name", "shop")]}
    return {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "t"}, "spans": spans}]}]
    }


def _task(number: int, start: int, end: int) -> list[dict[str, Any]]:
    said: list[tuple[str, int, int, dict[str, Any]]] = [
        ("invoke_agent", start, end, {}),
        (
            "chat",
            start,
            start + SECOND,
            {
                "gen_ai.request.model": "gpt-4o",
                "gen_ai.provider.name": "openai",
                "gen_ai.usage.input_tokens": 1000,
                "gen_ai.usage.output_tokens": 100,
            },
        ),
        *(
            (
                "execute_tool",
                start + after * SECOND,
                start + (after + 1) * SECOND,
                {
                    "gen_ai.tool.name": "send_payment",
                    "gen_ai.tool.call.id": f"call-{number}-{after}",
                    "gen_ai.tool.call.arguments": f'{{"amount": 5, "order": "A-{number}"}}',
                    "gen_ai.tool.call.result": '{"ok": true}',
                },
            )
            for after in (2, 7)
        ),
        ("human", start + 20 * SECOND, start + 30 * SECOND, {"agent_slo.human.decision": "approved"}),
    ]
    root = f"{number * 100:016x}"
    return [
        {
            "traceId": f"{number:032x}",
            "spanId": f"{number * 100 + place:016x}",
            **({"parentSpanId": root} if place else {}),
            "name": operation,
            "startTimeUnixNano": str(low),
            "endTimeUnixNano": str(high),
            "attributes": [
                _attribute(key, value)
                for key, value in {
                    "gen_ai.operation.name": operation,
                    "gen_ai.agent.name": "payer",
                    **attributes,
                }.items()
            ],
        }
        for place, (operation, low, high, attributes) in enumerate(said)
    ]


def _attribute(key: str, value: Any) -> dict[str, Any]:
    return {
        "key": key,
        "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value},
    }
