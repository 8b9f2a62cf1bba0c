"""Markers leave at once, finished spans leave before a side effect, and nothing here can harm an agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import agent_slo_emit
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Sink:
    """A provider with an hour of batch delay: what is seen without a flush was sent at once."""

    def __init__(self, exporter: SpanExporter) -> None:
        self.exporter = exporter
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=3_600_000))
        self.tracer = self.provider.get_tracer("app")


@pytest.fixture
def sink() -> Iterator[Sink]:
    one = Sink(InMemorySpanExporter())
    yield one
    one.provider.shutdown()


def names(sink: Sink) -> list[str]:
    assert isinstance(sink.exporter, InMemorySpanExporter)
    return [span.name for span in sink.exporter.get_finished_spans()]


def test_a_run_is_marked_before_anything_ends(sink: Sink) -> None:
    agent_slo_emit.instrument(sink.provider, deadline_s=60)
    with sink.tracer.start_as_current_span("invoke_agent desk") as root:
        assert isinstance(sink.exporter, InMemorySpanExporter)
        (marker,) = sink.exporter.get_finished_spans()
        assert marker.name == agent_slo_emit.MARKER
        assert marker.parent is not None
        assert marker.parent.span_id == root.get_span_context().span_id
        assert marker.context.trace_id == root.get_span_context().trace_id
        assert marker.start_time == marker.end_time
        assert marker.attributes == {"agent_slo.task.deadline_s": 60}
        assert marker.resource == sink.provider.resource


def test_inner_agents_and_other_spans_are_not_marked(sink: Sink) -> None:
    agent_slo_emit.instrument(sink.provider)
    with sink.tracer.start_as_current_span("GET /healthz"):
        pass
    with (
        sink.tracer.start_as_current_span("POST /refund"),
        sink.tracer.start_as_current_span("invoke_workflow desk"),
        sink.tracer.start_as_current_span("invoke_agent desk"),
    ):
        assert names(sink) == [agent_slo_emit.MARKER]


def test_frameworks_are_known_by_their_scope_and_others_can_be_named(sink: Sink) -> None:
    agent_slo_emit.instrument(sink.provider, scopes=["our.own.*"])
    for scope in ("openinference.instrumentation.langchain", "our.own.agents"):
        tracer = sink.provider.get_tracer(scope)
        with tracer.start_as_current_span("desk"), tracer.start_as_current_span("step"):
            pass
    with sink.provider.get_tracer("openinference.instrumentation.openai").start_as_current_span(
        "ChatCompletion"
    ):
        pass
    assert names(sink) == [agent_slo_emit.MARKER] * 2


def test_what_led_to_a_side_effect_is_sent_before_it(sink: Sink) -> None:
    agent_slo_emit.instrument(sink.provider)
    with sink.tracer.start_as_current_span("invoke_agent desk"):
        with sink.tracer.start_as_current_span("chat m"):
            pass
        with sink.tracer.start_as_current_span("execute_tool get_order"):
            assert names(sink) == [agent_slo_emit.MARKER]
        with sink.tracer.start_as_current_span("execute_tool refund"):
            assert names(sink) == [agent_slo_emit.MARKER, "chat m", "execute_tool get_order"]


def test_a_stated_effect_decides(sink: Sink) -> None:
    agent_slo_emit.instrument(sink.provider)
    with sink.tracer.start_as_current_span("chat m"):
        pass
    with sink.tracer.start_as_current_span(
        "execute_tool refund", attributes={"agent_slo.tool.effect": "read"}
    ):
        assert names(sink) == []
    with sink.tracer.start_as_current_span("lookup", attributes={"agent_slo.tool.effect": "write"}):
        assert "chat m" in names(sink)


def test_helpers_set_plain_attributes(sink: Sink) -> None:
    with sink.tracer.start_as_current_span("invoke_agent desk") as span:
        agent_slo_emit.task(id="T-1", type="refund", input_id="m-1", deadline_s=60, trigger="resume")
        agent_slo_emit.idempotency_key("k-1", attempt=2)
        agent_slo_emit.human_decision("edited", arguments={"amount": 5}, level="lead", required_level="head")
        agent_slo_emit.outcome("completed", claimed="success")
        assert isinstance(span, ReadableSpan)
        assert dict(span.attributes or {}) == {
            "agent_slo.task.id": "T-1",
            "agent_slo.task.type": "refund",
            "agent_slo.task.input_id": "m-1",
            "agent_slo.task.deadline_s": 60,
            "agent_slo.run.trigger": "resume",
            "agent_slo.action.idempotency_key": "k-1",
            "agent_slo.action.attempt": 2,
            "agent_slo.human.decision": "edited",
            "agent_slo.human.arguments": json.dumps({"amount": 5}),
            "agent_slo.human.level": "lead",
            "agent_slo.human.required_level": "head",
            "agent_slo.task.outcome": "completed",
            "agent_slo.task.claimed": "success",
        }
    for wrong in (
        lambda: agent_slo_emit.outcome("done"),
        lambda: agent_slo_emit.human_decision("maybe"),
        lambda: agent_slo_emit.task(trigger="again"),
    ):
        with pytest.raises(ValueError, match="write one of"):
            wrong()


class Hanging(SpanExporter):
    """Takes far longer than anybody waits, and fails."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        time.sleep(5)
        raise RuntimeError("no collector")

    def shutdown(self) -> None:
        return None


def test_an_exporter_that_hangs_delays_a_run_by_the_stated_wait_only() -> None:
    sink = Sink(InMemorySpanExporter())
    processor = agent_slo_emit.instrument(sink.provider, exporter=Hanging(), wait_s=0.05)
    before = time.monotonic()
    with sink.tracer.start_as_current_span("invoke_agent desk"):
        waited = time.monotonic() - before
    # far below the 5 s the exporter takes; not a measurement
    assert waited < 4
    assert processor.force_flush()


def test_a_provider_without_exporter_is_refused() -> None:
    with pytest.raises(ValueError, match="add_span_processor"):
        agent_slo_emit.instrument(TracerProvider(shutdown_on_exit=False))


KILLED = """
import os, signal, sys
import agent_slo_emit
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

class ToFile(SpanExporter):
    def export(self, spans):
        with open(sys.argv[1], "a") as out:
            out.writelines(span.name + "\\n" for span in spans)
        return SpanExportResult.SUCCESS
    def shutdown(self):
        pass

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ToFile()))
if sys.argv[2] == "with":
    agent_slo_emit.instrument(provider)
tracer = provider.get_tracer("app")
with tracer.start_as_current_span("invoke_agent desk"):
    with tracer.start_as_current_span("chat m"):
        pass
    with tracer.start_as_current_span("execute_tool refund"):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("how", "left"), [("with", [agent_slo_emit.MARKER, "chat m"]), ("without", [])], ids=["with", "without"]
)
def test_a_killed_run_leaves_its_start_and_its_request(how: str, left: list[str], tmp_path: Path) -> None:
    out = tmp_path / "spans"
    out.touch()
    path = os.pathsep.join(
        [str(Path(agent_slo_emit.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    )
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(out), how], env={**os.environ, "PYTHONPATH": path}, check=False
    )
    assert done.returncode == -9
    assert out.read_text().split("\n")[:-1] == left
