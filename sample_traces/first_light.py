"""The small set: one task of each kind a first look needs, on one working day."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sample_traces.agents import CODING, INVOICES, REFUND_DESK, RESEARCH, SCHEDULING, Agent
from sample_traces.company import Story
from sample_traces.delivery import Delivery
from sample_traces.spans import Telemetry
from sample_traces.stories import endings, humans, plain, repeats, retries
from sample_traces.tasks import SECOND, Scene
from sample_traces.truth import TaskTruth

SEED = 1
END = datetime(2026, 11, 27, 15, 0, tzinfo=UTC)
APART = 300 * SECOND
DAY = 10.0  # releases of the tenth day: all agents but one write the newest convention

TASKS: tuple[tuple[Agent, Story], ...] = (
    (REFUND_DESK, plain.success), (SCHEDULING, plain.success), (RESEARCH, plain.success),
    (INVOICES, plain.success), (CODING, plain.success), (REFUND_DESK, repeats.model_repeat),
    (REFUND_DESK, repeats.retry_after_timeout), (REFUND_DESK, repeats.retry_with_key),
    (REFUND_DESK, repeats.crash_replay), (REFUND_DESK, humans.approval_granted),
    (REFUND_DESK, humans.approval_silent), (REFUND_DESK, humans.approval_rejected),
    (REFUND_DESK, humans.escalation_needed), (REFUND_DESK, endings.lost), (SCHEDULING, endings.model_down),
    (REFUND_DESK, endings.false_success), (RESEARCH, endings.loop), (INVOICES, retries.dead_letter),
    (SCHEDULING, repeats.saga_uncompensated), (INVOICES, repeats.redelivery),
    (SCHEDULING, plain.success), (REFUND_DESK, plain.success),
)  # fmt: skip


def generate(seed: int = SEED) -> Iterator[tuple[ExportTraceServiceRequest, tuple[TaskTruth, ...]]]:
    """The small set as OTLP requests in the order of arrival, all truths with the first one.

    The last span ends at `END`; it belongs to a task that is still running then.
    """
    end_ns = int(END.timestamp()) * SECOND
    start = end_ns - 6 * 3600 * SECOND
    telemetry, delivery, truths = Telemetry(), Delivery(), list[TaskTruth]()
    plan = [(start + n * APART, agent, story) for n, (agent, story) in enumerate(TASKS)]
    plan.append((end_ns - 30 * SECOND, REFUND_DESK, endings.running))
    for number, (at, agent, story) in enumerate(plan):
        if story is not endings.running:
            at += random.Random(f"{seed}/{number}").randrange(60_000_000) * 1000
        scene = Scene(telemetry, f"first/{seed}", number, agent, "prod", at, DAY, story.__name__, end_ns)
        story(scene)
        for span in scene.take():
            delivery.push(span)
        truths += scene.truths
    for request in delivery.due():
        yield request, tuple(truths)
        truths = []
