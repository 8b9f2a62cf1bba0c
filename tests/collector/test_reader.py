from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from collector import reader as reader_module
from collector.reader import ReaderError, open_reader
from collector.serve import Collector
from collector.store import Store
from tests.collector.conftest import StartCollector
from tests.collector.test_repair import leave_log
from tests.collector.test_store import batch


def test_through_the_door_of_a_running_collector(collector: Collector) -> None:
    collector.store.append(batch(2))
    with open_reader(collector.settings.data) as reader:
        assert reader.source == "door"
        assert reader.sql("SELECT count(*) AS n FROM spans").to_pylist() == [{"n": 2}]
        assert reader.sql("SELECT ? AS a", [5]).to_pylist() == [{"a": 5}]
        with pytest.raises(ReaderError, match="nonesuch"):
            reader.sql("SELECT * FROM nonesuch")


def test_files_when_no_collector_runs(start_collector: StartCollector, tmp_path: Path) -> None:
    collector = start_collector()
    collector.store.append(batch(2))
    con = collector.store.derivation()
    con.execute("CREATE TABLE core.tasks AS SELECT 'a' AS task_id")
    con.close()
    collector.stop()
    with open_reader(tmp_path / "data") as reader, open_reader(tmp_path / "data") as second:
        assert (reader.source, second.source, reader.skipped) == ("files", "files", [])
        assert reader.sql("SELECT count(*) AS n FROM spans").to_pylist() == [{"n": 2}]
        assert second.sql("SELECT * FROM tasks WHERE task_id = $t", {"t": "a"}).num_rows == 1
        for sql in ("SELECT 1; SELECT 2", "DROP VIEW spans", "SELECT * FROM read_text('/etc/hostname')"):
            with pytest.raises(ReaderError):
                reader.sql(sql)
    with pytest.raises(ReaderError, match="closed"):
        reader.sql("SELECT 1")


def test_a_log_that_was_never_checkpointed_is_read_and_left_alone(tmp_path: Path) -> None:
    log = leave_log(tmp_path, commits=4)
    before = log.read_bytes()
    with open_reader(tmp_path) as reader:
        assert reader.sql("SELECT count(*) AS n, max(seq) AS m FROM spans").to_pylist() == [
            {"n": 20, "m": 20}
        ]
    assert log.read_bytes() == before


def test_a_stale_door_is_passed_by(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    door = {"door": "http://127.0.0.1:9", "token": "x", "pid": ended.pid}
    (tmp_path / "door.json").write_text(json.dumps(door))
    with open_reader(tmp_path) as reader:
        assert reader.source == "files"
    (tmp_path / "door.json").write_text("{broken")
    with open_reader(tmp_path) as reader:
        assert reader.source == "files"


def test_a_holder_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "_LOCK_WAIT_SECONDS", 0.3)
    code = (
        "import sys; from collector.store import Store; Store.open(sys.argv[1]); print('open', flush=True);"
        "input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(ReaderError, match=f"held by process {holder.pid}, which does not answer"):
            open_reader(tmp_path)
        holder.kill()


def test_what_is_no_data_folder(tmp_path: Path) -> None:
    with pytest.raises(ReaderError, match="there is none"):
        open_reader(tmp_path / "missing")
    with pytest.raises(ReaderError, match=r"no format\.json"):
        open_reader(tmp_path)
    (tmp_path / "format.json").write_text('{"version": 7}')
    with pytest.raises(ReaderError, match="written in format 7"):
        open_reader(tmp_path)
