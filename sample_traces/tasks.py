"""Writing one task as traces: runs, model calls and tool calls, with the truth kept beside them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context

from sample_traces.agents import Agent, Release, Tool
from sample_traces.messages import (
    Call,
    Message,
    Usage,
    compact,
    messages_json,
    model_attributes,
    model_events,
)
from sample_traces.spans import Telemetry, trace_of
from sample_traces.truth import TaskTruth

SECOND = 1_000_000_000
MICROSECOND = 1_000
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


def ns(seconds: float) -> int:
    """Seconds as whole microseconds in nanoseconds: what a real clock gives, and short when compressed."""
    return round(seconds * 1e6) * MICROSECOND


@dataclass(frozen=True)
class Step:
    """A tool call a task intends: ``result`` without the id of what a write makes."""

    tool: Tool
    arguments: Mapping[str, Any]
    result: Mapping[str, Any]


@dataclass(frozen=True)
class Job:
    """The work asked for: what the user says, what is read and written for it, what is answered."""

    ask: str
    reads: tuple[Step, ...]
    writes: tuple[Step, ...]
    answer: str
    conversation: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    again: str = ""  # what the same person may ask for in a later turn


@dataclass(frozen=True)
class Failure:
    """A tool call that did not end well."""

    kind: str  # error.type
    text: str
    happened: bool = False  # the effect took place although the caller saw an error
    status_ok: bool = False  # the framework hides it: status stays unset, the text alone tells


# Not "Error: ...": by the usual result pattern that would mean refused, and a timeout is unknown.
TIMEOUT = Failure("TimeoutError", "The call timed out after 10.0 seconds.", happened=True)
TOO_MANY = Failure("429", "Error: 429 Too Many Requests")
REFUSED = Failure("ConnectionRefusedError", "Error: connection refused")


class Scene:
    """One task being written: where it runs, its random numbers, its truth and its spans."""

    def __init__(
        self, telemetry: Telemetry, seed: str, number: int, agent: Agent,
        environment: str, start_ns: int, day: float, story: str, end_ns: int,
    ) -> None:  # fmt: skip
        self.telemetry = telemetry
        self.number = number
        self.agent = agent
        self.release: Release = agent.release(day)
        self.environment = environment
        self.start_ns = start_ns
        self.story = story
        self.end_ns = end_ns  # of the whole period
        self.day = day
        self.random = random.Random(f"{seed}/{number}/scene")
        self.instance = self.random.randrange(agent.instances)
        self.truths: list[TaskTruth] = []
        telemetry.ids.seed(f"{seed}/{number}/ids")

    def resource(self) -> dict[str, str]:
        return {
            "service.name": self.agent.service,
            "service.instance.id": f"{self.agent.service}-{self.release.version}-{self.instance}",
            "deployment.environment.name": self.environment,
            "agent_slo.app.version": self.release.version,
        }

    def seconds(self, bounds: tuple[float, float]) -> float:
        low, high = bounds
        return self.random.triangular(low, high, low + (high - low) * 0.25)

    def mint(self, prefix: str, length: int = 10) -> str:
        return prefix + "".join(self.random.choice(LETTERS) for _ in range(length))

    def task(self, conversation: str, start_ns: int | None = None) -> TaskTruth:
        """A new truth row; the runs that follow are written for it."""
        truth = TaskTruth(
            story=self.story, agent=self.agent.name, task_type=self.agent.task_type,
            service=self.agent.service, environment=self.environment, app_version=self.release.version,
            conversation=conversation, started_ns=self.start_ns if start_ns is None else start_ns,
        )  # fmt: skip
        self.truths.append(truth)
        return truth

    def take(self) -> list[ReadableSpan]:
        """The finished spans; closes the truth rows with the latest end of their traces."""
        spans = self.telemetry.finished.take()
        ends: dict[str, int] = {}
        for span in spans:
            trace = trace_of(span)
            ends[trace] = max(ends.get(trace, 0), span.end_time or 0)
        for truth in self.truths:
            truth.traces = [t for t in truth.traces if t in ends]
            truth.ended_ns = max(ends[t] for t in truth.traces)
            if truth.outcome in ("failed", "dead_letter", "cancelled_system"):
                truth.uncompensated = len(truth.effects) - 2 * truth.compensations
                if truth.uncompensated:
                    truth.may_find("not_compensated")
        return spans


class Run:
    """One execution of an agent: one trace. `now` moves on with each model and tool call."""

    def __init__(
        self, scene: Scene, truth: TaskTruth, at_ns: int, *, ask: str | None,
        history: tuple[Message, ...] = (), attributes: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.scene, self.truth, self.now = scene, truth, at_ns
        self.history = list(history)
        self._cached = 0
        self._definitions = scene.random.random() < 0.08
        agent, release = scene.agent, scene.release
        self.tracer = scene.telemetry.tracer(scene.resource(), agent.scope, release.version)
        if ask is not None:
            self.history.append(Message("user", ask))
        self.common: dict[str, Any] = {
            "gen_ai.agent.name": agent.name,
            "gen_ai.conversation.id": truth.conversation,
        }
        provider_key = "gen_ai.provider.name" if release.dialect == "latest" else "gen_ai.system"
        root: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            provider_key: agent.provider,
            **self.common,
        }
        marker = dict(self.common)
        if agent.deadline_s is not None:
            root["agent_slo.task.deadline_s"] = marker["agent_slo.task.deadline_s"] = agent.deadline_s
        if agent.states_type:
            root["agent_slo.task.type"] = agent.task_type
        if release.dialect == "latest" and ask is not None:
            root["gen_ai.input.messages"] = messages_json([Message("user", ask)])
        root |= attributes or {}
        self.root: Span = self.tracer.start_span(
            f"invoke_agent {agent.name}", context=Context(), kind=SpanKind.INTERNAL, attributes=root,
            start_time=self.now,
        )  # fmt: skip
        self.trace = f"{self.root.get_span_context().trace_id:032x}"
        truth.traces.append(self.trace)
        if agent.marker:
            self.span("agent_slo.run.started", 0.0, marker)
        self.wait(0.004)

    # -- time and spans

    def wait(self, seconds: float) -> None:
        self.now += ns(seconds)

    def span(
        self, name: str, seconds: float, attributes: Mapping[str, Any], *, kind: SpanKind = SpanKind.INTERNAL,
        events: list[tuple[str, dict[str, Any]]] | None = None, error: tuple[str, str] | None = None,
        moves: bool = True,
    ) -> Span:  # fmt: skip
        """A child of the root that starts now; ``error`` is (error.type, message)."""
        span = self.tracer.start_span(
            name, context=set_span_in_context(self.root), kind=kind, attributes=attributes,
            start_time=self.now,
        )  # fmt: skip
        end = self.now + ns(seconds)
        for event, body in events or []:
            span.add_event(event, body, timestamp=end)
        if error:
            span.set_attribute("error.type", error[0])
            span.set_status(Status(StatusCode.ERROR, error[1]))
        span.end(end_time=end)
        if moves:
            self.now = end
        return span

    # -- model calls

    def model(
        self, output: Message, finish: str, *, seconds: float | None = None, extra_tokens: int = 0
    ) -> None:
        """A model call that answered with ``output``."""
        scene = self.scene
        usage = self._usage(output, extra_tokens)
        self._chat(output, finish, usage, scene.seconds(scene.agent.think) if seconds is None else seconds)
        self.history.append(output)

    def model_fails(self, kind: str = "503", text: str = "503 model overloaded") -> None:
        """A model call that ended in an error."""
        self._chat(None, "", None, self.scene.seconds(self.scene.agent.think), error=(kind, text))

    def _chat(
        self, output: Message | None, finish: str, usage: Usage | None, seconds: float,
        error: tuple[str, str] | None = None,
    ) -> None:  # fmt: skip
        agent, release = self.scene.agent, self.scene.release
        attributes = self.common | model_attributes(
            release.dialect, agent.provider, release.model, self.history, output, finish, usage
        )
        if self._definitions:
            attributes["gen_ai.tool.definitions"] = compact([t.definition() for t in agent.tools.values()])
            self._definitions = False
        self.truth.model_calls += 1
        if usage is not None:
            written = usage.cache_write if release.dialect == "latest" else 0  # no older name for it is sent
            self.truth.add_tokens(
                release.model, input=usage.input, output=usage.output, cache_read=usage.cache_read,
                cache_write=written,
            )  # fmt: skip
        self.span(
            f"chat {release.model}", seconds, attributes, kind=SpanKind.CLIENT, error=error,
            events=model_events(release.dialect, self.history, output, finish),
        )  # fmt: skip
        self.wait(0.002)

    def _usage(self, output: Message, extra: int) -> Usage:
        """Tokens by the usual four characters each; what an earlier call of the run sent is cached."""
        sent = sum(len(compact(m.as_parts())) for m in self.history) // 4
        total = self.scene.agent.overhead + sent + extra
        written = len(compact(output.as_parts())) // 4 + 9
        anthropic = self.scene.agent.provider == "anthropic"
        kept = total - extra  # documents pushed in for one call are not cached
        cacheable = kept if anthropic else kept - kept % 128
        read = self._cached if cacheable >= 1024 else 0
        write = cacheable - read if anthropic and cacheable >= 1024 else 0
        self._cached = cacheable if cacheable >= 1024 else 0
        return Usage(total, written, read, write)

    def ask(self, *steps: Step, extra_tokens: int = 0, seconds: float | None = None) -> list[Call]:
        """The model asks for tool calls."""
        native = "tool_use" if self.scene.agent.provider == "anthropic" else "tool_calls"
        prefix = "toolu_" if self.scene.agent.provider == "anthropic" else "call_"
        calls = tuple(Call(self.scene.mint(prefix, 14), s.tool.name, dict(s.arguments)) for s in steps)
        self.model(Message("assistant", "", calls), native, extra_tokens=extra_tokens, seconds=seconds)
        return list(calls)

    def say(self, text: str) -> None:
        """The model answers with text."""
        native = "end_turn" if self.scene.agent.provider == "anthropic" else "stop"
        self.model(Message("assistant", text), native)

    # -- tool calls

    def execute(
        self, step: Step, call: Call, *, seconds: float | None = None, failure: Failure | None = None,
        attributes: Mapping[str, Any] | None = None, result: Mapping[str, Any] | None = None,
        arguments: Mapping[str, Any] | None = None, disposition: str = "executed", answer: bool = True,
        new_effect: bool = True, twice: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """A tool call and its result (returned), the answer going into the history.

        ``new_effect`` is False when the receiver recognised a repeat and changed nothing; ``twice`` when
        two instrumentations see the one call.
        """
        scene, tool = self.scene, step.tool
        sent = dict(step.arguments if arguments is None else arguments)
        given: dict[str, Any] = {}
        if failure is None:
            given = dict(step.result if result is None else result)
            if result is None and tool.entity and disposition == "executed":
                given = {tool.entity: scene.mint(tool.entity[:2] + "_"), **given}
        took = scene.seconds(tool.seconds) if seconds is None else seconds
        text = compact(given) if failure is None else failure.text
        span = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.call.arguments": compact(sent),
            **self.common,
        }
        if failure is None or failure.status_ok:
            span["gen_ai.tool.call.result"] = text
        if disposition != "executed":
            span["agent_slo.action.disposition"] = disposition
        span |= attributes or {}
        error = None if failure is None or failure.status_ok else (failure.kind, failure.text)
        if twice:
            self.span(f"execute_tool {tool.name}", took, span, error=error, moves=False)
            self.truth.double_instrumented += 1
        self.span(f"execute_tool {tool.name}", took, span, error=error)
        self.wait(0.003)
        self.truth.tool_calls += 1
        if tool.writes and disposition == "executed":
            self.truth.attempts += 1
            if new_effect and (failure is None or failure.happened):
                entity = given.get(tool.entity) if tool.entity else None
                self.truth.effects.append({"tool": tool.name, "arguments": sent, "entity": entity})
        if answer:
            self.history.append(Message("tool", text, answers=call.id))
        return given

    def use(self, step: Step, **options: Any) -> dict[str, Any]:
        """The model asks for one call and it is executed."""
        return self.execute(step, self.ask(step)[0], **options)

    # -- ends

    def end(
        self, *, error: tuple[str, str] | None = None, attributes: Mapping[str, Any] | None = None,
        evaluation: tuple[str, float] | None = None,
    ) -> None:  # fmt: skip
        """The root ends now; ``evaluation`` is (label, score) of a task check."""
        last = self.history[-1]
        if self.scene.release.dialect == "latest" and last.role == "assistant" and last.text:
            self.root.set_attribute("gen_ai.output.messages", messages_json([last], "stop"))
        self.root.set_attributes(dict(attributes or {}))
        self.wait(0.005)
        if evaluation:
            self.root.add_event(
                "gen_ai.evaluation.result",
                {
                    "gen_ai.evaluation.name": "task_completion",
                    "gen_ai.evaluation.score.label": evaluation[0],
                    "gen_ai.evaluation.score.value": evaluation[1],
                },
                timestamp=self.now,
            )
        if error:
            self.root.set_attribute("error.type", error[0])
            self.root.set_status(Status(StatusCode.ERROR, error[1]))
        self.root.end(end_time=self.now)

    def killed(self) -> None:
        """The process dies: the root is never ended, so it is never exported."""
        self.truth.crashed_runs += 1
