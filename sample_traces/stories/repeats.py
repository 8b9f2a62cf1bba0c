"""Side effects that happen, or may happen, more than once: by cause, with and without protection."""

from __future__ import annotations

from dataclasses import replace

from sample_traces.agents import REFUND_DESK, SCHEDULING
from sample_traces.jobs import job_for, meeting, meeting_status, refund
from sample_traces.stories.plain import begin, conclude, resume, stated, use_all
from sample_traces.tasks import SECOND, TIMEOUT, Failure, Job, Run, Scene, Step

KEY = "agent_slo.action.idempotency_key"
ATTEMPT = "agent_slo.action.attempt"
TRIGGER = "agent_slo.run.trigger"


def key_of(job: Job) -> dict[str, str]:
    """The idempotency key of the job's first write."""
    return {KEY: f"{job.writes[0].tool.name}/{job.conversation}"}


def _gap(scene: Scene, low: int, high: int) -> int:
    return scene.random.randrange(low * 1000, high * 1000) * (SECOND // 1000)


def model_repeat(scene: Scene) -> None:
    """The model asks for the same write in two turns; both make something."""
    job = job_for(scene)
    write = job.writes[0]
    run = begin(scene, job)
    use_all(run, (*job.reads, write, write))
    run.truth.duplicate(write.tool.name, "unprotected", "model_repeat", "proven")
    run.truth.may_find("retried_after_success")
    use_all(run, job.writes[1:])
    conclude(run, job.answer)


def compensated_repeat(scene: Scene) -> None:
    """A model repeat that the agent notices and undoes."""
    job = refund(scene)
    write = job.writes[0]
    run = begin(scene, job)
    use_all(run, (*job.reads, write))
    second = run.use(write)
    run.truth.duplicate(write.tool.name, "unprotected", "model_repeat", "proven")
    run.truth.duplicates[-1]["compensated"] = True
    run.truth.may_find("retried_after_success")
    cancel = REFUND_DESK.tools["cancel_refund"]
    entity = second["refund_id"]
    undo = Step(cancel, {"refund_id": entity}, {"refund_id": entity, "status": "cancelled"})
    run.use(undo, attributes={"agent_slo.action.compensates": entity})
    run.truth.compensations += 1
    conclude(run, job.answer)


def key_not_honoured(scene: Scene) -> None:
    """The same write twice under one key, and the receiver made two things all the same."""
    job = refund(scene)
    write = job.writes[0]
    run = begin(scene, job)
    use_all(run, job.reads)
    run.use(write, attributes=key_of(job))
    run.use(write, attributes=key_of(job))
    run.truth.duplicate(write.tool.name, "unprotected", "model_repeat", "proven")
    run.truth.finding("key_not_honoured")
    run.truth.may_find("retried_after_success")
    conclude(run, job.answer)


def key_reused(scene: Scene) -> None:
    """One key on two different refunds: the second may be swallowed. No duplicate."""
    job = refund(scene)
    write = job.writes[0]
    other = {**write.arguments, "order_id": f"B-{20000 + scene.number}"}
    run = begin(scene, replace(job, ask=job.ask + f" And the same for order {other['order_id']}."))
    use_all(run, job.reads)
    run.use(write, attributes=key_of(job))
    run.use(Step(write.tool, other, {**write.result, "order_id": other["order_id"]}), attributes=key_of(job))
    run.truth.finding("key_reused")
    conclude(run, job.answer)


def no_op_repeat(scene: Scene) -> None:
    """A status set twice to the same value: waste, no harm."""
    job, set_to = meeting_status(scene)
    step, effect = set_to("confirmed"), {"agent_slo.tool.effect": "idempotent_write"}
    run = begin(scene, job)
    use_all(run, job.reads)
    run.use(step, attributes=effect)
    run.use(step, attributes=effect, new_effect=False)
    run.truth.duplicate(step.tool.name, "no_op", "model_repeat", "none")
    run.truth.may_find("retried_after_success")
    conclude(run, job.answer)


def status_and_back(scene: Scene) -> None:
    """A status set, set to another, and set again: three intended changes."""
    job, set_to = meeting_status(scene)
    ask = job.ask + " If the room is taken make it tentative until it is free again."
    run = begin(scene, replace(job, ask=ask))
    for status in ("confirmed", "tentative", "confirmed"):
        run.use(set_to(status), attributes={"agent_slo.tool.effect": "idempotent_write"})
    conclude(run, job.answer)


def _timeout(scene: Scene) -> Failure:
    """A timeout of which only the world knows whether the write took place; some frameworks hide it."""
    return replace(TIMEOUT, happened=scene.random.random() < 0.6, status_ok=scene.random.random() < 0.3)


def retry_after_timeout(scene: Scene) -> None:
    """A write times out and is sent again at once, without a key and without a look."""
    job = job_for(scene)
    write = job.writes[0]
    run = begin(scene, job)
    use_all(run, job.reads)
    run.use(write, seconds=10.0, failure=_timeout(scene))
    run.use(write)
    run.truth.duplicate(write.tool.name, "unprotected", "retry_after_timeout", "possible")
    run.truth.finding("blind_retry")
    run.truth.may_find("hung_call", "uncertain_outcome")
    use_all(run, job.writes[1:])
    conclude(run, job.answer)


def retry_with_key(scene: Scene) -> None:
    """The same, but the client sends both attempts under one key: the receiver makes it once."""
    job = job_for(scene)
    write = job.writes[0]
    failure = _timeout(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    call = run.ask(write)[0]
    run.execute(
        write, call, seconds=10.0, failure=failure, attributes={**key_of(job), ATTEMPT: 1}, answer=False
    )
    run.wait(1.0 + scene.random.random())
    run.execute(write, call, attributes={**key_of(job), ATTEMPT: 2}, new_effect=not failure.happened)
    run.truth.duplicate(write.tool.name, "protected", "retry_after_timeout", "possible")
    run.truth.may_find("hung_call", "uncertain_outcome")
    use_all(run, job.writes[1:])
    conclude(run, job.answer)


def timeout_then_look(scene: Scene) -> None:
    """A write times out; the agent looks, finds it done and does not repeat it."""
    job = refund(scene)
    write = job.writes[0]
    run = begin(scene, job)
    use_all(run, job.reads)
    run.use(write, seconds=10.0, failure=TIMEOUT)
    order = write.arguments["order_id"]
    found = {"order_id": order, "refunds": [{"amount": write.arguments["amount"], "status": "issued"}]}
    run.use(Step(REFUND_DESK.tools["get_refund_status"], {"order_id": order}, found))
    run.truth.may_find("hung_call", "false_success", "missed_retry", "vanished_failure")
    run.say(job.answer)
    run.end(attributes=stated(run, "completed", "success", always=True))


def crash_replay(scene: Scene) -> None:
    """Killed after the write; the supervisor starts the work again from the beginning."""
    job = job_for(scene)
    write = job.writes[0]
    first = begin(scene, job)
    use_all(first, (*job.reads, write))
    first.killed()
    second = begin(scene, job, first.truth, first.now + _gap(scene, 30, 200))
    use_all(second, (*job.reads, write))
    second.truth.duplicate(write.tool.name, "unprotected", "crash_replay", "proven")
    second.truth.may_find("retried_after_success")
    use_all(second, job.writes[1:])
    conclude(second, job.answer)


def crash_replay_with_key(scene: Scene) -> None:
    """Killed after a keyed write; the replay sends the same key and gets the first result back."""
    job = job_for(scene)
    write = job.writes[0]
    first = begin(scene, job)
    use_all(first, job.reads)
    made = first.use(write, attributes=key_of(job))
    first.killed()
    second = begin(scene, job, first.truth, first.now + _gap(scene, 30, 200))
    use_all(second, job.reads)
    second.use(write, attributes=key_of(job), result=made, new_effect=False)
    second.truth.duplicate(write.tool.name, "protected", "crash_replay", "none")
    use_all(second, job.writes[1:])
    conclude(second, job.answer)


def crash_inside_tool(scene: Scene) -> None:
    """Killed inside the write: it took place, but no span tells. The replay is only suspected."""
    job = job_for(scene)
    write = job.writes[0]
    first = begin(scene, job)
    use_all(first, job.reads)
    first.ask(write)
    first.killed()
    first.truth.effects.append({"tool": write.tool.name, "arguments": dict(write.arguments), "entity": None})
    second = begin(scene, job, first.truth, first.now + _gap(scene, 30, 200))
    use_all(second, (*job.reads, write))
    second.truth.suspected += 1
    second.truth.may_find("hung_call", "uncertain_outcome")
    use_all(second, job.writes[1:])
    conclude(second, job.answer)


def crash_before_write(scene: Scene) -> None:
    """Killed before anything was written; done in the second run."""
    job = job_for(scene)
    first = begin(scene, job)
    use_all(first, job.reads)
    first.killed()
    second = begin(scene, job, first.truth, first.now + _gap(scene, 30, 200))
    use_all(second, job.reads + job.writes)
    conclude(second, job.answer)


def durable_resume(scene: Scene) -> None:
    """Killed after the write; the second run takes its result from a journal."""
    job = job_for(scene)
    write = job.writes[0]
    first = begin(scene, job)
    use_all(first, job.reads)
    call = first.ask(write)[0]
    made = first.execute(write, call)
    first.killed()
    second = Run(
        scene, first.truth, first.now + _gap(scene, 20, 90), ask=None, history=tuple(first.history[:-1]),
        attributes={**job.attributes, TRIGGER: "resume"},
    )  # fmt: skip
    second.execute(write, call, result=made, disposition="replayed", seconds=0.002)
    use_all(second, job.writes[1:])
    conclude(second, job.answer)


def redelivery(scene: Scene) -> None:
    """A queue delivers the same message twice; both deliveries are worked off."""
    job = job_for(scene)
    first = begin(scene, job)
    use_all(first, job.reads + job.writes)
    conclude(first, job.answer)
    second = begin(
        scene, job, first.truth, first.now + _gap(scene, 60, 300), attributes={TRIGGER: "redelivery"}
    )
    use_all(second, job.reads + job.writes)
    for write in job.writes:
        second.truth.duplicate(write.tool.name, "unprotected", "redelivery", "proven")
    second.truth.may_find("retried_after_success")
    conclude(second, job.answer)


def redelivery_dropped(scene: Scene) -> None:
    """The second delivery is recognised and not executed."""
    job = job_for(scene)
    first = begin(scene, job)
    use_all(first, job.reads + job.writes)
    conclude(first, job.answer)
    second = begin(
        scene, job, first.truth, first.now + _gap(scene, 60, 300),
        attributes={TRIGGER: "redelivery", "agent_slo.run.dropped": True},
    )  # fmt: skip
    second.end()


def orchestrator_retry(scene: Scene) -> None:
    """The model fails after the write; the orchestrator runs the whole task again."""
    job = job_for(scene)
    write = job.writes[0]
    first = begin(scene, job)
    use_all(first, (*job.reads, write))
    first.model_fails()
    first.end(error=("503", "503 model overloaded"))
    second = begin(scene, job, first.truth, first.now + _gap(scene, 5, 30), attributes={TRIGGER: "retry"})
    use_all(second, (*job.reads, write))
    second.truth.duplicate(write.tool.name, "unprotected", "orchestrator_retry", "proven")
    second.truth.may_find("retried_after_success")
    use_all(second, job.writes[1:])
    conclude(second, job.answer)


def resume_reexecution(scene: Scene) -> None:
    """A write before a pause is executed once more when the run is resumed."""
    job = meeting(scene)
    book, invite = job.writes
    first = begin(scene, job)
    use_all(first, job.reads)
    booking = first.ask(book)[0]
    first.execute(book, booking)
    invitation = first.ask(invite)[0]
    first.end()
    wait = _gap(scene, 120, 3000)
    first.truth.human_wait_ns += wait
    second = resume(scene, job, first, first.now + wait, {TRIGGER: "resume"})
    second.execute(book, booking, answer=False)
    second.truth.duplicate(book.tool.name, "unprotected", "resume_reexecution", "proven")
    second.truth.may_find("retried_after_success")
    second.execute(invite, invitation, attributes={"agent_slo.human.decision": "approved"})
    second.truth.human("approval", "approved", invite.tool.name)
    conclude(second, job.answer)


def seen_twice(scene: Scene) -> None:
    """One write seen by two instrumentations: two spans, one attempt."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    run.use(job.writes[0], twice=True)
    use_all(run, job.writes[1:])
    conclude(run, job.answer)


def saga(scene: Scene, *, undo: int) -> None:
    """Room and catering are booked, the invitation is refused; ``undo`` of the two are undone."""
    job = meeting(scene, catered=True)
    book, cater, invite = job.writes
    run = begin(scene, job)
    use_all(run, job.reads)
    booking, order = run.use(book)["booking_id"], run.use(cater)["order_id"]
    refused = Failure("409", "Error: 409 Conflict: the participant list is closed")
    run.use(invite, failure=refused, seconds=0.4)
    inverse = (("cancel_catering", "order_id", order), ("cancel_room", "booking_id", booking))
    for name, field, entity in inverse[:undo]:
        step = Step(SCHEDULING.tools[name], {field: entity}, {field: entity, "status": "cancelled"})
        run.use(step, attributes={"agent_slo.action.compensates": entity})
        run.truth.compensations += 1
    run.truth.really_done = False
    if undo < 2:
        run.truth.finding("not_compensated")
    run.say("I could not invite the participants, so the meeting is not set up.")
    run.end(error=("SagaFailed", "invitation refused"), attributes=stated(run, "failed", None, always=True))


def saga_compensated(scene: Scene) -> None:
    saga(scene, undo=2)


def saga_uncompensated(scene: Scene) -> None:
    saga(scene, undo=scene.random.randrange(2))
