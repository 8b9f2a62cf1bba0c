"""The file named by `--config` reaches the pages, and is the one they read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agent_slo.commands import dashboard as command
from dashboard.configuration import (
    FILE_VARIABLE,
    ConfigurationError,
    configuration_file,
    metrics_settings,
    objective_files,
)
from dashboard.door import DATA_VARIABLE
from tests.agent_slo.conftest import Run, run

__all__ = ["run"]


def test_the_variables_are_the_ones_the_pages_read() -> None:
    assert (command.DATA_VARIABLE, command.CONFIG_VARIABLE) == (DATA_VARIABLE, FILE_VARIABLE)


def test_the_command_hands_the_named_file_to_the_pages(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "other.yaml").write_text("tools:\n  pay: {effect: write}\n", encoding="utf-8")
    started: list[dict[str, str]] = []
    monkeypatch.setattr("os.execve", lambda _file, _arguments, environment: started.append(environment))
    monkeypatch.setattr(command, "require_free_port", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    result = run("dashboard", "--data", "data", "--config", "other.yaml", "--port", 8777)
    assert result.exit_code == 0, result.output
    assert started[0][FILE_VARIABLE] == str(tmp_path / "other.yaml")
    assert started[0][DATA_VARIABLE] == str(tmp_path / "data")

    monkeypatch.setenv(FILE_VARIABLE, started[0][FILE_VARIABLE])
    assert list(metrics_settings(tmp_path).tools) == ["pay"]


def test_without_a_named_file_none_is_handed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(FILE_VARIABLE, raising=False)
    assert FILE_VARIABLE not in command.dashboard_environment(tmp_path)


def test_a_package_of_the_working_directory_is_not_taken_for_ours(tmp_path: Path) -> None:
    (tmp_path / "dashboard").mkdir()
    (tmp_path / "dashboard" / "__init__.py").write_text("raise SystemExit('not ours')\n", encoding="utf-8")
    started = command.streamlit_command(8777)
    ours = subprocess.run(
        [*started[: started.index("dashboard") + 1], "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ours.returncode == 0, ours.stderr
    assert "streamlit run" in ours.stdout


def test_a_faulty_named_file_is_told_by_the_command(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("toools: {}\n", encoding="utf-8")
    result = run("dashboard", "--data", tmp_path, "--config", tmp_path / "other.yaml", "--port", 8777)
    assert result.exit_code != 0
    assert "other.yaml:1" in result.output


def test_the_named_file_wins_over_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data, other = tmp_path / "agent-slo.yaml", tmp_path / "else" / "mine.yaml"
    other.parent.mkdir()
    (other.parent / "one.openslo.yaml").write_text("", encoding="utf-8")
    other.write_text("objectives: ['*.openslo.yaml']\n", encoding="utf-8")
    data.write_text("objectives: []\n", encoding="utf-8")
    monkeypatch.delenv(FILE_VARIABLE, raising=False)
    assert configuration_file(tmp_path) == data
    monkeypatch.setenv(FILE_VARIABLE, str(other))
    assert configuration_file(tmp_path) == other
    assert objective_files(tmp_path) == (other.parent / "one.openslo.yaml",)


def test_a_named_file_that_is_gone_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "gone.yaml"))
    with pytest.raises(ConfigurationError, match=r"gone\.yaml: no such file"):
        metrics_settings(tmp_path)
