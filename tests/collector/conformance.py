"""What the OTLP specification and careful senders ask of a receiver, as a list of checks with one line each.

    python -m tests.collector.conformance        run all and print the score

`must` and `should` are the specification's words; `quality` is what senders meet in practice. Each check sends its own
request and looks at the answer and at what is stored.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import grpc
import httpx
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.serve import Collector, CollectorSettings
from tests.collector.requests import body, log_request, span, trace_request

Level = Literal["must", "should", "quality"]
PROTOBUF = "application/x-protobuf"
JSON = "application/json"
TRACE_EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS_EXPORT = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
METRICS_EXPORT = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"


class Target:
    """A running collector and ways to talk to it."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.http = httpx.Client(base_url=f"http://{collector.http}", trust_env=False, timeout=60)
        self.channel = grpc.insecure_channel(
            str(collector.grpc), options=[("grpc.max_send_message_length", -1)]
        )

    def close(self) -> None:
        self.http.close()
        self.channel.close()

    def post(
        self, content: Any, kind: str = PROTOBUF, path: str = "/v1/traces", **headers: str
    ) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(path, content=content, headers={"content-type": kind, **named})

    def json(self, *spans: dict[str, Any], **more: Any) -> httpx.Response:
        return self.post(json.dumps(otlp_json(*spans, **more)), JSON)

    def call(self, content: bytes, method: str = TRACE_EXPORT, **options: Any) -> grpc.StatusCode:
        try:
            self.channel.unary_unary(method)(content, timeout=60, **options)
        except grpc.RpcError as e:
            code: grpc.StatusCode = e.code()
            return code
        return grpc.StatusCode.OK

    def stored(self, trace_id: str) -> list[dict[str, Any]]:
        """Rows of `spans` of one trace."""
        with self.collector.store.reader() as con:
            found = con.execute("SELECT * FROM spans WHERE trace_id = ? ORDER BY seq", [trace_id])
            names = [d[0] for d in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def one(self, trace_id: str) -> dict[str, Any]:
        (row,) = self.stored(trace_id)
        return {**row, "attributes": json.loads(row["attributes"])}

    def raw(self, head: bytes) -> socket.socket:
        """A connection on which these bytes were sent."""
        assert self.collector.http is not None
        sock = socket.create_connection((self.collector.http.host, self.collector.http.port), timeout=30)
        sock.sendall(head)
        return sock


def hex_id(size: int = 16) -> str:
    return os.urandom(size).hex()


def json_span(trace_id: str, **fields: Any) -> dict[str, Any]:
    values = {
        "traceId": trace_id,
        "spanId": hex_id(8),
        "name": "op",
        "kind": 1,
        "startTimeUnixNano": "1790000000000000000",
        "endTimeUnixNano": "1790000000005000000",
    }
    return {k: v for k, v in {**values, **fields}.items() if v is not ...}


def otlp_json(*spans: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}], **more}


def attribute(value: dict[str, Any], key: str = "a") -> list[dict[str, Any]]:
    return [{"key": key, "value": value}]


@dataclass(frozen=True)
class Check:
    """One expectation: raises AssertionError when it is not met."""

    name: str
    level: Level
    run: Callable[[Target], None]


CHECKS: list[Check] = []


def check(level: Level) -> Callable[[Callable[[Target], None]], Callable[[Target], None]]:
    def add(function: Callable[[Target], None]) -> Callable[[Target], None]:
        CHECKS.append(Check(function.__name__, level, function))
        return function

    return add


def rejected(answer: httpx.Response) -> tuple[int, str]:
    """Number and message of a partial success, from either encoding."""
    if answer.headers["content-type"].startswith(JSON):
        part = answer.json().get("partialSuccess", {})
        return int(part.get("rejectedSpans", 0)), part.get("errorMessage", "")
    message = ExportTraceServiceResponse.FromString(answer.content)
    return message.partial_success.rejected_spans, message.partial_success.error_message


# ---- HTTP ---------------------------------------------------------------------------------------------------------


@check("must")
def protobuf_is_answered_in_protobuf_without_partial_success(t: Target) -> None:
    answer = t.post(body())
    assert (answer.status_code, answer.headers["content-type"]) == (200, PROTOBUF)
    assert not ExportTraceServiceResponse.FromString(answer.content).HasField("partial_success")


@check("must")
def json_is_answered_in_json(t: Target) -> None:
    answer = t.json(json_span(hex_id()))
    assert (answer.status_code, answer.json()) == (200, {})
    assert answer.headers["content-type"].startswith(JSON)


@check("should")
def an_empty_request_is_fine(t: Target) -> None:
    assert t.post(b"").status_code == 200
    assert t.post("{}", JSON).status_code == 200
    assert t.post('{"resourceSpans":[{}]}', JSON).status_code == 200


@check("must")
def gzip_in_both_encodings(t: Target) -> None:
    assert t.post(gzip.compress(body()), content_encoding="gzip").status_code == 200
    text = json.dumps(otlp_json(json_span(hex_id()))).encode()
    assert t.post(gzip.compress(text), JSON, content_encoding="gzip").status_code == 200


@check("must")
def a_content_type_may_have_parameters_and_any_case(t: Target) -> None:
    assert t.post("{}", "Application/JSON; charset=UTF-8").status_code == 200


@check("must")
def broken_gzip_is_400(t: Target) -> None:
    whole = gzip.compress(body())
    for broken in (b"not gzip", whole[:-9], whole[:20]):
        assert t.post(broken, content_encoding="gzip").status_code == 400


@check("quality")
def gzip_of_several_members_and_deflate(t: Target) -> None:
    a, b = body(), body()
    assert t.post(gzip.compress(a[:10]) + gzip.compress(a[10:]), content_encoding="gzip").status_code == 200
    assert t.post(zlib.compress(b), content_encoding="deflate").status_code == 200


@check("quality")
def an_unknown_compression_is_never_200(t: Target) -> None:
    assert t.post(body(), content_encoding="br").status_code in (400, 415)


@check("must")
def garbage_is_400_with_a_status_in_the_encoding_of_the_request(t: Target) -> None:
    for content in (b"\xff\xff\xff", body()[:-3]):
        answer = t.post(content)
        assert answer.status_code == 400
        assert Status.FromString(answer.content).message
    answer = t.post('{"resourceSpans":[', JSON)
    assert answer.status_code == 400
    assert answer.json()["message"]


@check("quality")
def a_body_in_the_other_encoding_is_400(t: Target) -> None:
    assert t.post(body(), JSON).status_code == 400
    assert t.post("{}" + " " * 9, PROTOBUF).status_code == 400


@check("quality")
def what_any_web_page_can_send_is_refused(t: Target) -> None:
    assert t.post("{}", "text/plain").status_code == 415
    assert t.post("{}", JSON, origin="https://evil.example").status_code == 403
    assert "access-control-allow-origin" not in t.post(body()).headers


@check("quality")
def other_methods_and_paths(t: Target) -> None:
    got = t.http.get("/v1/traces")
    assert (got.status_code, got.headers["allow"]) == (405, "POST")
    assert t.post(body(), path="/v1/nothing").status_code == 404


@check("quality")
def chunked_bodies(t: Target) -> None:
    content = body()
    assert t.post(iter([content[:7], content[7:]])).status_code == 200


@check("should")
def many_requests_on_one_connection(t: Target) -> None:
    content = body()
    assert {t.post(content).status_code for _ in range(100)} == {200}


@check("quality")
def a_hundred_half_open_requests_do_not_stop_others(t: Target) -> None:
    head = f"POST /v1/traces HTTP/1.1\r\nHost: {t.collector.http}\r\nContent-Type: {PROTOBUF}\r\n".encode()
    half = [t.raw(head + b"Content-Length: 1000\r\n\r\nhalf" if n % 2 else head) for n in range(100)]
    try:
        assert t.post(body()).status_code == 200  # within the client's own time limit
    finally:
        for sock in half:
            sock.close()


# ---- limits -------------------------------------------------------------------------------------------------------


@check("should")
def a_request_of_twenty_mebibytes_is_taken(t: Target) -> None:
    trace = os.urandom(16)
    spans = [span("op", {"text": "x" * 1_000_000}, trace_id=trace) for _ in range(20)]
    assert t.post(trace_request(*spans).SerializeToString()).status_code == 200
    assert len(t.stored(trace.hex())) == 20


@check("must")
def more_than_the_limit_is_413(t: Target) -> None:
    limit = t.collector.settings.max_request_bytes
    assert t.post(bytes(limit + 1)).status_code == 413
    assert t.post(gzip.compress(bytes(limit + 1)), content_encoding="gzip").status_code == 413


@check("must")
def a_bomb_of_one_gibibyte_is_413_and_bounded(t: Target) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join([packer.compress(bytes(1 << 20)) for _ in range(1024)]) + packer.flush()
    answer = t.post(bomb, content_encoding="gzip")
    assert answer.status_code == 413


@check("quality")
def a_declared_length_beyond_all_limits_is_refused_unread(t: Target) -> None:
    head = f"POST /v1/traces HTTP/1.1\r\nHost: {t.collector.http}\r\nContent-Type: {PROTOBUF}\r\n"
    with closing(t.raw((head + "Content-Length: 10737418240\r\n\r\n").encode())) as sock:
        assert sock.recv(64).startswith(b"HTTP/1.1 413")


@check("quality")
def ten_thousand_spans_in_one_request(t: Target) -> None:
    trace = os.urandom(16)
    spans = [span("op", {"n": n}, trace_id=trace) for n in range(10_000)]
    assert t.post(trace_request(*spans).SerializeToString()).status_code == 200
    assert len({row["span_id"] for row in t.stored(trace.hex())}) == 10_000


# ---- JSON ---------------------------------------------------------------------------------------------------------


@check("must")
def integers_come_as_numbers_and_as_strings(t: Target) -> None:
    trace = hex_id()
    attributes = attribute({"intValue": 9007199254740993}, "n") + attribute(
        {"intValue": "-9223372036854775808"}, "s"
    )
    assert t.json(json_span(trace, attributes=attributes, kind=3)).status_code == 200
    row = t.one(trace)
    assert row["attributes"] == {"n": 9007199254740993, "s": -(2**63)}
    assert row["kind"] == "client"


@check("must")
def ids_are_hexadecimal_in_any_case(t: Target) -> None:
    trace = hex_id()
    assert t.json(json_span(trace.upper())).status_code == 200
    assert t.one(trace)["trace_id"] == trace


@check("must")
def unknown_fields_are_ignored_and_snake_case_is_unknown(t: Target) -> None:
    trace = hex_id()
    assert t.json(json_span(trace, novelty={"x": [1]}, start_time_unix_nano="5"), more=1).status_code == 200
    assert t.one(trace)["start_ns"] == 1790000000000000000


@check("must")
def every_kind_of_value(t: Target) -> None:
    trace = hex_id()
    values = {
        "text": {"stringValue": "é\u0000\U0001f600"},
        "yes": {"boolValue": True},
        "double": {"doubleValue": 0.1},
        "nan": {"doubleValue": "NaN"},
        "bytes": {"bytesValue": "AAEC"},
        "list": {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "b"}]}},
        "map": {"kvlistValue": {"values": attribute({"intValue": "2"}, "k")}},
        "absent": {},
    }
    attributes = [{"key": k, "value": v} for k, v in values.items()]
    assert t.json(json_span(trace, attributes=attributes)).status_code == 200
    assert t.one(trace)["attributes"] == {
        "text": "é\u0000\U0001f600",
        "yes": True,
        "double": 0.1,
        "nan": "NaN",
        "bytes": {"base64": "AAEC"},
        "list": [1, "b"],
        "map": {"k": 2},
        "absent": None,
    }


@check("must")
def a_wrong_shape_is_400(t: Target) -> None:
    for text in (
        "[]",
        '{"resourceSpans":{}}',
        '{"resourceSpans":[{"scopeSpans":[{"spans":{}}]}]}',
        '"x"',
        "\xff",
    ):
        assert t.post(text.encode("latin-1"), JSON).status_code == 400


@check("quality")
def a_deep_json_value_costs_only_itself(t: Target) -> None:
    for depth in (500, 1500):
        deep = '{"arrayValue":{"values":[' * depth + '{"intValue":"1"}' + "]}}" * depth
        text = json.dumps(
            otlp_json(json_span(hex_id(), attributes=attribute({})), json_span(hex_id()))
        ).replace('"value": {}', f'"value": {deep}')
        answer = t.post(text, JSON)
        assert answer.status_code == 200
        number, message = rejected(answer)
        assert (number, "too_deep" in message) == (0, True)
    assert t.post(b"[" * 5000, JSON).status_code == 400


# ---- odd spans ----------------------------------------------------------------------------------------------------


@check("must")
def a_bad_span_never_costs_its_neighbour(t: Target) -> None:
    for bad in (
        {"traceId": "0" * 32},
        {"spanId": "0" * 16},
        {"traceId": ""},
        {"spanId": "abcd"},
        {"spanId": "zz" * 8},
        {"traceId": hex_id() + "00"},
    ):
        trace = hex_id()
        answer = t.json(json_span(trace), json_span(hex_id(), **bad))
        assert answer.status_code == 200
        number, message = rejected(answer)
        assert number == 1, bad
        assert message
        assert len(t.stored(trace)) == 1


@check("should")
def odd_times_are_kept_and_flagged(t: Target) -> None:
    for fields, flag in (
        (
            {"startTimeUnixNano": "1790000000005000000", "endTimeUnixNano": "1790000000000000000"},
            "end_before_start",
        ),
        ({"startTimeUnixNano": "0"}, "time_zero"),
        ({"endTimeUnixNano": "18446744073709551615"}, "time_overflow"),
    ):
        trace = hex_id()
        assert t.json(json_span(trace, **fields)).status_code == 200
        assert flag in t.one(trace)["flags"]


@check("quality")
def text_that_is_not_utf8_costs_no_other_span(t: Target) -> None:
    trace = os.urandom(16)
    content = trace_request(span("good", trace_id=trace), span("BAD!", trace_id=trace)).SerializeToString()
    assert t.post(content.replace(b"BAD!", b"BAD\xff")).status_code == 200
    rows = {row["name"]: row["flags"] for row in t.stored(trace.hex())}
    assert rows["good"] is None
    assert rows["BAD\ufffd"] == "invalid_utf8"


@check("quality")
def hostile_text_is_data(t: Target) -> None:
    hostile = {
        "sql": "'; DROP TABLE spans; --",
        '$."k"[0]': "a key that looks like a path",
        "markup": "<script>alert(1)</script>",
        "formula": '=HYPERLINK("http://x")',
        "path": "../../../etc/passwd\x00",
        "terminal": "\x1b[2J\r\nforged: line",
        "bidi": "\u202egnp.exe",
        "": "an empty key",
    }
    trace = os.urandom(16)
    assert t.post(trace_request(span("';--", hostile, trace_id=trace)).SerializeToString()).status_code == 200
    assert t.one(trace.hex())["attributes"] == hostile


@check("must")
def a_re_delivery_is_taken_again(t: Target) -> None:
    trace = os.urandom(16)
    content = trace_request(span("op", trace_id=trace)).SerializeToString()
    assert [t.post(content).status_code for _ in range(3)] == [200] * 3
    assert len({row["span_id"] for row in t.stored(trace.hex())}) == 1


@check("quality")
def what_was_acknowledged_is_visible_at_once(t: Target) -> None:
    trace = os.urandom(16)
    assert t.post(trace_request(span("op", trace_id=trace)).SerializeToString()).status_code == 200
    assert len(t.stored(trace.hex())) == 1


# ---- other signals, health ----------------------------------------------------------------------------------------


@check("must")
def logs_are_taken_and_metrics_answered(t: Target) -> None:
    assert t.post(log_request(), path="/v1/logs").status_code == 200
    assert t.post(b"", path="/v1/metrics").status_code == 200


@check("quality")
def health_answers_and_tells_nothing_of_the_inside(t: Target) -> None:
    assert t.http.get("/readyz").status_code == 200
    answer = t.post(b"\xff")
    assert "server" not in answer.headers
    assert b"Traceback" not in answer.content


# ---- gRPC ---------------------------------------------------------------------------------------------------------


@check("must")
def grpc_stores_and_says_ok(t: Target) -> None:
    trace = os.urandom(16)
    assert t.call(trace_request(span("op", trace_id=trace)).SerializeToString()) == grpc.StatusCode.OK
    assert len(t.stored(trace.hex())) == 1
    assert t.call(b"") == grpc.StatusCode.OK


@check("must")
def grpc_compression(t: Target) -> None:
    for kind in (grpc.Compression.Gzip, grpc.Compression.Deflate):
        assert t.call(body(), compression=kind) == grpc.StatusCode.OK


@check("must")
def grpc_garbage_is_invalid_argument(t: Target) -> None:
    assert t.call(b"\xff\xff\xff") == grpc.StatusCode.INVALID_ARGUMENT


@check("must")
def grpc_more_than_the_limit_is_resource_exhausted(t: Target) -> None:
    limit = t.collector.settings.max_request_bytes
    assert t.call(bytes(limit + 1)) == grpc.StatusCode.RESOURCE_EXHAUSTED


@check("should")
def grpc_twenty_mebibytes(t: Target) -> None:
    spans = [span("op", {"text": "x" * 1_000_000}) for _ in range(20)]
    assert t.call(trace_request(*spans).SerializeToString()) == grpc.StatusCode.OK


@check("must")
def grpc_other_services(t: Target) -> None:
    assert t.call(log_request(), LOGS_EXPORT) == grpc.StatusCode.OK
    assert t.call(b"", METRICS_EXPORT) in (grpc.StatusCode.OK, grpc.StatusCode.UNIMPLEMENTED)
    assert t.call(b"", "/nothing.Service/Do") == grpc.StatusCode.UNIMPLEMENTED


@check("quality")
def grpc_odd_spans_are_never_unknown_nor_retryable(t: Target) -> None:
    for odd in ({"trace_id": b""}, {"span_id": bytes(8)}, {"end_time_unix_nano": 1}, {"kind": 77}):
        good = os.urandom(16)
        code = t.call(trace_request(span("good", trace_id=good), span("odd", **odd)).SerializeToString())
        assert code == grpc.StatusCode.OK
        assert len(t.stored(good.hex())) >= 1


def main() -> int:
    """Run everything against a collector of this process; 0 when all is met."""
    met: dict[str, list[int]] = {"must": [0, 0], "should": [0, 0], "quality": [0, 0]}
    with tempfile.TemporaryDirectory(prefix="agent-slo-conformance-") as data:
        settings = CollectorSettings(data=Path(data), http="127.0.0.1:0", grpc="127.0.0.1:0")
        with Collector(settings) as collector, closing(Target(collector)) as target:
            for one in CHECKS:
                try:
                    one.run(target)
                    said = "ok"
                except (AssertionError, httpx.HTTPError, OSError, ValueError) as e:
                    said = f"FAILED {type(e).__name__} {e}".rstrip()
                met[one.level][0] += said == "ok"
                met[one.level][1] += 1
                print(f"{one.level:8}{one.name.replace('_', ' ')}: {said}")
    print(", ".join(f"{level} {good}/{all_}" for level, (good, all_) in met.items()))
    return int(any(good < all_ for good, all_ in met.values()))


if __name__ == "__main__":
    sys.exit(main())
