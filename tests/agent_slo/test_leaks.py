"""Planted secrets, sent in every way there is, are in no file of the data folder, no export and no log line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collector.redaction.key import KEY_VARIABLE
from tests.agent_slo.conftest import Run, answer
from tests.agent_slo.waiting import until
from tests.collector.requests import START, any_value, span, trace_request
from tests.collector.test_redaction import NAMED, SECRETS, planted

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
PROTOBUF = {"content-type": "application/x-protobuf"}
SECOND = 1_000_000_000
EVERYTHING = "; ".join(planted(kind) for kind in SECRETS)


def refunded_twice(number: int) -> Any:
    """A task whose write ran twice with equal arguments; every place that may hold text holds every secret."""
    trace = bytes([number]) * 16
    agent = span(
        f"invoke_agent for {SECRETS['EMAIL']}",
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "refund_desk",
            "gen_ai.conversation.id": f"conversation {number}",
            "gen_ai.input.messages": json.dumps(
                [{"role": "user", "parts": [{"type": "text", "content": f"refund me. {EVERYTHING}"}]}]
            ),
            "http.request.header.authorization": planted("BEARER"),
            "nested": {"list": [EVERYTHING, {"password": NAMED}]},
        },
        trace_id=trace,
        start_time_unix_nano=START,
        end_time_unix_nano=START + 20 * SECOND,
    )
    calls = [
        span(
            "execute_tool issue_refund",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "issue_refund",
                "gen_ai.tool.call.id": f"call-{number}-{n}",
                "gen_ai.tool.call.arguments": json.dumps(
                    {"order_id": f"A-{number}", "amount": 40, "text": EVERYTHING, "password": NAMED}
                ),
                "gen_ai.tool.call.result": json.dumps(
                    {"refund_id": f"R-{number}-{n}", "sent_to": EVERYTHING}
                ),
            },
            trace_id=trace,
            parent_span_id=agent.span_id,
            start_time_unix_nano=START + (1 + 5 * n) * SECOND,
            end_time_unix_nano=START + (2 + 5 * n) * SECOND,
        )
        for n in range(2)
    ]
    calls[0].status.code, calls[0].status.message = 2, f"timeout while paying {EVERYTHING}"
    event = calls[0].events.add(name="exception", time_unix_nano=START + 2 * SECOND)
    event.attributes.add(key="exception.message").value.string_value = EVERYTHING
    calls[1].links.add(trace_id=trace, span_id=b"2" * 8).attributes.add(
        key="why"
    ).value.string_value = EVERYTHING
    request = trace_request(agent, *calls)
    resource = request.resource_spans[0].resource.attributes
    resource.add(key="owner").value.string_value = EVERYTHING
    resource.add(key="api_key").value.string_value = NAMED
    return request


def log_records() -> bytes:
    request = ExportLogsServiceRequest()
    records = request.resource_logs.add().scope_logs.add().log_records
    text = records.add(time_unix_nano=START, trace_id=b"\x01" * 16, severity_text="INFO")
    text.body.string_value = EVERYTHING
    text.attributes.add(key="db.password").value.string_value = NAMED
    records.add(time_unix_nano=START).body.CopyFrom(any_value({"note": EVERYTHING, "secret": NAMED}))
    return bytes(request.SerializeToString())


def as_json(request: Any) -> bytes:
    """The request in OTLP/JSON, with ids in hex."""
    from google.protobuf.json_format import MessageToDict

    document = MessageToDict(request)
    for resource_spans in document["resourceSpans"]:
        for scope_spans in resource_spans["scopeSpans"]:
            for one, sent in zip(
                scope_spans["spans"], request.resource_spans[0].scope_spans[0].spans, strict=True
            ):
                one["traceId"], one["spanId"] = sent.trace_id.hex(), sent.span_id.hex()
                one["kind"] = sent.kind
                one.pop("links", None)
                if sent.parent_span_id:
                    one["parentSpanId"] = sent.parent_span_id.hex()
                if "status" in one:
                    one["status"]["code"] = sent.status.code
    return json.dumps(document).encode()


def needles() -> list[bytes]:
    texts = [*SECRETS.values(), NAMED, "4111111111111111", "DE89370400440532013000", "IBAKCAQEA"]
    return [n.encode() for text in texts for n in {text, json.dumps(text)[1:-1]}]


def leaks(*places: Path) -> list[tuple[str, bytes]]:
    files = [file for place in places for file in place.rglob("*") if file.is_file()]
    assert files
    return [(file.name, n) for file in files for n in needles() if n in file.read_bytes()]


def seen(run: Run, data: Path) -> int:
    """How often the collector saw what it has grouped into incidents by now."""
    done = run("incidents", "--data", data, "--format", "json")
    return sum(row["seen_count"] for row in json.loads(done.stdout or "[]")) if done.exit_code == 0 else 0


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_planted_secrets_are_nowhere(
    run: Run,
    started: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log_format: str,
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "a key given by the environment")
    monkeypatch.setenv("AGENT_SLO_TOKEN", "a-token-of-senders-1")
    token = "a-token-of-senders-1"
    data, cases = tmp_path / "data", tmp_path / "cases"
    collector = started(
        *("collect", "--data", data, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"),
        *("--verbose", "--log-format", log_format),
    )
    until(lambda: (data / "door.json").exists(), collector)
    where = json.loads((data / "door.json").read_text())
    sender = {"authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"http://{where['http']}", trust_env=False, timeout=60) as client:
        first = refunded_twice(1).SerializeToString()
        assert client.post("/v1/traces", content=first, headers={**PROTOBUF, **sender}).status_code == 200
        second = client.post(
            "/v1/traces",
            content=as_json(refunded_twice(2)),
            headers={"content-type": "application/json", **sender},
        )
        assert second.status_code == 200
        assert (
            client.post("/v1/logs", content=log_records(), headers={**PROTOBUF, **sender}).status_code == 200
        )
        # what is refused is told without what was in it
        for broken in (EVERYTHING.encode(), b"\xff" + EVERYTHING.encode()):
            assert (
                client.post("/v1/traces", content=broken, headers={**PROTOBUF, **sender}).status_code == 400
            )
        stranger = {"authorization": f"Bearer {SECRETS['API_KEY']}"}
        assert client.post("/v1/traces", content=first, headers={**PROTOBUF, **stranger}).status_code == 401
    with grpc.insecure_channel(where["grpc"]) as channel:
        metadata = (("authorization", f"Bearer {token}"),)
        third = refunded_twice(3).SerializeToString()
        assert channel.unary_unary(TRACES)(third, timeout=30, metadata=metadata) == b""
        assert channel.unary_unary(LOGS)(log_records(), timeout=30, metadata=metadata) == b""
    if log_format == "text":
        # what is stored, shown and exported hangs on no log's format: the other case looks there
        collector.terminate()
        out, err = collector.communicate(timeout=60)
        assert "Finished server process" in err
        assert [n for n in [*needles(), token.encode()] if n in (out + err).encode()] == []
        assert leaks(data) == []
        return
    until(lambda: seen(run, data) >= 3, collector)
    stored = answer("query", "SELECT count(*) AS n FROM spans", "--data", data, "--format", "json")
    assert json.loads(stored) == [{"n": 9}]
    assert leaks(data) == []  # with the logs still open
    targets = "jsonl,inspect,promptfoo,pydantic-evals,rows"
    answer("export", "--data", data, "--out", cases, "--include-draft", "--target", targets)
    shown = [
        answer(
            "task",
            json.loads(answer("tasks", "--data", data, "--format", "json"))[0]["task_id"],
            "--data",
            data,
        ),
        answer("report", "--data", data),
        answer("query", "SELECT * FROM steps", "--data", data, "--format", "json"),
        answer("query", "SELECT * FROM logs", "--data", data, "--format", "csv"),
    ]
    collector.terminate()
    out, err = collector.communicate(timeout=60)
    assert leaks(data, cases) == []
    assert sum(1 for _ in cases.rglob("*")) > 3
    said = "\n".join([out, err, *shown]).encode()
    assert [n for n in [*needles(), token.encode()] if n in said] == []
    assert b"<EMAIL:" in said
