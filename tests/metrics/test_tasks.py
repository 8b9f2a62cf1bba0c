"""What is one task: the same work counts the same however its turns are dealt out over traces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.metrics.bench import MemoryBench, at, request, span

Span = dict[str, Any]

AGENT = {"gen_ai__operation__name": "invoke_agent", "gen_ai__conversation__id": "c-1"}
CHAT = {"gen_ai__operation__name": "chat"}
TOOL = {"gen_ai__operation__name": "execute_tool"}
SHOWN = "sli, verdict, value IS NULL AS bare"


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryBench]:
    with MemoryBench() as one:
        yield one


def turn(
    trace: str, start: float, ask: str, answer: str | None, parent: str | None = None, **more: Any
) -> list[Span]:
    """One user turn: an agent run with one model call."""
    root = f"run@{start}"
    shared = {"gen_ai__conversation__id": "c-1", "gen_ai__agent__name": "desk", **more}
    said = [{"role": "user", "content": ask}]
    told = {} if answer is None else {"gen_ai__output__messages": [{"role": "assistant", "content": answer}]}
    return [
        span(trace, "invoke_agent desk", start, start + 5, parent, id=root, **{**AGENT, **shared}),
        span(
            trace, "chat m", start + 1, start + 4, root, **CHAT, gen_ai__request__model="m",
            gen_ai__input__messages={"messages": said}, gen_ai__response__finish_reasons=["stop"], **told, **shared,
        ),
    ]  # fmt: skip


def outcomes(memory: MemoryBench) -> list[str]:
    return [
        row["outcome"] for row in memory.rows("SELECT outcome FROM core.tasks ORDER BY started_at, task_id")
    ]


def test_two_questions_of_one_conversation_are_two_tasks_in_one_trace_or_two(memory: MemoryBench) -> None:
    apart = [*turn("t1", 0, "refund A-1", "done"), *turn("t2", 60, "where is A-2?", "on its way")]
    memory.derive_only([request(apart)], at(90_000))
    wanted = sorted(memory.rows(f"SELECT {SHOWN} FROM core.sli_events"), key=repr)
    assert outcomes(memory) == ["completed", "completed"]
    together = [
        span("t", "POST /chat", 0, 70, None, id="http"),
        *turn("t", 0, "refund A-1", "done", "http"),
        *turn("t", 60, "where is A-2?", "on its way", "http"),
    ]
    memory.derive_only([request(together)], at(90_000))
    assert outcomes(memory) == ["completed", "completed"]
    assert sorted(memory.rows(f"SELECT {SHOWN} FROM core.sli_events"), key=repr) == wanted


def test_tomorrows_question_does_not_finish_yesterdays_lost_task(memory: MemoryBench) -> None:
    crashed = turn("t1", 0, "refund A-1", None)[1:]
    memory.derive_only([request([*crashed, *turn("t2", 86_400, "where is A-2?", "on its way")])], at(200_000))
    assert outcomes(memory) == ["lost", "completed"]
    memory.derive_only([request([*crashed, *turn("t2", 600, "refund A-1", "done")])], at(200_000))
    assert outcomes(memory) == ["completed"]


def test_a_late_root_takes_the_crash_back(memory: MemoryBench) -> None:
    root, call = turn("t1", 0, "refund A-1", "done")
    memory.derive_only([request([call])], at(10_000))
    assert outcomes(memory) == ["lost"]
    memory.derive_only([request([call]), request([root])], at(10_000))
    assert outcomes(memory) == ["completed"]


def test_a_history_that_repeats_an_old_approval_opens_no_old_task(memory: MemoryBench) -> None:
    """Every later turn carries the whole chat; what was decided before its last question is past."""
    asked = {
        "role": "assistant",
        "tool_calls": [{"id": "k1", "function": {"name": "refund", "arguments": "{}"}}],
    }
    answered = {"role": "tool", "tool_call_id": "k1", "content": "done"}
    paused = turn("t1", 0, "refund A-1", None)
    paused[1]["attributes"] = [a for a in paused[1]["attributes"] if "finish" not in a["key"]]
    paused[1] = span(
        "t1", "chat m", 1, 4, "run@0", **CHAT, gen_ai__conversation__id="c-1",
        gen_ai__input__messages={"messages": [{"role": "user", "content": "refund A-1"}]},
        gen_ai__output__messages={"messages": [asked]}, gen_ai__response__finish_reasons=["tool_calls"],
    )  # fmt: skip
    resumed = [
        span("t2", "invoke_agent desk", 60, 66, None, id="r", **AGENT),
        span("t2", "execute_tool refund", 61, 62, "r", **TOOL, gen_ai__tool__name="refund",
             gen_ai__tool__call__id="k1", gen_ai__tool__call__result="done", gen_ai__tool__call__arguments="{}"),
        span("t2", "chat m", 63, 65, "r", **CHAT,
             gen_ai__input__messages={"messages": [{"role": "user", "content": "refund A-1"}, asked, answered]},
             gen_ai__output__messages="refunded", gen_ai__response__finish_reasons=["stop"]),
    ]  # fmt: skip
    history = [
        {"role": "user", "content": "refund A-1"}, asked, answered,
        {"role": "assistant", "content": "refunded"}, {"role": "user", "content": "where is A-2?"},
    ]  # fmt: skip
    later = [
        span("t3", "invoke_agent desk", 600, 606, None, id="r3", **AGENT),
        span("t3", "chat m", 601, 605, "r3", **CHAT, gen_ai__input__messages={"messages": history},
             gen_ai__output__messages="on its way", gen_ai__response__finish_reasons=["stop"]),
    ]  # fmt: skip
    memory.derive_only([request([*paused, *resumed, *later])], at(90_000))
    tasks = memory.rows("SELECT outcome, runs, interventions FROM core.tasks ORDER BY started_at")
    assert tasks == [
        {"outcome": "completed", "runs": 2, "interventions": 1},
        {"outcome": "completed", "runs": 1, "interventions": 0},
    ]
    assert memory.rows("SELECT kind, decision, tool FROM core.interventions") == [
        {"kind": "approval", "decision": "approved", "tool": "refund"}
    ]


def test_a_run_that_stops_at_its_step_limit_is_not_done_and_waits_for_nobody(memory: MemoryBench) -> None:
    spans = turn("t1", 0, "refund A-1", None)
    spans[1] = span(
        "t1", "chat m", 1, 2, "run@0", **CHAT, gen_ai__response__finish_reasons=["tool_calls"],
        gen_ai__output__messages={"messages": [{"role": "assistant", "tool_calls": [
            {"id": "k1", "function": {"name": "get_order", "arguments": "{}"}}]}]},
    )  # fmt: skip
    spans.append(
        span("t1", "execute_tool get_order", 3, 4, "run@0", **TOOL,
             gen_ai__tool__name="get_order", gen_ai__tool__call__id="k1", gen_ai__tool__call__result="A-1")
    )  # fmt: skip
    memory.derive_only([request(spans)], at(90_000))
    assert outcomes(memory) == ["unknown"]
    assert memory.rows("SELECT * FROM core.interventions") == []


def test_a_call_id_that_only_counts_joins_no_unrelated_runs(memory: MemoryBench) -> None:
    """Some runtimes number the calls of each answer: every first call of every customer is `call_0`."""
    sent = []
    for trace, start in (("t1", 0), ("t2", 100), ("t3", 200)):
        sent += [
            span(trace, "invoke_agent desk", start, start + 9, id="run", gen_ai__operation__name="invoke_agent",
                 gen_ai__agent__name="desk"),
            span(trace, "execute_tool refund", start + 1, start + 2, "run", **TOOL, gen_ai__tool__name="refund",
                 gen_ai__tool__call__id="call_0", gen_ai__tool__call__arguments={"amount": 5},
                 gen_ai__tool__call__result="ok"),
            span(trace, "chat m", start + 3, start + 4, "run", gen_ai__operation__name="chat",
                 gen_ai__request__model="m", gen_ai__usage__output_tokens=3,
                 gen_ai__output__messages={"messages": [{"role": "assistant", "content": "done"}]}),
        ]  # fmt: skip
    memory.derive_only([request(sent)], at(90_000))
    assert outcomes(memory) == ["completed"] * 3
    assert memory.rows("SELECT * FROM core.findings") == []


def accepted(trace: str, start: float, name: str = "POST /runs", **more: Any) -> Span:
    """What a web framework records when a request for a task comes in."""
    return {**span(trace, name, start, start + 0.1, None, **more), "kind": 2}


def test_a_request_taken_in_and_never_begun_is_lost(memory: MemoryBench) -> None:
    asked = accepted("t1", 0, agent_slo__task__id="order-17")
    memory.derive_only([request([asked])], at(60))
    assert outcomes(memory) == ["running"]
    memory.derive_only([request([asked])], at(10_000))
    assert memory.rows("SELECT task_id, outcome, rule FROM core.tasks") == [
        {"task_id": "order-17", "outcome": "lost", "rule": "task.lost.no_terminal_run"}
    ]
    # another request in the same trace of no named task is nobody's task
    memory.derive_only([request([accepted("t1", 0, "GET /health")])], at(10_000))
    assert outcomes(memory) == []


def test_requests_around_a_finished_task_do_not_open_it_again(memory: MemoryBench) -> None:
    asked = accepted("t1", 0, agent_slo__task__id="order-17")
    done = turn("t2", 5, "refund A-1", "done", agent_slo__task__id="order-17")
    polled = accepted("t3", 600, "GET /runs/17", agent_slo__task__id="order-17")
    memory.derive_only([request([asked, *done, polled])], at(90_000))
    assert memory.rows("SELECT outcome, had_trouble, interventions FROM core.tasks") == [
        {"outcome": "completed", "had_trouble": False, "interventions": 0}
    ]
    assert memory.rows("SELECT * FROM core.sli_events WHERE sli = 'recovery'") == []


def test_work_given_to_a_person_is_handed_over_even_without_a_result(memory: MemoryBench) -> None:
    root, call = turn("t1", 0, "refund A-1", None)
    looked = span("t1", "tool", 1.2, 1.5, "run@0", **TOOL, gen_ai__tool__name="get_order",
                  gen_ai__tool__call__result="open")  # fmt: skip
    given = span("t1", "tool", 2, 2.1, "run@0", **TOOL, gen_ai__tool__name="transfer_to_human_agents")
    asking = span("t1", "tool", 2, 2.1, "run@0", **TOOL, gen_ai__tool__name="ask_manager")
    memory.derive_only([request([root, call, looked, given])], at(90_000))
    assert outcomes(memory) == ["handed_over"]
    memory.derive_only([request([root, call, looked, asking])], at(90_000))
    assert outcomes(memory) == ["waiting_human"]


@pytest.mark.parametrize(
    ("state", "sampled"),
    [
        ("ot=th:8", True),
        ("vendor=1, ot=rv:abc;th:c8", True),
        ("ot=th:0", False),
        ("th=8", False),
        ("", False),
    ],
)
def test_what_a_sampling_sender_lost_or_did_twice_is_unknown(
    memory: MemoryBench, state: str, sampled: bool
) -> None:
    root, call = turn("t1", 0, "refund A-1", "done")
    write = span("t1", "tool", 2, 2.1, "run@0", **TOOL, gen_ai__tool__name="issue_refund",
                 gen_ai__tool__call__arguments={"order": "A-1"}, gen_ai__tool__call__result="ok")  # fmt: skip
    memory.derive_only([request([{**one, "traceState": state} for one in (root, call, write)])], at(90_000))
    verdicts = {row["sli"]: row["verdict"] for row in memory.rows("SELECT sli, verdict FROM core.sli_events")}
    assert verdicts["lost_task"] == verdicts["duplicate_action"] == ("unknown" if sampled else "good")
    assert verdicts["task_completion"] == "good"


def test_a_task_has_the_name_of_the_first_run_that_knows_it(memory: MemoryBench) -> None:
    crashed = turn("t1", 0, "refund A-1", None)[1:]
    for one in crashed:
        one["attributes"] = [a for a in one["attributes"] if a["key"] != "gen_ai.agent.name"]
    memory.derive_only([request([*crashed, *turn("t2", 600, "refund A-1", "done")])], at(200_000))
    assert memory.rows("SELECT runs, agent, outcome FROM core.tasks") == [
        {"runs": 2, "agent": "desk", "outcome": "completed"}
    ]


def refused(trace: str = "t1") -> Span:
    return span(trace, "tool", 2, 2.1, "run@0", error="Forbidden", message="403 Forbidden", **TOOL,
                gen_ai__tool__name="issue_refund", gen_ai__tool__call__arguments={"order": "A-1"})  # fmt: skip


def test_whoever_says_that_it_failed_is_believed(memory: MemoryBench) -> None:
    root, call = turn("t1", 0, "refund A-1", "I am done.", agent_slo__task__claimed="failure")
    memory.derive_only([request([root, call, refused()])], at(90_000))
    assert memory.rows("SELECT outcome, outcome_evidence, rule FROM core.tasks") == [
        {"outcome": "failed", "outcome_evidence": "inferred", "rule": "task.failed.claimed"}
    ]


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        ("Sorry, I could not issue the refund: I am not permitted to.", []),
        ("The refund timed out; I don't know whether it went through.", []),
        ("Anything else I may help with today?", ["vanished_failure"]),
    ],
)
def test_a_failure_that_the_answer_admits_has_not_vanished(
    memory: MemoryBench, answer: str, kinds: list[str]
) -> None:
    memory.derive_only([request([*turn("t1", 0, "refund A-1", answer), refused()])], at(90_000))
    found = memory.rows("SELECT kind FROM core.findings WHERE kind IN ('vanished_failure', 'false_success')")
    assert [row["kind"] for row in found] == kinds


def test_an_empty_answer_is_none(memory: MemoryBench) -> None:
    root, call = turn("t1", 0, "refund A-1", None, gen_ai__usage__output_tokens=1)
    memory.derive_only([request([root, call])], at(90_000))
    assert outcomes(memory) == ["completed"]
    empty = {"key": "gen_ai.output.messages", "value": {"stringValue": '[{"role":"assistant","parts":[]}]'}}
    memory.derive_only([request([root, {**call, "attributes": [*call["attributes"], empty]}])], at(90_000))
    assert outcomes(memory) == ["unknown"]


def test_the_same_words_of_two_people_are_two_tasks(memory: MemoryBench) -> None:
    def alone(trace: str, start: float, user: str, answer: str | None) -> list[Span]:
        spans = turn(trace, start, "refund it", answer, user__id=user)
        for one in spans:
            one["attributes"] = [a for a in one["attributes"] if a["key"] != "gen_ai.conversation.id"]
        return spans

    crashed = alone("t1", 0, "u-1", None)[1:]
    memory.derive_only([request([*crashed, *alone("t2", 120, "u-1", "done")])], at(90_000))
    assert outcomes(memory) == ["completed"]
    memory.derive_only([request([*crashed, *alone("t2", 120, "u-2", "done")])], at(90_000))
    assert outcomes(memory) == ["lost", "completed"]
