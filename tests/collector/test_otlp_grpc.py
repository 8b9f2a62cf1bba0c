from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator

import grpc
import httpx
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector import otlp_grpc
from collector.serve import Collector
from tests.collector.conftest import StartCollector, rows
from tests.collector.requests import body, log_request, span, trace_request

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@pytest.fixture
def grpc_collector(start_collector: StartCollector) -> Collector:
    return start_collector(grpc="127.0.0.1:0")


@pytest.fixture
def channel(grpc_collector: Collector) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(
        str(grpc_collector.grpc), options=[("grpc.max_send_message_length", -1)]
    ) as opened:
        yield opened


def export(channel: grpc.Channel, content: bytes, method: str = TRACES, **call: object) -> bytes:
    stub = channel.unary_unary(method)
    return bytes(stub(content, timeout=20, **call))


def refused(channel: grpc.Channel, content: bytes, method: str = TRACES, **call: object) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as raised:
        export(channel, content, method, **call)
    return raised.value


def test_ok_is_stored(channel: grpc.Channel, grpc_collector: Collector) -> None:
    assert export(channel, body(3)) == b""
    assert export(channel, body(2), compression=grpc.Compression.Gzip) == b""
    assert export(channel, b"") == b""
    assert rows(grpc_collector, "SELECT count(*) AS n FROM spans") == [{"n": 5}]


def test_partial_success(channel: grpc.Channel) -> None:
    bad = trace_request(span(), span(trace_id=bytes(16))).SerializeToString()
    answer = ExportTraceServiceResponse.FromString(export(channel, bad))
    assert answer.partial_success.rejected_spans == 1


def test_undecodable_is_invalid_argument(channel: grpc.Channel) -> None:
    assert refused(channel, b"\xff" * 30).code() is grpc.StatusCode.INVALID_ARGUMENT


def test_unknown_methods(channel: grpc.Channel) -> None:
    assert refused(channel, b"", TRACES + "No").code() is grpc.StatusCode.UNIMPLEMENTED


def test_too_large_is_not_retryable(start_collector: StartCollector) -> None:
    collector = start_collector(grpc="127.0.0.1:0", max_request_bytes=100_000)
    with grpc.insecure_channel(str(collector.grpc)) as channel:
        error = refused(channel, bytes(200_000))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert refused(channel, bytes(9_000_000), compression=grpc.Compression.Gzip).code() is (
            grpc.StatusCode.RESOURCE_EXHAUSTED
        )
        assert len(gzip.compress(bytes(9_000_000))) < 100_000


def test_logs_metrics_and_health(channel: grpc.Channel, grpc_collector: Collector) -> None:
    base = "/opentelemetry.proto.collector."
    assert export(channel, log_request(), base + "logs.v1.LogsService/Export") == b""
    assert export(channel, b"", base + "metrics.v1.MetricsService/Export") == b""
    assert export(channel, b"", "/grpc.health.v1.Health/Check") == b"\x08\x01"
    assert rows(grpc_collector, "SELECT count(*) AS n FROM logs") == [{"n": 1}]


def test_tokens(start_collector: StartCollector) -> None:
    collector = start_collector(grpc="127.0.0.1:0", token="s3cret")
    with grpc.insecure_channel(str(collector.grpc)) as channel:
        assert refused(channel, body()).code() is grpc.StatusCode.UNAUTHENTICATED
        wrong = (("authorization", "Bearer no"),)
        assert refused(channel, body(), metadata=wrong).code() is grpc.StatusCode.UNAUTHENTICATED
        assert export(channel, body(), metadata=(("authorization", "Bearer s3cret"),)) == b""


def test_a_full_queue_waits_then_is_unavailable_with_retry_info(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_grpc, "_WAIT_SECONDS", 0.3)
    collector = start_collector(grpc="127.0.0.1:0", queue_requests=1)
    go = threading.Event()
    append = collector.store.append
    monkeypatch.setattr(collector.store, "append", lambda batch: (go.wait(30), append(batch))[1])
    with grpc.insecure_channel(str(collector.grpc)) as channel:
        first = channel.unary_unary(TRACES).future(body(), timeout=60)
        deadline = time.monotonic() + 30
        while "agent_slo_collector_queue_requests 1" not in collector.counters.prometheus():
            assert time.monotonic() < deadline, "the first request never arrived"
            time.sleep(0.01)
        error = refused(channel, body())
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        details = dict(error.trailing_metadata())["grpc-status-details-bin"]
        retry = RetryInfo()
        assert Status.FromString(details).details[0].Unpack(retry)
        assert retry.retry_delay.seconds == 1
        # A caller that waits gets its place as soon as there is one.
        monkeypatch.setattr(otlp_grpc, "_WAIT_SECONDS", 20.0)
        second = channel.unary_unary(TRACES).future(body(), timeout=60)
        go.set()
        assert (first.result(), second.result()) == (b"", b"")
    assert rows(collector, "SELECT count(*) AS n FROM spans") == [{"n": 2}]


def test_a_stranger_is_refused_before_the_message_is_read(start_collector: StartCollector) -> None:
    collector = start_collector(grpc="127.0.0.1:0", token="s3cret")
    with grpc.insecure_channel(str(collector.grpc)) as channel:
        unfinished = threading.Event()

        def messages() -> Iterator[bytes]:
            unfinished.wait(30)
            yield from ()

        error = channel.stream_unary(TRACES).future(messages(), timeout=20).exception()
        unfinished.set()
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_message_that_does_not_come_gives_its_place_to_others(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_grpc, "_PROMPT_SECONDS", 0.2)
    monkeypatch.setattr(otlp_grpc, "_MESSAGE_SECONDS", 2.0)
    # room for four messages to be read at once, and for four slow ones
    collector = start_collector(grpc="127.0.0.1:0", queue_bytes=1 << 20, max_request_bytes=1 << 20)
    with grpc.insecure_channel(str(collector.grpc)) as channel:
        silent = threading.Event()

        def messages() -> Iterator[bytes]:
            silent.wait(30)
            yield from ()

        waiting = [channel.stream_unary(TRACES).future(messages(), timeout=25) for _ in range(12)]
        assert export(channel, body()) == b""
        codes = {call.exception().code() for call in waiting}
        silent.set()
        assert codes == {grpc.StatusCode.DEADLINE_EXCEEDED}
        nothing = channel.stream_unary(TRACES)
        with pytest.raises(grpc.RpcError) as raised:
            nothing(iter(()), timeout=20)
        assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert collector.counters.value("requests", answer="DEADLINE_EXCEEDED") == 12
    deadline = time.monotonic() + 20
    gauges = ("agent_slo_collector_queue_requests 0\n", "agent_slo_collector_queue_bytes 0\n")
    while not all(gauge in collector.counters.prometheus() for gauge in gauges):
        assert time.monotonic() < deadline, "a place was not given back"
        time.sleep(0.02)


def test_messages_that_wait_together_are_bounded_in_bytes(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_grpc, "_WAIT_SECONDS", 1.0)
    content = trace_request(span("op", {"text": "x" * 400_000})).SerializeToString()
    collector = start_collector(grpc="127.0.0.1:0", queue_bytes=1_000_000, max_request_bytes=1_000_000)
    go = threading.Event()
    append = collector.store.append
    monkeypatch.setattr(collector.store, "append", lambda batch: (go.wait(60), append(batch))[1])
    with grpc.insecure_channel(str(collector.grpc)) as channel:
        calls = [channel.unary_unary(TRACES).future(content, timeout=60) for _ in range(12)]
        refused_ones = []
        deadline = time.monotonic() + 50
        while len(refused_ones) < 10 and time.monotonic() < deadline:
            refused_ones = [c for c in calls if c.done()]
            time.sleep(0.05)
        codes = [c.exception().code() for c in refused_ones]
        assert codes == [grpc.StatusCode.UNAVAILABLE] * 10
        go.set()
        taken = [c for c in calls if c not in refused_ones]
        assert [c.result() for c in taken] == [b"", b""]
    # what was refused left nothing
    assert rows(collector, "SELECT count(*) AS n FROM spans") == [{"n": 2}]
    assert collector.counters.value("refused", reason="queue") == 10


def test_http_at_the_grpc_port_does_no_harm(grpc_collector: Collector, channel: grpc.Channel) -> None:
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://{grpc_collector.grpc}/", trust_env=False, timeout=5)
    assert export(channel, body()) == b""
