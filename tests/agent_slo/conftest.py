"""Commands run in this process or as real ones, and a data folder with the small sample set."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.resources import as_file, files
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agent_slo.cli import cli
from tests.conftest import MadeOnce

Run = Callable[..., Result]

AS_OF = "2026-11-27T15:00:30Z"
"""Half a minute after the last span of the small sample set as recorded."""


@pytest.fixture(scope="session")
def run() -> Run:
    """`run("report", "--data", folder)` runs a command and returns what it said and its exit code."""

    def invoke(*arguments: object, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(
            cli, [str(argument) for argument in arguments], input=stdin, prog_name="agent-slo"
        )

    return invoke


@pytest.fixture(scope="session")
def samples() -> Iterator[Path]:
    """The small sample set, as shipped."""
    with as_file(files("sample_traces") / "first_light.jsonl.gz") as path:
        yield path


@pytest.fixture(scope="session")
def sample_settings() -> Iterator[Path]:
    """What the sample company tells about its tools."""
    with as_file(files("sample_traces") / "agent-slo.yaml") as path:
        yield path


@pytest.fixture(scope="session")
def sample_data(made_once: MadeOnce, samples: Path, sample_settings: Path) -> Path:
    """A data folder with the small set, derived as of its end. Tests only read it."""

    def imported(data: Path) -> None:
        arguments = ["import", samples, "--data", data, "--config", sample_settings, "--as-of", AS_OF]
        result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output

    return made_once("stated_samples", imported)


def command(*arguments: object) -> list[str]:
    """A real process of ours."""
    return [sys.executable, "-m", "agent_slo", *(str(argument) for argument in arguments)]


def answer(*arguments: object) -> str:
    """What a real process says on stdout; fails with its words when it does not end well."""
    done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`started("up", ...)` starts a real process; whatever the test does, it ends."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=60)
