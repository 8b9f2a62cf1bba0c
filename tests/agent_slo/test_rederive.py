"""`rederive`, and one SQL file shown at work."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.agent_slo.conftest import AS_OF, Run


@pytest.fixture
def data(sample_data: Path, tmp_path: Path) -> Path:
    """The small set, derived, in a folder of the test's own."""
    return shutil.copytree(sample_data, tmp_path / "data")


def test_one_file_is_shown_for_one_task_and_nothing_changes(
    run: Run, data: Path, sample_settings: Path
) -> None:
    stated = ("--config", sample_settings, "--as-of", AS_OF)
    (found,) = json.loads(
        run(
            "query", "SELECT task_id FROM findings WHERE kind = 'duplicate_action' ORDER BY ALL LIMIT 1",
            "--data", data, "--format", "json",
        ).stdout
    )  # fmt: skip
    before = run("query", "SELECT * FROM tasks ORDER BY task_id", "--data", data, "--format", "json").stdout
    shown = run("rederive", "--data", data, "--explain", "repeats", "--task", found["task_id"], *stated)
    assert shown.exit_code == 0
    assert "unprotected" in shown.stdout
    after = run("query", "SELECT * FROM tasks ORDER BY task_id", "--data", data, "--format", "json").stdout
    assert after == before
    assert run("rederive", "--data", data, *stated).exit_code == 0
    again = run("query", "SELECT * FROM tasks ORDER BY task_id", "--data", data, "--format", "json").stdout
    assert json.loads(again) == json.loads(before)


def test_what_does_not_exist_is_named(run: Run, data: Path) -> None:
    wrong_file = run("rederive", "--data", data, "--explain", "nonsense", "--task", "task-1")
    assert (wrong_file.exit_code, "no SQL file is named nonsense" in wrong_file.stderr) == (2, True)
    wrong_task = run("rederive", "--data", data, "--explain", "tasks", "--task", "task-1")
    assert (wrong_task.exit_code, "no task 'task-1' is derived" in wrong_task.stderr) == (2, True)
    alone = run("rederive", "--data", data, "--explain", "tasks")
    assert (alone.exit_code, "go together" in alone.stderr) == (2, True)
