"""Work that goes well, and the parts all stories are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sample_traces.jobs import export, job_for
from sample_traces.messages import Message
from sample_traces.tasks import Job, Run, Scene, Step
from sample_traces.truth import Outcome, TaskTruth


def begin(
    scene: Scene, job: Job, truth: TaskTruth | None = None, at_ns: int | None = None,
    history: tuple[Message, ...] = (), ask: str | None = None, attributes: Mapping[str, Any] | None = None,
) -> Run:  # fmt: skip
    """A run that starts with the job's words (or ``ask``)."""
    truth = scene.task(job.conversation) if truth is None else truth
    start = scene.start_ns if at_ns is None else at_ns
    words = job.ask if ask is None else ask
    return Run(
        scene, truth, start, ask=words, history=history,
        attributes={**job.attributes, **(attributes or {})},
    )  # fmt: skip


def resume(
    scene: Scene, job: Job, earlier: Run, at_ns: int, attributes: Mapping[str, Any] | None = None
) -> Run:
    """A run that goes on with the messages of an earlier one, without new input."""
    return Run(
        scene, earlier.truth, at_ns, ask=None, history=tuple(earlier.history),
        attributes={**job.attributes, **(attributes or {})},
    )  # fmt: skip


def use_all(run: Run, steps: tuple[Step, ...]) -> None:
    for step in steps:
        run.use(step)


def stated(run: Run, outcome: Outcome, claimed: str | None, *, always: bool = False) -> dict[str, Any]:
    """What the agent says of its own run on the root, by its habits; notes it in the truth."""
    agent, truth = run.scene.agent, run.truth
    said: dict[str, Any] = {}
    truth.outcome = outcome
    if agent.states_outcome or always:
        said["agent_slo.task.outcome"] = outcome
        truth.evidence = "stated"
    if claimed and agent.claims_from is not None and run.scene.day >= agent.claims_from:
        said["agent_slo.task.claimed"] = claimed
        truth.claimed = claimed
    return said


def conclude(run: Run, text: str) -> None:
    """The usual good end: an answer, and whatever the agent states or has checked."""
    run.say(text)
    evaluation = None
    if run.scene.random.random() < run.scene.agent.evaluated:
        evaluation = ("pass", 1.0)
        run.truth.evidence = "evaluated"
    run.end(attributes=stated(run, "completed", "success"), evaluation=evaluation)


def fail(run: Run, kind: str, text: str, *, outcome: Outcome = "failed") -> None:
    """The run ends in an error, without an answer."""
    run.truth.really_done = False
    run.end(error=(kind, text), attributes=stated(run, outcome, None))


def success(scene: Scene) -> None:
    """Asked, read, done, answered."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads + job.writes)
    conclude(run, job.answer)


def slow(scene: Scene) -> None:
    """Done, but with model calls that take several times as long as usual."""
    job = job_for(scene)
    run = begin(scene, job)
    for step in job.reads + job.writes:
        run.use(step)
        run.span("compact_history", scene.seconds((35.0, 80.0)), dict(run.common))
    conclude(run, job.answer)


def dear(scene: Scene) -> None:
    """Done, but whole documents were pushed through the model with each call."""
    job = job_for(scene)
    run = begin(scene, job)
    for step in job.reads + job.writes:
        run.execute(step, run.ask(step, extra_tokens=60_000 + scene.random.randrange(40_000))[0])
    conclude(run, job.answer)
    run.truth.finding("runaway_cost")


def second_request(scene: Scene) -> None:
    """Two tasks in one conversation: the same write again, but because the person asked again."""
    _asked_again(scene, remembers=False)


def second_request_with_history(scene: Scene) -> None:
    """The same with an agent that carries the earlier messages, and so their call ids, along."""
    _asked_again(scene, remembers=True)


def _asked_again(scene: Scene, *, remembers: bool) -> None:
    job = job_for(scene)
    first = begin(scene, job)
    use_all(first, job.reads + job.writes[:1])
    conclude(first, job.answer)
    start = first.now + scene.random.randrange(60, 900) * 1_000_000_000
    truth = scene.task(job.conversation, start)
    history = tuple(first.history) if remembers else ()
    second = begin(scene, job, truth, start, history=history, ask=job.again)
    use_all(second, job.writes[:1])
    conclude(second, job.answer)


def polling(scene: Scene) -> None:
    """Six equal reads whose result changes: waiting, not looping."""
    job = export(scene, ("queued", "12 %", "35 %", "61 %", "88 %", "finished"))
    run = begin(scene, job)
    for step in job.reads:
        run.use(step)
        run.wait(5.0)
    conclude(run, job.answer)


def pagination(scene: Scene) -> None:
    """Seven reads that differ by page: no loop."""
    job = job_for(scene)
    page = job.reads[-1]
    run = begin(scene, job)
    for number in range(1, 8):
        text = f"Part {number} of 7, {scene.random.randrange(100, 999)} rows."
        run.use(Step(page.tool, {**page.arguments, "page": number}, {"text": text}))
    conclude(run, job.answer)
