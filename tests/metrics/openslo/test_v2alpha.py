"""`openslo.com/v2alpha` is read as far as the official SDK knows it, and never written."""

from __future__ import annotations

import pytest

from metrics.openslo import dump, load, load_all
from metrics.openslo.reader import read

SLI = """
apiVersion: openslo.com/v2alpha
kind: SLI
metadata: {name: done, labels: {team: a}}
spec:
  ratioMetric:
    good: {dataSourceRef: traces, spec: {builtin: task_completion}}
    total: {dataSourceRef: traces, spec: {builtin: task_completion}}
---
apiVersion: openslo.com/v2alpha
kind: DataSource
metadata: {name: traces}
spec: {type: AgentSLO, connectionDetails: {}}
"""
SLO = """
apiVersion: openslo.com/v2alpha
kind: SLO
metadata: {name: done, labels: {env: prod}}
spec:
  serviceRef: agents
  sliRef: done
  timeWindow: [{duration: 4w, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{displayName: done, target: 0.95}]
"""
INLINE = """
apiVersion: openslo.com/v2alpha
kind: SLO
metadata: {name: cheap}
spec:
  service: agents
  sli:
    metadata: {name: cost}
    spec:
      thresholdMetric:
        dataSourceSpec: {type: AgentSLO, connectionDetails: {}}
        spec: {builtin: cost}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives:
    - {displayName: most, op: lte, value: 0.5, target: 0.95}
    - {displayName: all, op: lte, value: 5, target: 0.999}
"""


def test_what_it_says_is_counted_as_in_v1() -> None:
    (objective,) = load(f"{SLI}---{SLO}")
    v1 = f"{SLI}---{SLO}".replace("openslo.com/v2alpha", "openslo/v1").replace("serviceRef", "service")
    v1 = v1.replace("sliRef", "indicatorRef").replace(
        "dataSourceRef: traces, spec", "metricSource: {metricSourceRef: traces, spec"
    )
    v1 = v1.replace("task_completion}}", "task_completion}}}")
    (same,) = load(v1)
    assert objective == same
    assert objective.service == "agents"
    assert str(objective.window.duration) == "4w"


def test_an_inline_source_and_several_thresholds() -> None:
    most, all_of_them = load(INLINE)
    assert [(str(o.cut), str(o.target)) for o in (most, all_of_them)] == [("0.5", "0.95"), ("5", "0.999")]


def test_it_is_told_that_it_is_not_stable_and_written_as_v1() -> None:
    loaded = load_all(INLINE)
    (warning,) = loaded.warnings
    assert "openslo.com/v2alpha is not stable: it is read, and written as openslo/v1" in str(warning)
    written = dump(loaded.objects)
    assert "v2alpha" not in written
    assert "sli:" not in written
    again = load_all(written)
    assert (again.problems, again.warnings) == ([], [])
    assert again.objectives == loaded.objectives


def test_a_foreign_source_is_kept_and_left_alone() -> None:
    # as the SDK's own example, without the `op` that its validator refuses
    text = """
- apiVersion: openslo.com/v2alpha
  kind: SLO
  metadata: {name: web-availability, labels: {env: prod, team: team-a}}
  spec:
    serviceRef: web
    sli:
      metadata: {name: web-ratio}
      spec:
        ratioMetric:
          counter: true
          good: {dataSourceSpec: {type: Prometheus, connectionDetails: {}}, spec: {query: sum(good)}}
          total: {dataSourceSpec: {type: Prometheus, connectionDetails: {}}, spec: {query: sum(all)}}
    timeWindow:
      - {duration: 1w, isRolling: false, calendar: {startTime: 2022-01-01 12:00:00, timeZone: America/New_York}}
    budgetingMethod: Timeslices
    objectives: [{displayName: Good, target: 0.995, timeSliceTarget: 0.95, timeSliceWindow: 1m}]
"""
    loaded = load_all(text)
    assert (loaded.problems, loaded.objectives) == ([], [])
    assert any("Prometheus" in str(w) for w in loaded.warnings)


@pytest.mark.parametrize(
    ("old", "new", "path", "line", "said"),
    [
        (
            "name: done, labels: {env: prod}",
            "name: done, displayName: X",
            "metadata.displayName",
            4,
            "agent-slo/title",
        ),
        ("labels: {env: prod}", "labels: {env: [a, b]}", "metadata.labels.env", 4, "is one text"),
        ("sliRef: done", "indicatorRef: done", "spec.indicatorRef", 7, "write sliRef"),
        ("duration: 4w", "duration: 1M", "spec.timeWindow[0].duration", 8, "m, h, d, w"),
        ("target: 0.95", "target: 1.0", "spec.objectives[0].target", 10, "share below 1"),
        ("sliRef: done", "sliRef: done\n  minEvents: 3", "spec.minEvents", 8, "unknown field minEvents"),
        ("sliRef: done", "sliRef: Done", "spec.sliRef", 7, "is no name"),
    ],
)
def test_what_it_does_not_allow_is_refused_in_its_own_words(
    old: str, new: str, path: str, line: int, said: str
) -> None:
    assert old in SLO
    objects, problems = read(SLO.replace(old, new), "a.yaml")
    problem = next(p for p in problems if not p.is_warning)
    assert objects == []
    assert (problem.path, problem.line, problem.object) == (path, line, "SLO/done")
    assert said in str(problem)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("{metricSource: {spec: {builtin: cost}}}", "has no metricSource"),
        ("{spec: {builtin: cost}}", "exactly one of dataSourceRef and dataSourceSpec"),
        (
            "{dataSourceRef: a, dataSourceSpec: {type: AgentSLO, connectionDetails: {}}, spec: {}}",
            "exactly one of dataSourceRef and dataSourceSpec",
        ),
        ("{dataSourceRef: A b, spec: {builtin: cost}}", "no DataSource named A b"),
    ],
)
def test_where_a_metric_comes_from_is_checked(metric: str, said: str) -> None:
    text = f"""
apiVersion: openslo.com/v2alpha
kind: SLI
metadata: {{name: cost}}
spec: {{thresholdMetric: {metric}}}
---
{INLINE.replace("sli:", "sliRef: cost", 1).split("    metadata")[0]}
  timeWindow: [{{duration: 28d, isRolling: true}}]
  budgetingMethod: Occurrences
  objectives: [{{op: lte, value: 0.5, target: 0.95}}]
"""
    assert said in " ".join(str(p) for p in load_all(text).problems)


def test_a_version_nobody_knows_is_refused() -> None:
    (problem,) = load_all(INLINE.replace("v2alpha", "v3")).problems
    assert "only apiVersion: openslo/v1 is read, and openslo.com/v2alpha as far as it is known" in str(
        problem
    )
