"""The action ledger and what is counted on it: uncertain outcomes, stories of attempts, SLIs below the task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metrics.settings import MetricsSettings
from tests.metrics.bench import Bench, MemoryBench, at, bench, request, span

ROOT = "invoke_agent clerk@0"
DAY = 86_400.0


def root(end: float, **attributes: Any) -> dict[str, Any]:
    return span(
        "t", "invoke_agent clerk", 0, end, gen_ai__operation__name="invoke_agent", gen_ai__agent__name="clerk",
        gen_ai__conversation__id="talk", **attributes,
    )  # fmt: skip


def call(tool: str, start: float, end: float, effect: str = "write", **more: Any) -> dict[str, Any]:
    """A tool call of the run; `arguments` and `result` as keywords."""
    arguments, result = more.pop("arguments", {"n": 1}), more.pop("result", None)
    if result is not None:
        more["gen_ai__tool__call__result"] = result
    return span(
        "t", f"execute_tool {tool}", start, end, ROOT, gen_ai__operation__name="execute_tool", gen_ai__tool__name=tool,
        gen_ai__tool__call__arguments=arguments, agent_slo__tool__effect=effect, **more,
    )  # fmt: skip


def events(one: Bench, sli: str) -> list[dict[str, Any]]:
    return one.rows("SELECT * FROM core.sli_events WHERE sli = ? ORDER BY event_time, subject_id", sli)


def test_an_uncertain_outcome_is_judged_a_day_later_by_the_clock_alone(tmp_path: Path) -> None:
    with bench(tmp_path) as one:
        lost = call("pay", 1, 11, error="TimeoutError", message="timed out")
        one.send([request([root(20), lost])]).derive(at(3600))
        (action,) = one.rows("SELECT settled, open_since FROM core.actions")
        assert (action["settled"], action["open_since"]) == (False, at(11))
        assert events(one, "uncertain_outcome") == []
        assert one.rows("SELECT next_due_at FROM core.tasks") == [{"next_due_at": at(11 + DAY)}]
        one.derive(at(11 + DAY))
        (event,) = events(one, "uncertain_outcome")
        assert (event["verdict"], event["event_time"]) == ("bad", at(11 + DAY))


def test_a_look_settles_and_another_unkeyed_try_does_not(tmp_path: Path) -> None:
    lost = call("pay", 1, 11, error="TimeoutError", message="timed out")
    look = call("get_payment", 12, 13, "read", result="none")
    again = call("pay", 12, 13, result="payment P-2")
    keyed = [
        call("pay", 1, 11, error="TimeoutError", agent_slo__action__idempotency_key="k"),
        call("pay", 12, 13, result="payment P-2", agent_slo__action__idempotency_key="k"),
    ]
    for name, calls, settled in (
        ("look", [lost, look], True), ("again", [lost, again], False), ("keyed", keyed, True),
    ):  # fmt: skip
        with bench(tmp_path / name) as one:
            one.send([request([root(20), *calls])]).derive(at(2 * DAY))
            assert [row["settled"] for row in one.rows("SELECT settled FROM core.actions")] == [settled]
            assert [e["verdict"] for e in events(one, "uncertain_outcome")] == ["good" if settled else "bad"]


def test_the_attempts_of_one_action_are_one_line_of_time(tmp_path: Path) -> None:
    with bench(tmp_path) as one:
        calls = [
            call("pay", 1, 11, error="TimeoutError", message="timed out"),
            call("pay", 13, 13.5, error="ConnectionRefusedError"),
            call("pay", 313.5, 315, result="payment P-2"),
        ]
        one.send([request([root(400), *calls])]).derive(at(DAY))
        (action,) = one.rows("SELECT story, attempts FROM core.actions")
        assert action["attempts"] == 3
        assert action["story"] == (
            "unknown in 10.0 s | 2.0 s later: refused in 0.5 s"
            " | 5 min later: ok in 1.5 s (unprotected repeat, retry after timeout)"
        )


def test_a_duplicate_shows_in_one_pass(tmp_path: Path) -> None:
    with bench(tmp_path) as one:
        one.send([request([root(20), call("pay", 1, 2, result="payment P-1")])])
        one.deriver.run(at(60))
        one.send([request([call("pay", 5, 6, result="payment P-2")])])
        one.deriver.run(at(61))
        assert one.rows("SELECT kind, rule FROM core.findings") == [
            {"kind": "duplicate_action", "rule": "duplicate.same_arguments"}
        ]


def test_texts_that_say_error_are_refusals_and_no_refused_repeat_is_a_duplicate(tmp_path: Path) -> None:
    with bench(tmp_path) as one:
        calls = [call("book", n, n + 0.5, result="Error: no seats left") for n in (1, 5, 9)]
        one.send([request([root(20), *calls])]).derive(at(DAY))
        attempts = one.rows("SELECT outcome, duplicate FROM work.attempts")
        assert [(a["outcome"], a["duplicate"]) for a in attempts] == [("refused", None)] * 3


def test_limits_plans_and_chains_are_counted(tmp_path: Path) -> None:
    settings = MetricsSettings.model_validate({"tools": {"fetch": {"effect": "read", "timeout": "5s"}}})
    with bench(tmp_path, settings) as one:
        calls = [
            call("fetch", 1, 3, "read", result="a", arguments={"n": 1}),
            call("fetch", 4, 12, "read", result="b", arguments={"n": 2}),
            call("ship", 20, 21, error="409", message="409 locked", agent_slo__tool__on_failure="escalate"),
            call("ask", 30, 30.2, "read", error="429", agent_slo__action__attempt=1),
            call("ask", 32, 32.2, "read", result="x", agent_slo__action__attempt=2),
        ]
        one.send([request([root(60, agent_slo__task__outcome="failed"), *calls])]).derive(at(DAY))
        assert [e["verdict"] for e in events(one, "time_limit")] == ["good", "bad"]
        assert [e["verdict"] for e in events(one, "failure_plan")] == ["bad"]
        assert [(e["verdict"], e["value"]) for e in events(one, "retry_discipline")] == [("good", 2.0)]


def test_claims_are_counted_only_when_someone_verified_them(tmp_path: Path) -> None:
    def verdicts(name: str, evaluation: str | None) -> list[tuple[str, str | None]]:
        with bench(tmp_path / name) as one:
            top = root(20, agent_slo__task__claimed="success")
            if evaluation:
                label = {"key": "gen_ai.evaluation.score.label", "value": {"stringValue": evaluation}}
                top["events"] = [
                    {
                        "name": "gen_ai.evaluation.result",
                        "timeUnixNano": top["endTimeUnixNano"],
                        "attributes": [label],
                    }
                ]
            one.send([request([top])]).derive(at(DAY))
            return [(e["verdict"], e["excluded_reason"]) for e in events(one, "false_success")]

    assert verdicts("pass", "pass") == [("good", None)]
    assert verdicts("fail", "fail") == [("bad", None)]
    assert verdicts("nobody", None) == [("excluded", "claim_not_verified")]


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryBench]:
    with MemoryBench() as one:
        yield one


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("HTTPStatusError Server error '503 Service Unavailable' for url", "unknown"),
        ("500 500 Internal Server Error", "unknown"),
        ("error HTTP/1.1 502", "unknown"),
        ("APIStatusError 529 overloaded", "unknown"),
        ("Response 504", "unknown"),
        ("error status 408", "unknown"),
        ("LimitExceeded amount 500 is above the limit: invalid", "refused"),
        ("ToolException order 504-A was not found", "refused"),
        ("ClientError 422 Unprocessable Entity", "refused"),
        ("Declined 402 Payment Required", "refused"),
        ("404", "refused"),
        ("error only 412 left in stock", "unknown"),
        ("ValueError 408 nights is too long", "refused"),
    ],
)
def test_a_number_is_a_status_only_where_the_words_say_so(
    memory: MemoryBench, words: str, outcome: str
) -> None:
    (found,) = memory.rows(f"SELECT outcome_of('{words.replace(chr(39), chr(39) * 2)}') AS outcome")
    assert found["outcome"] == outcome
