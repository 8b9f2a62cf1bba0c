from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from collector.layout import DataFolder
from collector.reader import open_reader
from collector.repair import damage_position
from collector.store import Store, StoreError
from tests.collector.test_store import batch, one


def leave_log(tmp_path: Path, commits: int = 20) -> Path:
    """A store that ended without a checkpoint; returns its hot file's log."""
    code = (
        "import os, sys; from collector.store import Store; from tests.collector.test_store import batch\n"
        "store = Store.open(sys.argv[1])\n"
        "for _ in range(int(sys.argv[2])): store.append(batch(5))\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path), str(commits)], check=True)
    log = DataFolder(tmp_path).span_file(1).path.with_name("000001.duckdb.wal")
    assert log.stat().st_size > 4_000
    return log


@pytest.mark.parametrize("damage", ["flipped bit", "zeroed tail", "cut", "garbage after the end"])
def test_a_damaged_log_keeps_its_whole_transactions(tmp_path: Path, damage: str) -> None:
    log = leave_log(tmp_path)
    content = bytearray(log.read_bytes())
    if damage == "flipped bit":
        content[-2000] ^= 4
    elif damage == "zeroed tail":
        content[-1500:] = bytes(1500)
    elif damage == "cut":
        del content[-700:]
    else:
        content += b"garbage" * 50
    log.write_bytes(content)
    store = Store.open(tmp_path)
    (rows,) = one(store, "SELECT count(*) FROM spans")
    assert rows % 5 == 0
    assert 75 <= rows <= 100
    if damage in ("flipped bit", "zeroed tail"):
        [repair] = store.repairs
        assert repair.copy.read_bytes() == bytes(content)
        assert "damaged; kept the first" in str(repair)
        assert store.state()["repairs"] == [str(repair)]
    store.append(batch(1))
    assert one(store, "SELECT count(*) FROM spans") == (rows + 1,)
    store.close()
    store = Store.open(tmp_path)
    assert one(store, "SELECT count(*) FROM spans") == (rows + 1,)
    assert store.repairs == []
    store.close()


def test_a_reader_leaves_a_damaged_file_out_and_names_it(tmp_path: Path) -> None:
    log = leave_log(tmp_path)
    content = bytearray(log.read_bytes())
    content[-2000] ^= 4
    log.write_bytes(content)
    with open_reader(tmp_path) as reader:
        assert reader.sql("SELECT count(*) AS n FROM spans").to_pylist() == [{"n": 0}]
        [skipped] = reader.skipped
        assert skipped.startswith("000001.duckdb: its log is damaged")
    assert log.read_bytes() == bytes(content)


def test_a_file_killed_while_being_created_is_set_aside(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    (tmp_path / "spans" / "000002.duckdb").write_bytes(b"\0" * 100)
    store = Store.open(tmp_path)
    assert store.append(batch(1)) == 1
    assert "000002.duckdb" in str(store.repairs[0])
    store.close()


def test_a_broken_file_is_named_and_not_touched(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    broken = tmp_path / "spans" / "000002.duckdb"
    broken.write_bytes(b"not a database" * 5000)
    with pytest.raises(StoreError, match=r"000002\.duckdb cannot be opened.*move this file"):
        Store.open(tmp_path)
    assert broken.exists()


def test_other_complaints_are_no_damage() -> None:
    assert damage_position("IO Error: Could not set lock on file") is None
    assert (
        damage_position('replaying WAL file "x.wal": Corrupt WAL file: entry at byte position 955 c') == 955
    )
