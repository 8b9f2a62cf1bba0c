"""Stories in which a person takes part: approvals, escalations, answers and cancellations."""

from __future__ import annotations

from sample_traces.agents import TO_HUMAN
from sample_traces.jobs import job_for, refund
from sample_traces.messages import Call, Message, compact
from sample_traces.stories.plain import begin, conclude, resume, stated, use_all
from sample_traces.tasks import SECOND, Job, Run, Scene, Step

DECISION = "agent_slo.human.decision"
LEVEL = "agent_slo.human.level"
NEEDED = "agent_slo.human.required_level"
ARGUMENTS = "agent_slo.human.arguments"
TRIGGER = {"agent_slo.run.trigger": "resume"}


def pause(scene: Scene) -> tuple[Job, Run, Call]:
    """A run that asks for a large refund and stops there: root fine, no tool span."""
    job = refund(scene, large=True)
    run = begin(scene, job)
    use_all(run, job.reads)
    call = run.ask(job.writes[0])[0]
    run.end()
    return job, run, call


def decided(scene: Scene, job: Job, paused: Run, *, tell: bool = True) -> Run:
    """The run after the decision of a person, who needed some time for it."""
    wait = scene.random.randrange(90, 9000) * SECOND
    paused.truth.human_wait_ns += wait
    return resume(scene, job, paused, paused.now + wait, TRIGGER if tell else None)


def approval_granted(scene: Scene) -> None:
    """Approved, and the tool span says so."""
    job, paused, call = pause(scene)
    run = decided(scene, job, paused)
    run.execute(job.writes[0], call, attributes={DECISION: "approved", LEVEL: "team_lead"})
    run.truth.human("approval", "approved", call.tool)
    use_all(run, job.writes[1:])
    conclude(run, job.answer)


def approval_silent(scene: Scene) -> None:
    """Approved; nothing but the pause and the execution under the same call id shows it."""
    job, paused, call = pause(scene)
    run = decided(scene, job, paused, tell=False)
    run.execute(job.writes[0], call)
    run.truth.human("approval", "approved", call.tool)
    use_all(run, job.writes[1:])
    conclude(run, job.answer)


def approval_rejected(scene: Scene) -> None:
    """Rejected: stated on a human step or on a denied tool step, or only as the answer to the call."""
    job, paused, call = pause(scene)
    run = decided(scene, job, paused, tell=scene.random.random() < 0.5)
    text = "The reviewer rejected this call: the return was never received."
    way = scene.random.randrange(3)
    if way == 0:
        human_step(run, "review_refund", "rejected", call, 0.001)
    if way == 1:
        denied = {DECISION: "rejected", "gen_ai.tool.call.result": text}
        run.execute(job.writes[0], call, disposition="denied", attributes=denied, seconds=0.001, answer=False)
    run.history.append(Message("tool", text, answers=call.id))
    run.truth.human("approval", "rejected", call.tool)
    conclude(run, "I am sorry: a colleague looked at it and we cannot refund this order.")


def approval_edited(scene: Scene) -> None:
    """Approved with another amount, and executed with that."""
    job, paused, call = pause(scene)
    run = decided(scene, job, paused)
    write = job.writes[0]
    edited = {**write.arguments, "amount": write.arguments["amount"] // 2}
    result = {"refund_id": scene.mint("re_"), **write.result, "amount": edited["amount"]}
    run.execute(
        write, call, arguments=edited, result=result,
        attributes={DECISION: "edited", ARGUMENTS: compact(edited)},
    )  # fmt: skip
    run.truth.human("approval", "edited", call.tool)
    conclude(run, f"A colleague agreed to refund {edited['amount']} EUR.")


def executed_without_approval(scene: Scene) -> None:
    """A large refund is paid although the policy asks for an approval."""
    job = refund(scene, large=True)
    run = begin(scene, job)
    use_all(run, job.reads + job.writes)
    run.truth.finding("executed_without_approval")
    conclude(run, job.answer)


def approved_other_args(scene: Scene) -> None:
    """One amount was approved, another was paid."""
    job, paused, call = pause(scene)
    run = decided(scene, job, paused)
    write = job.writes[0]
    approved = {**write.arguments, "amount": write.arguments["amount"] - 200}
    run.execute(write, call, attributes={DECISION: "approved", ARGUMENTS: compact(approved)})
    run.truth.human("approval", "approved", call.tool)
    run.truth.finding("approved_other_args")
    conclude(run, job.answer)


def approved_not_executed(scene: Scene) -> None:
    """Approved, but the resumed run forgets to do it."""
    job, paused, call = pause(scene)
    run = decided(scene, job, paused)
    human_step(run, "review_refund", "approved", call, 0.001)
    run.truth.human("approval", "approved", call.tool)
    run.truth.finding("approved_not_executed")
    run.truth.may_find("false_success", "hung_call")
    run.truth.really_done = False
    run.truth.evidence = "none"
    run.say("Thank you for your patience, we are looking into it.")
    run.end(attributes=stated(run, "unknown", None))


def waiting(scene: Scene) -> None:
    """Still waiting for a decision when the period ends."""
    _, run, call = pause(scene)
    run.truth.outcome, run.truth.evidence, run.truth.really_done = "waiting_human", "none", False
    run.truth.human("approval", None, call.tool)


def human_step(run: Run, name: str, decision: str, call: Call | None, seconds: float) -> None:
    """A step of its own for what a person decided or answered."""
    attributes = {**run.common, DECISION: decision}
    if call is not None:
        attributes |= {"gen_ai.tool.name": call.tool, "gen_ai.tool.call.id": call.id}
    run.span(name, seconds, attributes)


def escalate(run: Run, *, needed: bool, reason: str) -> None:
    """The agent hands the case over to a person; most are labelled afterwards."""
    scene = run.scene
    step = Step(TO_HUMAN, {"reason": reason, "team": "care"}, {"status": "queued"})
    attributes = {DECISION: "took_over"}
    if scene.random.random() < 0.7:
        attributes |= {LEVEL: "agent_care", NEEDED: "agent_care" if needed else "none"}
        run.truth.escalation_needed = needed
    run.use(step, attributes=attributes)
    run.truth.human("escalation", "took_over", TO_HUMAN.name)
    always = scene.random.random() < 0.5
    run.say("A colleague has taken over and will write to you.")
    run.end(attributes=stated(run, "handed_over", None, always=always))


def escalation_needed(scene: Scene) -> None:
    """A case the agent must not decide."""
    job = refund(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    escalate(run, needed=True, reason="The customer disputes the delivery; a signature has to be checked.")


def escalation_not_needed(scene: Scene) -> None:
    """A case the agent could have done by itself."""
    job = refund(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    escalate(run, needed=False, reason="The customer wants a refund.")


def answered(scene: Scene) -> None:
    """The agent asks a colleague in the middle of its run and waits."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads)
    run.say("Which branch should the change go to?")
    wait = scene.random.randrange(60, 2400)
    human_step(run, "ask_colleague", "answered", None, float(wait))
    run.truth.human_wait_ns += wait * SECOND
    run.truth.human("answer", "answered")
    run.history.append(Message("user", "The one you named is fine."))
    use_all(run, job.writes)
    conclude(run, job.answer)


def cancelled_user(scene: Scene) -> None:
    """The customer closes the chat while the agent is reading."""
    job = job_for(scene)
    run = begin(scene, job)
    use_all(run, job.reads[:1])
    run.truth.really_done = False
    run.end(
        error=("CancelledError", "closed by the user"),
        attributes=stated(run, "cancelled_user", None, always=True),
    )
