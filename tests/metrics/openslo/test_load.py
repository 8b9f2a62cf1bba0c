from __future__ import annotations

import json
import textwrap
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.openslo import OpenSLOError, default_objectives, load, load_all
from metrics.slo.objective import ConjunctionSource, EventSource, TaskSource

ROOT = Path(__file__).parents[3]

SLI = """
apiVersion: openslo/v1
kind: SLI
metadata: {name: done}
spec:
  ratioMetric:
    good: {metricSource: {spec: {GOOD}}}
    total: {metricSource: {spec: {TOTAL}}}
"""
SLO = """
apiVersion: openslo/v1
kind: SLO
metadata: {name: done, annotations: {NOTES}}
spec:
  service: agents
  indicatorRef: done
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{OBJECTIVE}]
  alertPolicies: [ALERTS]
"""
BUILTIN = "builtin: task_completion"


def text(
    good: str = BUILTIN,
    total: str = BUILTIN,
    notes: str = "",
    objective: str = "target: 0.9",
    alerts: str = "",
    more: str = "",
) -> str:
    sli = SLI.replace("GOOD", good).replace("TOTAL", total)
    slo = SLO.replace("NOTES", notes).replace("OBJECTIVE", objective).replace("ALERTS", alerts)
    return f"{sli}---{slo}---{more or chr(10)}"


def problem(source: str) -> OpenSLOError:
    with pytest.raises(OpenSLOError) as caught:
        load(source)
    return caught.value


def test_the_packaged_pack() -> None:
    pack = default_objectives()
    assert [o.sli_name for o in pack] == [
        "task_completion",
        "autonomous_completion",
        "human_intervention",
        "duplicate_action",
        "lost_task",
        "latency",
        "cost",
        "active_latency",
        "retry_discipline",
        "false_success",
        "uncertain_outcome",
        "dead_letter",
        "compensation",
        "recovery",
        "time_limit",
        "failure_plan",
        "availability",
        "escalation_precision",
        "escalation_recall",
    ]
    for objective in pack:
        assert objective.window.duration.seconds == 28 * 86400
        assert objective.title
        assert objective.description
        assert objective.unit
        assert objective.alerts is None
    assert len({o.key for o in pack}) == len({o.revision for o in pack}) == len(pack)


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "slo").glob("*.yaml")), ids=lambda p: p.name)
def test_examples_load(path: Path) -> None:
    loaded = load_all(path)
    assert (loaded.problems, loaded.warnings) == ([], [])
    assert loaded.objectives


def test_examples_load_together() -> None:
    folder = ROOT / "examples" / "slo"
    assert len(list(folder.glob("*.yaml"))) >= 3
    assert len(load(folder)) == sum(len(load(p)) for p in folder.glob("*.yaml"))


def test_forms_of_a_file() -> None:
    listed = "\n".join(
        f"-{textwrap.indent(part.strip(), '  ')[1:]}" for part in text().split("---") if part.strip()
    )
    expected = load(text())
    assert load(listed) == expected
    import yaml

    documents = [d for d in yaml.safe_load_all(text()) if d]
    assert load(json.dumps(documents, indent="\t")) == expected


def test_files_see_each_other(tmp_path: Path) -> None:
    sli, slo = text().split("---")[:2]
    (tmp_path / "a.yaml").write_text(slo)
    (tmp_path / "b.yml").write_text(sli)
    assert [o.slo for o in load(tmp_path)] == ["done"]
    assert [o.slo for o in load([tmp_path / "a.yaml", tmp_path / "b.yml"])] == ["done"]
    assert [o.slo for o in load(str(tmp_path / "*.y*ml"))] == ["done"]
    error = problem(str(tmp_path / "a.yaml"))
    assert (error.object, error.path) == ("SLO/done", "spec.indicatorRef")
    assert "no SLI named done" in str(error)
    assert "no objective file there" in str(problem(str(tmp_path / "none")))


def test_targets_are_exact() -> None:
    (percent,) = load(text(objective="targetPercent: 99.9"))
    (share,) = load(text(objective="target: 0.999"))
    assert percent.target == share.target == Decimal("0.999")


@pytest.mark.parametrize(
    ("source", "path", "said"),
    [
        (text(good="builtin: task_completon"), "spec.ratioMetric.good", "did you mean task_completion"),
        (text(good="builtin: latency"), "spec.ratioMetric.good", "thresholdMetric"),
        (text(good="where: 'true'"), "spec.ratioMetric.good", "not said what to count"),
        (text(good="entity: task, where: outcome = 'completed'"), "spec.ratioMetric.total", "one form"),
        (text(good=f"{BUILTIN}, where: agent = 'a'"), "spec.ratioMetric.good", "the same builtin"),
        (text(good=f"{BUILTIN}, sql: select 1"), "spec.ratioMetric.good", "unknown key sql"),
        (text("entity: task", "entity: task"), "spec.ratioMetric.good", "needs a condition"),
        (text("entity: run, where: eligible", "entity: task"), "spec.ratioMetric.good", "entity: task"),
        (
            text("entity: task, where: outcome = completed", "entity: task"),
            "spec.ratioMetric.good.metricSource.spec.where",
            "text in single quotes",
        ),
        (
            text(f"{BUILTIN}, where: outcome = 'failed'"),
            "spec.ratioMetric.good.metricSource.spec.where",
            "entity: task",
        ),
        (text(objective="target: 0.9, op: lte, value: 3"), "spec.objectives[0]", "no meaning with a ratio"),
        (text(objective="target: 0"), "spec.objectives[0]", "allows everything"),
        (text(objective="target: 0.9}, {target: 0.90"), "spec.objectives[1].displayName", "two objectives"),
        (text(notes="agent-slo/min-event: '3'"), "agent-slo/min-event", "did you mean agent-slo/min-events"),
        (text(notes="agent-slo/min-events: '0'"), "agent-slo/min-events", "whole number"),
        (text(notes="agent-slo/min-events: 20"), "agent-slo/min-events", "put it in quotes"),
        (text(notes="agent-slo/unknown-policy: good"), "agent-slo/unknown-policy", "bad-after-24h"),
        (text(notes="agent-slo/unknown-policy: bad-after-1x"), "agent-slo/unknown-policy", "no duration"),
        (text(notes="agent-slo/evidence: strong"), "agent-slo/evidence", "any or verified"),
        (text(notes="agent-slo/settle-delay: 1M"), "agent-slo/settle-delay", "no duration"),
        (text(alerts="{alertPolicyRef: nobody}"), "spec.alertPolicies[0].alertPolicyRef", "no AlertPolicy"),
        (text(more="\nkind: SLO\n"), "", "only apiVersion: openslo/v1"),
        (text(more="\napiVersion: openslo/v1\nkind: Slo\n"), "", "did you mean SLO"),
        (text(more="\n3\n"), "", "is a mapping"),
        (text() + SLI.replace("GOOD", BUILTIN).replace("TOTAL", BUILTIN), "", "defined twice"),
        ("a: [1\nb: 2", "", "not readable as YAML"),
        ("a: 1\na: 2\n", "", "written twice"),
        ("a: !!python/object:os.system {}\nb: 1\n", "", "not readable as YAML"),
    ],
)
def test_what_is_refused(source: str, path: str, said: str) -> None:
    error = problem(source)
    assert path in error.path
    assert said in str(error)
    assert error.remedy


def alert(
    threshold: str = "3", op: str = "gt", window: str = "1d", notes: str = "", breaching: str = "true"
) -> str:
    return f"""
apiVersion: openslo/v1
kind: AlertPolicy
metadata: {{name: p}}
spec:
  alertWhenBreaching: {breaching}
  conditions: [{{conditionRef: c}}]
  notificationTargets: [{{targetRef: t}}]
---
apiVersion: openslo/v1
kind: AlertNotificationTarget
metadata: {{name: t}}
spec: {{target: pager}}
---
apiVersion: openslo/v1
kind: AlertCondition
metadata: {{name: c, annotations: {{{notes}}}}}
spec:
  severity: page
  condition: {{kind: burnrate, op: {op}, threshold: {threshold}, lookbackWindow: {window}}}
"""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (alert(threshold="14.4"), "can never fire: at a target of 90 %"),
        (alert(threshold="0.9"), "fires while the objective is met"),
        (alert(op="lte"), "write op: gt"),
        (alert(window="60d"), "longer than the SLO's own window"),
        (alert(window="1M"), "no fixed length"),
        (alert(notes="agent-slo/short-window: 2d"), "must be shorter"),
        (alert(notes="agent-slo/max-p-value: '2'"), "no probability"),
        (alert().replace("name: t}", "name: u}"), "there is no AlertNotificationTarget named t"),
    ],
)
def test_alerts_that_make_no_sense(more: str, said: str) -> None:
    assert said in str(problem(text(alerts="{alertPolicyRef: p}", more=more)))


def test_alerts() -> None:
    (objective,) = load(text(alerts="{alertPolicyRef: p}", more=alert(notes="agent-slo/min-bad-events: '1'")))
    (pair,) = objective.alerts or ()
    assert (pair.long_s, pair.short_s, pair.min_bad, pair.name) == (86400, 7200, 1, "c")
    (silent,) = load(text(alerts="{alertPolicyRef: p}", more=alert(breaching="false")))
    assert silent.alerts == ()


def test_sources() -> None:
    (built_in,) = load(text(f"{BUILTIN}, where: agent = 'a'", f"{BUILTIN}, where: agent = 'a'"))
    assert isinstance(built_in.source, EventSource)
    (own,) = load(text("entity: task, where: outcome = 'completed'", "entity: task, where: eligible"))
    assert isinstance(own.source, TaskSource)
    assert own.source.bad is None
    assert own.sli_name == "done"


def test_a_conjunction_of_all_parts() -> None:
    objectives = load(ROOT / "examples" / "slo" / "composite.yaml")
    *_, whole = objectives
    assert [o.objective for o in objectives if o.slo == whole.slo] == ["finished", "in-time", "composite"]
    assert isinstance(whole.source, ConjunctionSource)
    assert [(p.op, p.cut) for p in whole.source.parts] == [(None, None), ("lte", 300)]
    assert whole.target == Decimal("0.85")
    assert not any(o.composite for o in objectives if o.slo == whole.slo)
    assert "no composite" in str(problem(text(notes="agent-slo/composite: all")))


def test_foreign_data_sources_are_left_alone() -> None:
    source = text().replace("{spec: {builtin", "{type: Prometheus, spec: {query: up, builtin")
    loaded = load_all(source)
    assert (loaded.objectives, loaded.problems) == ([], [])
    assert {w.object for w in loaded.warnings} == {"SLI/done", "SLO/done"}
    assert "Prometheus" in str(loaded.warnings[0])


def test_lenient_mends_what_is_plain() -> None:
    source = text(objective="target: 0.9, timeSliceWindow: 5, colour: red").replace(
        "  timeWindow: [{duration: 28d, isRolling: true}]\n", ""
    )
    assert load_all(source).problems
    loaded = load_all(source, strict=False)
    assert loaded.problems == []
    assert [o.window.duration.seconds for o in loaded.objectives] == [28 * 86400]
    assert [o.slice_s for o in loaded.objectives] == [300]
    assert len(loaded.warnings) == 3
    assert "unknown field ignored" in " ".join(map(str, loaded.warnings))


def test_all_problems_are_kept() -> None:
    error = problem(text(good="builtin: x", notes="agent-slo/x: y"))
    assert len(error.more) == 1


def test_a_faulty_sli_is_told_once() -> None:
    assert problem(text(good="builtin: x")).more == ()


def test_a_rolling_month_is_thirty_days_and_says_so() -> None:
    loaded = load_all(text().replace("28d", "1M"))
    assert loaded.objectives[0].window.duration.seconds == 30 * 86400
    assert "read as 30d" in str(loaded.warnings[0])


@given(st.text(max_size=80))
def test_any_text_is_loaded_or_refused(junk: str) -> None:
    loaded = load_all("\n" + junk)
    assert loaded.objectives == []
    assert all(str(p) for p in loaded.problems)


def test_a_policy_says_whom_to_tell_of_what() -> None:
    text = """
apiVersion: openslo/v1
kind: SLO
metadata: {name: told}
spec:
  service: s
  indicator:
    metadata: {name: done}
    spec:
      ratioMetric:
        good: {metricSource: {type: AgentSLO, spec: {builtin: task_completion}}}
        total: {metricSource: {type: AgentSLO, spec: {builtin: task_completion}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.95}]
  alertPolicies: [{alertPolicyRef: fast}]
---
apiVersion: openslo/v1
kind: AlertPolicy
metadata: {name: fast}
spec:
  alertWhenBreaching: true
  alertWhenResolved: RESOLVED
  alertWhenNoData: true
  conditions:
    - kind: AlertCondition
      metadata: {name: burn}
      spec:
        severity: page
        condition: {kind: burnrate, op: gt, threshold: 3, lookbackWindow: 1d, alertAfter: 5m}
  notificationTargets:
    - targetRef: team
    - {kind: AlertNotificationTarget, metadata: {name: inline}, spec: {target: pager}}
---
apiVersion: openslo/v1
kind: AlertNotificationTarget
metadata: {name: team}
spec: {target: slack}
"""
    for resolved in (True, False):
        (objective,) = load(text.replace("RESOLVED", str(resolved).lower()))
        assert objective.no_data is True
        (pair,) = objective.alerts or ()
        assert (pair.targets, pair.tell_end, pair.after_s) == (("slack", "pager"), resolved, 300)
    (quiet,) = load(
        text.replace("RESOLVED", "true").replace("alertWhenBreaching: true", "alertWhenBreaching: false")
    )
    assert quiet.alerts == ()


def multiplied(levels: int) -> str:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (multiplied(12), "too many values (or aliases that multiply them); split the file"),
        ("a:\n  " + "[" * 50_000 + "]" * 50_000, "nested deeper than 100"),
        ("a: &a\n  - *a\n", "nested deeper than 100, or an alias that holds itself"),
        ("a:\n" + "#" * (1 << 20), "larger than 1024 KiB"),
    ],
    ids=["aliases", "deep", "circle", "large"],
)
def test_a_file_that_would_break_a_reader_is_refused(source: str, words: str) -> None:
    assert words in str(problem(source))


@pytest.mark.parametrize("duration", ["99999999999d", "9" * 5000 + "d", "101Y", "2000M"])
def test_a_window_longer_than_a_century_is_refused(duration: str) -> None:
    calendar = "isRolling: false, calendar: {startTime: 2020-01-01 00:00:00, timeZone: UTC}"
    source = text().replace("{duration: 28d, isRolling: true}", f"{{duration: {duration}, {calendar}}}")
    assert duration in source
    assert "more than 100 years; write at most 36500d" in str(problem(source))
