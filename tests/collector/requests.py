"""Small export requests for the tests."""

from __future__ import annotations

import os
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

START = 1_790_000_000_000_000_000


def any_value(value: Any) -> AnyValue:
    """AnyValue of a Python value; None is an absent value."""
    out = AnyValue()
    if value is None:
        return out
    if isinstance(value, bool):
        out.bool_value = value
    elif isinstance(value, int):
        out.int_value = value
    elif isinstance(value, float):
        out.double_value = value
    elif isinstance(value, bytes):
        out.bytes_value = value
    elif isinstance(value, str):
        out.string_value = value
    elif isinstance(value, list):
        out.array_value.SetInParent()
        out.array_value.values.extend(any_value(v) for v in value)
    else:
        out.kvlist_value.SetInParent()
        out.kvlist_value.values.extend(KeyValue(key=k, value=any_value(v)) for k, v in value.items())
    return out


def span(name: str = "op", attributes: dict[str, Any] | None = None, **fields: Any) -> Span:
    """A span with random ids unless given."""
    values: dict[str, Any] = {
        "trace_id": os.urandom(16),
        "span_id": os.urandom(8),
        "start_time_unix_nano": START,
        "end_time_unix_nano": START + 5_000_000,
        "kind": 1,
        **fields,
    }
    pairs = [KeyValue(key=k, value=any_value(v)) for k, v in (attributes or {}).items()]
    return Span(name=name, attributes=pairs, **values)


def trace_request(*spans: Span, service: str = "bot") -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    if service:
        resource_spans.resource.attributes.append(KeyValue(key="service.name", value=any_value(service)))
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = "agent"
    scope_spans.scope.version = "1"
    scope_spans.spans.extend(spans)
    return request


def body(number: int = 1, **fields: Any) -> bytes:
    """A request of `number` plain spans, serialised."""
    return bytes(trace_request(*(span(**fields) for _ in range(number))).SerializeToString())


def log_request(text: str = "hello") -> bytes:
    request = ExportLogsServiceRequest()
    resource_logs = request.resource_logs.add()
    resource_logs.resource.attributes.append(KeyValue(key="service.name", value=any_value("bot")))
    record = resource_logs.scope_logs.add().log_records.add()
    record.body.string_value = text
    record.time_unix_nano = START
    record.severity_number = 17
    record.event_name = "decision"
    return bytes(request.SerializeToString())
