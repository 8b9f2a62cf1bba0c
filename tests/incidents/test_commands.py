"""`agent-slo incidents` and `agent-slo incident ID`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from agent_slo.cli import cli
from metrics.slo.confidence import wilson


def ask(data: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["--data", str(data), *words])


def listed(data: Path, *words: str) -> list[dict[str, Any]]:
    run = ask(data, "incidents", "--format", "json", *words)
    assert run.exit_code == 0, run.output
    return list(json.loads(run.stdout))


def test_incidents_are_listed_and_filtered(company: Path) -> None:
    everything = listed(company, "--limit", "1000")
    lost = listed(company, "--kind", "lost")
    assert {row["kind"] for row in lost} == {"lost"}
    assert len(lost) < len(everything)
    assert listed(company, "--state", "ignored") == []
    agent = everything[0]["agent"]
    assert {row["agent"] for row in listed(company, "--agent", agent)} == {agent}
    text = ask(company, "incidents", "--limit", "2")
    assert text.exit_code == 0
    assert "more with --limit" in text.stderr
    assert "no incident passes" in ask(company, "incidents", "--kind", "runaway_cost").stderr
    assert "'nonsense' is no kind of finding" in ask(company, "incidents", "--kind", "nonsense").stderr


def test_one_incident_is_told(company: Path) -> None:
    chosen = next(row for row in listed(company) if row["mode"] == "duplicate_action.crash_replay")
    text = ask(company, "incident", chosen["incident_id"])
    assert text.exit_code == 0, text.output
    assert "duplicate action: crash replay" in text.stdout
    assert "the process fell silent" in text.stdout
    assert f"agent-slo export --incident {chosen['incident_id']}" in text.stdout
    found = json.loads(ask(company, "incident", chosen["incident_id"], "--format", "json").stdout)
    assert found["incident"]["incident_id"] == chosen["incident_id"]
    assert found["evidence_span_ids"]
    assert [line["at"] for line in found["timeline"]] == sorted(line["at"] for line in found["timeline"])


def test_an_unknown_incident_and_an_empty_folder_are_one_clear_line(company: Path, tmp_path: Path) -> None:
    for run in (ask(company, "incident", "inc-none"), ask(tmp_path / "none", "incidents")):
        assert run.exit_code == 2
        assert len(run.stderr.strip().splitlines()) == 1


@pytest.fixture
def own(company: Path, tmp_path: Path) -> Path:
    """A copy that may be written."""
    return Path(shutil.copytree(company, tmp_path / "own"))


def test_what_is_said_is_shown_counted_and_respected(own: Path, tmp_path: Path) -> None:
    first, second = (row["incident_id"] for row in listed(own, "--kind", "lost")[:2])
    said = ask(own, "incident", first, "--state", "acknowledged", "--verdict", "real", "--note", "=1+1 <b>")
    assert said.exit_code == 0, said.output
    assert "state acknowledged" in said.stdout
    assert "note: =1+1 <b>" in said.stdout
    assert ask(own, "incident", second, "--verdict", "false_alarm").exit_code == 0
    counts = json.loads(ask(own, "incidents", "--accuracy", "--format", "json").stdout)
    lost = next(row for row in counts if row["kind"] == "lost")
    assert (lost["reviewed"], lost["real"], lost["false_alarms"], lost["precision"]) == (2, 1, 1, 0.5)
    low, high = wilson(1, 2) or (0.0, 0.0)
    assert lost["precision_low"] == pytest.approx(low)
    assert lost["precision_high"] == pytest.approx(high)
    assert lost["coverage"] == 2 / lost["incidents"]
    assert {row["precision"] for row in counts if not row["reviewed"]} == {None}
    assert "50.0%" in ask(own, "incidents", "--accuracy").stdout
    done = ask(own, "export", "--kind", "lost", "--include-draft", "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    written = {g["incident_id"] for g in json.loads((tmp_path / "out/manifest.json").read_text())["groups"]}
    assert first in written
    assert second not in written
    refused = ask(own, "incident", "inc-none", "--state", "open")
    assert refused.exit_code == 2
    assert "no incident 'inc-none'" in refused.stderr
