"""The span processor: a start marker for every run, and a flush before tools with side effects."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Iterable
from fnmatch import fnmatchcase

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

log = logging.getLogger("agent_slo_emit")

MARKER = "agent_slo.run.started"

RUN_SCOPES = (
    "pydantic-ai*",
    "logfire*",
    "openinference.instrumentation.langchain",
    "openinference.instrumentation.openai_agents",
    "openinference.instrumentation.smolagents",
    "openinference.instrumentation.crewai",
    "openinference.instrumentation.llama_index",
    "openinference.instrumentation.agno",
    "openinference.instrumentation.google_adk",
    "opentelemetry.instrumentation.genai.langchain",
    "opentelemetry.instrumentation.genai.openai_agents",
    "opentelemetry.instrumentation.langchain*",
    "opentelemetry.instrumentation.openai_agents*",
    "opentelemetry.instrumentation.crewai*",
    "opentelemetry.instrumentation.llamaindex*",
    "gcp.vertex.agent",
    "strands.telemetry*",
    "agent_framework*",
    "autogen-core",
    "langfuse*",
)
"""Scopes of agent frameworks: their outermost span in a trace is a run. Model clients are not among them."""

RUN_OPERATIONS = frozenset(("invoke_agent", "invoke_workflow"))
READS = ("get*", "list*", "search*", "lookup*", "find*", "fetch*", "read*")


def instrument(
    provider: TracerProvider,
    *,
    exporter: SpanExporter | None = None,
    scopes: Iterable[str] = (),
    reads: Iterable[str] = READS,
    deadline_s: float | None = None,
    wait_s: float = 0.5,
    flush_s: float = 1.0,
) -> RunMarkers:
    """Add start markers and flushes to a provider. Return the processor.

    `exporter`: sends the markers, at once; without one the exporters of the provider's processors do, so call this
    after they were added. Raises `ValueError` when there is none. The other parameters are described in README.md.
    """
    senders = [exporter] if exporter else _exporters(provider)
    if not senders:
        raise ValueError(
            "the provider has no exporter yet; call instrument() after add_span_processor(), or pass exporter="
        )
    processor = RunMarkers(
        provider, senders, (*RUN_SCOPES, *scopes), tuple(reads), deadline_s, wait_s, flush_s
    )
    provider.add_span_processor(processor)
    return processor


def _exporters(provider: TracerProvider) -> list[SpanExporter]:
    """The exporters behind a provider's processors, whatever batches them."""
    found: list[SpanExporter] = []
    for processor in getattr(provider._active_span_processor, "_span_processors", ()):
        one = getattr(processor, "span_exporter", None) or getattr(
            getattr(processor, "_batch_processor", None), "_exporter", None
        )
        if isinstance(one, SpanExporter):
            found.append(one)
    return found


class RunMarkers(SpanProcessor):
    """Exports a marker when a run starts, and flushes the provider before a tool that may have side effects."""

    def __init__(
        self,
        provider: TracerProvider,
        senders: list[SpanExporter],
        scopes: tuple[str, ...],
        reads: tuple[str, ...],
        deadline_s: float | None,
        wait_s: float,
        flush_s: float,
    ) -> None:
        self._provider = provider
        self._scopes = scopes
        self._reads = reads
        self._attributes = {} if deadline_s is None else {"agent_slo.task.deadline_s": deadline_s}
        self._wait_s = wait_s
        self._flush_s = flush_s
        # a provider of its own: markers pass no batch and no other processor
        self._markers = TracerProvider(sampler=ALWAYS_ON, resource=provider.resource, shutdown_on_exit=False)
        for sender in senders:
            self._markers.add_span_processor(SimpleSpanProcessor(sender))
        self._tracer = self._markers.get_tracer("agent_slo_emit")
        self._queue: queue.SimpleQueue[tuple[trace.SpanContext, int, threading.Event] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._send, name="agent-slo-emit", daemon=True)
        self._thread.start()

    def on_start(self, span: Span, parent_context: contexts.Context | None = None) -> None:
        """Mark the start of a run; make the past safe before a side effect."""
        if not span.get_span_context().trace_flags.sampled:
            return
        if self._begins_run(span, parent_context):
            sent = threading.Event()
            self._queue.put((span.get_span_context(), span.start_time or time.time_ns(), sent))
            sent.wait(self._wait_s)
        elif self._may_change_the_world(span):
            self._provider.force_flush(int(self._flush_s * 1000))

    def on_end(self, span: ReadableSpan) -> None:
        """Nothing: finished spans go their usual way."""

    def shutdown(self) -> None:
        """Send what waits and stop. The exporters belong to the provider and stay as they are."""
        self._queue.put(None)
        self._thread.join(timeout=self._wait_s + 1)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Markers leave at once, so nothing waits."""
        return True

    def _begins_run(self, span: Span, parent_context: contexts.Context | None) -> bool:
        if not self._is_of_a_run(span):
            return False
        parent = trace.get_current_span(parent_context)
        return not (isinstance(parent, Span) and parent.is_recording() and self._is_of_a_run(parent))

    def _is_of_a_run(self, span: Span) -> bool:
        attributes = span.attributes or {}
        if attributes.get("gen_ai.operation.name") in RUN_OPERATIONS:
            return True
        if span.name.partition(" ")[0] in RUN_OPERATIONS:
            return True
        scope = span.instrumentation_scope.name if span.instrumentation_scope else ""
        return any(fnmatchcase(scope, glob) for glob in self._scopes)

    def _may_change_the_world(self, span: Span) -> bool:
        attributes = span.attributes or {}
        effect = attributes.get("agent_slo.tool.effect")
        if effect is not None:
            return effect in ("write", "idempotent_write")
        operation, _, subject = span.name.partition(" ")
        is_tool = (
            attributes.get("gen_ai.operation.name") == "execute_tool"
            or operation == "execute_tool"
            or attributes.get("openinference.span.kind") == "TOOL"
            or attributes.get("traceloop.span.kind") == "tool"
        )
        if not is_tool:
            return False
        name = attributes.get("gen_ai.tool.name") or attributes.get("tool.name") or subject or span.name
        return not any(fnmatchcase(str(name), glob) for glob in self._reads)

    def _send(self) -> None:
        while (item := self._queue.get()) is not None:
            root, start_ns, sent = item
            inside = trace.set_span_in_context(trace.NonRecordingSpan(root), contexts.Context())
            marker = self._tracer.start_span(
                MARKER, context=inside, start_time=start_ns, attributes=self._attributes
            )
            # SimpleSpanProcessor logs what an exporter raises, so that this thread and the agent go on
            marker.end(end_time=start_ns)
            sent.set()
