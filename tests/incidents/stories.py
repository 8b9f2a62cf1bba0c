"""Traces made by hand, with one fault each, for what the sample company does not have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from metrics.settings import MetricsSettings
from tests.metrics.bench import request, span

SETTINGS = MetricsSettings.model_validate(
    {"tools": {"pay": {"effect": "write", "key_fields": ["to", "amount"]}}}
)

Step = tuple[str, dict[str, Any], dict[str, Any] | None, str | None]
"""A call: tool, arguments, result, and the error it ended with."""


def said(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "parts": [{"type": "text", "content": text}]}]


def paid_twice(
    trace: str = "paid-twice",
    *,
    ask: str = "Pay 40 to Ada.",
    args: dict[str, Any] | None = None,
    result: dict[str, Any] | None = None,
    answer: str = "Paid.",
    captured: bool = True,
    tool: str = "pay",
    at: float = 0.0,
) -> dict[str, Any]:
    """A payment that times out after 30 s and is made again at once, without a key."""
    args = args or {"to": "Ada", "amount": 40}
    result = result or {"payment": "P-77", "state": "made"}
    content: dict[str, Any] = {}
    words: dict[str, Any] = {}
    if captured:
        content = {"gen_ai__tool__call__arguments": args}
        words = {
            "gen_ai__input__messages": _json(said(ask)),
            "gen_ai__output__messages": _json(
                [{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]
            ),
        }
    shared: dict[str, Any] = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": tool}
    root = span(
        trace, "invoke_agent payer", at, at + 40, id="root", gen_ai__operation__name="invoke_agent",
        gen_ai__agent__name="payer", gen_ai__conversation__id=trace, **words,
    )  # fmt: skip
    first = span(
        trace, f"execute_tool {tool}", at + 1, at + 31, "root", id="first", error="TimeoutError",
        message="read timed out after 30 s", **shared, **content,
    )  # fmt: skip
    outcome: dict[str, Any] = {"gen_ai__tool__call__result": result} if captured else {}
    second = span(
        trace, f"execute_tool {tool}", at + 31.2, at + 32, "root", id="second", **shared, **content, **outcome
    )
    return request([root, first, second])


def worked(
    trace: str, ask: str, calls: Sequence[Step], *, answer: str = "Paid.", start: float = 0.0
) -> dict[str, Any]:
    """One run of the payer with these calls, one after the other; a call that fails takes 30 s."""
    now, spans = start + 1, []
    for number, (tool, args, result, error) in enumerate(calls):
        end = now + (30 if error else 1)
        outcome: dict[str, Any] = {"gen_ai__tool__call__result": result} if result is not None else {}
        spans.append(
            span(
                trace, f"execute_tool {tool}", now, end, "root", id=f"call{number}", error=error, message=error or "",
                gen_ai__operation__name="execute_tool", gen_ai__tool__name=tool, gen_ai__tool__call__arguments=args,
                **outcome,
            )
        )  # fmt: skip
        now = end + 0.2
    root = span(
        trace, "invoke_agent payer", start, now + 1, id="root", gen_ai__operation__name="invoke_agent",
        gen_ai__agent__name="payer", gen_ai__conversation__id=trace, gen_ai__input__messages=_json(said(ask)),
        gen_ai__output__messages=_json([{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]),
    )  # fmt: skip
    return request([root, *spans])


def _json(value: Any) -> str:
    return json.dumps(value)
