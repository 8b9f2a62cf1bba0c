"""Calls that fail and are tried again: well, badly, too often, all at once, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from sample_traces.jobs import job_for
from sample_traces.messages import Call
from sample_traces.stories.humans import escalate
from sample_traces.stories.plain import begin, conclude, fail, use_all
from sample_traces.tasks import REFUSED, SECOND, TOO_MANY, Failure, Run, Scene, Step

ATTEMPT = "agent_slo.action.attempt"
PLAN = "agent_slo.tool.on_failure"
BRIEF = 0.2  # seconds until a refusing receiver answers


def attempts(
    run: Run, step: Step, call: Call, failure: Failure, waits: Sequence[float], *, succeeds: bool
) -> None:
    """One call tried ``len(waits) + 1`` times by the client, with these waits (seconds) in between."""
    for number, wait in enumerate((*waits, None), start=1):
        last = wait is None
        run.execute(
            step, call, failure=None if last and succeeds else failure, attributes={ATTEMPT: number},
            seconds=None if last and succeeds else BRIEF, answer=last,
        )  # fmt: skip
        if wait is not None:
            run.wait(wait)


def patient_retry(scene: Scene) -> None:
    """Refused twice for load, tried again with growing waits, done: no fault."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    first = 2.0 + scene.random.random()
    waits = (first, 2.2 * first)
    attempts(run, job.writes[0], run.ask(job.writes[0])[0], TOO_MANY, waits, succeeds=True)
    use_all(run, job.writes[1:])
    conclude(run, job.answer)


def synchronised(scene: Scene) -> None:
    """One of many tasks that a batch starts at once and that all retry at the same moment."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads[:1])
    call = run.ask(job.writes[0])[0]
    run.now = max(run.now, scene.start_ns + 6 * SECOND)  # all meet at the rate limit
    attempts(run, job.writes[0], call, TOO_MANY, (30.0, 30.0), succeeds=True)
    run.truth.finding("synchronised")
    use_all(run, job.writes[1:])
    conclude(run, job.answer)


def unbounded(scene: Scene) -> None:
    """Thirteen attempts, then done or given up for good."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    waits = [1.0 * 1.25**n for n in range(12)]
    succeeds = scene.random.random() < 0.5
    attempts(run, job.writes[0], run.ask(job.writes[0])[0], TOO_MANY, waits, succeeds=succeeds)
    run.truth.finding("unbounded")
    run.truth.may_find("loop")
    if succeeds:
        use_all(run, job.writes[1:])
        conclude(run, job.answer)
    else:
        run.truth.finding("dead_letter")
        fail(run, "429", "parked after 13 attempts", outcome="dead_letter")


def dead_letter(scene: Scene) -> None:
    """The mail gateway is down; after four attempts the message is parked."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    attempts(run, job.writes[0], run.ask(job.writes[0])[0], REFUSED, (2.0, 4.0, 8.0), succeeds=False)
    run.truth.finding("dead_letter")
    fail(run, "ConnectionRefusedError", "parked after 4 attempts", outcome="dead_letter")


def no_backoff(scene: Scene) -> None:
    """The second wait is shorter than the first."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    attempts(run, job.writes[0], run.ask(job.writes[0])[0], TOO_MANY, (8.0, 2.0), succeeds=True)
    run.truth.finding("no_backoff")
    use_all(run, job.writes[1:])
    conclude(run, job.answer)


def non_retryable(scene: Scene) -> None:
    """An expired credential is tried again and again."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    denied = Failure("401", "Error: 401 Unauthorized: the token has expired")
    attempts(run, job.writes[0], run.ask(job.writes[0])[0], denied, (1.0, 2.0), succeeds=False)
    run.truth.finding("non_retryable")
    run.truth.may_find("same_args_after_rejection")
    fail(run, "401", "could not send: token expired")


def same_args_after_rejection(scene: Scene) -> None:
    """The model sends arguments once more that were refused as invalid."""
    job = job_for(scene)
    write = job.writes[0]
    run = begin(scene, job)
    use_all(run, job.reads)
    invalid = Failure("ValidationError", "Error: validation failed: the account has no address")
    run.use(write, failure=invalid, seconds=BRIEF)
    run.use(write, failure=invalid, seconds=BRIEF)
    run.truth.finding("same_args_after_rejection")
    run.truth.may_find("non_retryable")
    fail(run, "ValidationError", "could not send: no address")


def missed_retry(scene: Scene) -> None:
    """One refusal for load is taken as final."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    run.use(job.writes[0], failure=TOO_MANY, seconds=BRIEF)
    run.truth.finding("missed_retry")
    fail(run, "429", "could not send: 429")


def amplification(scene: Scene) -> None:
    """The client tries three times, the model asks again, the client tries three times more."""
    job = job_for(scene)
    write = job.writes[0]
    run = begin(scene, job)
    use_all(run, job.reads)
    attempts(run, write, run.ask(write)[0], TOO_MANY, (1.0, 2.0), succeeds=False)
    run.wait(3.0)
    attempts(run, write, run.ask(write)[0], TOO_MANY, (8.0, 16.0), succeeds=True)
    run.truth.finding("amplification")
    use_all(run, job.writes[1:])
    conclude(run, job.answer)


def _plan(scene: Scene) -> Run:
    """A final refusal of a tool whose declared plan is to hand over."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    locked = Failure("409", "Error: 409 Conflict: the account is locked")
    run.use(job.writes[0], failure=locked, seconds=BRIEF, attributes={PLAN: "escalate"})
    return run


def plan_kept(scene: Scene) -> None:
    escalate(_plan(scene), needed=True, reason="The account is locked.")


def plan_not_kept(scene: Scene) -> None:
    run = _plan(scene)
    run.truth.finding("plan_not_kept")
    fail(run, "409", "could not send: account locked")
