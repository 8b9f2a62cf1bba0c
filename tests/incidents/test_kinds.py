"""For every kind of finding: what becomes a proven group, what stays a draft, and with which reason."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from collector.reader import open_reader
from incidents import evidence
from incidents.case import Group, make_group, schema, taxonomy
from incidents.expectations import kinds
from incidents.replay import AGENTS, TRIVIAL, run_agent
from tests.metrics import worlds

REPRODUCED = {
    "duplicate_action", "key_not_honoured", "key_reused", "blind_retry", "unbounded", "no_backoff", "amplification",
    "non_retryable", "same_args_after_rejection", "missed_retry", "loop", "lost", "uncertain_outcome", "false_success",
    "vanished_failure", "plan_not_kept", "not_compensated", "executed_without_approval", "approved_other_args",
    "approved_not_executed",
}  # fmt: skip
NEVER = {
    "dead_letter": "what should happen when the retries",
    "synchronised": "add jitter",
    "runaway_cost": "tokens and prices",
}


@pytest.fixture(scope="module")
def groups(company: Path) -> dict[str, list[Group]]:
    found: dict[str, list[Group]] = defaultdict(list)
    with open_reader(company) as reader:
        for one in evidence.gather(reader, evidence.find(reader)):
            found[one.incident["kind"]].append(make_group(one, worlds.settings(), "agent-slo/9.9.9"))
    return found


def test_the_sample_company_shows_what_is_tested_here(groups: dict[str, list[Group]]) -> None:
    assert set(groups) >= REPRODUCED | {"dead_letter"}


@pytest.mark.parametrize("kind", sorted(REPRODUCED))
def test_a_proven_group_tells_agents_apart(groups: dict[str, list[Group]], kind: str) -> None:
    proven = [group for group in groups[kind] if not group.draft]
    assert proven, [group.incident["review"]["note"] for group in groups[kind]]
    for group in proven:
        assert not run_agent(group.incident, AGENTS["recorded"](group.incident)).verdict.passed
        assert all(run_agent(case, AGENTS["careful"](case)).verdict.passed for case in group.cases)
        for name, make in TRIVIAL.items():
            assert not all(run_agent(case, make(case)).verdict.passed for case in group.cases), name


@pytest.mark.parametrize("kind", sorted(NEVER))
def test_what_a_replay_cannot_show_is_a_draft_with_its_reason(
    groups: dict[str, list[Group]], kind: str
) -> None:
    for group in groups.get(kind, []):
        assert group.draft
        assert NEVER[kind] in group.incident["review"]["note"]


def test_every_case_of_every_kind_follows_the_schema(groups: dict[str, list[Group]]) -> None:
    valid = Draft202012Validator(schema())
    wrong = [
        (kind, case["case_id"], error.message)
        for kind, listed in groups.items()
        for group in listed
        for case in group.cases
        for error in valid.iter_errors(case)
    ]
    assert wrong == []


def test_every_draft_says_why(groups: dict[str, list[Group]]) -> None:
    notes = [
        group.incident["review"]["note"] for listed in groups.values() for group in listed if group.draft
    ]
    assert notes
    assert all(note and len(note) > 20 for note in notes)


def test_most_incidents_are_ready_without_hand_work(groups: dict[str, list[Group]]) -> None:
    listed = [group for found in groups.values() for group in found]
    ready = sum(not group.draft for group in listed)
    assert ready / len(listed) >= 0.6


def test_every_kind_has_a_title_and_a_place_in_the_taxonomies() -> None:
    assert set(kinds()) <= set(taxonomy())
    for name, entry in taxonomy().items():
        assert entry["title"], name
        assert entry["slo"], name


def test_what_was_inferred_is_marked(groups: dict[str, list[Group]]) -> None:
    case = next(g for g in groups["duplicate_action"] if g.incident["faults"]).incident
    marked = case["derivation"]
    assert "task.messages" in marked["certain"]
    assert any(line.startswith("effect(") for line in marked["certain"])
    assert any("no recorded call carried a key" in line for line in marked["needs_human"])
    approval = groups["executed_without_approval"][0].incident
    offered = {tool["name"] for tool in approval["tools"] if tool.get("escalates")}
    assert offered
    for rule in approval["world"]["rules"]:
        if rule["tool"] in offered:
            assert rule["synthesised"] is True
