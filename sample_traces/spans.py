"""Spans of the sample company, made by the real OpenTelemetry SDK and encoded by the real OTLP encoder.

Only three things differ from a running agent: ids come from a seeded generator, start and end times are
given, and finished spans are collected instead of exported. A root that is never ended is therefore never
seen, exactly as with a killed process.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, Tracer, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

SDK_VERSION = "1.40.0"  # what the agents are said to run: the bytes must not follow our own SDK
ID_FIELDS = ("traceId", "spanId", "parentSpanId")


class SeededIds(IdGenerator):
    """Trace and span ids from a generator that is seeded anew for each task."""

    def __init__(self) -> None:
        self._random = random.Random(0)

    def seed(self, value: str) -> None:
        self._random = random.Random(value)

    def generate_span_id(self) -> int:
        return self._random.getrandbits(64) | 1

    def generate_trace_id(self) -> int:
        return self._random.getrandbits(128) | 1


class Finished(SpanProcessor):
    """Collects the spans that ended, in the order of their ends in the program."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self._spans.append(span)

    def take(self) -> list[ReadableSpan]:
        spans, self._spans = self._spans, []
        return spans


class Telemetry:
    """The SDK set-ups of all agent processes: one tracer provider for each resource."""

    def __init__(self) -> None:
        self.ids = SeededIds()
        self.finished = Finished()
        self._providers: dict[str, TracerProvider] = {}

    def tracer(self, resource: Mapping[str, str], scope: str, scope_version: str) -> Tracer:
        key = json.dumps(resource, sort_keys=True)
        provider = self._providers.get(key)
        if provider is None:
            # Everything explicit: the OTEL_* variables of the user's shell must not change the bytes.
            limits = SpanLimits(
                max_span_attributes=2048, max_events=512, max_links=8,
                max_event_attributes=128, max_link_attributes=128,
                max_span_attribute_length=SpanLimits.UNSET, max_attribute_length=SpanLimits.UNSET,
            )  # fmt: skip
            provider = TracerProvider(
                sampler=ALWAYS_ON,
                resource=Resource(
                    {
                        "telemetry.sdk.language": "python",
                        "telemetry.sdk.name": "opentelemetry",
                        "telemetry.sdk.version": SDK_VERSION,
                        **resource,
                    }
                ),
                shutdown_on_exit=False,
                id_generator=self.ids,
                span_limits=limits,
            )
            provider.add_span_processor(self.finished)
            self._providers[key] = provider
        tracer = provider.get_tracer(scope, scope_version)
        if not isinstance(tracer, Tracer):
            raise RuntimeError(
                "the OpenTelemetry SDK is switched off (OTEL_SDK_DISABLED): unset it to make sample traces"
            )
        return tracer


def encode(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
    """One OTLP request holding ``spans``, grouped by resource and scope."""
    return encode_spans(spans)


def to_json(request: ExportTraceServiceRequest) -> dict[str, Any]:
    """The OTLP/JSON form of a request: hex ids, integer enums, 64-bit integers as strings."""
    body: dict[str, Any] = MessageToDict(request, use_integers_for_enums=True)
    for span in _ids_of(body):
        for field in ID_FIELDS:
            if field in span:
                span[field] = base64.b64decode(span[field]).hex()
    return body


def from_json(body: Mapping[str, Any]) -> ExportTraceServiceRequest:
    """The protobuf form of one OTLP/JSON request (the opposite of `to_json`); ``body`` is left unchanged.

    Raises `google.protobuf.json_format.ParseError` when ``body`` is no OTLP request.
    """

    def packed(carrier: dict[str, Any]) -> dict[str, Any]:
        ids = {
            field: base64.b64encode(bytes.fromhex(carrier[field])).decode("ascii")
            for field in ID_FIELDS
            if field in carrier
        }
        links = {"links": [packed(link) for link in carrier["links"]]} if "links" in carrier else {}
        return {**carrier, **ids, **links}

    request = ExportTraceServiceRequest()
    ParseDict(with_spans(body, packed), request)
    return request


def with_spans(body: Mapping[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """A copy of one OTLP/JSON request with each span replaced by ``change(span)``.

    All that is not replaced is shared with ``body``: ``change`` must return a new span, not alter its own.
    """
    return {
        **body,
        "resourceSpans": [
            {
                **resource,
                "scopeSpans": [
                    {**scope, "spans": [change(span) for span in scope.get("spans", [])]}
                    for scope in resource.get("scopeSpans", [])
                ],
            }
            for resource in body.get("resourceSpans", [])
        ],
    }


def trace_of(span: ReadableSpan) -> str:
    """The trace id of a span as 32 hex digits."""
    context = span.get_span_context()
    if context is None:
        raise ValueError(f"span {span.name!r} has no context")
    return f"{context.trace_id:032x}"


def _ids_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Everything in a request that carries ids: its spans and their links."""
    spans = spans_of(body)
    return spans + [link for span in spans for link in span.get("links", [])]


def spans_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The spans of one OTLP/JSON request, in order."""
    return [
        span
        for resource in body.get("resourceSpans", [])
        for scope in resource.get("scopeSpans", [])
        for span in scope.get("spans", [])
    ]
