"""The pages beside a collector that comes and goes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.agent_slo.conftest import command
from tests.agent_slo.waiting import until
from tests.dashboard.conftest import OpenPage, texts
from tests.dashboard.data_folder import write_folder


def test_the_door_while_it_runs_and_the_files_after_it(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", derived=False)
    collector = subprocess.Popen(
        command("collect", "--data", data, "--http", "127.0.0.1:0", "--no-grpc"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until(lambda: (data / "door.json").exists(), collector)
        said = texts(open_page(data))
        assert "Collector running" in said
        assert "Nothing has arrived yet" in said
    finally:
        # As a crash leaves it: door.json stays and names a process that is gone.
        collector.kill()
        collector.communicate(timeout=60)
    assert (data / "door.json").exists()
    assert "Collector down: reading its files" in texts(open_page(data))
