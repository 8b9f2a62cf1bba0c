"""The real exporters, unmodified: what they say was sent must be what is stored."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode

from tests.collector.conftest import StartCollector, rows

JAVASCRIPT = Path(__file__).parent / "js"


def send(exporter: SpanExporter, number: int) -> set[str]:
    provider = TracerProvider(
        resource=Resource.create({"service.name": "python-agent"}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("agent", "2.0")
    sent = set()
    for i in range(number):
        with tracer.start_as_current_span("invoke_agent") as root:
            root.set_attribute("gen_ai.agent.name", "refund")
            with tracer.start_as_current_span("chat", kind=SpanKind.CLIENT) as chat:
                chat.set_attribute("gen_ai.usage.input_tokens", 2**53 + i)
                chat.set_attribute("stop", ["a", "b"])
                chat.add_event("exception", {"exception.type": "TimeoutError"})
                chat.set_status(Status(StatusCode.ERROR, "timeout"))
            sent |= {f"{s.get_span_context().span_id:016x}" for s in (root, chat)}
    provider.shutdown()
    return sent


@pytest.mark.parametrize("transport", ["http", "http gzip", "http deflate", "grpc", "grpc gzip"])
def test_python(start_collector: StartCollector, transport: str) -> None:
    collector = start_collector(grpc="127.0.0.1:0")
    exporter: SpanExporter
    if transport.startswith("http"):
        compression = {"gzip": Compression.Gzip, "deflate": Compression.Deflate}.get(transport[5:])
        exporter = HttpExporter(endpoint=f"http://{collector.http}/v1/traces", compression=compression)
    else:
        from grpc import Compression as GrpcCompression

        compressed = GrpcCompression.Gzip if transport.endswith("gzip") else GrpcCompression.NoCompression
        exporter = GrpcExporter(endpoint=str(collector.grpc), insecure=True, compression=compressed)
    sent = send(exporter, 600)
    stored = rows(collector, "SELECT * FROM spans")
    assert {r["span_id"] for r in stored} == sent
    assert len(stored) == len(sent) == 1200
    chat = next(r for r in stored if r["name"] == "chat")
    assert (chat["kind"], chat["status"], chat["status_message"]) == ("client", "error", "timeout")
    assert (chat["service"], chat["scope"], chat["scope_version"]) == ("python-agent", "agent", "2.0")
    assert json.loads(chat["attributes"])["gen_ai.usage.input_tokens"] >= 2**53
    assert json.loads(chat["events"])[0]["attributes"] == {"exception.type": "TimeoutError"}
    assert chat["parent_span_id"] in sent


@pytest.mark.node
@pytest.mark.parametrize("kind", ["json", "protobuf", "grpc"])
def test_javascript(start_collector: StartCollector, kind: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed")
    if not (JAVASCRIPT / "node_modules").is_dir():
        pytest.skip("the exporters are not installed: run `npm ci` in tests/collector/js")
    collector = start_collector(grpc="127.0.0.1:0")
    url = f"http://{collector.grpc}" if kind == "grpc" else f"http://{collector.http}/v1/traces"
    done = subprocess.run(
        [node, "send.mjs", kind, url, "1500"],
        cwd=JAVASCRIPT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    sent: list[Any] = json.loads(done.stdout)
    stored = rows(collector, "SELECT * FROM spans")
    assert sorted(r["span_id"] for r in stored) == sorted(sent)
    attributes = json.loads(stored[0]["attributes"])
    assert attributes["gen_ai.usage.input_tokens"] == 2**53 - 1
    assert attributes["cost"] == 25.5
    assert attributes["text"] == "nul \x00 rocket \U0001f680"
    assert attributes["flags"] == [True, False]
    assert stored[0]["service"] == "js-agent"
    assert stored[0]["kind"] == "client"
