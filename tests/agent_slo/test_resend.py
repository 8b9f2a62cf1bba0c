"""A sender whose connection is cut after the body sends again: one copy of each span in tasks and sums."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from agent_slo.config import Config
from agent_slo.derivation import Derivation
from collector.serve import Collector, CollectorSettings

TASKS = 20


class CuttingProxy:
    """Passes everything on, and cuts the first connections as soon as the collector begins to answer a request."""

    def __init__(self, target: tuple[str, int], cuts: int, collector: Collector) -> None:
        self.cuts, self.left = 0, cuts
        self._target, self._collector = target, collector
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed at the end of the test
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                before = self._stored()
                for source, sink, answers in ((client, server, False), (server, client, True)):
                    thread = threading.Thread(
                        target=self._pass, args=(source, sink, answers, before), daemon=True
                    )
                    thread.start()

    def _stored(self) -> int:
        return self._collector.counters.value("stored")

    def _pass(self, source: socket.socket, sink: socket.socket, answers: bool, before: int) -> None:
        with contextlib.suppress(OSError):  # the other direction was cut
            while data := source.recv(65536):
                # the answer to a stored request, not one of the greetings of HTTP/2
                if answers and self.left and self._stored() > before:
                    self.left -= 1
                    self.cuts += 1
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Collector]:
    settings = CollectorSettings(data=tmp_path, http="127.0.0.1:0", grpc="127.0.0.1:0")
    with Collector(settings, background=Derivation(Config(), [])) as collector:
        yield collector


def run_agents(exporter: SpanExporter) -> None:
    provider = TracerProvider(resource=Resource.create({"service.name": "desk"}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_export_batch_size=4 * TASKS))
    tracer = provider.get_tracer("agent")
    for i in range(TASKS):
        stated = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
        with tracer.start_as_current_span("invoke_agent", attributes=stated) as agent:
            agent.set_attribute("gen_ai.conversation.id", f"conversation {i}")
            with tracer.start_as_current_span("chat") as chat:
                chat.set_attribute("gen_ai.operation.name", "chat")
                chat.set_attribute("gen_ai.request.model", "some-model")
                chat.set_attribute("gen_ai.usage.input_tokens", 1000)
                chat.set_attribute("gen_ai.usage.output_tokens", 10)
            with tracer.start_as_current_span("execute_tool issue_refund") as tool:
                tool.set_attribute("gen_ai.operation.name", "execute_tool")
                tool.set_attribute("gen_ai.tool.name", "issue_refund")
                tool.set_attribute("gen_ai.tool.call.id", f"call-{i}")
                tool.set_attribute("gen_ai.tool.call.arguments", f'{{"order_id": "A-{i}"}}')
    provider.shutdown()


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_one_copy_in_tasks_and_sums(running: Collector, transport: str) -> None:
    address = running.http if transport == "http" else running.grpc
    assert address is not None
    proxy = CuttingProxy((address.host, address.port), 2, running)
    if transport == "http":
        run_agents(HttpExporter(endpoint=f"http://{proxy.address}/v1/traces", timeout=30))
    else:
        run_agents(GrpcExporter(endpoint=proxy.address, insecure=True, timeout=30))
    proxy.close()
    assert proxy.cuts == 2
    sums = "SELECT count(*), sum(input_tokens), sum(output_tokens), sum(model_calls) FROM tasks"
    wanted = (TASKS, 1000 * TASKS, 10 * TASKS, TASKS)
    deadline = time.monotonic() + 60
    found = None
    while found != wanted and time.monotonic() < deadline:
        time.sleep(0.2)
        with running.store.reader() as con, contextlib.suppress(duckdb.CatalogException):  # not derived yet
            found = con.execute(sums).fetchall()[0]
    assert found == wanted
    with running.store.reader() as con:
        ((rows, spans),) = con.execute(
            "SELECT count(*), count(DISTINCT (trace_id, span_id)) FROM spans"
        ).fetchall()
        again = con.execute("SELECT duplicate, count(*) FROM attempts GROUP BY ALL").fetchall()
    # every cut made the sender send once more, and each copy is there to be seen
    assert (rows, spans) == (3 * 3 * TASKS, 3 * TASKS)
    assert again == [(None, TASKS)]
