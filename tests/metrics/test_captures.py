"""Real traces of real frameworks with scripted models, held against what really happened."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.metrics.bench import bench

FOLDER = Path(__file__).parent.parent / "captures"
SCENARIOS = yaml.safe_load((FOLDER / "expected.yaml").read_text())["scenarios"]
FILES = sorted(FOLDER.glob("*.jsonl"))


def test_every_scenario_has_captures() -> None:
    assert {path.stem.split("__")[2] for path in FILES} == set(SCENARIOS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_capture_is_understood(path: Path, tmp_path: Path) -> None:
    wanted = SCENARIOS[path.stem.split("__")[2]]
    with bench(tmp_path) as one:
        one.send(path.read_bytes().splitlines()).derive()
        tasks = one.rows("SELECT outcome, outcome_evidence, rule, evidence FROM core.tasks ORDER BY started_at")
        interventions = one.rows("SELECT kind, decision FROM core.interventions ORDER BY requested_at")
        attempts = one.rows(
            "SELECT outcome, duplicate, cause, rule, evidence FROM work.attempts WHERE action_id IS NOT NULL ORDER BY start_ns"
        )
    assert [task["outcome"] for task in tasks] == wanted["tasks"]
    assert [[i["kind"], i["decision"]] for i in interventions] == wanted.get("interventions", [])
    assert sum(attempt["outcome"] == "ok" for attempt in attempts) == wanted["effects"]
    repeats = [attempt for attempt in attempts if attempt["duplicate"]]
    assert [[r["duplicate"], r["cause"]] for r in repeats] == wanted.get("duplicates", [])
    # a verdict without its rule and its evidence is no verdict
    assert all(task["rule"] and task["evidence"] and task["outcome_evidence"] == "inferred" for task in tasks)
    assert all(repeat["rule"] and len(repeat["evidence"]) == 2 for repeat in repeats)


def test_reasons_and_tokens_of_one_capture(tmp_path: Path) -> None:
    """Three model calls of 1,200 and 80 tokens; the sums that two of the frameworks put on the root count nothing."""
    for path in FOLDER.glob("*a_two_tools.jsonl"):
        with bench(tmp_path / path.stem) as one:
            one.send(path.read_bytes().splitlines()).derive()
            (task,) = one.rows("SELECT * FROM core.tasks")
            assert (task["input_tokens"], task["output_tokens"], task["model_calls"], task["tool_calls"]) == (3600, 240, 3, 2)
            # a model that no price list knows has no cost, and says so
            assert (task["cost_usd"], task["cost_complete"]) == (None, False)
