"""Every vector file gets the verdict of the official validator, object by object, in strict mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from metrics.openslo import dump, load_all
from metrics.openslo.reader import read

VECTORS = Path(__file__).parent / "vectors"
VERDICTS = {
    name: (verdict, rest)
    for verdict, name, rest in (
        line.replace(":", "", 1).split(" ", 2) for line in (VECTORS / "VERDICTS.txt").read_text().splitlines()
    )
}


def test_every_file_has_a_verdict() -> None:
    assert {p.name for p in VECTORS.glob("*.yaml")} == set(VERDICTS)


@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_verdict(name: str) -> None:
    verdict, rest = VERDICTS[name]
    objects, problems = read((VECTORS / name).read_text(), name)
    if verdict == "VALID":
        assert problems == []
        assert [o.label for o in objects] == rest.split(",")
    else:
        assert objects == []
        assert problems
        assert all(p.file == name and p.line and p.object and p.path and p.remedy for p in problems)


@pytest.mark.parametrize(
    ("name", "path", "said"),
    [
        ("bad_both_targets.yaml", "spec.objectives[0]", "mutually exclusive"),
        ("bad_duration.yaml", "spec.timeWindow[0].duration", "m, h, d, w, M, Q, Y"),
        ("bad_target_one.yaml", "spec.objectives[0].target", "share below 1"),
        ("bad_threshold_no_op.yaml", "spec", "op and value are required"),
        ("bad_two_conditions.yaml", "spec.conditions", "2 entries"),
        ("bad_unknown_field.yaml", "spec.minEvents", "metadata.annotations"),
        ("no_timewindow.yaml", "spec.timeWindow", "is missing"),
        ("numeric_slice.yaml", "spec.objectives[0].timeSliceWindow", "put it in quotes"),
        ("objective_without_target.yaml", "spec.objectives[0]", "one of target and targetPercent"),
        ("rolling_false_no_calendar.yaml", "spec.timeWindow[0]", "'calendar' must be set"),
    ],
)
def test_the_error_says_what_and_where(name: str, path: str, said: str) -> None:
    _, (problem, *_) = read((VECTORS / name).read_text(), name)
    assert problem.path == path
    assert said in str(problem)
    assert str(problem).startswith(f"{name}:{problem.line}: ")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("composite.yaml", "no SLI named a"),
        ("composite_mixed.yaml", "no SLI named a"),
        ("no_objectives.yaml", "there is no objective"),
        ("two_thresholds.yaml", "not said what to count"),
    ],
)
def test_what_only_shows_when_objects_are_put_together(name: str, said: str) -> None:
    loaded = load_all(VECTORS / name)
    assert loaded.objectives == []
    assert said in str(loaded.problems[0])


def test_a_composite_without_an_indicator_is_refused() -> None:
    text = (VECTORS / "composite_mixed.yaml").read_text()
    sli = """
---
apiVersion: openslo/v1
kind: SLI
metadata: {name: a}
spec: {ratioMetric: {good: {metricSource: {spec: {builtin: task_completion}}},
  total: {metricSource: {spec: {builtin: task_completion}}}}}
"""
    (problem,) = load_all(text + sli).problems
    assert problem.path == "spec.objectives[1]"
    assert "no indicator" in problem.problem


def test_the_full_example() -> None:
    loaded = load_all(VECTORS / "agent_slo_example.yaml")
    assert (loaded.problems, loaded.warnings) == ([], [])
    autonomous, cost = loaded.objectives
    assert (autonomous.slo, autonomous.objective, str(autonomous.target)) == (
        "refund-autonomous-completion",
        "autonomous",
        "0.95",
    )
    assert autonomous.title == "Refunds finished without a human"
    assert autonomous.exclude == ("test", "user-cancelled-in-time", "maintenance")
    assert (autonomous.min_events, autonomous.settle_s, autonomous.deadline_s) == (20, 900, 7200)
    assert autonomous.unknown.due_s == 86400
    assert autonomous.runbook == "docs/runbooks/completion.md"
    assert autonomous.alerts is not None
    assert [(p.severity, p.long_s, p.short_s, p.min_bad, p.max_p) for p in autonomous.alerts] == [
        ("page", 86400, 7200, 3, 0.01),
        ("ticket", 7 * 86400, 86400, 3, 0.01),
    ]
    assert (cost.op, str(cost.cut), cost.unit, cost.unknown.kind) == ("lte", "0.5", "USD", "exclude")
    assert str(cost.window.zone) == "Europe/Berlin"


@pytest.mark.parametrize("name", sorted(n for n, (v, _) in VERDICTS.items() if v == "VALID"))
def test_round_trip(name: str) -> None:
    objects, _ = read((VECTORS / name).read_text(), name)
    again, problems = read(dump(o.object for o in objects))
    assert problems == []
    assert [o.object for o in again] == [o.object for o in objects]
