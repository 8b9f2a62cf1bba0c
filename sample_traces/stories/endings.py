"""Tasks that end badly, falsely, late or not at all."""

from __future__ import annotations

from dataclasses import replace

from sample_traces.jobs import export, job_for, refund
from sample_traces.stories.plain import begin, conclude, fail, stated, use_all
from sample_traces.tasks import TIMEOUT, Failure, Scene

CLAIMED = "agent_slo.task.claimed"


def model_down(scene: Scene) -> None:
    """The model answers 503: model step and root in error."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads[: scene.random.randrange(2)])
    run.model_fails()
    run.truth.may_find("missed_retry")
    fail(run, "503", "503 model overloaded")


def model_down_root_fine(scene: Scene) -> None:
    """The same in a framework that leaves the root without an error."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads[:1])
    run.model_fails()
    run.truth.may_find("missed_retry", "vanished_failure", "false_success")
    run.truth.really_done = False
    run.end()
    run.truth.outcome = "failed"


def cancelled_system(scene: Scene) -> None:
    """A deployment stops the run, and the worker says so."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    run.truth.really_done = False
    run.end(
        error=("CancelledError", "worker is shutting down"),
        attributes=stated(run, "cancelled_system", None, always=True),
    )


def false_success(scene: Scene) -> None:
    """The write was refused and the agent says it is done."""
    job = job_for(scene)
    write = job.writes[0]
    run = begin(scene, job)
    use_all(run, job.reads)
    run.use(write, failure=Failure("409", "Error: 409 Conflict: the record is closed"), seconds=0.3)
    run.truth.finding("false_success")
    run.truth.may_find("vanished_failure")
    run.truth.really_done = False
    run.truth.outcome, run.truth.evidence, run.truth.claimed = "unknown", "none", "success"
    run.say(job.answer)
    run.end(attributes={CLAIMED: "success"})


def false_success_after_timeout(scene: Scene) -> None:
    """The write timed out without effect and the agent says it is done."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    hidden = scene.random.random() < 0.5
    run.use(job.writes[0], failure=replace(TIMEOUT, happened=False, status_ok=hidden), seconds=10.0)
    run.truth.finding("false_success", "uncertain_outcome")
    run.truth.may_find("vanished_failure", "missed_retry", "hung_call")
    run.truth.really_done = False
    run.truth.outcome, run.truth.evidence, run.truth.claimed = "unknown", "none", "success"
    run.say(job.answer)
    run.end(attributes={CLAIMED: "success"})


def vanished(scene: Scene) -> None:
    """The refund is paid, the message to the customer is refused, and nobody ever hears of that."""
    job = refund(scene, confirmed=True)
    issue, message = job.writes
    run = begin(scene, job)
    use_all(run, (*job.reads, issue))
    run.use(message, failure=Failure("422", "Error: 422 the customer has no address"), seconds=0.3)
    run.truth.finding("vanished_failure")
    run.truth.may_find("false_success")
    run.truth.really_done = False
    run.truth.outcome, run.truth.evidence = "unknown", "none"
    run.say(job.answer)
    run.end()


def uncertain(scene: Scene) -> None:
    """The write timed out; the agent says honestly that it does not know."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    run.use(job.writes[0], failure=replace(TIMEOUT, happened=scene.random.random() < 0.5), seconds=10.0)
    run.truth.finding("uncertain_outcome")
    run.truth.may_find("vanished_failure", "missed_retry", "hung_call")
    run.truth.really_done = False
    run.truth.outcome, run.truth.evidence, run.truth.claimed = "unknown", "none", "failure"
    run.say("The booking system did not answer in time; I do not know whether it was booked.")
    run.end(attributes={CLAIMED: "failure"})


def checked_and_failed(scene: Scene) -> None:
    """The agent says done, the check of the result says no."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads + job.writes)
    run.truth.may_find("false_success")
    run.truth.really_done = False
    run.truth.outcome, run.truth.evidence, run.truth.claimed = "failed", "evaluated", "success"
    run.say(job.answer)
    run.end(attributes={CLAIMED: "success"}, evaluation=("fail", 0.0))


def lost(scene: Scene) -> None:
    """The process vanishes before anything was written, and nobody starts the work again."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads[: scene.random.randrange(2)])
    run.ask(job.reads[-1])
    run.killed()
    run.truth.really_done = False
    run.truth.outcome = "lost"
    run.truth.finding("lost")
    run.truth.may_find("hung_call", "vanished_failure")


def running(scene: Scene) -> None:
    """Not finished when the period ends: the last model call has just answered."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads[:1])
    run.ask(job.reads[-1], seconds=(scene.end_ns - run.now) / 1e9)
    run.truth.outcome, run.truth.evidence, run.truth.really_done = "running", "none", False
    run.truth.may_find("hung_call")  # that call took as long as was left of the period


def hung(scene: Scene) -> None:
    """A read hangs far over the limit its caller stated, then answers after all."""
    job = job_for(scene)
    slow, *others = job.reads
    run = begin(scene, job)
    run.use(slow, seconds=110.0 + 80 * scene.random.random(), attributes={"agent_slo.tool.timeout_s": 30})
    run.truth.finding("hung_call")
    use_all(run, (*others, *job.writes))
    conclude(run, job.answer)


def loop(scene: Scene) -> None:
    """The same question with the same result, six to nine times; then an answer, or the turn limit."""
    job = job_for(scene)
    run = begin(scene, job)
    for _ in range(6 + scene.random.randrange(4)):
        run.use(job.reads[0])
    run.truth.finding("loop")
    run.truth.may_find("retried_after_success", "runaway_cost")
    if scene.random.random() < 0.5:
        conclude(run, job.answer)
    else:
        fail(run, "MaxTurnsExceeded", "maximum number of turns reached")


def cycle(scene: Scene) -> None:
    """Two reads in turn, four rounds, never a new result."""
    job = job_for(scene)
    run = begin(scene, job)
    for _ in range(4):
        use_all(run, job.reads[:2])
    run.truth.finding("loop")
    run.truth.may_find("retried_after_success", "runaway_cost")
    fail(run, "MaxTurnsExceeded", "maximum number of turns reached")


def stuck_poll(scene: Scene) -> None:
    """A status that never changes is read seven times, until the turn limit."""
    job = export(scene, ("queued",) * 7)
    run = begin(scene, job)
    use_all(run, job.reads)
    run.truth.finding("loop")
    run.truth.may_find("retried_after_success", "runaway_cost")
    fail(run, "MaxTurnsExceeded", "maximum number of turns reached")
