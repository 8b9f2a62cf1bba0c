from __future__ import annotations

import contextlib
import gzip
import json
import os
import socket
import threading
import time
import zlib
from typing import Any

import duckdb
import httpx
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from collector import decode_protobuf, http_protocol, otlp_http
from collector.batch import Batch, Rejected, SpanRow
from collector.counters import Counters
from collector.serve import Collector
from tests.collector.conftest import StartCollector, rows
from tests.collector.requests import body, log_request, span, trace_request
from tests.collector.test_decode_json import json_span, request

PROTOBUF, JSON = "application/x-protobuf", "application/json"


def post(
    client: httpx.Client, content: bytes, content_type: str = PROTOBUF, **headers: str
) -> httpx.Response:
    sent = {k.replace("_", "-"): v for k, v in headers.items()} | {"content-type": content_type}
    return client.post("/v1/traces", content=content, headers=sent)


def error(response: httpx.Response) -> str:
    """Message of the google.rpc.Status in the response's own encoding."""
    if response.headers["content-type"] == JSON:
        return str(response.json()["message"])
    assert response.headers["content-type"] == PROTOBUF
    return str(Status.FromString(response.content).message)


def count(collector: Collector) -> int:
    return int(rows(collector, "SELECT count(*) AS n FROM spans")[0]["n"])


def test_an_acknowledged_request_is_stored(client: httpx.Client, collector: Collector) -> None:
    answer = post(client, body(3))
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"", PROTOBUF)
    assert count(collector) == 3
    answer = post(client, json.dumps(request(json_span())).encode(), "application/json; charset=utf-8")
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"{}", JSON)
    assert count(collector) == 4


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_compressions(client: httpx.Client, collector: Collector, content_type: str) -> None:
    plain = body(2) if content_type == PROTOBUF else json.dumps(request(json_span(), json_span())).encode()
    for encoding, sent in (
        ("gzip", gzip.compress(plain)),
        ("deflate", zlib.compress(plain)),
        ("identity", plain),
    ):
        assert post(client, sent, content_type, content_encoding=encoding).status_code == 200
    assert count(collector) == 6


def test_a_chunked_body(client: httpx.Client, collector: Collector) -> None:
    whole = body(5)
    pieces = [whole[i : i + 100] for i in range(0, len(whole), 100)]
    answer = client.post("/v1/traces", content=iter(pieces), headers={"content-type": PROTOBUF})
    assert answer.request.headers["transfer-encoding"] == "chunked"
    assert (answer.status_code, count(collector)) == (200, 5)


def log_records(*records: LogRecord) -> bytes:
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.extend(records)
    return bytes(request.SerializeToString())


def post_logs(client: httpx.Client, content: bytes) -> httpx.Response:
    return client.post("/v1/logs", content=content, headers={"content-type": PROTOBUF})


def test_repairs_are_told_as_a_warning(client: httpx.Client, collector: Collector) -> None:
    odd = trace_request(
        span(end_time_unix_nano=1), span(parent_span_id=b"abc", kind=77), span(start_time_unix_nano=0), span()
    ).SerializeToString()
    partial = ExportTraceServiceResponse.FromString(post(client, odd).content).partial_success
    assert partial.rejected_spans == 0
    assert partial.error_message == (
        "stored with repairs: 1 x a parent id that is not 8 bytes was left out (bad_parent_id); "
        "1 x an end before its start became the start (end_before_start); "
        "1 x an unknown kind, status or severity became unspecified or unset (unknown_enum)"
    )
    # what the sender's own limits cut, or what only looks wrong, is no repair of ours
    plain = trace_request(span(dropped_attributes_count=3), span(start_time_unix_nano=5)).SerializeToString()
    assert post(client, plain).content == b""
    assert collector.counters.value("repaired") == 3
    assert collector.counters.value("repaired", flag="unknown_enum") == 1
    assert 'agent_slo_collector_repaired_total{flag="bad_parent_id"} 1' in client.get("/metrics").text


def test_repairs_and_rejections_together_in_json(client: httpx.Client) -> None:
    document = {
        "traceId": "c0ffee" + "0" * 25 + "1",
        "spanId": "00000000000000a1",
        "startTimeUnixNano": "9",
        "kind": 99,
    }
    spans = [document, {**document, "spanId": ""}]
    answer = client.post("/v1/traces", json={"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).json()
    assert answer["partialSuccess"]["rejectedSpans"] == "1"
    message = answer["partialSuccess"]["errorMessage"]
    assert message.startswith(
        "not stored: 1 x span_id is not 8 bytes; stored with repairs: 1 x an unknown kind"
    )


def test_repairs_of_log_records_are_told_too(client: httpx.Client) -> None:
    odd = log_records(
        LogRecord(trace_id=b"short", time_unix_nano=1),
        LogRecord(trace_id=bytes(16), time_unix_nano=2**64 - 1),
        LogRecord(time_unix_nano=1),
    )
    partial = ExportLogsServiceResponse.FromString(post_logs(client, odd).content).partial_success
    assert partial.rejected_log_records == 0
    assert "(bad_id)" in partial.error_message
    assert "(time_overflow)" in partial.error_message
    # a string cut in the middle of a character, in the second record of two
    cut = log_records(LogRecord(event_name="good"), LogRecord(event_name="@@@")).replace(
        b"@@@", b"\xff\xfe\xfd"
    )
    partial = ExportLogsServiceResponse.FromString(post_logs(client, cut).content).partial_success
    assert (
        partial.error_message
        == "stored with repairs: 1 x bytes that are not UTF-8 became U+FFFD (invalid_utf8)"
    )


def test_a_partial_success_names_number_and_reason(client: httpx.Client) -> None:
    bad = trace_request(span(), span(trace_id=bytes(16)), span(span_id=b"")).SerializeToString()
    partial = ExportTraceServiceResponse.FromString(post(client, bad).content).partial_success
    assert partial.rejected_spans == 2
    assert "trace_id is all zeros" in partial.error_message
    assert "span_id is not 8 bytes" in partial.error_message
    answer = post(client, json.dumps(request(json_span(), json_span(traceId=5))).encode(), JSON).json()
    assert answer["partialSuccess"]["rejectedSpans"] == "1"


@pytest.mark.parametrize(
    ("content", "headers", "status", "message"),
    [
        (b"\xff" * 40, {}, 400, "protobuf"),
        (b"{", {"content_type": JSON}, 400, "not JSON"),
        (b"plain", {"content_encoding": "gzip"}, 400, "cannot be decompressed"),
        (gzip.compress(body(9))[:-9], {"content_encoding": "gzip"}, 400, "cut off"),
        (body(), {"content_encoding": "br"}, 415, "content encoding 'br'"),
        (body(), {"content_type": "text/plain"}, 415, "content type 'text/plain'"),
        (body(), {"origin": "http://evil.example"}, 403, "web pages"),
        (body(), {"host": "evil.example:4318"}, 421, "local senders"),
    ],
    ids=["protobuf", "json", "gzip", "cut", "encoding", "type", "origin", "host"],
)
def test_errors_are_a_status_in_the_request_encoding(
    client: httpx.Client,
    collector: Collector,
    content: bytes,
    headers: dict[str, Any],
    status: int,
    message: str,
) -> None:
    answer = post(client, content, **headers)
    assert answer.status_code == status
    expected = PROTOBUF if headers.get("content_type", PROTOBUF) == PROTOBUF else JSON
    assert answer.headers["content-type"] == expected
    assert message in error(answer)
    assert count(collector) == 0
    assert "access-control-allow-origin" not in answer.headers


def test_other_methods_and_paths(client: httpx.Client) -> None:
    for method in ("GET", "PUT", "DELETE"):
        answer = client.request(method, "/v1/traces", headers={"content-type": JSON})
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    answer = client.post("/v1/nonesuch", content=b"", headers={"content-type": PROTOBUF})
    assert (answer.status_code, error(answer)) == (404, "/v1/nonesuch: nothing here; traces go to /v1/traces")


def test_too_large_as_sent_and_after_decompression(start_collector: StartCollector) -> None:
    collector = start_collector(max_request_bytes=100_000)
    with httpx.Client(base_url=f"http://{collector.http}", trust_env=False) as client:
        for content, headers in (
            (bytes(100_001), {}),
            (gzip.compress(bytes(200_000)), {"content_encoding": "gzip"}),
            (gzip.compress(bytes(20_000_000)), {"content_encoding": "gzip"}),
        ):
            answer = post(client, content, **headers)
            assert (answer.status_code, "smaller batches" in error(answer)) == (413, True)
        chunked = client.post(
            "/v1/traces", content=iter([bytes(60_000)] * 3), headers={"content-type": PROTOBUF}
        )
        assert chunked.status_code == 413
        assert post(client, body()).status_code == 200


def test_a_declared_length_is_refused_before_the_body(start_collector: StartCollector) -> None:
    collector = start_collector()
    assert collector.http is not None
    with socket.create_connection((collector.http.host, collector.http.port), timeout=10) as s:
        s.sendall(
            b"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-protobuf\r\n"
            b"Content-Length: 10737418240\r\n\r\n"
        )
        assert s.recv(100).startswith(b"HTTP/1.1 413")


def test_tokens(start_collector: StartCollector) -> None:
    collector = start_collector(token="s3cret")
    with httpx.Client(base_url=f"http://{collector.http}", trust_env=False) as client:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "s3cret"}):
            answer = post(client, body(), **headers)
            assert (answer.status_code, "bearer token" in error(answer)) == (401, True)
        assert post(client, body(), authorization="Bearer s3cret").status_code == 200
    assert collector.http is not None
    with socket.create_connection((collector.http.host, collector.http.port), timeout=10) as s:
        s.sendall(
            b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
            b"Content-Length: 60000000\r\n\r\n"
        )
        assert s.recv(100).startswith(b"HTTP/1.1 401")


def test_logs_are_stored_and_metrics_dropped(client: httpx.Client, collector: Collector) -> None:
    headers = {"content-type": PROTOBUF}
    assert client.post("/v1/logs", content=log_request("go"), headers=headers).status_code == 200
    assert client.post("/v1/metrics", content=b"", headers=headers).status_code == 200
    assert rows(collector, "SELECT body, severity FROM logs") == [{"body": '"go"', "severity": "ERROR"}]
    assert collector.counters.value("dropped_metrics") == 1


def test_a_full_queue_answers_503_with_a_short_retry_after(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = start_collector(queue_requests=2)
    go = threading.Event()
    append = collector.store.append
    monkeypatch.setattr(collector.store, "append", lambda batch: (go.wait(30), append(batch))[1])
    answers: list[int] = []

    def send() -> None:
        with httpx.Client(base_url=f"http://{collector.http}", trust_env=False, timeout=60) as c:
            answers.append(post(c, body()).status_code)

    waiting = [threading.Thread(target=send) for _ in range(2)]
    for thread in waiting:
        thread.start()
    deadline = time.monotonic() + 30
    while "agent_slo_collector_queue_requests 2" not in collector.counters.prometheus():
        assert time.monotonic() < deadline, "the two requests never arrived"
        time.sleep(0.01)
    with httpx.Client(base_url=f"http://{collector.http}", trust_env=False) as client:
        refused = post(client, body())
    assert refused.status_code == 503
    assert refused.headers["retry-after"] in ("1", "2", "3")
    assert error(refused) == "the collector is behind: send again"
    go.set()
    for thread in waiting:
        thread.join()
    assert answers == [200, 200]
    assert count(collector) == 2
    assert collector.counters.value("refused", reason="queue_requests") == 1


def test_the_byte_budget_is_given_back(start_collector: StartCollector) -> None:
    collector = start_collector(queue_bytes=50_000)
    with httpx.Client(base_url=f"http://{collector.http}", trust_env=False) as client:
        large = body(1, attributes={"text": os.urandom(40_000).hex()})
        for _ in range(3):
            assert post(client, large).status_code == 503
            assert post(client, gzip.compress(large), content_encoding="gzip").status_code == 503
            assert post(client, body(20)).status_code == 200
    assert "agent_slo_collector_queue_bytes 0\n" in collector.counters.prometheus()


def test_a_store_that_cannot_take_it_is_never_a_200(
    client: httpx.Client, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise duckdb.IOException("disk full")

    monkeypatch.setattr(collector.store, "_commit", fail)
    answer = post(client, body())
    assert (answer.status_code, answer.headers["retry-after"] in "123") == (503, True)
    monkeypatch.undo()
    assert post(client, body()).status_code == 200
    assert count(collector) == 1


def test_an_unfinished_header_is_closed(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "HEADER_SECONDS", 0.2)
    collector = start_collector()
    assert collector.http is not None
    with socket.create_connection((collector.http.host, collector.http.port), timeout=30) as s:
        s.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nX-A: ")
        assert s.recv(10) == b""


def test_an_unfinished_body_gets_408(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_http, "_BODY_SECONDS", 0.2)
    monkeypatch.setattr(otlp_http, "_DRAIN_SECONDS", 0.2)
    collector = start_collector()
    assert collector.http is not None
    with socket.create_connection((collector.http.host, collector.http.port), timeout=30) as s:
        s.sendall(
            b"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-protobuf\r\n"
            b"Content-Length: 1000\r\n\r\nx"
        )
        assert s.recv(100).startswith(b"HTTP/1.1 408")


def test_bodies_that_never_end_take_no_place_in_the_queue(start_collector: StartCollector) -> None:
    collector = start_collector(queue_requests=2)
    assert collector.http is not None
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            address = (collector.http.host, collector.http.port)
            s = stack.enter_context(socket.create_connection(address, timeout=30))
            s.sendall(
                b"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-protobuf\r\n"
                b"Content-Length: 1000\r\n\r\nx"
            )
        while "agent_slo_collector_queue_requests 5\n" not in collector.counters.prometheus():
            time.sleep(0.01)
        with httpx.Client(base_url=f"http://{collector.http}", trust_env=False, timeout=30) as client:
            assert post(client, body(2)).status_code == 200
    while "agent_slo_collector_queue_requests 0\n" not in collector.counters.prometheus():
        time.sleep(0.01)
    assert count(collector) == 2


def test_senders_that_only_promise_a_body_keep_nobody_out(
    client: httpx.Client, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_http, "_STALL_SECONDS", 2.0)
    monkeypatch.setattr(otlp_http, "_DRAIN_SECONDS", 0.2)
    assert collector.http is not None
    with contextlib.ExitStack() as stack:
        waiting = []
        for _ in range(8):
            address = (collector.http.host, collector.http.port)
            s = stack.enter_context(socket.create_connection(address, timeout=30))
            s.sendall(
                b"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-protobuf\r\n"
                b"Content-Length: 67000000\r\n\r\nx"
            )
            waiting.append(s)
        while "agent_slo_collector_queue_bytes 8\n" not in collector.counters.prometheus():
            time.sleep(0.01)
        assert post(client, body(2)).status_code == 200
        for s in waiting:
            answer = s.recv(1000)
            assert answer.startswith(b"HTTP/1.1 408")
            assert b"stalled" in answer
    assert count(collector) == 2


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_a_foreign_host_sees_nothing_of_a_local_collector(start_collector: StartCollector, path: str) -> None:
    local = start_collector()
    foreign = {"host": "evil.example:4318"}
    for host in ("localhost", "127.0.0.1:4318", "[::1]:4318"):
        assert httpx.get(f"http://{local.http}{path}", headers={"host": host}).status_code == 200
    assert httpx.get(f"http://{local.http}{path}", headers=foreign).status_code == 421
    local.stop()
    public = start_collector(http="0.0.0.0:0", insecure=True)
    assert public.http is not None
    assert httpx.get(f"http://127.0.0.1:{public.http.port}{path}", headers=foreign).status_code == 200


@pytest.mark.parametrize(
    "place", ["collector.intake.decode_rows", "collector.store.np.arange", "collector.otlp_http.inflate"]
)
def test_without_memory_senders_are_asked_to_send_again(
    client: httpx.Client, collector: Collector, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(place, fail)
        answer = post(client, gzip.compress(body(2)), content_encoding="gzip")
        assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
    assert post(client, gzip.compress(body(2)), content_encoding="gzip").status_code == 200
    assert count(collector) == 2


@pytest.mark.parametrize("place", ["in its own bytes", "in the table of its group"])
def test_a_request_that_breaks_the_decoder_costs_no_other(
    client: httpx.Client, collector: Collector, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    read = decode_protobuf.spans

    def fragile(content: bytes, rejected: Rejected) -> list[SpanRow]:
        found = read(content, rejected)
        if found[0][3] != "odd":
            return found
        if place == "in its own bytes":
            raise ZeroDivisionError
        return [(*row[:5], "no number", *row[6:]) for row in found]  # type: ignore[misc]

    monkeypatch.setattr(decode_protobuf, "spans", fragile)
    append, entered, go = collector.store.append, threading.Event(), threading.Event()

    def held(batch: Batch) -> int:
        entered.set()
        go.wait(30)
        return append(batch)

    monkeypatch.setattr(collector.store, "append", held)
    statuses: dict[str, int] = {}

    def send(name: str) -> None:
        with httpx.Client(base_url=client.base_url, trust_env=False, timeout=60) as c:
            statuses[name] = post(c, body(2, name=name)).status_code

    senders = [threading.Thread(target=send, args=(name,)) for name in ("first", "odd", "plain", "other")]
    senders[0].start()
    assert entered.wait(30)
    for sender in senders[1:]:
        sender.start()
    while "agent_slo_collector_queue_requests 4\n" not in collector.counters.prometheus():
        time.sleep(0.01)
    go.set()
    for sender in senders:
        sender.join()
    assert statuses == {"first": 200, "odd": 400, "plain": 200, "other": 200}
    stored = rows(collector, "SELECT DISTINCT name FROM spans ORDER BY name")
    assert [row["name"] for row in stored] == ["first", "other", "plain"]


def test_a_transaction_left_behind_does_not_stop_the_writer(
    client: httpx.Client, collector: Collector
) -> None:
    collector.store._writer.execute("BEGIN TRANSACTION")
    assert post(client, body(2)).status_code == 200
    assert count(collector) == 2


def test_two_hosts_are_a_bad_request(collector: Collector) -> None:
    assert collector.http is not None
    with socket.create_connection((collector.http.host, collector.http.port), timeout=30) as s:
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nhost: evil.example\r\n\r\n")
        assert s.recv(100).startswith(b"HTTP/1.1 400")


def test_a_label_holds_no_control_characters() -> None:
    counters = Counters()
    counters.add("rejected", reason='a\0b\r\x1b"\n\\\ud800')
    text = counters.prometheus()
    assert '_rejected_total{reason="a\ufffdb\ufffd\ufffd\\"\\n\\\\\ufffd"} 1\n' in text
    assert text.encode()


def test_a_huge_header_is_refused_and_a_large_body_is_no_header(
    client: httpx.Client, collector: Collector
) -> None:
    assert collector.http is not None
    with socket.create_connection((collector.http.host, collector.http.port), timeout=30) as s:
        s.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nX-Big: " + b"a" * 300_000)
        assert s.recv(12) == b"HTTP/1.1 431"
    with socket.create_connection((collector.http.host, collector.http.port), timeout=30) as s:
        s.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nX-Big: " + b"a" * 100_000 + b"\r\n\r\n")
        assert s.recv(10) == b"HTTP/1.1 4"
    for _ in range(3):
        assert post(client, body(1, attributes={"text": "x" * 3_000_000})).status_code == 200


def test_health_and_counters(client: httpx.Client) -> None:
    post(client, trace_request(span(), span(trace_id=b"")).SerializeToString())
    post(client, b"\xff" * 10)
    health = client.get("/healthz").json()
    assert (health["state"], health["rows"], health["last_seq"]) == ("ok", 1, 1)
    assert client.get("/readyz").status_code == 200
    text = client.get("/metrics").text
    for line in (
        'agent_slo_collector_received_total{signal="traces"} 2',
        'agent_slo_collector_stored_total{signal="traces"} 1',
        'agent_slo_collector_rejected_total{reason="trace_id is not 16 bytes"} 1',
        'agent_slo_collector_requests_total{answer="400",signal="traces",transport="http"} 1',
        "agent_slo_collector_commit_seconds_count 1",
        "agent_slo_collector_queue_requests 0",
    ):
        assert line in text.splitlines()
