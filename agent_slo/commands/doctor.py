"""`agent-slo doctor`: what is understood of each sender, and what would supply the rest."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import click

from agent_slo.door import LiveDoor, live_door, wait_until_derived
from agent_slo.errors import EXIT_FINDING, CommandError
from agent_slo.options import Place, common
from agent_slo.output import print_json, say
from agent_slo.reading import Row, reading, require_derived
from collector.reader import Reader
from dashboard.format import count
from metrics.conventions import content_setting

TEST_SERVICE = "agent-slo-doctor"
_TIMEOUT_S = 30.0


@click.command()
@click.option("--service", help="Only this service.")
@click.option(
    "--send-test",
    is_flag=True,
    help="First send a test trace through the OpenTelemetry exporter and follow it to a task.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@common
def doctor(place: Place, service: str | None, send_test: bool, form: str) -> None:
    """Say of each sender what was understood, what is missing for which SLO, and what would supply it."""
    task = _follow_test_trace(place) if send_test else None
    with reading(place.data) as reader:
        require_derived(reader, place.data)
        senders = sender_rows(reader)
    if service is not None:
        senders = [s for s in senders if s["service"] == service]
    elif not send_test:
        senders = [s for s in senders if s["service"] != TEST_SERVICE]
    if form == "json":
        print_json({"test_task": task, "senders": senders})
        return
    if task:
        click.echo(f"test trace: stored, derived, task {task['task_id']} is {task['outcome']}")
    if not senders:
        say("no sender yet" if service is None else f"no spans of a service named {service!r}")
        return
    for sender in senders:
        _show(sender)


def sender_rows(reader: Reader) -> list[Row]:
    """Return one row per sender (`metrics/sql/doctor/senders.sql`) with its `lacks`: lack, slo, supply."""
    folder = files("metrics") / "sql" / "doctor"
    senders_sql = folder.joinpath("senders.sql").read_text(encoding="utf-8")
    lacks_sql = folder.joinpath("lacks.sql").read_text(encoding="utf-8")
    found: list[Row] = reader.sql(senders_sql).to_pylist()
    lacks: list[Row] = reader.sql(
        f"WITH senders AS (\n{senders_sql}\n)\nSELECT * FROM (\n{lacks_sql}\n)"
    ).to_pylist()
    for sender in found:
        setting = content_setting(sender["family"])
        same = ("service", "scope", "version")
        sender["lacks"] = [
            {"lack": row["lack"], "slo": row["slo"], "supply": row["supply"].replace("{setting}", setting)}
            for row in lacks
            if all(row[key] == sender[key] for key in same)
        ]
    return found


def _show(sender: Row) -> None:
    named = " ".join(part for part in (sender["scope"] or "no scope", sender["version"]) if part)
    click.echo(f"{sender['service'] or 'no service.name'} · {named} · read as {sender['family']}")
    parts = ", ".join(
        f"{count(sender[column])} {name}"
        for column, name in (
            ("agent_spans", "agent"),
            ("model_calls", "model"),
            ("tool_calls", "tool"),
            ("other_spans", "other"),
        )
    )
    click.echo(
        f"  {count(sender['spans'])} spans: {parts}; {count(sender['runs'])} runs, {count(sender['tasks'])} tasks"
    )
    for lack in sender["lacks"]:
        click.echo(f"  - {lack['lack']}")
        click.echo(f"    for {lack['slo']}: {lack['supply']}")
    click.echo()


def _follow_test_trace(place: Place) -> dict[str, Any]:
    """Send one agent run by the real exporter, wait until it is a task, and return the task.

    Raises `CommandError` naming the station at which it got lost.
    """
    door = live_door(place.data)
    if door is None:
        raise CommandError(
            f"no collector runs on {place.data}; start one with `agent-slo up --data {place.data}` and ask again"
        )
    trace_id = _send(door)
    deadline = time.monotonic() + _TIMEOUT_S
    with reading(place.data) as reader:
        while not reader.sql("SELECT 1 FROM spans WHERE trace_id = ? LIMIT 1", [trace_id]).num_rows:
            if time.monotonic() > deadline:
                raise CommandError(
                    f"the test trace {trace_id} was accepted by {door.http} but is not in {place.data}; "
                    "look at the collector's log"
                )
            time.sleep(0.1)
        wait_until_derived(place.data)
        found: list[dict[str, Any]] = reader.sql(
            "SELECT t.task_id, t.outcome, t.rule FROM tasks t JOIN runs r USING (task_id) WHERE r.trace_id = ?",
            [trace_id],
        ).to_pylist()
    if not found:
        raise CommandError(
            f"the test trace {trace_id} is stored but no task was derived from it", exit_code=EXIT_FINDING
        )
    return found[0]


def _send(door: LiveDoor) -> str:
    """Export a small agent run to the collector's OTLP/HTTP port. Return its trace id (hex)."""
    import requests
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    provider = TracerProvider(
        resource=Resource({"service.name": TEST_SERVICE, "deployment.environment.name": "test"})
    )
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("agent-slo-doctor")
    said = f"test of {datetime.now(UTC).isoformat()}"
    root = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "doctor",
        "gen_ai.input.messages": said,
    }
    with tracer.start_as_current_span("invoke_agent doctor", attributes=root) as span:
        trace_id = f"{span.get_span_context().trace_id:032x}"
        with tracer.start_as_current_span(
            "execute_tool look_around",
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "look_around",
                "agent_slo.tool.effect": "read",
            },
        ):
            pass
        with tracer.start_as_current_span(
            "chat test-model",
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "test-model",
                "gen_ai.response.finish_reasons": ["stop"],
                "gen_ai.output.messages": "all well",
            },
        ):
            pass
    session = requests.Session()
    session.trust_env = False  # the collector is on this machine: no proxy lies between
    exporter: Any = OTLPSpanExporter(endpoint=f"http://{door.http}/v1/traces", timeout=10, session=session)
    result = exporter.export(kept.get_finished_spans())
    exporter.shutdown()
    provider.shutdown()
    if result is not SpanExportResult.SUCCESS:
        raise CommandError(
            f"the exporter could not deliver to http://{door.http}/v1/traces; with a token set, "
            "give it to senders by OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20TOKEN"
        )
    return trace_id
