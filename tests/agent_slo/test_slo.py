"""`agent-slo slo`: validate, list, status, import, export, rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from metrics.openslo import default_objectives, load, load_all
from tests.agent_slo.conftest import AS_OF, Run

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "slo").glob("*.yaml"))
BROKEN = """
apiVersion: openslo/v1
kind: SLO
metadata: {name: broken}
spec:
  service: s
  indicatorRef: nowhere
  timeWindow: [{duration: 30s, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.9}]
"""
FOREIGN = """
apiVersion: openslo/v1
kind: SLO
metadata: {name: theirs, annotations: {other/tool: "kept"}}
spec:
  service: s
  indicator:
    metadata: {name: requests}
    spec:
      ratioMetric:
        good: {metricSource: {type: Prometheus, spec: {query: up}}}
        total: {metricSource: {type: Prometheus, spec: {query: all}}}
  budgetingMethod: Occurrences
  objectives: [{target: 0.9, op: lte, value: 2}]
"""


def test_validate_accepts_our_examples(run: Run) -> None:
    result = run("slo", "validate", *EXAMPLES)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "0 problems" in result.stderr


def test_validate_names_file_line_object_and_remedy(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(BROKEN)
    result = run("slo", "validate", file)
    assert result.exit_code == 1
    assert f"{file}:8: SLO/broken spec.timeWindow[0].duration: '30s' is no duration" in result.stdout
    found = json.loads(run("slo", "validate", file, "--format", "json").stdout)
    assert found["valid"] is False
    assert found["problems"][0]["line"] == 8
    assert found["problems"][0]["remedy"]


def test_validate_without_files_reads_the_configured_ones(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text(BROKEN)
    config = tmp_path / "agent-slo.yaml"
    config.write_text("objectives: [broken.yaml]\n")
    assert run("slo", "validate", "--config", config).exit_code == 1
    assert run("slo", "validate", "--data", tmp_path / "none").exit_code == 0


def test_a_file_that_is_not_there_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    result = run("slo", "validate", tmp_path / "none.yaml")
    assert result.exit_code == 2
    assert "none.yaml" in result.stderr


def test_list_shows_the_default_pack(run: Run, tmp_path: Path) -> None:
    found = json.loads(run("slo", "list", "--data", tmp_path, "--format", "json").stdout)
    assert [o["slo"] for o in found] == [o.slo for o in default_objectives()]
    assert "task-completion" in run("slo", "list", "--data", tmp_path).stdout


def test_what_is_exported_loads_as_the_same_objectives(run: Run, tmp_path: Path) -> None:
    result = run("slo", "export", "--data", tmp_path)
    assert result.exit_code == 0
    assert [o.revision for o in load(result.stdout)] == [o.revision for o in default_objectives()]
    out = tmp_path / "deep" / "pack.yaml"
    assert run("slo", "export", "--data", tmp_path, "--out", out).stdout == ""
    assert out.read_text() == result.stdout
    only = run("slo", "export", "--data", tmp_path, "--kind", "SLI").stdout
    assert {d["kind"] for d in yaml.safe_load_all(only)} == {"SLI"}
    assert run("slo", "export", "--data", tmp_path, "--kind", "slo").exit_code == 2


def test_import_mends_and_keeps_what_is_foreign(run: Run, tmp_path: Path) -> None:
    file, out = tmp_path / "theirs.yaml", tmp_path / "mended.yaml"
    file.write_text(FOREIGN)
    assert load_all(file).problems
    result = run("slo", "import", file, "--out", out)
    assert result.exit_code == 0
    assert "28 days rolling" in result.stderr
    assert "not ours" in result.stderr
    assert load_all(out).problems == []
    written = yaml.safe_load(out.read_text())
    assert written["metadata"]["annotations"] == {"other/tool": "kept"}
    good = written["spec"]["indicator"]["spec"]["ratioMetric"]["good"]
    assert good == {"metricSource": {"type": "Prometheus", "spec": {"query": "up"}}}


def test_import_writes_nothing_that_is_refused(run: Run, tmp_path: Path) -> None:
    file, out = tmp_path / "broken.yaml", tmp_path / "out.yaml"
    file.write_text(BROKEN)
    result = run("slo", "import", file, "--out", out)
    assert result.exit_code == 1
    assert not out.exists()


def test_status_of_the_samples(run: Run, sample_data: Path) -> None:
    rows = json.loads(run("slo", "status", "--data", sample_data, "--format", "json").stdout)
    assert {r["slo"] for r in rows} == {o.slo for o in default_objectives()}
    assert not any(r["split"] for r in rows)
    assert all(isinstance(r["burn"], dict) and isinstance(r["firing"], list) for r in rows)
    every = json.loads(run("slo", "status", "--data", sample_data, "--split", "--format", "json").stdout)
    parts = [r for r in every if r["split"] and r["slo"] == "task-completion"]
    whole = next(r for r in every if not r["split"] and r["slo"] == "task-completion")
    assert len(parts) > 1
    assert sum(p["n"] for p in parts) == whole["n"]
    few = run("slo", "status", "--data", sample_data, "--state", "no_data").stdout.splitlines()
    assert len(few) < len(run("slo", "status", "--data", sample_data).stdout.splitlines())


def test_an_objective_without_events_has_no_data(run: Run, sample_data: Path) -> None:
    rows = json.loads(run("slo", "status", "--data", sample_data, "--format", "json").stdout)
    empty = [r for r in rows if r["n"] == 0]
    assert empty
    assert all((r["state"], r["sli"], r["remaining"]) == ("no_data", None, None) for r in empty)


def test_status_as_of_another_moment(run: Run, sample_data: Path, sample_settings: Path) -> None:
    options = ("--data", sample_data, "--config", sample_settings, "--format", "json")
    later = json.loads(run("slo", "status", *options, "--as-of", "2026-11-29T15:00Z").stdout)
    assert {r["window_end"] for r in later} == {"2026-11-29T15:00:00Z"}
    now = json.loads(run("slo", "status", *options).stdout)
    assert {r["window_end"] for r in now} == {AS_OF}


def test_status_before_anything_was_derived_is_one_line(run: Run, tmp_path: Path) -> None:
    result = run("slo", "status", "--data", tmp_path / "none")
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda p: p.name)
def test_rules_for_the_examples(run: Run, tmp_path: Path, file: Path) -> None:
    config = tmp_path / "agent-slo.yaml"
    config.write_text(f"objectives: ['{file}']\n")
    groups = yaml.safe_load(run("slo", "rules", "--config", config).stdout)["groups"]
    assert len({g["name"] for g in groups}) == len(groups) >= 2


def test_a_new_target_leaves_the_history_alone(run: Run, tmp_path: Path, samples: Path) -> None:
    data, config = tmp_path / "data", tmp_path / "agent-slo.yaml"
    file = tmp_path / "one.yaml"
    text = """
apiVersion: openslo/v1
kind: SLO
metadata: {name: done}
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
  objectives: [{displayName: o, target: TARGET}]
"""
    config.write_text(f"objectives: ['{file}']\n")
    common = ("--data", data, "--config", config)

    def targets() -> list[float]:
        sql = 'SELECT target FROM slo_history ORDER BY "at" DESC LIMIT 4'
        return [r["target"] for r in json.loads(run("query", sql, "--data", data, "--format", "json").stdout)]

    file.write_text(text.replace("TARGET", "0.5"))
    assert run("import", samples, *common, "--as-of", "2026-11-27T15:00:30Z").exit_code == 0
    assert targets() == [0.5] * 4
    file.write_text(text.replace("TARGET", "0.9"))
    assert run("rederive", *common, "--as-of", "2026-11-28T15:00:30Z").exit_code == 0
    assert targets() == [0.9, 0.5, 0.5, 0.5]
    late = run("slo", "revise", "done", "--since", "2026-11-26", "--reason", "agreed", *common)
    assert late.exit_code == 0, late.output
    assert "done (o) holds since 2026-11-26T00:00:00Z" in late.stderr
    assert run("rederive", *common, "--as-of", "2026-11-28T15:00:30Z").exit_code == 0
    # points of 28, 27 and 26 November, and one before
    assert targets() == [0.9, 0.9, 0.9, 0.5]
    wrong = run("slo", "revise", "doen", "--since", "2026-11-26", "--reason", "agreed", *common)
    assert (wrong.exit_code, wrong.stderr.strip()) == (
        2,
        "agent-slo: no SLO 'doen' is evaluated; there are done",
    )
