"""Collector and dashboard as real processes: healthy together, stopped together."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest

from tests.agent_slo.conftest import Run
from tests.agent_slo.waiting import until

Started = Callable[..., subprocess.Popen[str]]

ANYWHERE = ("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--dashboard-port", "0")


def lines_until(process: subprocess.Popen[str], last: str) -> str:
    """What the process prints up to a line that contains `last`."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if last in line:
            return said
    raise AssertionError(
        f"ended before saying {last!r}: {said}{process.stderr.read() if process.stderr else ''}"
    )


def gone(processes: list[psutil.Process]) -> bool:
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)


def test_up_is_healthy_says_where_and_stops_all(started: Started, tmp_path: Path) -> None:
    data = tmp_path / "data"
    process = started("up", "--data", data, *ANYWHERE)
    said = lines_until(process, "Ctrl-C")
    endpoint = re.search(r"OTEL_EXPORTER_OTLP_ENDPOINT=(http://127\.0\.0\.1:\d+)", said)
    pages = re.search(r"Dashboard +(http://127\.0\.0\.1:\d+)", said)
    assert endpoint is not None
    assert pages is not None
    assert httpx.get(f"{endpoint[1]}/healthz", trust_env=False).json()["state"] == "ok"
    assert httpx.get(f"{pages[1]}/_stcore/health", trust_env=False).is_success
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert gone(children)
    assert not (data / "door.json").exists()


def test_a_killed_collector_is_started_again_where_it_was(started: Started, tmp_path: Path) -> None:
    """And the pages stay; one that ends by itself takes the rest down, with its reason."""
    data = tmp_path / "data"
    process = started("up", "--data", data, *ANYWHERE)
    said = lines_until(process, "Ctrl-C")
    endpoint = re.search(r"OTEL_EXPORTER_OTLP_ENDPOINT=(http://127\.0\.0\.1:\d+)", said)
    pages = re.search(r"Dashboard +(http://127\.0\.0\.1:\d+)", said)
    assert endpoint is not None
    assert pages is not None
    killed = json.loads((data / "door.json").read_text())["pid"]
    os.kill(killed, signal.SIGKILL)

    def answers_again() -> bool:
        try:
            return httpx.get(f"{endpoint[1]}/healthz", trust_env=False).is_success
        except httpx.TransportError:
            return False

    until(lambda: not psutil.pid_exists(killed) or psutil.Process(killed).status() == psutil.STATUS_ZOMBIE)
    until(answers_again)
    assert httpx.get(f"{pages[1]}/_stcore/health", trust_env=False).is_success
    children = psutil.Process(process.pid).children(recursive=True)
    os.kill(json.loads((data / "door.json").read_text())["pid"], signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "the collector ended by signal SIGKILL; starting it again" in err
    assert "agent-slo: the collector ended:" in err
    assert gone(children)


def test_a_killed_parent_leaves_no_collector_behind(started: Started, tmp_path: Path) -> None:
    process = started("up", "--data", tmp_path / "data", *ANYWHERE)
    lines_until(process, "Ctrl-C")
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    until(lambda: gone(children))
    assert gone(children)


@pytest.mark.parametrize(
    ("option", "value"),
    [("--dashboard-port", "{port}"), ("--http", "127.0.0.1:{port}"), ("--grpc", "127.0.0.1:{port}")],
)
def test_a_taken_port_is_one_clear_line(started: Started, tmp_path: Path, option: str, value: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        free = [
            word
            for pair in zip(ANYWHERE[::2], ANYWHERE[1::2], strict=True)
            if pair[0] != option
            for word in pair
        ]
        process = started("up", "--data", tmp_path / "data", option, value.format(port=port), *free)
        out, err = process.communicate(timeout=90)
    assert process.returncode == 2
    assert f"port {port}" in err
    assert option in err
    assert "Traceback" not in err
    assert out == ""


def test_an_unwritable_folder_is_one_clear_line(started: Started, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    process = started("collect", "--data", tmp_path / "file" / "data", *ANYWHERE[:4])
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "Traceback" not in err
    assert "--data" in err


def test_demo_loads_derives_and_reports(started: Started, tmp_path: Path, run: Run) -> None:
    data = tmp_path / "demo"
    process = started("demo", "--data", data, "--samples", "first_light", "--exit-after-load", *ANYWHERE)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "Actions done only once" in out
    assert "28 of 32" in out
    assert len(json.loads(run("tasks", "--data", data, "--format", "json").stdout)) == 23


def test_demo_does_not_mix_with_other_data(run: Run, tmp_path: Path, sample_data: Path) -> None:
    result = run("demo", "--data", sample_data, "--exit-after-load")
    assert result.exit_code == 2
    assert "samples must not mix" in result.stderr
