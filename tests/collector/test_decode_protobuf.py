from __future__ import annotations

import json
import math
from typing import Any

import pytest

from collector.decode import BadRequest, decode
from tests.collector.requests import START, any_value, log_request, span, trace_request


def decoded(*spans: Any, **kw: Any) -> tuple[list[dict[str, Any]], dict[str, int]]:
    result = decode("traces", "protobuf", trace_request(*spans, **kw).SerializeToString())
    table = result.batch.spans
    return (table.to_pylist() if table is not None else []), result.rejected.reasons


def test_a_plain_span() -> None:
    [row], rejected = decoded(
        span(
            "chat",
            {"gen_ai.request.model": "m"},
            trace_id=bytes(range(16)),
            span_id=bytes(range(1, 9)),
            parent_span_id=bytes(range(2, 10)),
            kind=3,
            trace_state="a=1",
        )
    )
    assert rejected == {}
    assert row == {
        "trace_id": "000102030405060708090a0b0c0d0e0f",
        "span_id": "0102030405060708",
        "parent_span_id": "0203040506070809",
        "name": "chat",
        "kind": "client",
        "start_ns": START,
        "end_ns": START + 5_000_000,
        "status": "unset",
        "status_message": "",
        "service": "bot",
        "scope": "agent",
        "scope_version": "1",
        "trace_state": "a=1",
        "attributes": '{"gen_ai.request.model":"m"}',
        "resource": '{"service.name":"bot"}',
        "events": None,
        "links": None,
        "flags": None,
    }


def test_values_keep_type_and_exactness() -> None:
    values = {
        "max": 2**63 - 1,
        "min": -(2**63),
        "double": 0.1,
        "whole": 2.0,
        "yes": True,
        "bytes": b"\x00\xff\x10",
        "list": [1, "a", None, [2.5]],
        "map": {"x": 1, "y": {"z": [True]}},
        "absent": None,
        "nan": math.nan,
        "inf": math.inf,
        "minus": -math.inf,
        "nul": "a\x00b",
        "a": "top",
        "a.b": "leaf",
    }
    [row], _ = decoded(span("x", values))
    assert json.loads(row["attributes"]) == {
        **values,
        "bytes": {"base64": "AP8Q"},
        "nan": "NaN",
        "inf": "Infinity",
        "minus": "-Infinity",
    }
    assert '"whole":2.0' in row["attributes"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"trace_id": bytes(16)}, "trace_id is all zeros"),
        ({"trace_id": b""}, "trace_id is not 16 bytes"),
        ({"trace_id": b"x" * 8}, "trace_id is not 16 bytes"),
        ({"trace_id": b"x" * 32}, "trace_id is not 16 bytes"),
        ({"span_id": bytes(8)}, "span_id is all zeros"),
        ({"span_id": b"abcd"}, "span_id is not 8 bytes"),
    ],
)
def test_a_span_without_usable_ids_is_rejected_and_its_neighbour_lives(
    fields: dict[str, bytes], reason: str
) -> None:
    rows, rejected = decoded(span("good"), span("bad", **fields))
    assert [r["name"] for r in rows] == ["good"]
    assert rejected == {reason: 1}


def test_a_request_of_which_nothing_can_be_kept_is_a_bad_request() -> None:
    with pytest.raises(BadRequest, match="trace_id is all zeros"):
        decoded(span("bad", trace_id=bytes(16)))


@pytest.mark.parametrize(
    ("fields", "start", "end", "flags"),
    [
        ({"start_time_unix_nano": START, "end_time_unix_nano": START - 9}, START, START, "end_before_start"),
        ({"start_time_unix_nano": 0, "end_time_unix_nano": 0}, 0, None, "time_zero"),
        ({"start_time_unix_nano": START, "end_time_unix_nano": 0}, START, None, None),
        ({"start_time_unix_nano": 1, "end_time_unix_nano": 2}, 1, 2, "time_before_2000"),
        (
            {"start_time_unix_nano": 2**63 + 5, "end_time_unix_nano": 2**64 - 1},
            2**63 - 1,
            2**63 - 1,
            "time_overflow",
        ),
    ],
)
def test_odd_times_are_kept_and_flagged(
    fields: dict[str, int], start: int, end: int | None, flags: str | None
) -> None:
    [row], rejected = decoded(span("x", **fields))
    assert (row["start_ns"], row["end_ns"], row["flags"], rejected) == (start, end, flags, {})


def test_unknown_enums_bad_parents_and_dropped_counts_are_flagged() -> None:
    odd = span(kind=99, parent_span_id=b"abc", dropped_attributes_count=1, dropped_events_count=2)
    odd.status.code = 7
    [row], _ = decoded(odd)
    assert (row["kind"], row["status"], row["parent_span_id"]) == ("unspecified", "unset", None)
    assert row["flags"] == "bad_parent_id,dropped_attributes,dropped_events,unknown_enum"


def test_a_zero_parent_is_a_root() -> None:
    [row], _ = decoded(span(parent_span_id=bytes(8)))
    assert (row["parent_span_id"], row["flags"]) == (None, None)


def test_of_a_repeated_key_the_last_wins() -> None:
    s = span("x", {"k": "one"})
    s.attributes.add(key="k", value=any_value("two"))
    [row], _ = decoded(s)
    assert (json.loads(row["attributes"]), row["flags"]) == ({"k": "two"}, "duplicate_attribute")


def test_events_and_links() -> None:
    s = span()
    event = s.events.add(name="exception", time_unix_nano=START)
    event.attributes.add(key="exception.type", value=any_value("TimeoutError"))
    s.links.add(trace_id=b"t" * 16, span_id=b"s" * 8).attributes.add(key="why", value=any_value("retry"))
    [row], _ = decoded(s)
    assert json.loads(row["events"]) == [
        {"name": "exception", "time_ns": START, "attributes": {"exception.type": "TimeoutError"}}
    ]
    assert json.loads(row["links"]) == [
        {"trace_id": b"t".hex() * 16, "span_id": b"s".hex() * 8, "attributes": {"why": "retry"}}
    ]


def test_no_service_is_null() -> None:
    [row], _ = decoded(span(), service="")
    assert (row["service"], row["resource"]) == (None, "{}")


def test_bytes_that_are_no_request() -> None:
    for body in (bytes(range(256)), trace_request(span()).SerializeToString()[:-5]):
        with pytest.raises(BadRequest):
            decode("traces", "protobuf", body)


def test_an_empty_request_holds_nothing() -> None:
    assert decode("traces", "protobuf", b"").batch.rows == 0


def test_a_log_record() -> None:
    table = decode("logs", "protobuf", log_request("go")).batch.logs
    assert table is not None
    [row] = table.to_pylist()
    assert (row["body"], row["severity"], row["event_name"], row["time_ns"], row["observed_ns"]) == (
        '"go"',
        "ERROR",
        "decision",
        START,
        None,
    )
    assert (row["service"], row["trace_id"]) == ("bot", None)
