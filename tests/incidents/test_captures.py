"""Traces of real frameworks: repeats and crashes become proven cases without hand work, or say precisely why not."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from collector.reader import open_reader
from incidents import evidence
from incidents.case import Group, make_group, schema
from metrics.settings import MetricsSettings
from tests.incidents.folders import fill

CAPTURES = sorted(
    path
    for path in (Path(__file__).parents[1] / "captures").glob("*.jsonl")
    if ".logs." not in path.name and any(part in path.name for part in ("__c_", "__g1_", "__h_", "__dup"))
)


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> list[Group]:
    """The groups of all captures, stored in one folder as one collector would have them."""
    requests = [
        json.loads(line) for path in CAPTURES for line in path.read_text().splitlines() if line.strip()
    ]
    data = fill(
        tmp_path_factory.mktemp("captures") / "data", requests, MetricsSettings(), datetime(2027, 1, 5)
    )
    with open_reader(data) as reader:
        return [
            make_group(one, MetricsSettings(), "agent-slo/9.9.9")
            for one in evidence.gather(reader, evidence.find(reader))
        ]


def test_there_are_captures_of_repeats_and_crashes() -> None:
    assert len(CAPTURES) >= 3


def test_most_captured_incidents_are_ready_and_the_rest_say_why(groups: list[Group]) -> None:
    ready = [group for group in groups if not group.draft]
    assert {group.incident["classification"]["failure_mode"] for group in ready} >= {
        "duplicate_action.model_repeat",
        "duplicate_action.crash_replay",
    }
    assert len(ready) / len(groups) >= 0.6
    assert all(group.incident["review"]["note"] for group in groups if group.draft)


def test_captured_cases_follow_the_schema(groups: list[Group]) -> None:
    valid = Draft202012Validator(schema())
    wrong = [e.message for g in groups for c in g.cases for e in valid.iter_errors(c)]
    assert wrong == []
