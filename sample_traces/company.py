"""The sample company: five agents over some weeks, with known faults of each kind.

Tasks come in the rhythm of working days; which story a task tells is decided so that each kind gets its
share whatever the number of tasks. Nothing is held in memory but spans that have not been delivered yet.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sample_traces.agents import CODING, COMPANY, INVOICES, REFUND_DESK, RESEARCH, SCHEDULING, Agent
from sample_traces.delivery import Delivery, send
from sample_traces.spans import Telemetry
from sample_traces.stories import endings, humans, plain, repeats, retries
from sample_traces.tasks import SECOND, Scene
from sample_traces.truth import TaskTruth

Story = Callable[[Scene], None]

SEED = 7
TASKS = 3000
DAYS = 28
END = datetime(2026, 11, 27, 15, 0, tzinfo=UTC)
HOUR = 3600 * SECOND
DAY = 24 * HOUR
TEST_SHARE = 0.04

# Tasks an hour, relative: Monday to Friday, then Saturday and Sunday.
WEEKDAY = (1, 1, 1, 1, 1, 2, 6, 18, 40, 52, 55, 48, 36, 46, 52, 50, 42, 28, 14, 8, 5, 4, 2, 1)
WEEKEND = (1, 1, 1, 1, 1, 1, 1, 2, 4, 6, 7, 7, 6, 6, 6, 5, 5, 4, 3, 3, 2, 2, 1, 1)

# How many tasks of 3,000 tell which story; all others simply go well. Each kind is there to be found.
MIX: dict[str, dict[Story, int]] = {
    REFUND_DESK.name: {
        humans.approval_granted: 22, humans.approval_silent: 16, humans.approval_rejected: 16,
        humans.approval_edited: 10, humans.executed_without_approval: 5, humans.approved_other_args: 4,
        humans.approved_not_executed: 4, humans.escalation_needed: 20, humans.escalation_not_needed: 10,
        humans.cancelled_user: 10, repeats.model_repeat: 9, repeats.compensated_repeat: 4,
        repeats.key_not_honoured: 5, repeats.key_reused: 4, repeats.retry_after_timeout: 11,
        repeats.retry_with_key: 16, repeats.timeout_then_look: 8, repeats.crash_replay: 7,
        repeats.crash_replay_with_key: 5, repeats.crash_inside_tool: 5, repeats.crash_before_write: 6,
        repeats.durable_resume: 5, repeats.seen_twice: 5, plain.second_request: 6,
        plain.second_request_with_history: 4, endings.model_down: 12,
        endings.model_down_root_fine: 5, endings.false_success: 8, endings.false_success_after_timeout: 4,
        endings.vanished: 6, endings.lost: 5, plain.slow: 6,
    },
    SCHEDULING.name: {
        repeats.saga_compensated: 10, repeats.saga_uncompensated: 8, repeats.resume_reexecution: 6,
        repeats.no_op_repeat: 8, repeats.status_and_back: 5, repeats.model_repeat: 4,
        repeats.retry_after_timeout: 4, repeats.retry_with_key: 6, endings.uncertain: 7, endings.hung: 8,
        endings.model_down: 6, endings.false_success: 4, endings.lost: 4, plain.second_request: 4,
        retries.patient_retry: 5,
    },
    RESEARCH.name: {
        endings.loop: 10, endings.cycle: 4, endings.stuck_poll: 4, plain.polling: 8, plain.pagination: 6,
        plain.slow: 12, plain.dear: 6, endings.lost: 4, endings.model_down: 5, endings.hung: 3,
    },
    INVOICES.name: {
        repeats.redelivery: 8, repeats.redelivery_dropped: 8, repeats.orchestrator_retry: 6,
        retries.dead_letter: 12, retries.unbounded: 6, retries.no_backoff: 6, retries.non_retryable: 6,
        retries.same_args_after_rejection: 5, retries.missed_retry: 5, retries.amplification: 5,
        retries.plan_kept: 6, retries.plan_not_kept: 5, retries.patient_retry: 12,
        repeats.retry_after_timeout: 4, repeats.retry_with_key: 6, endings.cancelled_system: 6,
        endings.lost: 4,
    },
    CODING.name: {
        endings.checked_and_failed: 8, humans.answered: 10, plain.dear: 4, plain.slow: 5, endings.loop: 3,
        endings.model_down: 4, repeats.crash_before_write: 3,
    },
}  # fmt: skip
# Faults that came with one release and went with the next.
ONLY_IN: dict[tuple[str, Story], str] = {(REFUND_DESK.name, repeats.model_repeat): "2.5.0"}
SETTLING = 7 * HOUR  # stories told in the last hours must be decided at the end
QUICK: tuple[Story, ...] = (
    repeats.model_repeat, repeats.retry_after_timeout, repeats.retry_with_key, endings.model_down,
    endings.false_success, retries.patient_retry, humans.escalation_needed,
)  # fmt: skip
LONGEST_QUICK = 4 * 60 * SECOND
BASELINE_DAYS = 6  # a dear task is dear against the tasks of earlier days
STORMS_PER_TASKS = 1000  # one retry storm for so many tasks
STORM_SIZE = 8
OPEN_AT_END: tuple[tuple[Agent, Story, int], ...] = (  # seconds before the end at which they start
    (REFUND_DESK, humans.waiting, 2900), (REFUND_DESK, humans.waiting, 1700),
    (REFUND_DESK, humans.waiting, 800),
    (SCHEDULING, endings.running, 40), (CODING, endings.running, 35), (REFUND_DESK, endings.running, 30),
)  # fmt: skip


def generate(
    seed: int = SEED, days: int = DAYS, tasks: int = TASKS, end: datetime = END
) -> Iterator[tuple[ExportTraceServiceRequest, tuple[TaskTruth, ...]]]:
    """The company's traffic as OTLP requests in the order of arrival.

    Each item is a request and the truths of the tasks that began since the item before; each task comes
    once, never later than its last span. The truth is as of ``end``, at which the last span ends. Memory
    does not grow with ``tasks``. ``end`` must carry a time zone (ValueError).
    """
    if end.tzinfo is None:
        raise ValueError("end has no time zone: pass an aware datetime, such as datetime.now(UTC)")
    if tasks < 100 or days < 2:
        raise ValueError(f"a company needs at least 100 tasks and 2 days, not {tasks} tasks and {days} days")
    end_ns = int(end.timestamp()) * SECOND
    begin_ns = end_ns - days * DAY
    telemetry, delivery, pending = Telemetry(), Delivery(), list[TaskTruth]()
    for number, (start, agent, story) in enumerate(_plan(seed, begin_ns, end_ns, tasks, days)):
        yield from _emit(delivery.due(start), pending)
        final = story in (endings.running, humans.waiting)
        rng = random.Random(f"{seed}/{number}/arrival")
        environment = "test" if not final and rng.random() < TEST_SHARE else "prod"
        if story is retries.synchronised:
            environment = "prod"
        day = _day(start, begin_ns, days)
        scene = Scene(telemetry, f"{seed}", number, agent, environment, start, day, story.__name__, end_ns)
        story(scene)
        spans = scene.take()
        if start > end_ns - SETTLING:
            for span in spans:
                delivery.push(span)
        else:
            send(delivery, spans, scene.truths, rng)
        pending += scene.truths
    yield from _emit(delivery.due(), pending)


def _emit(
    requests: Iterator[ExportTraceServiceRequest], pending: list[TaskTruth]
) -> Iterator[tuple[ExportTraceServiceRequest, tuple[TaskTruth, ...]]]:
    for request in requests:
        truths = tuple(pending)
        pending.clear()
        yield request, truths


def _plan(seed: int, begin_ns: int, end_ns: int, tasks: int, days: int) -> Iterator[tuple[int, Agent, Story]]:
    """Start, agent and story of each task, by start."""
    rng = random.Random(f"{seed}/plan")
    storms = max(1, tasks // STORMS_PER_TASKS)
    limit = end_ns - LONGEST_QUICK
    usual = tasks - storms * STORM_SIZE - len(OPEN_AT_END)
    yield from heapq.merge(
        _usual(rng, begin_ns, limit, usual, tasks, days),
        _storms(begin_ns, end_ns, storms),
        ((end_ns - seconds * SECOND, agent, story) for agent, story, seconds in OPEN_AT_END),
        key=lambda planned: planned[0],
    )


def _usual(
    rng: random.Random, begin_ns: int, limit: int, count: int, tasks: int, days: int
) -> Iterator[tuple[int, Agent, Story]]:
    """The ordinary traffic; a story is due when its kind lags behind its share."""
    seen: Counter[str] = Counter()
    told: Counter[tuple[str, Story]] = Counter()
    for start in _arrivals(rng, begin_ns, limit, count):
        agent = rng.choices(COMPANY, weights=[a.share for a in COMPANY])[0]
        seen[agent.name] += 1
        progress = seen[agent.name] * 100 / (agent.share * tasks)  # 1.0 at the agent's expected last task
        settling = start > limit - SETTLING
        version = agent.release(_day(start, begin_ns, days)).version
        early = start < begin_ns + BASELINE_DAYS * DAY
        story: Story = plain.success
        most = rng.uniform(0.25, 1.25)
        for candidate, amount in MIX[agent.name].items():
            lag = amount * tasks / 3000 * progress - told[agent.name, candidate]
            allowed = candidate in QUICK if settling else not (early and candidate is plain.dear)
            allowed &= ONLY_IN.get((agent.name, candidate), version) == version
            if allowed and lag > most:
                story, most = candidate, lag
        told[agent.name, story] += 1
        yield start, agent, story


def _day(at_ns: int, begin_ns: int, days: int) -> float:
    """The day of the sample period; releases keep their place in a shorter or longer one."""
    return (at_ns - begin_ns) / DAY * (DAYS / days)


def _arrivals(rng: random.Random, begin_ns: int, limit: int, count: int) -> Iterator[int]:
    """``count`` rising start times between ``begin_ns`` and ``limit`` in the rhythm of the week."""
    hours = -(-(limit - begin_ns) // HOUR)
    weights = [_busy(begin_ns + h * HOUR) for h in range(hours)]
    total, hour, before = sum(weights), 0, 0
    for n in range(count):
        place = (n + rng.random()) / count * total
        while place >= before + weights[hour] and hour < hours - 1:
            before += weights[hour]
            hour += 1
        inside = min((place - before) / weights[hour], 0.999999)
        yield min(begin_ns + hour * HOUR + int(inside * 3600e6) * 1000, limit)


def _weekday(at_ns: int) -> int:
    """0 is Monday; 1 January 1970 was a Thursday."""
    return (at_ns // DAY + 3) % 7


def _busy(at_ns: int) -> int:
    return (WEEKDAY if _weekday(at_ns) < 5 else WEEKEND)[at_ns % DAY // HOUR]


def _storms(begin_ns: int, end_ns: int, storms: int) -> Iterator[tuple[int, Agent, Story]]:
    """Batches that a scheduler starts at nine o'clock sharp on a working day, all in the same second."""
    for n in range(storms):
        at = begin_ns + (n + 1) * (end_ns - begin_ns) // (storms + 1)
        at -= at % DAY
        at -= max(0, _weekday(at) - 4) * DAY
        start = max(at + 9 * HOUR, begin_ns - begin_ns % HOUR + HOUR)
        for _ in range(STORM_SIZE):
            yield start, INVOICES, retries.synchronised
