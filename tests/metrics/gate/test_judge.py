"""The verdict of the gate, its baseline and its reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args
from xml.etree.ElementTree import fromstring

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.gate.baseline import Baseline, BaselineError, Before, read_baseline
from metrics.gate.judge import Case, FailOn, Rules, finding_key, judge_findings, judge_objective, shape, worse
from metrics.gate.reports import junit, sarif


def row(**changes: Any) -> dict[str, Any]:
    """A met objective: 96 of 100 at 90 %."""
    values = {
        "slo": "done", "objective": "o", "title": "Done", "state": "ok", "n": 100, "good": 96, "sli": 0.96,
        "target": 0.9, "remaining": 0.6, "lower": 0.9, "upper": 0.98, "unknown": 0, "firing": "[]",
        "notes": "[]", "is_floor": False,
    }  # fmt: skip
    return values | changes


MISSED: dict[str, Any] = {"state": "exhausted", "good": 80, "sli": 0.8, "remaining": -1.0}


def finding(**changes: Any) -> dict[str, Any]:
    values = {
        "kind": "duplicate_action",
        "detail": "pay: retry",
        "severity": "high",
        "task_id": "t1",
        "agent": "a",
    }
    return values | changes


@pytest.mark.parametrize(
    ("changes", "rules", "result"),
    [
        ({}, Rules(), "passed"),
        (MISSED, Rules(), "failed"),
        ({"remaining": 0.0, "state": "exhausted", "good": 90, "sli": 0.9}, Rules(), "passed"),
        ({"state": "at_risk"}, Rules(), "passed"),
        ({"state": "at_risk"}, Rules(fail_on=frozenset(("at_risk",))), "failed"),
        ({"state": "at_risk", "firing": '[{"severity": "page"}]'}, Rules(fail_on=frozenset(("firing",))), "failed"),
        ({"state": "no_data", "n": 0, "remaining": None, "sli": None}, Rules(), "skipped"),
        ({"state": "no_data", "n": 0, "remaining": None, "sli": None}, Rules(require_data=True), "failed"),
        (MISSED | {"state": "insufficient_data", "n": 10, "good": 8}, Rules(), "skipped"),
        (MISSED | {"state": "insufficient_data", "n": 10, "good": 8}, Rules(min_events=10), "failed"),
        (MISSED, Rules(min_events=101), "skipped"),
        ({"state": "invalid"}, Rules(), "failed"),
        ({"is_floor": True, "state": "at_risk", "remaining": -0.1}, Rules(), "passed"),
        ({"is_floor": True, "state": "exhausted", "remaining": -0.1}, Rules(), "failed"),
    ],
)  # fmt: skip
def test_an_objective(changes: dict[str, Any], rules: Rules, result: str) -> None:
    assert judge_objective(row(**changes), rules, None).result == result


FIRING: dict[str, Any] = {"state": "ok", "firing": '[{"severity": "page"}]'}
SPENT: dict[str, Any] = {"remaining": 0.0, "state": "exhausted", "good": 90, "sli": 0.9}
FLOOR_MISSED: dict[str, Any] = {"is_floor": True, "state": "exhausted", "remaining": -0.1}


@pytest.mark.parametrize(
    ("changes", "fails_on"),
    [
        (MISSED, {"missed", "firing", "at_risk"}),
        (MISSED | FIRING | {"state": "exhausted"}, {"missed", "firing", "at_risk"}),
        (FLOOR_MISSED, {"missed", "firing", "at_risk"}),
        (FIRING, {"firing", "at_risk"}),
        (SPENT, {"at_risk"}),
        ({"state": "at_risk"}, {"at_risk"}),
        ({}, set()),
    ],
)
def test_a_worse_state_fails_where_a_milder_one_does(changes: dict[str, Any], fails_on: set[FailOn]) -> None:
    for word in get_args(FailOn):
        case = judge_objective(row(**changes), Rules(fail_on=frozenset((word,))), None)
        assert case.failed == (word in fails_on), word
    assert judge_objective(row(**MISSED), Rules(fail_on=frozenset(("at_risk",))), None).why.startswith(
        "the objective is missed"
    )


def before(good: int, n: int, failed: bool) -> Baseline:
    return Baseline({"done/o": Before(good, n, failed)}, {}, n)


def test_a_known_miss_passes_until_it_gets_worse() -> None:
    assert judge_objective(row(**MISSED), Rules(), before(81, 100, True)).result == "known"
    assert judge_objective(row(**MISSED), Rules(), before(95, 100, True)).result == "failed"
    assert judge_objective(row(**MISSED), Rules(), before(95, 100, False)).result == "failed"


def test_what_is_met_fails_when_it_is_clearly_worse_than_before() -> None:
    good = {"good": 91, "sli": 0.91, "remaining": 0.1}
    assert judge_objective(row(**good), Rules(), before(99, 100, False)).result == "failed"
    assert judge_objective(row(**good), Rules(), before(92, 100, False)).result == "passed"


def test_worse_is_fishers_exact_test() -> None:
    """scipy.stats.fisher_exact([[8, 2], [1, 5]], 'greater'): 0.024475524."""
    assert worse(1, 6, 8, 10) == pytest.approx(0.024475524, abs=1e-9)
    assert worse(0, 0, 5, 5) is None


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_a_further_good_event_is_never_worse(n: int, n_before: int, data: st.DataObject) -> None:
    good = data.draw(st.integers(0, n - 1))
    good_before = data.draw(st.integers(0, n_before))
    low, high = worse(good, n, good_before, n_before), worse(good + 1, n, good_before, n_before)
    assert low is not None
    assert high is not None
    assert 0 <= low <= high + 1e-12 <= 1 + 1e-9


def test_forbidden_findings_are_grouped_by_what_happened() -> None:
    rows = [
        finding(),
        finding(task_id="t2"),
        finding(detail="pay: crash", task_id="t3"),
        finding(kind="key_reused", severity="medium"),
    ]
    cases = judge_findings(rows, 10, Rules(), None)
    assert [(c.name, c.result, c.tasks) for c in cases] == [
        ("duplicate_action / a / pay: crash", "failed", ("t3",)),
        ("duplicate_action / a / pay: retry", "failed", ("t1", "t2")),
    ]
    assert judge_findings(rows, 10, Rules(forbid=frozenset()), None) == []
    kinds = judge_findings(rows, 10, Rules(forbid=frozenset(("key_reused",))), None)
    assert [c.rule for c in kinds] == ["finding/key_reused"]


def test_known_findings_pass_unless_there_are_more_a_task() -> None:
    old = Baseline({}, {finding_key(finding()): 2}, 10)
    rows = [finding(), finding(task_id="t2")]
    assert [c.result for c in judge_findings(rows, 10, Rules(), old)] == ["known"]
    assert [c.result for c in judge_findings([*rows, finding(task_id="t3")], 10, Rules(), old)] == ["failed"]
    assert [c.result for c in judge_findings([*rows, finding(task_id="t3")], 15, Rules(), old)] == ["known"]
    assert [c.result for c in judge_findings([finding(detail="other")], 10, Rules(), old)] == ["failed"]


def test_ids_and_numbers_do_not_tell_findings_apart() -> None:
    assert (
        shape("waited 12.5 s for 1f2e3d4c5b6a7988")
        == shape("waited 3 s for 99aabbccddeeff00")
        == "waited # s for #"
    )
    assert shape("decade of facades") == "decade of facades"


def test_a_baseline_survives_its_file(tmp_path: Path) -> None:
    old = Baseline({"done/o": Before(1, 2, True)}, {"k / a / d": 3}, 7)
    file = tmp_path / "baseline.json"
    file.write_text(old.text())
    assert read_baseline(file) == old


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ("[]", "no baseline of version 1"),
        ('{"version": 2}', "no baseline of version 1"),
        ('{"version": 1, "objectives": {"a": {}}, "findings": {}, "tasks": 1}', "not as written"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(text)
    with pytest.raises(BaselineError, match=words) as caught:
        read_baseline(file)
    assert str(file) in str(caught.value)
    assert "--write-baseline" in str(caught.value)


CASES = [
    Case("objective", "done/o", "Done", "failed", "missed <&>\x00", "objective/done/o"),
    Case("objective", "fast/o", "Fast", "skipped", "no events", "objective/fast/o"),
    Case("objective", "cheap/o", "Cheap", "passed", "fine", "objective/cheap/o"),
    Case("finding", "lost / a / x", "lost: x", "known", "1 in 1 of 2", "finding/lost", "high", ("t1",)),
]


def test_junit() -> None:
    suites = {s.get("name"): s for s in fromstring(junit(CASES).split("\n", 1)[1])}
    objectives = suites["objectives"]
    assert (objectives.get("tests"), objectives.get("failures"), objectives.get("skipped")) == ("3", "1", "1")
    assert [t.get("name") for t in objectives] == ["done/o", "fast/o", "cheap/o"]
    failure = objectives[0].find("failure")
    assert failure is not None
    assert failure.get("message") == "missed <&>"
    assert suites["findings"].get("failures") == "0"


def test_sarif() -> None:
    value = json.loads(sarif(CASES, "traces.jsonl", "1.0", compared=True))
    (run,) = value["runs"]
    assert value["version"] == "2.1.0"
    assert [r["ruleId"] for r in run["results"]] == ["objective/done/o", "finding/lost"]
    assert [r["level"] for r in run["results"]] == ["error", "note"]
    assert [r["baselineState"] for r in run["results"]] == ["new", "unchanged"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        location = result["locations"][0]["physicalLocation"]
        assert location["artifactLocation"]["uri"] == "traces.jsonl"
    assert run["results"][1]["locations"][0]["logicalLocations"] == [
        {"fullyQualifiedName": "t1", "kind": "task"}
    ]
    again = json.loads(sarif(list(reversed(CASES)), "elsewhere", "2.0"))["runs"][0]["results"]
    assert {r["partialFingerprints"]["agentSlo/v1"] for r in again} == {
        r["partialFingerprints"]["agentSlo/v1"] for r in run["results"]
    }


SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "items": {
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "required": ["name"],
                                "properties": {"rules": {"uniqueItems": True, "items": {"required": ["id"]}}},
                            }
                        },
                    },
                    "results": {
                        "items": {
                            "required": ["message", "ruleId", "level"],
                            "properties": {
                                "message": {"required": ["text"]},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "baselineState": {"enum": ["new", "unchanged", "updated", "absent"]},
                                "partialFingerprints": {"additionalProperties": {"type": "string"}},
                            },
                        }
                    },
                },
            }
        },
    },
}
"""What SARIF 2.1.0 requires of the parts that are written; checked once against the whole of the OASIS schema."""


@pytest.mark.parametrize("compared", [True, False])
def test_sarif_has_what_the_standard_requires(compared: bool) -> None:
    value = json.loads(sarif(CASES, "traces.jsonl", "1.0", compared=compared))
    jsonschema.validate(value, SARIF)
    states = ["baselineState" in r for r in value["runs"][0]["results"]]
    assert states == [compared] * 2
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**value, "version": "2.0"}, SARIF)


@pytest.mark.parametrize(
    ("place", "uri"),
    [("my traces/a#1.jsonl", "my%20traces/a%231.jsonl"), ("-", "stdin"), ("data", "data")],
)
def test_sarif_names_the_place_as_a_uri(place: str, uri: str) -> None:
    (run,) = json.loads(sarif(CASES, place, "1.0"))["runs"]
    location = run["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == uri
