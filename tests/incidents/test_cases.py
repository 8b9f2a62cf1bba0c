"""`agent-slo cases`: review states, sets, and revisions that count on over all exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from agent_slo.cli import cli
from collector.reader import open_reader
from incidents.case import schema
from tests.incidents.folders import fill
from tests.incidents.stories import SETTINGS, paid_twice
from tests.metrics.bench import at

FIRST = "tools: {pay: {effect: write, key_fields: [to, amount]}}\n"
OTHER = "tools: {pay: {effect: write, key_fields: [to]}}\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three incidents of one payment, and one whose content was not captured."""
    folder = fill(
        tmp_path / "data",
        [paid_twice(), paid_twice("unseen", captured=False, tool="send_money", at=4000.0)],
        SETTINGS,
        at(90000),
    )
    (folder / "agent-slo.yaml").write_text(FIRST)
    return folder


def ask(data: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["--data", str(data), *words])


def listed(data: Path, *words: str) -> dict[str, dict[str, Any]]:
    run = ask(data, "cases", "list", "--format", "json", *words)
    assert run.exit_code == 0, run.output
    return {row["case_id"]: row for row in json.loads(run.stdout)}


def exported(data: Path, out: Path, *words: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    run = ask(data, "export", "--out", str(out), *words)
    assert run.exit_code == 0, run.output
    lines = (out / "cases.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], json.loads((out / "manifest.json").read_text())


def view(data: Path) -> dict[str, dict[str, Any]]:
    with open_reader(data) as reader:
        return {row["case_id"]: row for row in reader.sql("SELECT * FROM cases").to_pylist()}


def ready(data: Path) -> list[str]:
    return sorted(name for name, row in listed(data).items() if row["state"] == "in_review")


def test_only_approved_cases_are_in_the_regression_set(data: Path, tmp_path: Path) -> None:
    first, second, third = ready(data)
    assert ask(data, "cases", "approve", first, "--note", "seen", "--by", "ops").exit_code == 0
    assert ask(data, "cases", "approve", f"{second}-twin", "--set", "capability").exit_code == 0
    states = {name: (row["state"], row["set"]) for name, row in listed(data).items()}
    assert states[first] == ("approved", "regression")
    assert states[second] == ("approved", "capability")
    assert states[third] == ("in_review", "regression")
    cases, manifest = exported(data, tmp_path / "gate", "--set", "regression")
    assert {case["origin"]["incident_id"] for case in cases} == {first}
    assert {case["role"] for case in cases} == {"incident", "twin", "control"}
    for case in cases:
        assert (case["set"], case["review"]["state"]) == ("regression", "approved")
        assert (case["review"]["by"], case["review"]["note"]) == ("ops", "seen")
        assert case["review"]["at"].endswith("Z")
        assert case["privacy"]["reviewed"] is True
        assert list(Draft202012Validator(schema()).iter_errors(case)) == []
    assert [(g["set"], g["state"]) for g in manifest["groups"]] == [("regression", "approved")]
    reasons = {row["incident_id"]: row["reason"] for row in manifest["excluded"]}
    assert f"agent-slo cases approve {third}" in reasons[third]
    assert "capability" in reasons[second]
    hard, _ = exported(data, tmp_path / "hard", "--set", "capability")
    assert {case["origin"]["incident_id"] for case in hard} == {second}
    everything, _ = exported(data, tmp_path / "all", "--set", "regression", "--include-draft")
    assert {case["origin"]["incident_id"] for case in everything} >= {first, third}


def test_rejected_and_retired_cases_leave_every_export(data: Path, tmp_path: Path) -> None:
    first, second, third = ready(data)
    assert ask(data, "cases", "reject", first).exit_code == 2, "a reason is needed"
    assert ask(data, "cases", "reject", first, "--note", "the policy allows it").exit_code == 0
    assert ask(data, "cases", "retire", second).exit_code == 0
    cases, manifest = exported(data, tmp_path / "out")
    assert {case["origin"]["incident_id"] for case in cases} == {third}
    reasons = {row["incident_id"]: row["reason"] for row in manifest["excluded"]}
    assert reasons[first] == "rejected: the policy allows it"
    assert reasons[second] == "retired"
    old, _ = exported(data, tmp_path / "old", "--set", "retired")
    assert {(case["set"], case["review"]["state"]) for case in old} == {("retired", "retired")}
    assert ask(data, "cases", "reopen", first, second).exit_code == 0
    assert ready(data) == [first, second, third]


def test_a_draft_cannot_be_approved_and_unknown_cases_are_told(data: Path) -> None:
    draft = next(name for name, row in listed(data, "--state", "draft").items())
    run = ask(data, "cases", "approve", draft)
    assert run.exit_code == 2
    assert "is a draft and cannot be approved" in run.stderr
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in run.stderr
    assert listed(data)[draft]["state"] == "draft"
    assert ask(data, "cases", "approve", "inc-none").exit_code == 2
    assert "no case passes" in ask(data, "cases", "list", "--state", "approved").stderr


def test_an_approval_holds_for_the_content_that_was_seen(data: Path, tmp_path: Path) -> None:
    case_id = ready(data)[0]
    assert ask(data, "cases", "approve", case_id).exit_code == 0
    before = listed(data)[case_id]
    (data / "agent-slo.yaml").write_text(OTHER)
    changed = listed(data)[case_id]
    assert changed["content_hash"] != before["content_hash"]
    assert (changed["state"], changed["revision"]) == ("in_review", before["revision"] + 1)
    assert "changed since" in changed["note"]
    assert exported(data, tmp_path / "out", "--incident", case_id)[0][0]["revision"] == 2
    assert view(data)[case_id]["state"] == "in_review"
    assert ask(data, "cases", "approve", case_id).exit_code == 0
    assert listed(data)[case_id]["state"] == view(data)[case_id]["state"] == "approved"


def test_deriving_everything_anew_keeps_what_people_said(data: Path) -> None:
    case_id = ready(data)[0]
    assert ask(data, "cases", "approve", case_id, "--note", "seen").exit_code == 0
    before = view(data)[case_id]
    again = ask(data, "rederive")
    assert again.exit_code == 0, again.output
    assert view(data)[case_id] == before
    assert listed(data)[case_id]["state"] == "approved"


def test_ids_hashes_and_revisions_are_the_same_over_folders(data: Path, tmp_path: Path) -> None:
    first, _ = exported(data, tmp_path / "a")
    second, _ = exported(data, tmp_path / "b")
    assert (tmp_path / "a/manifest.json").read_bytes() == (tmp_path / "b/manifest.json").read_bytes()
    assert first == second
    assert {case["revision"] for case in first} == {1}
    (data / "agent-slo.yaml").write_text(OTHER)
    changed, _ = exported(data, tmp_path / "c")
    assert [case["case_id"] for case in changed] == [case["case_id"] for case in first]
    for one, other in zip(first, changed, strict=True):
        assert other["revision"] == 1 + (one["content_hash"] != other["content_hash"])
    assert {case["revision"] for case in changed} == {1, 2} or {case["revision"] for case in changed} == {2}


def test_the_view_says_what_the_list_says(data: Path, tmp_path: Path) -> None:
    names = ready(data)
    assert ask(data, "cases", "approve", names[0]).exit_code == 0
    assert ask(data, "cases", "reject", names[1], "--note", "no").exit_code == 0
    exported(data, tmp_path / "out", "--include-draft")
    shown, kept = listed(data), view(data)
    assert {n: (r["state"], r["set"], r["revision"]) for n, r in shown.items()} == {
        n: (r["state"], r["case_set"], r["revision"]) for n, r in kept.items()
    }
    assert {row["state"] for row in kept.values()} == {"approved", "rejected", "in_review", "draft"}
    assert all(row["reason"] for row in kept.values() if row["state"] == "draft")
