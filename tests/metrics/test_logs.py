"""Log records that tell of work: coding agents without traces, and evaluations that arrive later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from collector.decode import decode
from metrics.conventions.logs import LogFamily, compile_logs
from metrics.manifest import log_sql
from tests.metrics.bench import PUBLIC, Bench, at, bench, request, span


def records(service: str, *told: tuple[str, float, dict[str, Any]], **ids: str) -> dict[str, Any]:
    """One ExportLogsServiceRequest of (event, second, attributes)."""

    def value(one: Any) -> dict[str, Any]:
        return {"boolValue": one} if isinstance(one, bool) else {"stringValue": str(one)}

    return {
        "resourceLogs": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
                "scopeLogs": [
                    {
                        "scope": {"name": "events"},
                        "logRecords": [
                            {
                                "timeUnixNano": str(int(at(second).timestamp() * 1e9)),
                                "eventName": event,
                                "attributes": [{"key": k, "value": value(v)} for k, v in attributes.items()],
                                **ids,
                            }
                            for event, second, attributes in told
                        ],
                    }
                ],
            }
        ]
    }


def send(one: Bench, body: dict[str, Any]) -> None:
    one.store.append(decode("logs", "json", orjson.dumps(body)).batch)


def shown(one: Bench) -> dict[str, Any]:
    (task,) = one.rows(
        "SELECT outcome, model_calls, tool_calls, input_tokens, output_tokens, cost_usd, conversation_id "
        "FROM core.tasks"
    )
    decisions = one.rows("SELECT kind, decision, tool FROM core.interventions ORDER BY requested_at")
    return {**task, "decisions": [tuple(row.values()) for row in decisions]}


CLAUDE = {"session.id": "s-1", "prompt.id": "p-1"}


def test_claude_code_is_judged_by_its_events(tmp_path: Path) -> None:
    body = records(
        "claude-code",
        ("claude_code.user_prompt", 0, {**CLAUDE, "prompt": "fix the bug"}),
        (
            "claude_code.api_request",
            3,
            {
                **CLAUDE,
                "model": "claude-x",
                "input_tokens": 10,
                "cache_read_tokens": 80,
                "cache_creation_tokens": 10,
                "output_tokens": 7,
                "cost_usd": 0.25,
                "duration_ms": 2000,
            },
        ),
        (
            "claude_code.tool_decision",
            4,
            {
                **CLAUDE,
                "tool_name": "Bash",
                "tool_use_id": "t1",
                "decision": "accept",
                "source": "user_temporary",
            },
        ),
        (
            "claude_code.tool_decision",
            4.5,
            {**CLAUDE, "tool_name": "Read", "tool_use_id": "t2", "decision": "accept", "source": "config"},
        ),
        (
            "claude_code.tool_result",
            6,
            {**CLAUDE, "tool_name": "Bash", "tool_use_id": "t1", "success": "true", "duration_ms": 900},
        ),
        (
            "claude_code.tool_result",
            7,
            {**CLAUDE, "tool_name": "Read", "tool_use_id": "t2", "success": "false", "error": "ENOENT"},
        ),
    )
    with bench(tmp_path) as one:
        send(one, body)
        one.derive(at(90_000))
        got = shown(one)
        (failed,) = one.rows("SELECT tool, outcome FROM work.attempts WHERE error_class IS NOT NULL")
        send(one, body)
        again = shown(one.derive(at(90_000)))
    # no event says that the work was done, so it stays unknown; a decision by configuration is no person's
    assert got == again == {
        "outcome": "unknown",
        "model_calls": 1,
        "tool_calls": 2,
        "input_tokens": 100,
        "output_tokens": 7,
        "cost_usd": 0.25,
        "conversation_id": "s-1",
        "decisions": [("approval", "approved", "Bash")],
    }  # fmt: skip
    assert failed["tool"] == "Read"


def test_codex_and_gemini_are_read_alike(tmp_path: Path) -> None:
    codex = records(
        "codex_exec",
        (
            "codex.sse_event",
            1,
            {
                "conversation.id": "c-1",
                "event.kind": "response.completed",
                "model": "gpt-x",
                "input_token_count": "30",
                "output_token_count": "5",
                "cached_token_count": "20",
            },
        ),
        (
            "codex.tool_decision",
            2,
            {
                "conversation.id": "c-1",
                "tool_name": "shell",
                "call_id": "k",
                "decision": "denied",
                "source": "User",
            },
        ),
    )
    with bench(tmp_path / "codex") as one:
        send(one, codex)
        got = shown(one.derive(at(90_000)))
    assert (got["input_tokens"], got["decisions"]) == (30, [("approval", "rejected", "shell")])
    gemini = records(
        "gemini-cli",
        (
            "gemini_cli.tool_call",
            2,
            {
                "session.id": "s",
                "prompt_id": "p",
                "function_name": "edit",
                "success": True,
                "decision": "modify",
            },
        ),
        (
            "gemini_cli.tool_call",
            3,
            {
                "session.id": "s",
                "prompt_id": "p",
                "function_name": "ls",
                "success": True,
                "decision": "auto_accept",
            },
        ),
    )
    with bench(tmp_path / "gemini") as one:
        send(one, gemini)
        got = shown(one.derive(at(90_000)))
    assert (got["tool_calls"], got["decisions"]) == (2, [("approval", "edited", "edit")])


def test_each_request_of_a_session_that_is_one_run_is_an_intent_of_its_own(tmp_path: Path) -> None:
    talk = {"conversation.id": "c-1"}

    def mailed(call: str) -> dict[str, Any]:
        return {
            **talk,
            "tool_name": "send_email",
            "call_id": call,
            "arguments": '{"to": "ann"}',
            "success": "true",
        }

    told = records(
        "codex_exec",
        ("codex.user_prompt", 1, {**talk, "prompt": "Mail Ann the status"}),
        ("codex.tool_result", 3, mailed("k1x")),
        ("codex.user_prompt", 60, {**talk, "prompt": "Mail Ann the status again"}),
        ("codex.tool_result", 63, mailed("k2x")),
        ("codex.tool_result", 64, mailed("k3x")),
    )
    with bench(tmp_path) as one:
        send(one, told)
        one.derive(at(90_000))
        found = one.rows(
            "SELECT call_id, duplicate IS NOT NULL AS twice FROM work.attempts ORDER BY start_ns"
        )
    # what the user asked for again is no repeat; what the model then did twice is
    assert [(row["call_id"], row["twice"]) for row in found] == [
        ("k1x", False),
        ("k2x", False),
        ("k3x", True),
    ]


def test_records_of_a_traced_coding_agent_are_not_counted_twice(tmp_path: Path) -> None:
    body = records(
        "claude-code",
        ("claude_code.tool_result", 6, {**CLAUDE, "tool_name": "Bash", "success": "true"}),
        traceId="1" * 32,
        spanId="2" * 16,
    )
    with bench(tmp_path) as one:
        send(one, body)
        one.derive(at(90_000))
        assert one.rows("SELECT * FROM core.tasks") == []


def test_an_evaluation_that_arrives_as_a_log_decides_its_task(tmp_path: Path) -> None:
    root = span("t", "invoke_agent desk", 0, 5, None, id="root", gen_ai__operation__name="invoke_agent")
    with bench(tmp_path) as one:
        one.send([request([root])]).derive(at(90_000))
        (before,) = one.rows("SELECT outcome, outcome_evidence FROM core.tasks")
        verdict = ("gen_ai.evaluation.result", 60, {"gen_ai.evaluation.score.label": "pass"})
        send(one, records("judge", verdict, traceId=root["traceId"], spanId=root["spanId"]))
        one.derive(at(90_000))
        (after,) = one.rows("SELECT outcome, outcome_evidence FROM core.tasks")
    assert before == {"outcome": "unknown", "outcome_evidence": "none"}
    assert after == {"outcome": "completed", "outcome_evidence": "evaluated"}


def test_another_coding_agent_is_a_file_of_data(tmp_path: Path) -> None:
    family = LogFamily.model_validate(
        {
            "family": "pair", "agent": "pair_agent", "events": ["pair.*"],
            "records": [{"event": ["asked"], "is": "prompt"}, {"event": ["ran"], "is": "tool", "where": {"how": "sh*"}},
                        {"event": ["thought"], "is": "model", "failed": "only"}],
            "fields": {"conversation": ["talk"], "run": ["turn"], "tool": ["what"], "error": ["oops"]},
        }
    )  # fmt: skip
    ids = {"talk": "s-1", "turn": "1"}
    with bench(tmp_path) as one:
        send(one, records("ide", ("pair.asked", 0, ids), ("pair.ran", 1, {**ids, "what": "ls", "how": "shell"}),
                          ("pair.ran", 2, {**ids, "what": "no", "how": "dry"}), ("pair.thought", 3, ids),
                          ("pair.thought", 4, {**ids, "oops": "503"})))  # fmt: skip
        one.deriver._con.execute(log_sql(compile_logs((family,))))
        got = one.deriver._con.execute(
            "SELECT name, status, scope, json_extract_string(attributes, '$.\"gen_ai.tool.name\"') "
            "FROM log_spans ORDER BY start_ns"
        ).fetchall()
    assert got == [
        ("pair.asked", "unset", "logs.pair", None),
        ("pair.ran", "unset", "logs.pair", "ls"),
        ("pair.thought", "error", "logs.pair", None),
    ]


def test_messages_that_arrive_as_logs_are_those_of_their_spans(tmp_path: Path) -> None:
    """The default of some clients: every message is a log record; it may come before its span, after it, or twice."""
    calls = [
        span("t1", "chat m", at_s, at_s + 1, "app", id=name, gen_ai__operation__name="chat", gen_ai__request__model="m",
             gen_ai__usage__output_tokens=3)
        for name, at_s in (("first", 1), ("last", 4))
    ]  # fmt: skip
    spans = request([span("t1", "handle", 0, 9, id="app"), *calls])

    def message(call: dict[str, Any], event: str, second: float, body: dict[str, Any]) -> dict[str, Any]:
        told = records("desk", (event, second, {}), traceId=call["traceId"], spanId=call["spanId"])
        record = told["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
        record["body"] = {"stringValue": orjson.dumps(body).decode()}
        return told

    asked = {"id": "k1", "type": "function", "function": {"name": "refund", "arguments": '{"order":1}'}}
    logs = [
        message(calls[0], "gen_ai.user.message", 1, {"content": "Refund 1"}),
        message(
            calls[0], "gen_ai.choice", 2, {"finish_reason": "tool_calls", "message": {"tool_calls": [asked]}}
        ),
        message(calls[1], "gen_ai.user.message", 4, {"content": "Refund 1"}),
        # all of one moment: the sender's clock is coarse
        message(calls[1], "gen_ai.assistant.message", 4, {"tool_calls": [asked]}),
        message(calls[1], "gen_ai.tool.message", 4, {"id": "k1", "content": "made"}),
        message(calls[1], "gen_ai.choice", 5, {"finish_reason": "stop", "message": {"content": "Done"}}),
    ]
    seen = []
    for number, order in enumerate((["logs", "spans"], ["spans", "logs"], ["spans", "logs", "logs"])):
        with bench(tmp_path / str(number)) as one:
            for part in order:
                if part == "spans":
                    one.send([spans])
                else:
                    for body in logs:
                        send(one, body)
                one.derive(at(90_000))
            seen.append({name: one.view(name, without=("revision", "found_at")) for name in PUBLIC})
            assert one.rows("SELECT tool, outcome, seen_by FROM work.attempts") == [
                {"tool": "refund", "outcome": "ok", "seen_by": "messages"}
            ]
            assert one.rows(
                "SELECT user_text, output_text FROM work.steps WHERE span_id = ?", calls[1]["spanId"]
            ) == [{"user_text": "Refund 1", "output_text": "Done"}]
    assert seen[0] == seen[1] == seen[2]
