from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.decode import BadRequest, decode
from tests.collector.requests import START, span, trace_request

TRACE, SPAN = "c0ffee" + "0" * 25 + "1", "00000000000000a1"


def json_span(**fields: Any) -> dict[str, Any]:
    return {
        "traceId": TRACE,
        "spanId": SPAN,
        "name": "op",
        "kind": 3,
        "startTimeUnixNano": str(START),
        "endTimeUnixNano": str(START + 7),
        **fields,
    }


def request(*spans: Any) -> dict[str, Any]:
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "js"}}]},
                "scopeSpans": [{"scope": {"name": "ai"}, "spans": list(spans)}],
            }
        ]
    }


def decoded(body: Any) -> tuple[list[dict[str, Any]], dict[str, int]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    result = decode("traces", "json", raw)
    table = result.batch.spans
    return (table.to_pylist() if table is not None else []), result.rejected.reasons


def attribute(**value: Any) -> dict[str, Any]:
    return json_span(attributes=[{"key": "k", "value": value}])


def test_ids_of_either_case() -> None:
    [row], _ = decoded(request(json_span(traceId=TRACE.upper(), spanId="ABCDEF0123456789")))
    assert (row["trace_id"], row["span_id"], row["kind"]) == (TRACE, "abcdef0123456789", "client")


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ({"intValue": 42}, 42),
        ({"intValue": "42"}, 42),
        ({"intValue": str(2**63 - 1)}, 2**63 - 1),
        ({"intValue": -(2**63)}, -(2**63)),
        ({"intValue": 2**53 + 1}, 2**53 + 1),
        ({"doubleValue": 25.5}, 25.5),
        ({"doubleValue": "1.5"}, 1.5),
        ({"doubleValue": "NaN"}, "NaN"),
        ({"doubleValue": "-Infinity"}, "-Infinity"),
        ({"boolValue": False}, False),
        ({"bytesValue": base64.b64encode(b"\x00\xff\x10").decode()}, {"base64": "AP8Q"}),
        ({"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "a"}, {}]}}, [1, "a", None]),
        ({"kvlistValue": {"values": [{"key": "z", "value": {"boolValue": True}}]}}, {"z": True}),
        ({"arrayValue": {}}, []),
        ({}, None),
        ({"futureValue": 1}, None),
        ({"stringValue": None, "intValue": 3}, 3),
    ],
)
def test_values(value: dict[str, Any], stored: Any) -> None:
    [row], rejected = decoded(request(attribute(**value)))
    assert (json.loads(row["attributes"]), rejected) == ({"k": stored}, {})


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"traceId": 12345}, "traceId is a JSON number, not a string"),
        ({"traceId": TRACE[:-1]}, "trace_id is not 16 bytes"),
        ({"traceId": "zz" * 16}, "traceId is not hexadecimal"),
        ({"traceId": base64.b64encode(b"x" * 16).decode()}, "traceId is not hexadecimal"),
        ({"name": 5}, "name is a JSON number, not a string"),
        ({"kind": 1.5}, "kind is not an integer"),
        ({"kind": {}}, "kind is not an integer"),
        ({"startTimeUnixNano": "-5"}, "startTimeUnixNano is outside the unsigned 64-bit range"),
        ({"events": {"a": 1}}, "events is not an array of objects"),
        ({"status": []}, "status is a JSON array, not an object"),
        ({"attributes": [{"key": "k", "value": {"intValue": str(2**64)}}]}, "intValue is outside"),
        ({"attributes": [{"key": "k", "value": {"bytesValue": "!"}}]}, "bytesValue is not base64"),
        ({"attributes": [{"key": "k", "value": "text"}]}, "an attribute value is a JSON string"),
    ],
)
def test_a_bad_span_is_counted_and_its_neighbour_lives(bad: dict[str, Any], reason: str) -> None:
    rows, rejected = decoded(request(json_span(name="good"), json_span(**bad)))
    assert [r["name"] for r in rows] == ["good"]
    assert len(rejected) == 1
    assert next(iter(rejected)).startswith(reason)
    with pytest.raises(BadRequest, match="nothing in this request"):
        decoded(request(json_span(**bad)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"resourceSpans": [ {"a": }',
        b"[]",
        b"null",
        b'"text"',
        json.dumps({"resourceSpans": {}}).encode(),
        json.dumps({"resourceSpans": [1]}).encode(),
        json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": {"a": 1}}]}]}).encode(),
        json.dumps({"resourceSpans": [{"resource": {"attributes": {}}}]}).encode(),
    ],
)
def test_broken_envelopes_are_bad_requests(body: bytes) -> None:
    with pytest.raises(BadRequest):
        decoded(body)


def test_snake_case_and_unknown_keys_are_ignored() -> None:
    snake = {"resource_spans": [{"scope_spans": [{"spans": [{"trace_id": TRACE, "span_id": SPAN}]}]}]}
    assert decoded(snake) == ([], {})
    [row], _ = decoded({**request(json_span(future={"a": [None]}, start_time_unix_nano="1")), "x": 1})
    assert (row["start_ns"], row["flags"]) == (START, None)


def test_a_request_in_which_nothing_is_known_is_told() -> None:
    snake = {"resource_spans": [{"scope_spans": [{"spans": [{"trace_id": TRACE, "span_id": SPAN}]}]}]}
    old = {"resourceSpans": [{"resource": {}, "instrumentationLibrarySpans": [{"spans": [json_span()]}]}]}
    for signal, wrong, key in (
        ("traces", snake, "resource_spans"),
        ("traces", old, "instrumentationLibrarySpans"),
        ("traces", {"resourceSpans": [{"scopeSpans": [{"span": []}]}]}, "span"),
        ("traces", {"resourceLogs": []}, "resourceLogs"),
        ("logs", {"x" * 500: 1}, "x" * 40),
    ):
        rejected = decode(signal, "json", json.dumps(wrong).encode()).rejected  # type: ignore[arg-type]
        assert (rejected.number, f"keys not known here: {key!r};" in rejected.message()) == (0, True)
    for fine in ({}, {"resourceSpans": []}, {"resourceSpans": [{"scopeSpans": [{"spans": []}]}]}):
        assert decode("traces", "json", json.dumps(fine).encode()).rejected.message() == ""
    assert (
        decode("traces", "json", json.dumps({**request(json_span()), "x": 1}).encode()).rejected.message()
        == ""
    )


@pytest.mark.parametrize(
    ("number", "stored"),
    [("NaN", "NaN"), ("Infinity", "Infinity"), ("-Infinity", "-Infinity")],
)
def test_numbers_that_json_does_not_know_are_the_doubles_they_are(number: str, stored: str) -> None:
    text = 'a "NaN", b: NaN, -Infinity'
    spans = request(
        json_span(name=text, attributes=[{"key": text, "value": {"doubleValue": "@@"}}]),
        json_span(attributes=[{"key": "k", "value": {"doubleValue": "NaN"}}]),
    )
    rows, rejected = decoded(json.dumps(spans).encode().replace(b'"@@"', number.encode()))
    assert rejected == {}
    assert (rows[0]["name"], json.loads(rows[0]["attributes"]), rows[0]["flags"]) == (
        text,
        {text: stored},
        "json_number",
    )
    assert (json.loads(rows[1]["attributes"]), rows[1]["flags"]) == ({"k": "NaN"}, None)


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (b'"name": NaN', "name is a JSON object, not a string"),
        (b'"startTimeUnixNano": Infinity', "startTimeUnixNano is not an integer"),
        (b'"attributes": [{"key": "k", "value": {"intValue": NaN}}]', "intValue is not an integer"),
        (b'"attributes": [{"key": "k", "value": {"stringValue": NaN}}]', "stringValue is a JSON object"),
    ],
)
def test_a_bare_nan_where_no_double_is_costs_only_its_span(field: bytes, reason: str) -> None:
    body = json.dumps(request(json_span(at=1), json_span(name="good"))).encode().replace(b'"at": 1', field)
    rows, rejected = decoded(body)
    assert [r["name"] for r in rows] == ["good"]
    assert next(iter(rejected)).startswith(reason)


def test_a_body_that_is_no_json_for_want_of_quotes_names_the_cure() -> None:
    for wrong in (b'{"resourceSpans": NaNs}', b'{"a": NaN'):
        with pytest.raises(BadRequest, match='NaN and Infinity are written in quotes: "NaN"'):
            decoded(wrong)
    with pytest.raises(BadRequest, match=r"not JSON: [^\"]*$"):
        decoded(b'{"a": nil}')


@pytest.mark.parametrize(
    ("written", "stored", "flags"),
    [
        (1.0, 1, None),
        ("1.0", 1, None),
        ("1e3", 1000, None),
        ("9007199254740993.0", 9007199254740993, None),
        (1.5, 1.5, "json_number"),
        ("-2.5", -2.5, "json_number"),
    ],
)
def test_integers_written_as_fractions(written: Any, stored: Any, flags: str | None) -> None:
    [row], rejected = decoded(request(attribute(intValue=written)))
    assert (json.loads(row["attributes"]), row["flags"], rejected) == ({"k": stored}, flags, {})


@pytest.mark.parametrize("written", ["1e30", "1e999", "ten", "1.", "0x1", True, 1e300])
def test_what_is_no_64_bit_integer_is_refused(written: Any) -> None:
    with pytest.raises(BadRequest, match="intValue is"):
        decoded(request(attribute(intValue=written)))


@pytest.mark.parametrize(
    ("fields", "kind", "status", "flags"),
    [
        ({"kind": "SPAN_KIND_SERVER"}, "server", "unset", "enum_name"),
        ({"kind": "SPAN_KIND_UNSPECIFIED"}, "unspecified", "unset", "enum_name"),
        ({"status": {"code": "STATUS_CODE_ERROR"}}, "internal", "error", "enum_name"),
        ({"kind": "SPAN_KIND_ROBOT"}, "unspecified", "unset", "unknown_enum"),
        ({"kind": "3"}, "client", "unset", None),
    ],
)
def test_enums_by_name_are_read(fields: dict[str, Any], kind: str, status: str, flags: str | None) -> None:
    [row], rejected = decoded(request(json_span(**{"kind": 1, "status": None, **fields})))
    assert (row["kind"], row["status"], row["flags"], rejected) == (kind, status, flags, {})


def test_a_severity_by_name_is_read() -> None:
    record = {"timeUnixNano": "1", "severityNumber": "SEVERITY_NUMBER_WARN2"}
    found = decode(
        "logs", "json", json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()
    )
    assert found.batch.logs is not None
    assert found.batch.logs["severity"].to_pylist() == ["WARN2"]
    assert found.rejected.repairs == {"enum_name": 1}


def test_nulls_are_defaults() -> None:
    [row], _ = decoded(request(json_span(parentSpanId=None, events=None, links=None, status=None, kind=None)))
    assert (row["parent_span_id"], row["events"], row["status"], row["kind"]) == (
        None,
        None,
        "unset",
        "unspecified",
    )


def test_nesting_is_bounded() -> None:
    value: dict[str, Any] = {"stringValue": "leaf"}
    for _ in range(80):
        value = {"arrayValue": {"values": [value]}}
    [row], _ = decoded(request(attribute(**value)))
    assert row["flags"] == "too_deep"


def nested(depth: int, kind: str) -> bytes:
    """An AnyValue of arrays, maps, or an attribute value that is no AnyValue, nested this deep."""
    opening, closing = {
        "array": (b'{"arrayValue":{"values":[', b"]}}"),
        "map": (b'{"kvlistValue":{"values":[{"key":"k","value":', b"}]}}"),
        "junk": (b"[", b"]"),
    }[kind]
    leaf = b"" if kind == "junk" else b'{"stringValue":"leaf"}'
    return opening * depth + leaf + closing * depth


@pytest.mark.parametrize("depth", [64, 65, 100, 500, 3000, 50_000])
@pytest.mark.parametrize("kind", ["array", "map"])
def test_a_value_however_deep_costs_only_itself(depth: int, kind: str) -> None:
    spans = request(json_span(**{"attributes": [{"key": "k", "value": "@@"}]}), json_span(name="good"))
    body = json.dumps(spans).encode().replace(b'"@@"', nested(depth, kind))
    rows, rejected = decoded(body)
    assert ([(r["name"], r["flags"]) for r in rows], rejected) == (
        [("op", "too_deep" if depth > 64 else None), ("good", None)],
        {},
    )


def test_nonsense_however_deep_costs_only_its_span() -> None:
    spans = request(json_span(**{"attributes": "@@"}), json_span(name="good"), json_span(future="@@"))
    body = json.dumps(spans).encode().replace(b'"@@"', nested(5000, "junk"))
    rows, rejected = decoded(body)
    assert ([r["name"] for r in rows], rejected) == (
        ["good", "op"],
        {"an attribute is a JSON array, not an object": 1},
    )


def test_deep_values_and_bad_text_in_one_request() -> None:
    spans = request(
        json_span(**{"attributes": [{"key": "k", "value": "@@"}]}), json_span(name="@1"), json_span()
    )
    body = json.dumps(spans).encode().replace(b'"@@"', nested(500, "map")).replace(b"@1", b"\xff")
    rows, _ = decoded(body)
    assert [r["flags"] for r in rows] == ["too_deep", "invalid_utf8", None]


def test_a_deep_body_that_is_not_json_is_refused() -> None:
    for text in (b"[" * 5000, b"{" * 5000, nested(5000, "junk") + b"x", b'"' + b"[" * 5000):
        with pytest.raises(BadRequest, match="not JSON"):
            decoded(text)
    with pytest.raises(BadRequest, match="an export request is an object"):
        decoded(nested(5000, "junk"))


def test_deep_log_records_cost_only_themselves() -> None:
    record = {"timeUnixNano": "1", "body": "@@"}
    whole = {
        "resourceLogs": [{"scopeLogs": [{"logRecords": [record, {**record, "body": {"stringValue": "x"}}]}]}]
    }
    body = json.dumps(whole).encode().replace(b'"@@"', nested(500, "array"))
    table = decode("logs", "json", body).batch.logs
    assert table is not None
    assert table.num_rows == 2


@pytest.mark.parametrize(
    ("raw", "name"),
    [(b"\xff\xfe", "\ufffd\ufffd"), (b"\\ud800", "\ufffd"), (b"\\\\\\udc00", "\\\ufffd")],
)
def test_bad_text_is_replaced_and_flagged(raw: bytes, name: str) -> None:
    body = json.dumps(request(json_span(name="@@"), json_span(name="good"))).encode().replace(b"@@", raw)
    rows, _ = decoded(body)
    assert [(r["name"], r["flags"]) for r in rows] == [(name, "invalid_utf8"), ("good", None)]


def test_surrogate_pairs_and_escaped_backslashes_are_not_touched() -> None:
    body = json.dumps(request(json_span(name="@1"), json_span(name="@2"))).encode()
    body = body.replace(b"@1", b"\\ud83d\\ude80 \\\\ud800").replace(b"@2", b"\\ud800")
    rows, _ = decoded(body)
    assert [r["name"] for r in rows] == ["\U0001f680 \\ud800", "\ufffd"]


def test_a_byte_order_mark_is_allowed() -> None:
    assert len(decoded(b"\xef\xbb\xbf" + json.dumps(request(json_span())).encode())[0]) == 1


def _to_json(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        special = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
        return {"doubleValue": special.get(str(value), value)}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_to_json(v) for v in value]}}
    return {"kvlistValue": {"values": [{"key": k, "value": _to_json(v)} for k, v in value.items()]}}


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.binary(max_size=10)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None)
@given(
    st.dictionaries(text, values, max_size=6),
    text,
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(-2, 9),
    st.integers(-2, 9),
)
def test_both_encodings_give_the_same_row(
    attributes: dict[str, Any], name: str, start: int, end: int, kind: int, status: int
) -> None:
    binary = span(
        name,
        attributes,
        trace_id=b"t" * 16,
        span_id=b"s" * 8,
        start_time_unix_nano=start,
        end_time_unix_nano=end,
        kind=kind,
    )
    binary.status.code = status
    as_json = {
        "traceId": b"t".hex() * 16,
        "spanId": b"s".hex() * 8,
        "name": name,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": end,
        "kind": kind,
        "status": {"code": status},
        "attributes": [{"key": k, "value": _to_json(v)} for k, v in attributes.items()],
    }
    message = trace_request(binary, service="js")
    message.resource_spans[0].scope_spans[0].scope.name = "ai"
    message.resource_spans[0].scope_spans[0].scope.version = ""
    from_binary = decode("traces", "protobuf", message.SerializeToString()).batch.spans
    from_json = decode("traces", "json", json.dumps(request(as_json)).encode()).batch.spans
    assert from_binary is not None
    assert from_json is not None
    assert from_json.to_pylist() == from_binary.to_pylist()
