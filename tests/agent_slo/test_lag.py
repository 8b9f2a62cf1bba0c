"""A derivation that stands still, or that set traces aside, is said wherever numbers are."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from collector.store import Store
from dashboard.lag import lag_line
from tests.agent_slo.conftest import Run

NOW = datetime(2026, 11, 29, 12)
QUIET: dict[str, Any] = {
    "waiting": 0, "waiting_since": None, "last_pass_at": NOW, "parked": 0, "parked_error": None,
}  # fmt: skip


def test_nothing_is_said_while_passes_keep_up() -> None:
    assert lag_line(QUIET, NOW) is None
    assert lag_line(QUIET | {"waiting": 900, "waiting_since": NOW - timedelta(seconds=59)}, NOW) is None


def test_what_waits_and_what_was_set_aside_in_one_line() -> None:
    behind = QUIET | {"waiting": 1234, "waiting_since": NOW - timedelta(minutes=12)}
    assert lag_line(behind, NOW) == (
        "the numbers leave something out: 1,234 spans received up to 12 min ago are not derived yet "
        "(last pass: 2026-11-29 12:00:00 UTC)"
    )
    both = behind | {
        "parked": 1,
        "parked_error": "Out of Range Error: x\ny",
        "last_pass_at": None,
        "waiting": 1,
    }
    assert lag_line(both, NOW) == (
        "the numbers leave something out: 1 span received up to 12 min ago is not derived yet (last pass: never); "
        "1 trace could not be derived and is set aside (Out of Range Error: x y): view parked_traces"
    )


@pytest.fixture
def stalled(tmp_path: Path, sample_data: Path) -> Path:
    """The samples, as if the last passes had never run and one trace had been set aside."""
    data = tmp_path / "data"
    shutil.copytree(sample_data, data)
    store = Store.open(data)
    con = store.derivation()
    con.execute("UPDATE core.pipeline SET derived_seq = derived_seq - 7")
    con.execute("INSERT INTO core.parked_traces VALUES ('t', 'too large', now()::TIMESTAMP)")
    con.close()
    store.close()
    return data


def test_report_tasks_and_status_say_it(run: Run, stalled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.lag.PATIENCE", timedelta(0))
    said = "7 spans received up to"
    report = run("report", "--data", stalled)
    assert said in report.stdout
    assert "1 trace could not be derived and is set aside (too large)" in report.stdout
    assert said in json.loads(run("report", "--format", "json", "--data", stalled).stdout)["warning"]
    for command in (("tasks",), ("slo", "status")):
        answer = run(*command, "--data", stalled)
        assert answer.exit_code == 0
        assert said in answer.stderr
        assert said not in answer.stdout


def test_a_folder_that_is_up_to_date_says_nothing(run: Run, sample_data: Path) -> None:
    assert "warning" not in run("tasks", "--data", sample_data).stderr
    assert json.loads(run("report", "--format", "json", "--data", sample_data).stdout)["warning"] is None
