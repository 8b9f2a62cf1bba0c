"""`agent-slo check` over files and folders."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree.ElementTree import parse

import pytest

from tests.agent_slo.conftest import Run


def test_files_are_judged_and_reported(
    run: Run, tmp_path: Path, samples: Path, sample_settings: Path
) -> None:
    junit, sarif, baseline = (tmp_path / name for name in ("junit.xml", "out.sarif", "baseline.json"))
    options = ("--config", sample_settings, "--format", "json", "--min-events", "1")
    result = run("check", samples, *options, "--junit", junit, "--sarif", sarif, "--write-baseline", baseline)
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["passed"] is False
    failed = {c["name"] for c in found["cases"] if c["result"] == "failed"}
    assert any(name.startswith("duplicate_action / ") for name in failed)
    suites = parse(junit).getroot()
    assert sum(int(s.get("failures", "0")) for s in suites) == len(failed)
    assert len(json.loads(sarif.read_text())["runs"][0]["results"]) == len(failed)
    again = run("check", samples, *options, "--baseline", baseline)
    assert again.exit_code == 0
    known = {c["name"] for c in json.loads(again.stdout)["cases"] if c["result"] == "known"}
    assert known == failed


def test_a_folder_is_judged_as_it_is(run: Run, sample_data: Path, tmp_path: Path) -> None:
    result = run("check", "--data", sample_data)
    assert result.exit_code == 1
    assert "failed  duplicate_action / " in result.stdout
    assert "task " in result.stdout
    objective = tmp_path / "easy.yaml"
    objective.write_text(
        """
apiVersion: openslo/v1
kind: SLO
metadata: {name: easy, annotations: {agent-slo/min-events: "1"}}
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
  objectives: [{target: 0.01}]
"""
    )
    easy = run(
        "check", "--data", sample_data, "--objectives", objective, "--forbid", "none", "--as-of", "2026-11-28"
    )
    assert (easy.exit_code, easy.stdout.split()[0]) == (0, "passed")


def test_bad_input_is_one_line(run: Run, tmp_path: Path, sample_data: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{nonsense\n")
    result = run("check", broken)
    assert result.exit_code == 2
    assert "broken.jsonl" in result.stderr
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert run("check", empty).exit_code == 2
    assert run("check", "--data", tmp_path / "none").exit_code == 2
    assert run("check", "--data", sample_data, "--forbid", "none", "--forbid", "lost").exit_code == 2
    baseline = tmp_path / "baseline.json"
    baseline.write_text("[]")
    assert run("check", "--data", sample_data, "--baseline", baseline).exit_code == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("duplicate_acton",), "'duplicate_acton' is no kind of finding; did you mean 'duplicate_action'?"),
        (("severity:hi",), "'hi' is no severity; there are high, medium, low"),
        (("none", "lost"), "stands alone"),
        (("x",), "there are duplicate_action"),
    ],
)
def test_a_word_that_forbids_nothing_is_refused(
    run: Run, samples: Path, given: tuple[str, ...], words: str
) -> None:
    result = run("check", samples, *(part for word in given for part in ("--forbid", word)))
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
