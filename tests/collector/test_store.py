from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from collector.batch import Batch
from collector.decode import decode
from collector.layout import DataFolder
from collector.store import Store, StoreBusyError, StoreError, StoreOptions
from tests.collector.requests import body, log_request


def batch(number: int) -> Batch:
    return decode("traces", "protobuf", body(number)).batch


def one(store: Store, sql: str) -> tuple[Any, ...]:
    with store.reader() as con:
        row = con.execute(sql).fetchone()
    assert row is not None
    return row


def test_seq_is_the_commit_order_over_files_and_restarts(tmp_path: Path) -> None:
    store = Store.open(tmp_path, StoreOptions(rotate_spans=10))
    assert [store.append(batch(4)) for _ in range(6)] == [4, 8, 12, 16, 20, 24]
    assert store.state()["span_files"] == 3
    store.close()
    store = Store.open(tmp_path, StoreOptions(rotate_spans=10))
    assert store.last_seq == 24
    assert store.append(batch(1)) == 25
    assert one(store, "SELECT count(*), count(DISTINCT seq), min(seq), max(seq) FROM spans") == (
        25,
        25,
        1,
        25,
    )
    store.close()


def test_spans_since_skips_closed_files(tmp_path: Path) -> None:
    store = Store.open(tmp_path, StoreOptions(rotate_spans=10))
    for _ in range(3):
        store.append(batch(10))
    assert store.spans_since(0) == ["spans_000001.spans", "spans_000002.spans", "spans_000003.spans"]
    assert store.spans_since(10) == ["spans_000002.spans", "spans_000003.spans"]
    assert store.spans_since(30) == []
    tables = " UNION ALL ".join(f"SELECT seq FROM {t}" for t in store.spans_since(15))
    assert one(store, f"SELECT count(*) FROM ({tables}) WHERE seq > 15") == (15,)
    store.close()


def test_a_re_delivered_span_stays_visible_as_a_further_row(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    again = batch(1)
    store.append(again)
    store.append(again)
    assert one(store, "SELECT count(*), count(DISTINCT seq), count(DISTINCT span_id) FROM spans") == (2, 2, 1)
    store.close()


def test_a_batch_larger_than_one_transaction_is_stored_whole(tmp_path: Path) -> None:
    store = Store.open(tmp_path, StoreOptions(commit_rows=7))
    assert store.append(batch(20)) == 20
    assert one(store, "SELECT count(*) FROM spans") == (20,)
    store.close()


def test_logs_and_spans_share_the_counter(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    logs = decode("logs", "protobuf", log_request("hello")).batch.logs
    store.append(Batch(spans=batch(2).spans, logs=logs))
    assert one(store, "SELECT seq, body, service, event_name FROM logs") == (3, '"hello"', "bot", "decision")
    assert store.append(batch(1)) == 4
    store.close()


def test_rotation_under_open_readers(tmp_path: Path) -> None:
    store = Store.open(tmp_path, StoreOptions(rotate_spans=50))
    store.append(batch(20))
    stop, failures, reads = threading.Event(), [], []

    def read() -> None:
        while not stop.is_set():
            try:
                with store.reader() as con:
                    first = con.execute("SELECT count(*), max(seq) FROM spans").fetchone()
                    again = con.execute("SELECT count(*), max(seq) FROM spans").fetchone()
                reads.append(first)
                if first != again or first is None or first[0] != first[1]:
                    failures.append((first, again))
            except duckdb.Error as e:
                failures.append(e)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(40):
        store.append(batch(20))
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert reads
    assert store.state()["span_files"] > 10
    store.close()


def test_a_graceful_close_leaves_no_log_and_readers_see_all(tmp_path: Path) -> None:
    store = Store.open(tmp_path, StoreOptions(rotate_spans=10))
    for _ in range(3):
        store.append(batch(8))
    with store.reader() as open_reader:
        open_reader.execute("SELECT count(*) FROM spans")
        store.close()
    assert list(tmp_path.rglob("*.wal")) == []


def test_a_close_without_time_leaves_the_log_and_loses_nothing(tmp_path: Path) -> None:
    store = Store.open(tmp_path, StoreOptions(close_seconds=-1))
    store.append(batch(8))
    store.close()
    assert [p.name for p in tmp_path.rglob("*.wal")] == ["000001.duckdb.wal"]
    store = Store.open(tmp_path)
    assert one(store, "SELECT count(*) FROM spans") == (8,)
    store.close()
    assert list(tmp_path.rglob("*.wal")) == []


def test_views_of_derived_tables(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    con = store.derivation()
    con.execute("CREATE TABLE core.tasks AS SELECT 'a' AS task_id")
    con.execute("CREATE TABLE work.steps AS SELECT 1 AS n")
    con.execute("CREATE TABLE core._private AS SELECT 1 AS n")
    con.execute("CREATE VIEW core.lost AS SELECT * FROM core.tasks")
    store.refresh_views()
    names = "SELECT list(view_name ORDER BY 1) FROM duckdb_views() WHERE database_name = 'memory'"
    assert one(store, f"{names} AND NOT internal") == (["logs", "lost", "spans", "steps", "tasks"],)
    with store.reader() as reader:
        assert reader.execute("SELECT * FROM tasks").fetchall() == [("a",)]
        con.execute("DROP VIEW core.lost")
        con.execute("CREATE OR REPLACE TABLE core.tasks AS SELECT 'b' AS task_id, 2 AS runs")
        store.refresh_views()
        # The open reader keeps its picture.
        assert reader.execute("SELECT * FROM tasks").fetchall() == [("a",)]
    assert one(store, "SELECT * FROM tasks") == ("b", 2)
    with pytest.raises(duckdb.CatalogException):
        one(store, "SELECT * FROM lost")
    store.close()


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    with store.reader() as con, pytest.raises(duckdb.Error):
        con.execute("CREATE TABLE core.x (a INTEGER)")
    store.close()


def test_wait_for_spans(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    assert store.wait_for_spans(0, timeout=0.01) == 0
    got: list[int] = []
    waiting = threading.Thread(target=lambda: got.append(store.wait_for_spans(0, timeout=30)))
    waiting.start()
    store.append(batch(3))
    waiting.join()
    assert got == [3]
    store.close()


def test_another_process_holds_the_folder(tmp_path: Path) -> None:
    code = (
        "import sys; from collector.store import Store; Store.open(sys.argv[1]); print('open', flush=True);"
        "sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "open\n"
    try:
        with pytest.raises(StoreError, match=f"in use by process {holder.pid}; stop that collector"):
            Store.open(tmp_path, StoreOptions(lock_wait=0.3))
    finally:
        holder.kill()
        holder.wait()
        if holder.stdin:
            holder.stdin.close()
        holder.stdout.close()
    Store.open(tmp_path).close()


def test_a_folder_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    (tmp_path / "format.json").write_text(json.dumps({"version": 3, "created_by": "9.0"}))
    with pytest.raises(StoreError, match="written in format 3, this program knows up to 2"):
        Store.open(tmp_path)


def test_a_file_is_no_data_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="is a file, not a folder"):
        Store.open(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match=r"cannot create it|not writable"):
            Store.open(tmp_path / "data")
    finally:
        tmp_path.chmod(0o700)


def test_a_wrong_memory_limit_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="memory limit 'much': not a size"):
        Store.open(tmp_path, StoreOptions(memory_limit="much"))


def test_configuration_is_locked_and_the_outside_closed(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "data")
    con = store.derivation()
    for statement in (
        "SET enable_external_access = true",
        "SET memory_limit = '1TB'",
        "SELECT * FROM read_text('/etc/hostname')",
        f"ATTACH '{tmp_path}/outside.duckdb' AS outside",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
    ):
        with pytest.raises(duckdb.Error):
            con.execute(statement)
    assert one(store, "SELECT current_setting('TimeZone')") == ("UTC",)
    store.close()


def test_too_little_space_is_refused_before_writing(tmp_path: Path) -> None:
    store = Store.open(tmp_path, StoreOptions(free_bytes=1 << 60))
    with pytest.raises(StoreBusyError, match="MiB free on its volume"):
        store.append(batch(1))
    assert store.last_seq == 0
    store.close()


_FULL_DISK = """
import resource, signal, sys
from collector.store import Store, StoreBusyError, StoreOptions
from tests.collector.test_store import batch, one
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store.open(sys.argv[1], StoreOptions(rotate_log_bytes=1 << 40, free_bytes=0))
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
acked = refused = 0
for _ in range(60):
    try:
        store.append(batch(100))
        acked += 100
    except StoreBusyError:
        refused += 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.append(batch(100))
print(acked + 100, refused, one(store, "SELECT count(*) FROM spans")[0], store.generation)
store.close()
"""


def test_a_full_disk_refuses_and_recovers_without_losing_what_was_acknowledged(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(tmp_path)], capture_output=True, text=True, check=True
    )
    acked, refused, stored, _ = map(int, done.stdout.split())
    assert refused > 0
    assert acked > 100
    assert stored >= acked
    store = Store.open(tmp_path)
    assert one(store, "SELECT count(*) FROM spans") == (stored,)
    store.close()


def test_a_dead_instance_is_reopened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(tmp_path)
    store.append(batch(2))
    held = store.derivation()
    commit = store._commit

    def die(*_: Any) -> None:
        raise duckdb.FatalException("database has been invalidated")

    monkeypatch.setattr(store, "_commit", die)
    with pytest.raises(StoreBusyError, match="send again"):
        store.append(batch(1))
    assert store.state()["state"] == "failed"
    monkeypatch.setattr(store, "_commit", commit)
    assert store.append(batch(1)) == 3
    assert (store.state()["state"], store.generation) == ("ok", 1)
    with pytest.raises(duckdb.Error):
        held.execute("SELECT 1")
    assert one(store, "SELECT count(*) FROM spans") == (3,)
    store.close()


def test_derived_logs_are_checkpointed(tmp_path: Path) -> None:
    store = Store.open(tmp_path, StoreOptions(derived_log_bytes=10_000))
    con = store.derivation()
    con.execute("CREATE TABLE core.tasks AS SELECT repeat('x', 100) || range AS a FROM range(5000)")
    log = DataFolder(tmp_path).core.with_name("core.duckdb.wal")
    assert log.stat().st_size > 10_000
    store._upkeep.queue.put("")  # as the wait of five seconds would
    deadline = time.monotonic() + 60
    while log.exists() and log.stat().st_size > 10_000 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not log.exists() or log.stat().st_size < 10_000
    store.close()
