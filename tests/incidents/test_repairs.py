"""What an agent did only to undo a fault is demanded by no case, and no incident is shown by it without need."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from collector.reader import open_reader
from incidents import evidence
from incidents.case import Group, make_group
from incidents.evidence import Evidence
from incidents.notes import Notes
from incidents.repairs import marked
from incidents.replay import TRIVIAL, prove, run_agent
from incidents.replay.drive import Act
from incidents.toolbox import build
from metrics.settings import MetricsSettings
from tests.incidents.folders import fill
from tests.incidents.stories import Step, paid_twice, worked
from tests.metrics import worlds
from tests.metrics.bench import at

PLAIN = MetricsSettings.model_validate(
    {"tools": {"pay": {"effect": "write", "key_fields": ["to", "amount"]}}}
)
PAIRED = MetricsSettings.model_validate(
    {
        "tools": {
            "pay": {"effect": "write", "key_fields": ["to", "amount"], "compensated_by": ["cancel_payment"]}
        }
    }
)
ADA = {"to": "Ada", "amount": 40}
MADE = {"payment_id": "P-77", "state": "made"}
UNDO = {"payment_id": "P-77"}
TIMEOUT, DOWN = "TimeoutError", "503 ServiceUnavailable"
TWICE: list[Step] = [("pay", ADA, None, TIMEOUT), ("pay", ADA, MADE, None)]
UNDONE: Step = ("cancel_payment", UNDO, {"state": "cancelled"}, None)


def gathered(
    folder: Path, requests: Sequence[dict[str, Any]], settings: MetricsSettings = PLAIN
) -> list[Evidence]:
    data = fill(folder / "data", requests, settings, at(90000))
    with open_reader(data) as reader:
        return list(evidence.gather(reader, evidence.find(reader)))


def grouped(found: Sequence[Evidence], settings: MetricsSettings = PLAIN) -> dict[str, Group]:
    return {one.incident["mode"]: make_group(one, settings, "agent-slo/9.9.9") for one in found}


def repairs(found: Sequence[Evidence], settings: MetricsSettings = PLAIN) -> list[tuple[str, bool]]:
    """Tool and mark of every call of the first incident's task."""
    calls = marked(found[0], build(found[0], settings, Notes()))
    return [(call.tool, call.repairs) for call in calls]


def demanding(group: Group, tool: str) -> list[tuple[str, str]]:
    """Role and check wherever a case wants the tool to be called."""
    return [
        (case["role"], check["id"])
        for case in group.cases
        for check in case["expect"]["checks"]
        if check["params"].get("tool") == tool
        and (check["params"].get("min") or check["kind"] in ("call_made", "call_succeeded"))
    ]


class Script:
    """Makes these calls, then says that it is done."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self._calls = calls

    def act(self, messages: Sequence[Any]) -> Act:
        made = sum(message.get("role") == "tool" for message in messages)
        if made < len(self._calls):
            return Act(tool=self._calls[made][0], args=self._calls[made][1])
        return Act(final="Paid.")


def passes(case: dict[str, Any], *calls: tuple[str, dict[str, Any]]) -> bool:
    return run_agent(case, lambda: Script(*calls)).verdict.passed


@pytest.mark.parametrize("settings", [PLAIN, PAIRED], ids=["by its name", "configured"])
def test_an_agent_that_pays_once_has_nothing_to_cancel(tmp_path: Path, settings: MetricsSettings) -> None:
    found = gathered(tmp_path, [worked("undone", "Pay 40 to Ada.", [*TWICE, UNDONE])], settings)
    group = grouped(found, settings)["duplicate_action.retry_after_timeout"]
    incident, twin, control = group.cases
    assert group.proof.holds, group.reason
    named = {check["params"].get("tool") for case in group.cases for check in case["expect"]["checks"]}
    assert named == {"pay", None}, "neither demanded nor forbidden"
    assert [call.get("repair", False) for call in incident["observed"]["calls"]] == [False, False, True]
    keyed = ("pay", {**ADA, "idempotency_key": "k1"})
    assert passes(incident, keyed, keyed)
    assert passes(twin, keyed, keyed)
    assert passes(control, keyed)
    assert passes(control, keyed, ("cancel_payment", UNDO)), "an undoing is not forbidden either"
    assert not passes(control, keyed, ("pay", ADA))
    assert not passes(control)
    for name, make in TRIVIAL.items():
        assert not all(run_agent(case, make(case)).verdict.passed for case in group.cases), name


def test_a_case_that_demands_the_undoing_does_not_prove_itself(tmp_path: Path) -> None:
    """The careful agent does not repair what it does not break: a wrong demand makes the group a draft."""
    found = gathered(tmp_path, [worked("undone", "Pay 40 to Ada.", [*TWICE, UNDONE])])
    cases = copy.deepcopy(grouped(found)["duplicate_action.retry_after_timeout"].cases)
    params = {"tool": "cancel_payment", "min": 1, "max": 1}
    cases[2]["expect"]["checks"].append({"id": "done2", "kind": "effects_per_intent", "params": params})
    assert prove(cases).reasons == ("a careful agent fails done2 of the control",)


def test_what_the_request_asks_for_is_demanded_although_it_undoes(tmp_path: Path) -> None:
    ask = "Pay 40 to Ada and cancel the payment again: we test the line."
    group = grouped(gathered(tmp_path, [worked("asked", ask, [*TWICE, UNDONE])]))[
        "duplicate_action.retry_after_timeout"
    ]
    assert demanding(group, "cancel_payment") == [("control", "done2")]
    assert group.proof.holds, group.reason


def test_a_repair_made_twice_is_bounded_and_not_demanded(tmp_path: Path) -> None:
    calls: list[Step] = [*TWICE, ("cancel_payment", UNDO, None, TIMEOUT), UNDONE]
    found = gathered(tmp_path, [worked("twice", "Pay 40 to Ada.", calls)])
    groups = [one for one in found if one.incident["tool"] == "cancel_payment"]
    assert groups
    for group in grouped(groups).values():
        assert group.proof.holds, group.reason
        assert demanding(group, "cancel_payment") == []
        assert ("incident", "work1") in demanding(group, "pay")


def test_a_failed_undoing_is_a_repair_too(tmp_path: Path) -> None:
    calls: list[Step] = [*TWICE, ("cancel_payment", UNDO, None, DOWN)]
    found = gathered(tmp_path, [worked("failed", "Pay 40 to Ada.", calls)])
    assert repairs(found) == [("pay", False), ("pay", False), ("cancel_payment", True)]


def test_an_undoing_after_another_failure_is_a_repair_and_on_a_good_day_it_is_work(tmp_path: Path) -> None:
    made, undo = {"booking_id": "B-9"}, {"booking_id": "B-9"}
    flight: Step = ("book_flight", {"day": "Mon"}, made, None)
    cancel: Step = ("cancel_flight", undo, {"ok": True}, None)
    hotel: Step = ("book_hotel", {"day": "Mon"}, None, "409 no room")
    taxi: list[Step] = [
        ("book_taxi", {"at": 9}, {"taxi": 1}, None),
        ("book_taxi", {"at": 9}, {"taxi": 2}, None),
    ]
    rolled_back = gathered(tmp_path / "a", [worked("a", "Book a trip.", [*taxi, flight, hotel, cancel])])
    assert repairs(rolled_back)[-1] == ("cancel_flight", True)
    good = gathered(tmp_path / "b", [worked("b", "Book a trip.", [*taxi, flight, cancel])])
    assert repairs(good)[-1] == ("cancel_flight", False)


def test_work_on_what_was_made_is_no_repair_because_its_name_holds_a_word(tmp_path: Path) -> None:
    """A refund names the return it is for, and the return was opened twice; the request asks for both."""
    made = {"return_id": "R-5"}
    calls: list[Step] = [
        ("create_return", {"order": "o1"}, None, TIMEOUT),
        ("create_return", {"order": "o1"}, made, None),
        ("issue_refund", made, None, TIMEOUT),
        ("issue_refund", made, {"refund_id": "F-1"}, None),
    ]
    found = gathered(tmp_path, [worked("back", "I send o1 back and want a refund.", calls)])
    assert not any(mark for _, mark in repairs(found))


def test_an_incident_is_shown_by_a_task_without_a_repair_when_there_is_one(tmp_path: Path) -> None:
    repaired = worked("newer", "Pay 40 to Ada.", [*TWICE, UNDONE], start=4000.0)
    found = gathered(tmp_path, [paid_twice("older"), repaired])
    both = [one for one in found if one.incident["seen_count"] == 2]
    assert both
    assert {call.tool for one in both for call in one.calls} == {"pay"}
    bare = gathered(tmp_path / "bare", [paid_twice("bare", captured=False), repaired])
    shown = [one for one in bare if one.incident["seen_count"] == 2]
    assert shown
    assert all(one.calls[-1].tool == "cancel_payment" for one in shown), "what was captured counts first"


def test_no_group_of_the_sample_company_demands_a_repair(company: Path) -> None:
    proven = 0
    with open_reader(company) as reader:
        found = list(evidence.gather(reader, evidence.find(reader)))
    for one in found:
        calls = marked(one, build(one, worlds.settings(), Notes()))
        own = {call.tool for call in calls if not call.repairs}
        repaired = {call.tool for call in calls if call.repairs} - own
        group = make_group(one, worlds.settings(), "agent-slo/9.9.9")
        for tool in repaired:
            assert demanding(group, tool) == []
        if not group.draft:
            assert prove(group.cases).holds
            proven += 1
    assert proven / len(found) >= 0.6
