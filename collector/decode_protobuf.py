"""OTLP protobuf requests to rows, by the protobuf runtime (upb)."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector import policy
from collector.batch import LogRow, Rejected, SpanRow
from collector.policy import BadRequest
from collector.request_size import check_protobuf, paced
from collector.values import attributes, from_any, json_text
from collector.wire import repair


def spans(body: bytes, rejected: Rejected) -> list[SpanRow]:
    """Rows of an ExportTraceServiceRequest; spans that cannot be kept are counted in `rejected`.

    Raises BadRequest when the bytes are no such request, TooManyItems when they hold too much.
    """
    check_protobuf(body, "traces")
    request = ExportTraceServiceRequest()
    repaired: dict[int, list[str]] = {}
    try:
        request.ParseFromString(body)
    except DecodeError:
        # Strings cut in the middle of a character, or values nested past the runtime's limit: mend
        # those in the bytes, so that the other spans live. Anything else is not readable for good.
        body, repaired = repair(body, "traces")
        try:
            request.ParseFromString(body)
        except DecodeError as e:
            raise BadRequest("the body is not an ExportTraceServiceRequest in protobuf") from e
    rows: list[SpanRow] = []
    number = 0
    for resource_spans in request.resource_spans:
        resource_flags: list[str] = []
        resource = attributes(resource_spans.resource.attributes, resource_flags)
        service = service_name(resource)
        resource_text = json_text(resource)
        for scope_spans in resource_spans.scope_spans:
            scope, scope_version = scope_spans.scope.name, scope_spans.scope.version
            for span in paced(scope_spans.spans, body):
                flags = [*resource_flags, *repaired.get(number, ())]
                number += 1
                trace_id, span_id = span.trace_id.hex(), span.span_id.hex()
                reason = policy.check_trace_id(trace_id) or policy.check_span_id(span_id)
                if reason is not None:
                    rejected.add(reason)
                    continue
                start, end = policy.times(span.start_time_unix_nano, span.end_time_unix_nano, flags)
                text = json_text(attributes(span.attributes, flags))
                if span.dropped_attributes_count:
                    flags.append(policy.DROPPED[0])
                if span.dropped_events_count:
                    flags.append(policy.DROPPED[1])
                if span.dropped_links_count:
                    flags.append(policy.DROPPED[2])
                events = json_text([_event(e, flags) for e in span.events]) if span.events else None
                links = json_text([_link(link, flags) for link in span.links]) if span.links else None
                rows.append(
                    (
                        trace_id,
                        span_id,
                        policy.parent_id(span.parent_span_id.hex(), span.flags, flags),
                        span.name,
                        policy.kind_name(span.kind, flags),
                        start,
                        end,
                        policy.status_name(span.status.code, flags),
                        span.status.message,
                        service,
                        scope,
                        scope_version,
                        span.trace_state,
                        text,
                        resource_text,
                        events,
                        links,
                        policy.joined(flags),
                    )
                )
    return rows


def logs(body: bytes, rejected: Rejected) -> list[LogRow]:
    """Rows of an ExportLogsServiceRequest; repairs are counted in `rejected`.

    Raises BadRequest when the bytes are no such request.
    """
    check_protobuf(body, "logs")
    request = ExportLogsServiceRequest()
    repaired: dict[int, list[str]] = {}
    try:
        request.ParseFromString(body)
    except DecodeError:
        body, repaired = repair(body, "logs")
        try:
            request.ParseFromString(body)
        except DecodeError as e:
            raise BadRequest("the body is not an ExportLogsServiceRequest in protobuf") from e
    rows: list[LogRow] = []
    for resource_logs in request.resource_logs:
        resource_flags: list[str] = []
        resource = attributes(resource_logs.resource.attributes, resource_flags)
        service = service_name(resource)
        resource_text = json_text(resource)
        for scope_logs in resource_logs.scope_logs:
            for record in paced(scope_logs.log_records, body):
                flags = [*resource_flags, *repaired.get(len(rows), ())]
                rows.append(
                    (
                        policy.log_id(record.trace_id.hex(), 32, flags),
                        policy.log_id(record.span_id.hex(), 16, flags),
                        policy.log_time(record.time_unix_nano, flags),
                        policy.log_time(record.observed_time_unix_nano, flags),
                        policy.severity(record.severity_text, record.severity_number),
                        record.event_name or None,
                        json_text(from_any(record.body, flags)) if record.HasField("body") else None,
                        json_text(attributes(record.attributes, flags)),
                        resource_text,
                        service,
                        scope_logs.scope.name,
                    )
                )
                if flags:
                    rejected.repaired(flags)
    return rows


def service_name(resource: dict[str, Any]) -> str | None:
    """The resource's service.name, None when absent or no text."""
    name = resource.get("service.name")
    return name if isinstance(name, str) and name else None


def _event(event: Any, flags: list[str]) -> dict[str, Any]:
    return {
        "name": event.name,
        "time_ns": min(event.time_unix_nano, policy.MAX_NS),
        "attributes": attributes(event.attributes, flags),
    }


def _link(link: Any, flags: list[str]) -> dict[str, Any]:
    return {
        "trace_id": link.trace_id.hex(),
        "span_id": link.span_id.hex(),
        "attributes": attributes(link.attributes, flags),
    }
