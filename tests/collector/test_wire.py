from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.decode import BadRequest, decode
from collector.wire import repair
from tests.collector.requests import span, trace_request


def nested(levels: int) -> bytes:
    """Wire bytes of an AnyValue of arrays in arrays."""

    def field(number: int, content: bytes) -> bytes:
        out = bytearray([number << 3 | 2])
        size = len(content)
        while size > 127:
            out.append(size & 127 | 128)
            size >>= 7
        out.append(size)
        return bytes(out) + content

    value = field(1, b"leaf")
    for _ in range(levels):
        value = field(5, field(1, value))
    return value


def with_raw(marker: bytes, replacement: bytes, *others: str) -> bytes:
    """A request whose first span's name holds `replacement` (same length as `marker`)."""
    request = trace_request(span(marker.decode()), *(span(name) for name in others)).SerializeToString()
    assert len(marker) == len(replacement)
    return bytes(request).replace(marker, replacement)


def test_text_cut_inside_a_character_costs_nothing_else() -> None:
    body = with_raw(b"MARKER", b"caf\xc3\xff\xfe", "good")
    with pytest.raises(DecodeError):
        ExportTraceServiceRequest().ParseFromString(body)
    table = decode("traces", "protobuf", body).batch.spans
    assert table is not None
    assert table.column("name").to_pylist() == ["caf\ufffd\ufffd\ufffd", "good"]
    assert table.column("flags").to_pylist() == ["invalid_utf8", None]


def test_a_value_nested_past_the_limit_is_emptied_and_its_span_kept() -> None:
    whole = trace_request(span("deep", {"deep": nested(400)}), span("good"))
    # The bytes value above travels as bytes; as a value of its own it must be spliced in by hand.
    raw = whole.resource_spans[0].scope_spans[0].spans[0].attributes[0]
    spliced = b"\x0a\x04deep" + b"\x12" + _size(len(nested(400))) + nested(400)
    body = _replace_pair(whole, raw.SerializeToString(), spliced)
    table = decode("traces", "protobuf", body).batch.spans
    assert table is not None
    assert table.column("name").to_pylist() == ["deep", "good"]
    assert table.column("flags").to_pylist() == ["too_deep", None]


def _size(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _replace_pair(request: ExportTraceServiceRequest, old: bytes, new: bytes) -> bytes:
    spans = []
    for s in request.resource_spans[0].scope_spans[0].spans:
        data = bytes(s.SerializeToString())
        field = b"\x4a" + _size(len(old)) + old
        spans.append(data.replace(field, b"\x4a" + _size(len(new)) + new))
    scope = b"".join(b"\x12" + _size(len(s)) + s for s in spans)
    resource = b"\x12" + _size(len(scope)) + scope
    return b"\x0a" + _size(len(resource)) + resource


def test_what_is_whole_is_left_as_it_is() -> None:
    body = bytes(trace_request(span("x", {"a": {"b": [1, 2.5, b"z", True]}}), span("y")).SerializeToString())
    assert repair(body, "traces") == (body, {})


def rows_and_rejected(body: bytes) -> int:
    """How many spans were found; -1 for a bad request."""
    try:
        result = decode("traces", "protobuf", body)
    except BadRequest:
        return -1
    return result.batch.rows + result.rejected.number


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_a_request_or_a_bad_request(body: bytes) -> None:
    assert rows_and_rejected(body) >= -1


@settings(deadline=None)
@given(st.integers(0, 400), st.integers(0, 255))
def test_one_changed_byte_never_breaks_the_decoder(at: int, value: int) -> None:
    whole = trace_request(span("x", {"k": "text", "n": [1, {"a": 2}]}), span("y")).SerializeToString()
    body = bytearray(whole)
    body[at % len(body)] = value
    assert -1 <= rows_and_rejected(bytes(body)) <= 3
