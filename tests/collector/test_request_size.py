"""Requests that are small as bytes and large inside."""

from __future__ import annotations

import gzip
import threading
import time
from typing import Any, Literal

import grpc
import httpx
import orjson
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector import decode_protobuf, intake, request_size
from collector.batch import Rejected
from collector.decode import BadRequest, Signal, decode_rows
from collector.policy import TooManyItems
from collector.request_size import check_json, check_protobuf
from collector.serve import Collector
from tests.collector.conftest import StartCollector, rows
from tests.collector.requests import body, log_request, span, trace_request
from tests.collector.test_decode_json import json_span, request
from tests.collector.test_otlp_grpc import TRACES, refused

RECORDS, PARTS = 20, 100


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_size, "MOST_RECORDS", RECORDS)
    monkeypatch.setattr(request_size, "MOST_PARTS", PARTS)


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def one_span(content: bytes) -> bytes:
    return field(1, field(2, field(2, content)))


def one_log_record(content: bytes) -> bytes:
    return field(1, field(2, field(2, content)))


OK = PARTS - 10
MANY = PARTS + 1


@pytest.mark.parametrize(
    ("signal", "content", "what"),
    [
        ("traces", field(1, field(2, b"\x12\x00" * (RECORDS + 1))), "spans"),
        ("traces", field(1, field(2, b"\x92\x00\x00" * (RECORDS + 1))), "spans"),  # the tag in two bytes
        ("traces", field(1, field(2, b"\x12\x00" * 11)) * 2, "spans"),  # over two resources
        ("traces", field(1, field(2, b"\x12\x00" * (RECORDS + 1))) + b"\xff", "spans"),  # and not readable
        ("traces", b"\x0a\x00" * (RECORDS + 1), "resources"),
        ("traces", field(1, b"\x12\x00" * (RECORDS + 1)), "scopes"),
        ("logs", field(1, field(2, b"\x12\x00" * (RECORDS + 1))), "log records"),
        ("traces", one_span(b"\x4a\x00" * MANY), "attributes"),
        ("traces", one_span(b"\x5a\x00" * MANY), "events"),
        ("traces", one_span(b"\x6a\x00" * MANY), "links"),
        ("traces", one_span(field(11, b"\x1a\x00" * MANY)), "attributes"),
        ("traces", one_span(field(9, field(2, field(5, b"\x0a\x00" * MANY)))), "values"),
        ("traces", one_span(b"\x0b" + b"\x5a\x00" * MANY + b"\x0c"), "events"),  # inside a group
        ("traces", field(1, field(1, b"\x0a\x00" * MANY)), "attributes"),  # of the resource
        ("traces", field(1, field(2, field(1, b"\x1a\x00" * MANY))), "attributes"),  # of the scope
        ("logs", one_log_record(b"\x32\x00" * MANY), "attributes"),
        ("logs", one_log_record(field(5, field(5, b"\x0a\x00" * MANY))), "values"),
    ],
)
def test_too_many_of_anything_is_refused_before_it_is_parsed(
    small: None, monkeypatch: pytest.MonkeyPatch, signal: Signal, content: bytes, what: str
) -> None:
    monkeypatch.setattr(decode_protobuf, "ExportTraceServiceRequest", lambda: pytest.fail("parsed"))
    monkeypatch.setattr(decode_protobuf, "ExportLogsServiceRequest", lambda: pytest.fail("parsed"))
    with pytest.raises(TooManyItems, match=f"more than .*{what}.* in one request: send smaller batches"):
        decode_rows(signal, "protobuf", content)


@pytest.mark.parametrize(
    ("signal", "content"),
    [
        ("traces", field(1, field(2, b"\x12\x00" * RECORDS))),
        ("traces", one_span(b"\x4a\x00" * OK)),
        ("traces", one_span(field(5, b"\x4a\x00" * 500))),  # a text that looks like attributes
        ("traces", one_span(b"\x48\x01" * 500)),  # numbers, which are kept in no message
        ("traces", one_span(b"\xfa\x7f\x02hi" * 200)),  # a field of a later version
        ("traces", field(1, field(2, b"\x12\x00" * RECORDS))[:-1]),  # cut off
        ("traces", b"\xff" * 500),
        ("logs", one_log_record(field(5, b"\x0a\xc8\x01" + b"\x32\x00" * 100))),
    ],
)
def test_what_is_within_the_bounds_or_not_readable_is_left_to_the_parser(
    small: None, signal: Literal["traces", "logs"], content: bytes
) -> None:
    try:
        check_protobuf(content, signal)
    except TooManyItems as e:
        pytest.fail(str(e))


@pytest.mark.parametrize(
    "content",
    [
        one_span(b"\x5a\x00" * 31),
        one_span(field(11, b"\x1a\x00" * 15) * 2),  # an event and its attributes, twice
        field(1, field(1, b"\x0a\x00" * 31)),  # the resource and its attributes
    ],
)
def test_too_many_in_one_span_or_resource(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(request_size, "MOST_IN_ONE", 30)
    with pytest.raises(TooManyItems, match=r"more than 30 .* in one span, log record or resource"):
        check_protobuf(content, "traces")
    monkeypatch.setattr(request_size, "MOST_IN_ONE", 33)
    check_protobuf(content, "traces")
    monkeypatch.setattr(request_size, "MOST_IN_ONE", 31)
    monkeypatch.setattr(request_size, "MOST_RECORDS", 31)
    two = field(1, field(2, field(2, b"\x5a\x00" * 20) * 2))
    check_protobuf(two, "traces")  # each has its own


@pytest.mark.parametrize(
    "fields",
    [
        {"events": [{}] * 31},
        {"links": [{}] * 31},
        {"attributes": [{}] * 31},
        {"attributes": [{"key": "a", "value": {"arrayValue": {"values": [{}] * 31}}}]},
        {"attributes": [{"key": "a", "value": {"kvlistValue": {"values": [{}] * 31}}}]},
    ],
)
def test_too_long_lists_in_json(monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]) -> None:
    monkeypatch.setattr(request_size, "MOST_IN_ONE", 30)
    with pytest.raises(TooManyItems, match=r"more than 30 .* in one span"):
        decode_rows("traces", "json", orjson.dumps(request(json_span(**fields))))
    monkeypatch.setattr(request_size, "MOST_IN_ONE", 31)
    assert decode_rows("traces", "json", orjson.dumps(request(json_span(**fields)))).number == 1


def test_the_walk_counts_as_the_parser_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound at exactly what is in a request passes, one less does not."""
    made = trace_request(*(span(attributes={"a": [1, {"b": "c"}], "d": None}) for _ in range(5)))
    made.resource_spans[0].scope_spans[0].spans[0].events.add().attributes.add().key = "e"
    made.resource_spans[0].scope_spans[0].spans[1].links.add().trace_id = bytes(16)
    content = made.SerializeToString()

    def inside(message: Any) -> int:
        number = 0
        for descriptor, value in message.ListFields():
            if descriptor.message_type is not None:
                values = [value] if hasattr(value, "ListFields") else value
                number += sum(1 + inside(v) for v in values)
        return number

    parts = inside(ExportTraceServiceRequest.FromString(content)) - 1 - 1 - 5
    monkeypatch.setattr(request_size, "MOST_RECORDS", 5)
    monkeypatch.setattr(request_size, "MOST_PARTS", parts)
    check_protobuf(content, "traces")
    monkeypatch.setattr(request_size, "MOST_PARTS", parts - 1)
    with pytest.raises(TooManyItems):
        check_protobuf(content, "traces")


def test_json_with_too_many_objects_is_refused_before_it_is_parsed(small: None) -> None:
    for text in (b"[" + b",".join([b"{}"] * MANY) + b"]", b"[" + b"0," * 2 * MANY + b"0]", b"[" * MANY):
        with pytest.raises(TooManyItems, match="attributes"):
            check_json(text)
    # In texts they are none.
    in_text = orjson.dumps(request(json_span(name='{"[,\\' * 300)))
    assert decode_rows("traces", "json", in_text).number == 1


def test_json_with_too_many_records_is_refused(small: None) -> None:
    spans = b'{"scopeSpans":[{"spans":[' + b",".join([b"{}"] * 12) + b"]}]}"
    for signal, text, what in (
        ("traces", b'{"resourceSpans":[' + spans + b"," + spans + b"]}", "spans"),
        ("traces", b'{"resourceSpans":[' + b",".join([b"{}"] * 21) + b"]}", "resources"),
        ("traces", b'{"resourceSpans":[{"scopeSpans":[' + b",".join([b"{}"] * 21) + b"]}]}", "scopes"),
        (
            "logs",
            b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[' + b",".join([b"{}"] * 21) + b"]}]}]}",
            "log records",
        ),
    ):
        with pytest.raises(TooManyItems, match=f"more than {RECORDS} {what} in one request"):
            decode_rows(signal, "json", text)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="nothing in this request can be kept"):
        decode_rows("traces", "json", b'{"resourceSpans":[' + spans + b"]}")


def test_a_bomb_of_empty_spans_is_refused_on_every_way_in(start_collector: StartCollector) -> None:
    collector = start_collector(grpc="127.0.0.1:0")
    bomb = field(1, field(2, b"\x12\x00" * 20_000_000))
    small = gzip.compress(bomb, 6)
    assert len(small) < 60_000
    in_json = b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + b",".join([b"{}"] * 300_000) + b"]}]}]}"
    with httpx.Client(base_url=f"http://{collector.http}", trust_env=False, timeout=60) as client:
        headers = {"content-type": "application/x-protobuf", "content-encoding": "gzip"}
        answer = client.post("/v1/traces", content=small, headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (413, "application/x-protobuf")
        status = Status.FromString(answer.content)
        assert (status.code, status.message) == (
            8,
            "more than 200000 spans in one request: send smaller batches",
        )
        answer = client.post("/v1/traces", content=in_json, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()) == (413, {"code": 8, "message": status.message})
        metrics = client.get("/metrics").text
        assert 'agent_slo_collector_too_large_total{reason="items"} 2\n' in metrics
    with grpc.insecure_channel(
        str(collector.grpc), options=[("grpc.max_send_message_length", -1)]
    ) as channel:
        error = refused(channel, bomb, TRACES, compression=grpc.Compression.Gzip)
        assert (error.code(), error.details()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, status.message)
    assert collector.counters.value("too_large", reason="items") == 3
    assert rows(collector, "SELECT count(*) AS n FROM spans") == [{"n": 0}]


def wait_for(what: threading.Event) -> None:
    assert what.wait(30)


def test_small_requests_do_not_wait_for_a_large_one(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "LARGE", 5_000)
    collector = start_collector()
    decoding, go = threading.Event(), threading.Event()
    at_once: list[int] = []
    spans = decode_protobuf.spans

    def slow(content: bytes, rejected: Rejected) -> Any:
        if len(content) > 5_000:
            at_once.append(1)
            decoding.set()
            wait_for(go)
            assert sum(at_once) == 1
            at_once.append(-1)
        return spans(content, rejected)

    monkeypatch.setattr(decode_protobuf, "spans", slow)
    answers: list[int] = []

    def send(content: bytes) -> None:
        answers.append(
            httpx.post(
                f"http://{collector.http}/v1/traces",
                content=content,
                headers={"content-type": "application/x-protobuf"},
                trust_env=False,
                timeout=60,
            ).status_code
        )

    large = [threading.Thread(target=send, args=(body(200),)) for _ in range(3)]
    for thread in large:
        thread.start()
    wait_for(decoding)
    send(body(2))
    assert answers == [200]
    assert rows(collector, "SELECT count(*) AS n FROM spans") == [{"n": 2}]
    go.set()
    for thread in large:
        thread.join(30)
    assert answers == [200] * 4
    assert rows(collector, "SELECT count(*) AS n FROM spans") == [{"n": 602}]


def test_a_large_request_that_cannot_be_read_or_finds_no_memory(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "LARGE", 100)
    collector = start_collector()

    def send(content: bytes) -> int:
        return httpx.post(
            f"http://{collector.http}/v1/traces",
            content=content,
            headers={"content-type": "application/x-protobuf"},
            trust_env=False,
            timeout=60,
        ).status_code

    def none(content: bytes, rejected: Rejected) -> Any:
        raise MemoryError

    assert send(b"\xff" * 200) == 400
    with monkeypatch.context() as patch:
        patch.setattr(decode_protobuf, "spans", none)
        assert send(body(10)) == 503
    assert send(body(10)) == 200


def test_a_stop_stores_a_large_request_that_was_taken(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "LARGE", 100)
    collector = start_collector()
    decoding, go = threading.Event(), threading.Event()
    spans = decode_protobuf.spans

    def slow(content: bytes, rejected: Rejected) -> Any:
        decoding.set()
        wait_for(go)
        return spans(content, rejected)

    monkeypatch.setattr(decode_protobuf, "spans", slow)
    answers: list[int] = []
    sender = threading.Thread(
        target=lambda: answers.append(
            httpx.post(
                f"http://{collector.http}/v1/traces",
                content=body(10),
                headers={"content-type": "application/x-protobuf"},
                trust_env=False,
                timeout=60,
            ).status_code
        )
    )
    sender.start()
    wait_for(decoding)
    stopper = threading.Thread(target=collector.stop)
    stopper.start()
    time.sleep(0.2)
    go.set()
    stopper.join(30)
    sender.join(30)
    assert answers == [200]


def test_large_bodies_are_decoded_with_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(request_size, "pause", pauses.append)
    made = body(2_000)
    logs = log_request("x" * 5_000)
    assert decode_rows("traces", "protobuf", made).number == 2_000
    assert pauses == []
    monkeypatch.setattr(request_size, "LARGE", 1_000)
    assert decode_rows("traces", "protobuf", made).number == 2_000
    assert len(pauses) == 3
    assert decode_rows("logs", "protobuf", logs).number == 1


def test_nothing_is_running_behind_a_closed_intake(collector: Collector) -> None:
    collector.stop()
    assert not [t for t in threading.enumerate() if t.name in ("writer", "large")]


def test_another_number_may_be_allowed(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MOST_RECORDS", "MOST_IN_ONE", "MOST_PARTS"):
        monkeypatch.setattr(request_size, name, getattr(request_size, name))  # put back at the end
    small = start_collector(max_request_items=3)
    assert (request_size.MOST_RECORDS, request_size.MOST_IN_ONE, request_size.MOST_PARTS) == (3, 3, 60)
    for number, answer in ((3, 200), (4, 413)):
        sent = httpx.post(
            f"http://{small.http}/v1/traces",
            content=body(number),
            headers={"content-type": "application/x-protobuf"},
            trust_env=False,
        )
        assert sent.status_code == answer
