"""What an answer, a tool's own words or a reply say of the work: no misread word completes, denies or approves it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.metrics.bench import MemoryBench, at, request, span

Span = dict[str, Any]
CHAT = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "m", "gen_ai__usage__output_tokens": 3}
REFUND = {"order": "A-1", "amount": 5}


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryBench]:
    with MemoryBench() as one:
        yield one


def says(role: str, text: str) -> list[dict[str, Any]]:
    return [{"role": role, "parts": [{"type": "text", "content": text}]}]


def asks(*calls: tuple[str, str, dict[str, Any]]) -> list[dict[str, Any]]:
    parts = [{"type": "tool_call", "id": id, "name": name, "arguments": given} for id, name, given in calls]
    return [{"role": "assistant", "parts": parts}]


def root(trace: str, start: float, end: float, answer: str | None = None, **more: Any) -> Span:
    told = {} if answer is None else {"gen_ai__output__messages": says("assistant", answer)}
    more = {"gen_ai__agent__name": trace, **more}
    return span(trace, "invoke_agent desk", start, end, id="root", gen_ai__operation__name="invoke_agent",
                **told, **more)  # fmt: skip


def model(
    trace: str, start: float, out: list[dict[str, Any]], said: list[dict[str, Any]] | None = None, **more: Any
) -> Span:
    heard = said or says("user", "Refund A-1")
    return span(trace, "chat m", start, start + 0.5, "root", **CHAT, gen_ai__input__messages=heard,
                gen_ai__output__messages=out, **more)  # fmt: skip


def tool(trace: str, start: float, name: str, given: dict[str, Any], result: str | None, **more: Any) -> Span:
    told = {} if result is None else {"gen_ai__tool__call__result": result}
    return span(trace, f"execute_tool {name}", start, start + 0.5, "root", gen_ai__operation__name="execute_tool",
                gen_ai__tool__name=name, gen_ai__tool__call__arguments=given, **told, **more)  # fmt: skip


def all_at_once(one: MemoryBench, spans: Iterable[list[Span]]) -> None:
    """Derive tasks that have nothing in common in one pass."""
    one.derive_only([request(of_one) for of_one in spans], at(90_000))


def column(one: MemoryBench, sql: str) -> list[Any]:
    """One value a task, in the order of the traces' names: each agent is named like its trace."""
    return [next(iter(row.values())) for row in one.rows(f"SELECT {sql} ORDER BY agent")]


def outcome(one: MemoryBench) -> tuple[str, str]:
    (task,) = one.rows("SELECT outcome, rule FROM core.tasks")
    return task["outcome"], task["rule"]


def acted(trace: str, result: str, answer: str, name: str = "issue_refund", call: str = "k1a") -> list[Span]:
    return [
        root(trace, 0, 10, answer),
        model(trace, 1, asks((call, name, REFUND))),
        tool(trace, 2, name, REFUND, result, gen_ai__tool__call__id=call),
        model(trace, 3, says("assistant", answer)),
    ]


# ---- what a tool's result says of itself


FAILED = [
    '{"content": [{"type": "text", "text": "card expired"}], "isError": true}',
    '{"order": {"id": 1}, "success": false}',
    '{"data": {"ok": false, "reason": "card expired"}}',
    '[{"success": false, "error": "card expired"}]',
    "{'success': False, 'error': 'card expired'}",
    '{"result": null, "errors": [{"message": "card expired"}]}',
    "Could not issue the refund: card expired.",
    "Refund rejected: card expired",
    "Fehler: Karte abgelaufen",
    "The refund failed.",
    "The refund could not be issued because the card expired.",
    "Refund not issued: card expired",
    "ValueError: card expired",
    '[{"success": false, "id": 1}, {"success": false, "id": 2}]',
]


def test_a_write_that_says_it_failed_was_refused(memory: MemoryBench) -> None:
    all_at_once(
        memory,
        (
            acted(f"t{n:02}", result, "Your refund has been issued.", call=f"k{n}a")
            for n, result in enumerate(FAILED)
        ),
    )
    assert column(memory, "outcome FROM work.attempts") == ["refused"] * len(FAILED)
    assert column(memory, "rule FROM core.tasks") == ["task.unknown.last_effect_not_ok"] * len(FAILED)


QUOTING = [
    '{"id": "m1", "preview": "Your claim was not approved."}',
    "sent: 'The user rejected the offer, tool call was denied'",
    "Created ticket: 'Error: timed out while paying' as T-1",
    '{"refund": {"id": "R-1"}, "mail": {"success": false}}',
    '{"id": "R-1", "errors": ["no receipt sent"]}',
    "Subject: request was not approved. The user rejected the offer.",
    "Could not send receipt, but refund R-1 issued.",
    '{"success": true, "status": "failed", "id": "R-1"}',
    '[{"success": false, "id": 1}, {"success": true, "id": 2}]',
]


def test_what_a_result_only_quotes_decides_nothing(memory: MemoryBench) -> None:
    all_at_once(
        memory,
        (acted(f"t{n:02}", result, "Done.", "send_message", f"k{n}a") for n, result in enumerate(QUOTING)),
    )
    assert column(memory, "outcome || ' ' || disposition FROM work.attempts") == ["ok executed"] * len(
        QUOTING
    )
    assert column(memory, "outcome FROM core.tasks") == ["completed"] * len(QUOTING)


DENYING = [
    "The tool call was denied.",
    "User rejected the tool call for `issue_refund`",
    '{"error": "This tool call is rejected."}',
    "Tool execution was not approved by the user",
    '{"denied": true}',
]


def test_a_persons_no_is_a_denial(memory: MemoryBench) -> None:
    all_at_once(
        memory,
        (acted(f"t{n:02}", result, "It was turned down.", call=f"k{n}a") for n, result in enumerate(DENYING)),
    )
    assert column(memory, "disposition FROM work.attempts") == ["denied"] * len(DENYING)


# ---- what an answer says


NO_ANSWERS = [
    ("I'm sorry, but I couldn't process that refund.", "task.unknown.gave_up"),
    ("I am unable to look into this order.", "task.unknown.gave_up"),
    ("Ich konnte die Bestellung leider nicht finden.", "task.unknown.gave_up"),
    ("Je n'ai pas pu traiter la demande.", "task.unknown.gave_up"),
    ("申し訳ありませんが、返金できませんでした。", "task.unknown.gave_up"),
    ("Error: Agent execution failed", "task.unknown.no_answer"),
    ('{"status": "error"}', "task.unknown.no_answer"),
    ("null", "task.unknown.no_answer"),
    ("Sorry, need more steps to process this request.", "task.unknown.no_answer"),
    ("Agent stopped due to max iterations.", "task.unknown.no_answer"),
]


def test_an_answer_that_is_none_completes_nothing(memory: MemoryBench) -> None:
    all_at_once(
        memory,
        (
            [
                root(f"t{n:02}", 0, 10, answer),
                model(f"t{n:02}", 1, says("assistant", answer), says("user", f"Order {n}")),
            ]
            for n, (answer, _) in enumerate(NO_ANSWERS)
        ),
    )
    assert column(memory, "rule FROM core.tasks") == [rule for _, rule in NO_ANSWERS]


ANSWERS = [
    "I couldn't find any late orders.",
    "You can reset your password under Settings. I can't see your password myself.",
    "I could not find any problems with the contract. All clauses are standard.",
    "I can't wait to help! Your order ships on Tuesday.",
    "We couldn't be happier to tell you that your application is accepted.",
    "I can't do this for you, but here is how: 1. go 2. come",
    "Subject: Absence\nI'm sorry, but I can't attend",
    "Ich kann leider nicht sagen, wann genau, aber die Lieferung kommt am Dienstag.",
    "Je ne peux pas vous voir, mais votre commande arrivera mardi.",
    "Error: ECONNREFUSED means that nothing listens on the port. Start the server.",
    "Agent stopped due to max iterations is a LangChain message: raise max_iterations.",
    '{"status":"failed","order_id":"A-1","reason":"card expired"}',
    '{"error":"ECONNREFUSED","explanation":"x","fix":"start the server"}',
    "None",
    "Order placed. Do you want to proceed with another order?",
    "Please confirm receipt of this message.",
    "The form asks: 'Do you want to proceed?'",
]


def test_words_of_failure_in_an_answer_are_not_the_failure_of_the_work(memory: MemoryBench) -> None:
    all_at_once(
        memory,
        (
            [
                root(f"t{n:02}", 0, 10, answer),
                model(f"t{n:02}", 1, says("assistant", answer), says("user", f"q{n}")),
            ]
            for n, answer in enumerate(ANSWERS)
        ),
    )
    wrong = [
        answer
        for answer, became in zip(ANSWERS, column(memory, "outcome FROM core.tasks"), strict=True)
        if became != "completed"
    ]
    assert wrong == []


def test_who_did_the_work_may_say_that_something_else_was_not_possible(memory: MemoryBench) -> None:
    answer = "Refunded. I could not send a receipt, as no address is known."
    memory.derive_only([request(acted("t", "refund R-1 made", answer))], at(90_000))
    assert outcome(memory)[0] == "completed"


def test_a_refusal_told_after_a_persons_no_is_an_answer(memory: MemoryBench) -> None:
    spans = acted("t", "The tool call was denied.", "I could not issue it, as it was turned down.")
    memory.derive_only([request(spans)], at(90_000))
    assert outcome(memory)[0] == "completed"


def test_an_answer_that_was_cut_off_is_none(memory: MemoryBench) -> None:
    spans = [
        root("t", 0, 10, "Your refund is"),
        model("t", 1, says("assistant", "Your refund is"), gen_ai__response__finish_reasons=["length"]),
    ]
    memory.derive_only([request(spans)], at(90_000))
    assert outcome(memory) == ("unknown", "task.unknown.no_answer")


# ---- a call that was asked for and never made


def test_an_answer_does_not_stand_for_a_call_that_nobody_made(memory: MemoryBench) -> None:
    spans = [
        root("t", 0, 10, "Your refund of 5 has been issued."),
        model("t", 1, asks(("k1a", "issue_refund", REFUND))),
    ]
    memory.derive_only([request(spans)], at(90_000))
    assert outcome(memory) == ("unknown", "task.unknown.call_not_made")


SHAPING: list[tuple[str, dict[str, Any], str]] = [
    ("final_result", {"city": "Paris", "degrees": 3}, '{"degrees": 3, "city": "Paris"}'),
    ("respond", {"text": "All is well."}, "All is well."),
    (
        "emit_report",
        {"title": "Third quarter, all regions"},
        "# Third quarter, all regions\nIt went well.",
    ),
    ("transfer_to_billing_agent", {}, "Billing takes over."),
]


def test_a_call_that_only_shapes_the_answer_is_no_open_one(memory: MemoryBench) -> None:
    all_at_once(
        memory,
        (
            [root(f"t{n:02}", 0, 10, answer), model(f"t{n:02}", 1, asks((f"k{n}a", name, given)))]
            for n, (name, given, answer) in enumerate(SHAPING)
        ),
    )
    assert column(memory, "outcome FROM core.tasks") == ["completed"] * len(SHAPING)


# ---- questions, and what came back


def waits(trace: str, start: float, name: str, given: dict[str, Any]) -> list[Span]:
    return [
        root(trace, start, start + 2, gen_ai__conversation__id="c1"),
        model(trace, start + 1, asks(("k1a", name, given))),
    ]


def comes_back(trace: str, start: float, name: str, given: dict[str, Any], reply: str) -> list[Span]:
    said = [
        *says("user", "Refund A-1"),
        *asks(("k1a", name, given)),
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "k1a", "response": reply}]},
    ]
    return [
        root(trace, start, start + 2, "Done.", gen_ai__conversation__id="c1"),
        model(trace, start + 1, says("assistant", "Done."), said),
    ]


@pytest.mark.parametrize(
    ("name", "reply", "wanted"),
    [
        ("ask_user", "blue", [("answer", "answered")]),
        ("askQuestion", '{"answer": "blue"}', [("answer", "answered")]),
        # a browser's work: nothing tells of a person
        ("show_map", '{"shown": true}', []),
        ("issue_refund", "The user rejected the call.", [("approval", "rejected")]),
        ("create_order", "Order O-1 created", []),
    ],
)
def test_what_came_back_says_whether_a_person_took_part(
    memory: MemoryBench, name: str, reply: str, wanted: list[tuple[str, str]]
) -> None:
    given = {"what": "colour"}
    memory.derive_only(
        [request(waits("t1", 0, name, given)), request(comes_back("t2", 60, name, given, reply))], at(90_000)
    )
    found = memory.rows("SELECT kind, decision FROM core.interventions")
    assert [(row["kind"], row["decision"]) for row in found] == wanted
    assert len(memory.rows("SELECT 1 FROM core.tasks")) == 1


@pytest.mark.parametrize(
    ("reply", "decision"), [("Yes please", "approved"), ("no, leave it", "rejected"), ("OK", "approved")]
)
def test_a_question_put_in_words_waits_and_is_answered_in_words(
    memory: MemoryBench, reply: str, decision: str
) -> None:
    ask = "I will refund 5 EUR for A-1. Shall I proceed?"
    first = [root("t1", 0, 2, ask, gen_ai__conversation__id="c1"), model("t1", 1, says("assistant", ask))]
    memory.derive_only([request(first)], at(90_000))
    assert outcome(memory) == ("waiting_human", "task.waiting.run.paused.answer_asks")
    said = [*says("user", "Refund A-1"), *says("assistant", ask), *says("user", reply)]
    then = [
        root("t2", 60, 70, "As you say.", gen_ai__conversation__id="c1"),
        model("t2", 61, says("assistant", "As you say."), said),
    ]
    memory.derive_only([request(first), request(then)], at(90_000))
    assert outcome(memory)[0] == "completed"
    assert memory.rows("SELECT kind, decision, wait_s FROM core.interventions") == [
        {"kind": "approval", "decision": decision, "wait_s": 58.0}
    ]
    # other words are another request
    said[-1:] = says("user", "What is the weather in Paris tomorrow?")
    other = [then[0], model("t2", 61, says("assistant", "As you say."), said)]
    memory.derive_only([request(first), request(other)], at(90_000))
    assert len(memory.rows("SELECT 1 FROM core.tasks")) == 2


def test_an_offer_of_more_help_is_no_question(memory: MemoryBench) -> None:
    answer = "The order is on its way. Would you like me to help with anything else?"
    memory.derive_only(
        [request([root("t", 0, 2, answer), model("t", 1, says("assistant", answer))])], at(90_000)
    )
    assert outcome(memory)[0] == "completed"


def test_clocks_of_two_processes_that_differ_by_seconds_lose_no_approval(memory: MemoryBench) -> None:
    first = waits("t1", 10, "issue_refund", REFUND)
    then = [
        root("t2", 10.1, 11.8, "Done.", gen_ai__conversation__id="c1", agent_slo__run__trigger="resume"),
        tool("t2", 10.3, "issue_refund", REFUND, "refund R-1 made", gen_ai__tool__call__id="k1a"),
        model("t2", 11, says("assistant", "Done.")),
    ]
    # the first run ends at 12: the other clock is behind
    memory.derive_only([request(first), request(then)], at(90_000))
    assert outcome(memory)[0] == "completed"
    (asked,) = memory.rows("SELECT decision, wait_s FROM core.interventions")
    assert (asked["decision"], asked["wait_s"] or 0) == ("approved", 0)
    assert memory.rows("SELECT kind FROM core.findings") == []


# ---- one call told twice, one message delivered twice, one key as an argument


def test_a_call_and_the_servers_span_of_it_are_one_under_both_names(memory: MemoryBench) -> None:
    spans = acted("t", "refund R-1 made", "Done.", "mcp__bank__issue_refund")
    outer = spans[2]
    inner = tool("t", 2.1, "issue_refund", REFUND, "refund R-1 made")
    inner["parentSpanId"] = outer["spanId"]
    memory.derive_only([request([*spans, inner])], at(90_000))
    assert len(memory.rows("SELECT 1 FROM work.attempts")) == 1


@pytest.mark.parametrize("ids", [("m-1", "m-1"), ("m-1", "m-2")])
def test_one_message_delivered_twice_is_one_task_without_any_conversation(
    memory: MemoryBench, ids: tuple[str, str]
) -> None:
    sent = []
    for number, input_id in enumerate(ids):
        spans = acted(f"t{number}", f"refund R-{number}7 made", "Done.", call=f"k{number}a")
        for one in spans:
            for moment in ("startTimeUnixNano", "endTimeUnixNano"):
                one[moment] = str(int(one[moment]) + number * 60_000_000_000)
        # the last of two equal keys counts
        for key, value in (("agent_slo.task.input_id", input_id), ("gen_ai.agent.name", "desk")):
            spans[0]["attributes"].append({"key": key, "value": {"stringValue": value}})
        sent.append(request(spans))
    memory.derive_only(sent, at(90_000))
    same = ids[0] == ids[1]
    assert len(memory.rows("SELECT 1 FROM core.tasks")) == (1 if same else 2)
    found = memory.rows("SELECT cause, effect FROM work.attempts WHERE duplicate = 'unprotected'")
    assert found == ([{"cause": "redelivery", "effect": "proven"}] if same else [])


def test_two_users_of_one_default_conversation_are_not_one_task(memory: MemoryBench) -> None:
    first = [
        model(
            "t1",
            1,
            asks(("k1a", "create_ticket", REFUND)),
            user__id="ann",
            gen_ai__conversation__id="default",
        )
    ]
    then = [
        root("t2", 60, 70, "Done.", user__id="ben", gen_ai__conversation__id="default"),
        model("t2", 61, says("assistant", "Done."), user__id="ben"),
    ]
    memory.derive_only([request(first), request(then)], at(90_000))
    assert sorted(row["outcome"] for row in memory.rows("SELECT outcome FROM core.tasks")) == [
        "completed",
        "lost",
    ]


@pytest.mark.parametrize(("keys", "duplicate"), [(("k1", "k1"), "protected"), (("k1", "k2"), "unprotected")])
def test_a_key_sent_as_an_argument_is_a_key_and_no_part_of_the_action(
    memory: MemoryBench, keys: tuple[str, str], duplicate: str
) -> None:
    first, second = ({**REFUND, "idempotency_key": key} for key in keys)
    spans = [
        root("t", 0, 10, "Done."),
        tool("t", 1, "issue_refund", first, None, error__type="TimeoutError"),
        tool("t", 3, "issue_refund", second, "refund made"),
        model("t", 5, says("assistant", "Done.")),
    ]
    spans[1]["status"] = {"code": 2, "message": "timed out"}
    memory.derive_only([request(spans)], at(90_000))
    found = memory.rows("SELECT idempotency_key, duplicate FROM work.attempts ORDER BY start_ns")
    assert [(row["idempotency_key"], row["duplicate"]) for row in found] == [
        (keys[0], None),
        (keys[1], duplicate),
    ]


def test_a_lone_embedding_is_no_task(memory: MemoryBench) -> None:
    alone = span("t", "embeddings m", 0, 1, gen_ai__operation__name="embeddings", gen_ai__request__model="m",
                 gen_ai__usage__input_tokens=50)  # fmt: skip
    memory.derive_only([request([alone])], at(90_000))
    assert memory.rows("SELECT 1 FROM core.tasks") == []


def test_results_keep_their_words() -> None:
    from metrics.messages.results import plain_result

    told = {"order": {"id": 1}, "success": False}
    assert json.loads(plain_result(json.dumps(told))["text"] or "") == told
    held = {"id": "R-1", "note": "x"}
    assert plain_result(json.dumps(held))["text"] == json.dumps(held)


@pytest.mark.parametrize(
    ("name", "label", "wanted"),
    [
        ("Task completion", "fail", "failed"),
        ("", "pass", "completed"),
        ("Fluency", "pass", "unknown"),
        ("Toxicity", "false", "unknown"),
    ],
)
def test_an_evaluation_of_the_manner_decides_nothing(
    memory: MemoryBench, name: str, label: str, wanted: str
) -> None:
    spans = acted("t", "Error: card expired", "Refunded.")
    told = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.label": label}
    spans[0]["events"] = [
        {
            "name": "gen_ai.evaluation.result",
            "timeUnixNano": spans[0]["endTimeUnixNano"],
            "attributes": [
                {"key": key, "value": {"stringValue": value}} for key, value in told.items() if value
            ],
        }
    ]
    memory.derive_only([request(spans)], at(90_000))
    assert outcome(memory)[0] == wanted


def test_a_name_that_says_two_things_writes_and_one_that_names_a_text_reads(memory: MemoryBench) -> None:
    names = {"find_and_book_flight": "write", "fetch_and_delete": "write", "search_and_rank": "read",
             "refund_policy": "read", "order_history": "read", "get_order": "read", "book_flight": "write"}  # fmt: skip
    given = [tool("t00", n, name, {"n": n}, "ok") for n, name in enumerate(names, 1)]
    memory.derive_only([request([root("t00", 0, 20, "Done."), *given])], at(90_000))
    found = memory.rows("SELECT tool, effect_class FROM work.attempts")
    assert {row["tool"]: row["effect_class"] for row in found} == names


def test_a_worker_that_tries_again_in_its_trace_goes_on_with_the_task(memory: MemoryBench) -> None:
    def tried(number: int, start: float, error: str | None) -> list[Span]:
        told = {
            "gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "desk",
            "gen_ai__input__messages": says("user", "Refund A-1"),
            "gen_ai__output__messages": says("assistant", "Done."),
        }  # fmt: skip
        run = span(
            "t00", f"invoke_agent {number}", start, start + 5, "job", id=f"run{number}", error=error, **told
        )
        paid = tool("t00", start + 2, "issue_refund", REFUND, f"refund R-{number}7 made")
        paid["parentSpanId"] = run["spanId"]
        return [run, paid]

    job = span("t00", "run/worker", 0, 30, id="job")
    memory.derive_only([request([job, *tried(1, 1, "APIError"), *tried(2, 10, None)])], at(90_000))
    assert outcome(memory)[0] != "failed"
    found = memory.rows("SELECT cause, effect FROM work.attempts WHERE duplicate = 'unprotected'")
    assert found == [{"cause": "orchestrator_retry", "effect": "proven"}]
    # a job that was done twice on purpose failed in neither
    memory.derive_only([request([job, *tried(1, 1, None), *tried(2, 10, None)])], at(90_000))
    assert len(memory.rows("SELECT 1 FROM core.tasks")) == 2
