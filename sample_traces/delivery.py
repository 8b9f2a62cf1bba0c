"""When spans reach the collector: batches of one process, late spans, and batches sent again."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from random import Random

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan

from sample_traces.spans import encode, trace_of
from sample_traces.tasks import SECOND
from sample_traces.truth import TaskTruth

BATCH = 30 * SECOND  # longer than the usual 5 s: fewer, larger requests, and so a smaller file
LATE_SHARE = 0.02
LATE_ROOT_SHARE = 0.004
AGAIN_SHARE = 0.015


class Delivery:
    """A queue of finished spans in the order of their arrival; holds only what is not yet due."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str, int, ReadableSpan]] = []
        self._order = 0

    def push(self, span: ReadableSpan, delay_ns: int = 0) -> None:
        """The span leaves its process with the first batch after its end plus ``delay_ns``."""
        batch = ((span.end_time or 0) + delay_ns) // BATCH
        self._order += 1
        process = str(span.resource.attributes["service.instance.id"])
        heapq.heappush(self._heap, (batch, process, self._order, span))

    def due(self, until_ns: int | None = None) -> Iterator[ExportTraceServiceRequest]:
        """The batches that are complete at ``until_ns`` (all that are left, when None)."""
        while self._heap and (until_ns is None or (self._heap[0][0] + 1) * BATCH <= until_ns):
            batch, process = self._heap[0][:2]
            spans: list[ReadableSpan] = []
            while self._heap and self._heap[0][:2] == (batch, process):
                spans.append(heapq.heappop(self._heap)[3])
            yield encode(spans)


def send(delivery: Delivery, spans: list[ReadableSpan], truths: list[TaskTruth], rng: Random) -> None:
    """Queue the spans of one scene: most in time, some late, some twice; notes both in the truth.

    Late is a span that arrives after its root; a late root arrives hours after its children.
    """
    late, late_root, again = (rng.random() < s for s in (LATE_SHARE, LATE_ROOT_SHARE, AGAIN_SHARE))
    owner = {trace: truth for truth in truths for trace in truth.traces}
    children = [n for n, s in enumerate(spans) if s.parent is not None and s.end_time != s.start_time]
    delays: dict[int, int] = {}
    if late and children:
        delays[rng.choice(children)] = rng.randrange(180, 2400) * SECOND
    if late_root:
        for n, span in enumerate(spans):
            if span.parent is None:
                delays[n] = rng.randrange(5400, 10800) * SECOND
    for n, span in enumerate(spans):
        truth = owner[trace_of(span)]
        delivery.push(span, delays.get(n, 0))
        truth.late_spans += int(n in delays)
        if again:
            # The exporter got no answer and sends the batch once more: the collector sees each span twice.
            delivery.push(span, delays.get(n, 0) + BATCH * 2)
            truth.redelivered_spans += 1
            operation = (span.attributes or {}).get("gen_ai.operation.name")
            truth.redelivered_tool_spans += int(operation == "execute_tool")
