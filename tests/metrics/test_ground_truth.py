"""The whole sample company, derived once and held against what its generator says really happened, task by task."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.metrics import worlds
from tests.metrics.bench import Bench

Row = dict[str, Any]

NOT_DERIVED: frozenset[str] = frozenset()
"""Kinds of findings of the ground truth that no detector raises. docs/accuracy.md names the same."""


class Company:
    """What was derived, by the first trace of each task, beside what is true."""

    def __init__(self, one: Bench) -> None:
        self.truth: dict[str, Row] = worlds.truth()["tasks"]
        self.totals: Row = worlds.truth()["totals"]
        self.tasks: dict[str, Row] = {
            row["trace_id"]: row
            for row in one.rows("SELECT m.trace_id, t.* FROM core._trace_tasks m JOIN core.tasks t USING (task_id)")
        }  # fmt: skip
        self.number = one.rows("SELECT count(*) AS n FROM core.tasks")[0]["n"]
        self.interventions = self._by_task(one, "SELECT * FROM core.interventions")
        self.attempts = self._by_task(one, "SELECT * FROM work.attempts ORDER BY start_ns")
        self.findings = self._by_task(one, "SELECT * FROM core.findings")
        self.events = one.rows("SELECT sli, verdict, count(*) AS n FROM core.sli_events GROUP BY ALL")

    @staticmethod
    def _by_task(one: Bench, sql: str) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = defaultdict(list)
        for row in one.rows(sql):
            found[row["task_id"]].append(row)
        return found

    def pairs(self) -> Iterator[tuple[str, Row, Row]]:
        """(name for a message, derived task, truth) of every task."""
        for key, told in self.truth.items():
            yield f"{told['story']} {key[:8]}", self.tasks[key], told


@pytest.fixture(scope="module")
def company(derived_company: Bench) -> Company:
    return Company(derived_company)


def differences(found: Iterator[tuple[str, Any, Any]]) -> list[str]:
    return [f"{name}: derived {got}, true is {wanted}" for name, got, wanted in found if got != wanted]


def test_every_task_is_found_and_no_other(company: Company) -> None:
    assert set(company.truth) <= set(company.tasks)
    assert company.number == len(company.truth)


@pytest.mark.parametrize(
    ("column", "field"),
    [
        ("outcome", "outcome"),
        ("outcome_evidence", "outcome_evidence"),
        ("agent", "agent"),
        ("task_type", "task_type"),
        ("environment", "environment"),
        ("app_version", "app_version"),
        ("eligible", "eligible"),
        ("model_calls", "model_calls"),
    ],
)
def test_column_agrees(company: Company, column: str, field: str) -> None:
    assert differences((name, task[column], told[field]) for name, task, told in company.pairs()) == []


def test_traces_tool_calls_and_human_waits_agree(company: Company) -> None:
    def facts() -> Iterator[tuple[str, Any, Any]]:
        for name, task, told in company.pairs():
            yield (
                name,
                (task["traces"], task["tool_calls"], round(task["human_wait_s"])),
                (len(told["traces"]), told.get("tool_calls", 0), round(told.get("human_wait_s", 0))),
            )

    assert differences(facts()) == []


def test_tokens_agree(company: Company) -> None:
    def facts() -> Iterator[tuple[str, Any, Any]]:
        for name, task, told in company.pairs():
            by_model = told.get("tokens", {}).values()
            wanted = (sum(m["input"] for m in by_model), sum(m["output"] for m in by_model))
            yield name, (task["input_tokens"] or 0, task["output_tokens"] or 0), wanted

    assert differences(facts()) == []


def test_interventions_agree(company: Company) -> None:
    def facts() -> Iterator[tuple[str, Any, Any]]:
        for name, task, told in company.pairs():
            got = sorted((i["kind"], str(i["decision"])) for i in company.interventions[task["task_id"]])
            yield (
                name,
                got,
                sorted((i["kind"], str(i.get("decision"))) for i in told.get("interventions", [])),
            )

    assert differences(facts()) == []


def test_executed_attempts_and_duplicates_agree(company: Company) -> None:
    def facts() -> Iterator[tuple[str, Any, Any]]:
        for name, task, told in company.pairs():
            executed = [a for a in company.attempts[task["task_id"]] if a["action_id"]]
            got = sorted(
                (a["tool"], a["duplicate"], a["cause"], a["effect"], a["compensated"])
                for a in executed
                if a["duplicate"]
            )
            wanted = sorted(
                (d["tool"], d["protection"], d["cause"], d["effect"], d["compensated"])
                for d in told.get("duplicates", [])
            )
            yield name, (len(executed), got), (told.get("side_effect_attempts", 0), wanted)

    assert differences(facts()) == []


def test_findings_that_must_be_raised_are_and_no_others(company: Company) -> None:
    def facts() -> Iterator[tuple[str, Any, Any]]:
        for name, task, told in company.pairs():
            raised = {f["kind"] for f in company.findings[task["task_id"]]}
            must = set(told.get("findings", [])) - NOT_DERIVED
            may = set(told.get("findings_possible", []))
            yield name, (sorted(must - raised), sorted(raised - must - may)), ([], [])

    assert differences(facts()) == []


def test_every_kind_of_the_truth_is_derived(company: Company) -> None:
    raised = {f["kind"] for findings in company.findings.values() for f in findings}
    assert set(company.totals["findings"]) - raised == NOT_DERIVED


def test_every_finding_has_a_rule_and_spans_of_its_task(company: Company) -> None:
    for findings in company.findings.values():
        for finding in findings:
            assert finding["rule"], finding
            assert finding["evidence"], finding
            assert all(len(span_id) == 16 for span_id in finding["evidence"]), finding


def test_rates_follow_from_the_rows(company: Company) -> None:
    counted: Counter[tuple[str, str]] = Counter()
    for event in company.events:
        counted[event["sli"], event["verdict"]] += event["n"]
    excluded = {key for key, told in company.truth.items() if told["environment"] != "prod"}
    bad = sum(
        d["protection"] == "unprotected"
        for key, told in company.truth.items()
        if key not in excluded
        for d in told.get("duplicates", [])
    )
    assert counted["duplicate_action", "bad"] == bad
    lost = sum(told["outcome"] == "lost" for key, told in company.truth.items() if key not in excluded)
    assert counted["lost_task", "bad"] == lost
    parked = sum(
        told["outcome"] == "dead_letter" for key, told in company.truth.items() if key not in excluded
    )
    assert counted["dead_letter", "bad"] == parked
    measured = {sli for sli, verdict in counted if verdict in ("good", "bad")}
    assert {
        "retry_discipline", "false_success", "uncertain_outcome", "compensation", "recovery", "time_limit",
        "failure_plan",
    } <= measured  # fmt: skip
