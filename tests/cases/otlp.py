"""Cases as OTLP: one request a case, every span with an id that leads back to its step."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import yaml

Row = dict[str, Any]

_BEGIN = int(datetime(2026, 10, 5, 8, 0, tzinfo=UTC).timestamp())
APART_S = 172_800
"""Seconds between the starts of two cases: nothing of one case is near another."""


@dataclass(frozen=True)
class Case:
    """One case: its labels, its request, and the tool step behind each span id."""

    id: str
    labels: Row
    request: Row
    steps: dict[str, Row] = field(default_factory=dict)
    traces: frozenset[str] = frozenset()


def load() -> list[Case]:
    """Read `cases.yaml` and write each case as spans."""
    listed = yaml.safe_load((Path(__file__).parent / "cases.yaml").read_text(encoding="utf-8"))
    return [_case(number, row) for number, row in enumerate(listed)]


def end() -> datetime:
    """A moment long after every case (UTC, naive)."""
    return datetime(2028, 1, 1)


def _hex(size: int, *parts: Any) -> str:
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:size]


def _value(value: Any) -> Row:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value if isinstance(value, str) else orjson.dumps(value).decode()}


def _case(number: int, row: Row) -> Case:
    spans: list[Row] = []
    steps: dict[str, Row] = {}
    traces: set[str] = set()
    for position, run in enumerate(row["runs"]):
        name = run.get("trace", f"r{position}")
        trace = _hex(32, row["id"], name)
        traces.add(trace)
        root = _hex(16, row["id"], name, "root")
        talk = f"{row['id']}/{run.get('talk', 'main')}"

        def write(
            span_id: str, parent: str, title: str, start: float, stop: float, attributes: Row,
            error: str | None = None, text: str | None = None, events: list[Row] | None = None,
            trace: str = trace, talk: str = talk, run: Row = run,
        ) -> None:  # fmt: skip
            said = {"gen_ai.conversation.id": talk, "agent_slo.task.id": run.get("task"), **attributes}
            spans.append(
                {
                    "traceId": trace, "spanId": span_id, "parentSpanId": parent, "name": title, "kind": 1,
                    "startTimeUnixNano": str(_ns(number, start)), "endTimeUnixNano": str(_ns(number, stop)),
                    "attributes": [
                        {"key": k, "value": _value(v)} for k, v in said.items() if v is not None
                    ] + ([{"key": "error.type", "value": _value(error)}] if error else []),
                    "events": events or [],
                    "status": {"code": 2, "message": text or error} if error else {},
                }
            )  # fmt: skip

        if "bare" in run:
            write(root, "", run["bare"], run["start"], run["end"], {}, run.get("error"))
            continue
        for key, title, start, stop in run.get("wrappers", []):
            write(_hex(16, row["id"], name, key), root, title, start, stop, {})
        for index, step in enumerate(_spread(run["steps"])):
            span_id = _hex(16, row["id"], name, index)
            parent = _hex(16, row["id"], name, step["in"]) if "in" in step else root
            title, attributes = _step(row, run, step)
            stop = step["at"] + step["for"]
            write(span_id, parent, title, step["at"], stop, attributes, step.get("error"), step.get("text"))
            if "tool" in step:
                steps[span_id] = step
        if run["end"] is not None:
            start = run.get("start", 0)
            write(root, "", "invoke_agent clerk", start, run["end"], _root(run), run.get("error"),
                  events=_evaluation(number, run))  # fmt: skip
    spans = spans * row.get("copies", 1)
    request = {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": _value(f"case-{row['id']}")}]},
                "scopeSpans": [{"scope": {"name": "agent_slo.cases"}, "spans": spans}],
            }
        ]
    }
    labels = {key: value for key, value in row.items() if key not in ("runs", "tools")}
    return Case(row["id"], labels, request, steps, frozenset(traces))


def _ns(number: int, seconds: float) -> int:
    return (_BEGIN + number * APART_S) * 10**9 + round(seconds * 1000) * 10**6


def _spread(steps: list[Row]) -> Iterator[Row]:
    """`many` stands for so many equal steps, `every` seconds apart; `{n}` is their number."""
    for step in steps:
        for n in range(step.get("many", 1)):
            one = {key: value for key, value in step.items() if key not in ("many", "every", "counted")}
            if "many" in step:
                one["at"] = step["at"] + n * step["every"]
                if step.get("counted"):
                    one["attempt"] = n + 1
                if "result" in one:
                    one["result"] = one["result"].replace("{n}", str(n))
                one["args"] = {
                    key: value.replace("{n}", str(n)) if isinstance(value, str) else value
                    for key, value in one["args"].items()
                }
            yield one


def _step(row: Row, run: Row, step: Row) -> tuple[str, Row]:
    if "model" in step:
        asked = [
            {"type": "tool_call", "id": call, "name": tool, "arguments": arguments}
            for call, tool, arguments in step.get("asks", [])
        ]
        parts = asked + ([{"type": "text", "content": step["says"]}] if "says" in step else [])
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "small-1",
            "gen_ai.response.finish_reasons": step.get("finish"),
            "gen_ai.input.messages": _asked(run),
            "gen_ai.output.messages": [{"role": "assistant", "parts": parts}] if parts else None,
            "agent_slo.action.attempt": step.get("attempt"),
        }
        return "chat small-1", attributes
    if "human" in step:
        return step["human"], {
            "agent_slo.human.decision": step["decision"],
            "agent_slo.human.arguments": step.get("approved"),
            "gen_ai.tool.name": step.get("for_tool"),
            "gen_ai.tool.call.id": step.get("call"),
        }
    return f"execute_tool {step['tool']}", {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": step["tool"],
        "gen_ai.tool.call.id": step.get("call"),
        "gen_ai.tool.call.arguments": step["args"],
        "gen_ai.tool.call.result": step.get("result"),
        "agent_slo.tool.effect": row["tools"][step["tool"]],
        "agent_slo.tool.timeout_s": step.get("limit"),
        "agent_slo.tool.on_failure": step.get("plan"),
        "agent_slo.action.idempotency_key": step.get("key"),
        "agent_slo.action.attempt": step.get("attempt"),
        "agent_slo.action.disposition": step.get("as"),
        "agent_slo.action.compensates": step.get("undoes"),
        "agent_slo.human.decision": step.get("decision"),
        "agent_slo.human.arguments": step.get("approved"),
    }


def _asked(run: Row) -> list[Row] | None:
    if "user" not in run:
        return None
    return [{"role": "user", "parts": [{"type": "text", "content": run["user"]}]}]


def _root(run: Row) -> Row:
    stated = run.get("input")
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "clerk",
        "gen_ai.input.messages": _asked(run),
        "agent_slo.task.input_id": None if stated is None else str(stated),
        "agent_slo.task.claimed": run.get("claimed"),
        "agent_slo.task.outcome": run.get("outcome"),
        "agent_slo.run.trigger": run.get("trigger"),
        "agent_slo.run.dropped": run.get("dropped"),
    }


def _evaluation(number: int, run: Row) -> list[Row]:
    if "evaluation" not in run:
        return []
    label = {"key": "gen_ai.evaluation.score.label", "value": _value(run["evaluation"])}
    return [
        {
            "name": "gen_ai.evaluation.result",
            "timeUnixNano": str(_ns(number, run["end"])),
            "attributes": [label],
        }
    ]
