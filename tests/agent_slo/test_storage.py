"""`agent-slo storage` names every part of the folder, and adds them up."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from agent_slo.cli import cli
from collector.decode import decode
from collector.store import Store, StoreOptions
from tests.collector.requests import body


def made(data: Path) -> None:
    store = Store.open(data, StoreOptions(rotate_spans=10, merge_files=3))
    for _ in range(3):
        store.append(decode("traces", "protobuf", body(10)).batch)
    store.append(decode("traces", "protobuf", body(4)).batch)
    store.close()


def test_parts_and_their_sum(tmp_path: Path) -> None:
    made(tmp_path)
    result = CliRunner().invoke(cli, ["storage", "--data", str(tmp_path), "--format", "json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    spans = [part for part in found["parts"] if part["what"].startswith("spans/")]
    assert [part["rows"] for part in spans] == [10, 10, 10, 4]
    assert all(part["first_day"] and part["bytes"] > 0 for part in spans)
    assert spans[-1]["what"].endswith("(being written)")
    assert found["bytes"] == sum(part["bytes"] for part in found["parts"])
    on_disk = sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file())
    assert on_disk - 10_000 < found["bytes"] <= on_disk
    assert found["storage"] == {"keep_days": None, "keep_gb": None, "tasks_days": None}


def test_for_people(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "agent-slo.yaml").write_text("storage: {keep_days: 30, tasks_days: 400}\n")
    result = CliRunner().invoke(cli, ["storage", "--data", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "000001.duckdb (closed)" in result.stdout
    assert "work.duckdb (steps and attempts)" in result.stdout
    assert "go after 30 days" in result.stderr
    assert "go after 400 days" in result.stderr
