"""`agent-slo prices`: the list, one task line by line, and why costs changed."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from agent_slo.commands.prices import read_change
from agent_slo.errors import CommandError
from tests.agent_slo.conftest import Run

NOW = datetime(2026, 11, 28, 12)


def test_the_list_names_prices_and_their_source(run: Run, sample_data: Path) -> None:
    result = run("prices", "--data", sample_data)
    assert result.exit_code == 0, result.output
    assert "USD per million tokens" in result.output
    assert "genai-prices" in result.output


def test_the_list_as_json(run: Run, sample_data: Path) -> None:
    found = json.loads(run("prices", "--data", sample_data, "--format", "json").stdout)
    assert found["currency"] == "USD"
    assert found["prices"]
    assert {"model", "input", "output", "cache_read", "valid_from", "source"} <= set(found["prices"][0])
    assert found["unpriced"] == []


def test_the_lines_of_every_task_sum_to_its_cost(run: Run, sample_data: Path) -> None:
    tasks = json.loads(run("tasks", "--data", sample_data, "--format", "json").stdout)
    priced = [task for task in tasks if task["cost_usd"] is not None]
    assert priced
    for task in priced[:3]:
        found = json.loads(
            run("prices", "--task", task["task_id"], "--data", sample_data, "--format", "json").stdout
        )
        assert sum(line["cost_usd"] for line in found["lines"]) == pytest.approx(task["cost_usd"], abs=1e-9)
        assert found["told_elsewhere_usd"] == 0
        assert all("genai-prices" in line["source"] for line in found["lines"])
    told = run("prices", "--task", priced[0]["task_id"], "--data", sample_data).output
    assert f"Task {priced[0]['task_id']}" in told
    assert "USD, complete" in told
    assert "output" in told


def test_an_unknown_task_is_refused(run: Run, sample_data: Path) -> None:
    result = run("prices", "--task", "task-none", "--data", sample_data)
    assert result.exit_code == 2
    assert "no task 'task-none'" in result.output


def test_a_change_between_two_periods(run: Run, sample_data: Path) -> None:
    sql = "SELECT median(decided_at) AS split FROM tasks WHERE cost_complete"
    (row,) = json.loads(run("query", sql, "--data", sample_data, "--format", "json").stdout)
    periods = f"2026-11-01/{row['split']}..{row['split']}/2026-11-29"
    found = json.loads(run("prices", "--change", periods, "--data", sample_data, "--format", "json").stdout)
    assert found["before_tasks"] > 0
    assert found["after_tasks"] > 0
    moved = found["after_usd"] - found["before_usd"]
    assert moved != 0
    assert sum(cause["usd"] for cause in found["causes"]) == pytest.approx(moved, abs=1e-9)
    told = run("prices", "--change", periods, "--data", sample_data)
    assert told.exit_code == 0, told.output
    assert "mix of task types" in told.output


def test_a_side_without_tasks_is_told(run: Run, sample_data: Path) -> None:
    result = run("prices", "--change", "2020-01..2026-11", "--data", sample_data)
    assert result.exit_code == 2
    assert "nothing to compare on the side BEFORE: no task was decided then" in result.output


def test_forms_of_a_change() -> None:
    day, week = datetime(2026, 11, 28), datetime(2026, 11, 21, 12)
    assert read_change("7d", NOW) == ((datetime(2026, 11, 14, 12), week, None), (week, NOW, None))
    assert read_change("2026-11-27..2026-11-28") == (
        (datetime(2026, 11, 27), day, None),
        (day, datetime(2026, 11, 29), None),
    )
    assert read_change("2026-11..2026-12")[1] == (datetime(2026, 12, 1), datetime(2027, 1, 1), None)
    assert read_change("v:1.4..v:1.5") == ((None, None, "1.4"), (None, None, "1.5"))
    assert read_change("2026-11-01T02:00+02:00/2026-11-03..2026-11-28")[0] == (
        datetime(2026, 11, 1),
        datetime(2026, 11, 3),
        None,
    )


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-11-28..", "2026-11-05/2026-11-01..2026-11-28", "a..b", "2026-13..2026-12"]
)
def test_what_is_no_change_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(CommandError, match="--change"):
        read_change(text, NOW)


def test_two_questions_at_once_are_refused(run: Run, sample_data: Path) -> None:
    result = run("prices", "--task", "x", "--change", "7d", "--data", sample_data)
    assert result.exit_code == 2


def test_the_report_says_what_unreliability_cost(run: Run, sample_data: Path) -> None:
    assert "Unreliability cost" in run("report", "--data", sample_data).output
    week = json.loads(run("report", "--data", sample_data, "--format", "json").stdout)["waste"]
    parts = ("duplicates", "retries", "loops", "failed_tasks", "abandoned_tasks")
    assert sum(week[f"{part}_usd"] for part in parts) == pytest.approx(week["waste_usd"], abs=1e-9)
    assert week["useful_usd"] + week["waste_usd"] == pytest.approx(week["cost_usd"], abs=1e-9)
