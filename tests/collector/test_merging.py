"""Closed files become few, days go as a whole, and no query fails meanwhile."""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from collector import store as store_module
from collector.decode import decode
from collector.layout import DataFolder
from collector.reader import open_reader
from collector.store import Store, StoreError, StoreOptions
from tests.collector.requests import START, span, trace_request

DAY = dt.datetime(2026, 11, 2, 12)


class Clock:
    """What the store takes for now; tests move it on."""

    def __init__(self) -> None:
        self.now = DAY

    def __call__(self) -> dt.datetime:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(store_module, "_now", clock)
    return clock


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    options = StoreOptions(
        rotate_spans=10, merge_files=4, merge_days=False, tend_seconds=1e9, retire_seconds=0
    )
    opened = Store.open(tmp_path / "data", options)
    yield opened
    opened.close()


def send(store: Store, number: int = 10, **fields: Any) -> bytes:
    spans = [
        span("op", {"n": i}, start_time_unix_nano=START + (i * 7 % 10) * 1000, **fields)
        for i in range(number)
    ]
    body: bytes = trace_request(*spans).SerializeToString()
    store.append(decode("traces", "protobuf", body).batch)
    return body


def settled(store: Store) -> None:
    """Wait until the closed files are checkpointed."""
    deadline = time.monotonic() + 30
    while any(f.path.with_name(f.path.name + ".wal").exists() for f in store.files()[:-1]):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def count(store: Store) -> int:
    with store.reader() as con:
        row = con.execute("SELECT count(*) FROM spans").fetchone()
    assert row is not None
    return int(row[0])


def names(store: Store) -> list[str]:
    return sorted(p.name for p in store.folder.spans.glob("*.duckdb"))


def test_files_of_a_past_day_become_one(store: Store, clock: Clock) -> None:
    for _ in range(3):
        send(store)
    settled(store)
    assert store.tend() == 0  # three files of today are few
    clock.now += dt.timedelta(days=1)
    assert store.tend() == 3
    assert names(store) == ["000001-000003.duckdb", "000004.duckdb"]
    assert count(store) == 30
    with store.reader() as con:
        starts = con.execute("SELECT start_ns FROM spans_000001_000003.spans WHERE seq <= 10").fetchall()
        seqs = con.execute("SELECT min(seq), max(seq), count(DISTINCT seq) FROM spans").fetchone()
    assert starts == sorted(starts)
    assert seqs == (1, 30, 30)
    send(store)
    assert count(store) == 40


def test_a_new_day_begins_a_new_file(store: Store, clock: Clock) -> None:
    send(store, 2)
    clock.now += dt.timedelta(days=1)
    store.tend()
    send(store, 2)
    assert [f.day for f in store.files()] == [DAY.date(), clock.now.date()]


def test_many_small_files_of_today_become_one(store: Store) -> None:
    for _ in range(5):
        send(store)
    settled(store)
    assert store.tend() == 5
    assert len(names(store)) == 2


def test_small_days_become_one_file_unless_days_are_removed_one_by_one(tmp_path: Path, clock: Clock) -> None:
    options = StoreOptions(merge_files=4, tend_seconds=1e9, retire_seconds=0)
    opened = Store.open(tmp_path, options)
    try:
        for _ in range(5):
            send(opened, 2)
            clock.now += dt.timedelta(days=1)
            opened.tend()
            settled(opened)
        opened.tend()
        assert names(opened)[0] == "000001-000004.duckdb"
        assert count(opened) == 10
    finally:
        opened.close()


def test_what_came_twice_without_a_difference_is_kept_once(store: Store, clock: Clock) -> None:
    body = send(store)
    for _ in range(2):
        store.append(decode("traces", "protobuf", body).batch)
    changed = trace_request(span("op", trace_id=b"t" * 16, span_id=b"s" * 8))
    store.append(decode("traces", "protobuf", changed.SerializeToString()).batch)
    changed.resource_spans[0].scope_spans[0].spans[0].name = "other"
    store.append(decode("traces", "protobuf", changed.SerializeToString()).batch)
    last = store.last_seq
    settled(store)
    clock.now += dt.timedelta(days=1)
    store.tend()
    settled(store)
    store.tend()
    assert count(store) == 12  # ten, and both versions of the one that differs
    with store.reader() as con:
        assert con.execute("SELECT max(seq) FROM spans").fetchone() == (last,)


def test_a_merged_folder_opens_again_and_is_read_from_files(
    tmp_path: Path, store: Store, clock: Clock
) -> None:
    for _ in range(3):
        send(store)
    settled(store)
    clock.now += dt.timedelta(days=1)
    store.tend()
    send(store, 3)
    store.close()
    with open_reader(tmp_path / "data") as reader:
        assert reader.source == "files"
        assert reader.sql("SELECT count(*) AS n FROM spans").column("n")[0].as_py() == 33
    again = Store.open(tmp_path / "data")
    try:
        assert again.last_seq == 33
        assert count(again) == 33
    finally:
        again.close()


def test_a_crash_between_merging_and_removing_keeps_every_span_once(
    tmp_path: Path, store: Store, clock: Clock
) -> None:
    for _ in range(3):
        send(store)
    settled(store)
    saved = {p: p.read_bytes() for p in store.folder.spans.glob("00000[123].duckdb")}
    clock.now += dt.timedelta(days=1)
    store.tend()
    store.close()
    for path, content in saved.items():
        path.write_bytes(content)
    (tmp_path / "data" / "spans" / "merging.duckdb").write_bytes(b"half")
    with open_reader(tmp_path / "data") as reader:
        assert reader.sql("SELECT count(*) AS n FROM spans").column("n")[0].as_py() == 30
    again = Store.open(tmp_path / "data")
    try:
        assert count(again) == 30
        assert not any(path.exists() for path in saved)
        assert not DataFolder(tmp_path / "data").scratch.exists()
    finally:
        again.close()


def test_old_days_go_and_their_numbers_do_not_come_again(tmp_path: Path, store: Store, clock: Clock) -> None:
    for _ in range(4):
        send(store)
        clock.now += dt.timedelta(days=1)
        store.tend()
        settled(store)
    assert [f.day for f in store.expired(2, None, clock.now)] == [
        DAY.date(),
        (DAY + dt.timedelta(days=1)).date(),
    ]
    assert store.expired(None, None, clock.now) == []
    assert store.expired(None, 10**12, clock.now) == []
    assert len(store.expired(None, 1, clock.now)) == 4  # never the one that is written
    gone = store.expired(1, None, clock.now)
    assert len(gone) == 3
    before = sum(p.stat().st_size for p in store.folder.spans.iterdir())
    store.forget(gone)
    store.tend()
    assert count(store) == 10
    assert not any(f.path.exists() for f in gone)
    assert sum(p.stat().st_size for p in store.folder.spans.iterdir()) < before
    store.forget(store.expired(None, 1, clock.now))
    store.close()
    again = Store.open(tmp_path / "data")
    try:
        assert count(again) == 0
        assert again.last_seq == 40
        send(again, 1)
        assert again.last_seq == 41
    finally:
        again.close()


def test_no_query_fails_while_files_change_under_it(store: Store, clock: Clock) -> None:
    """Readers of every kind: short ones, one that begins before and asks after, one that takes long."""
    errors: list[str] = []
    asked = [0]
    done = threading.Event()

    def short() -> None:
        while not done.is_set():
            try:
                assert count(store) % 10 == 0
                asked[0] += 1
            except (duckdb.Error, StoreError, AssertionError) as e:
                errors.append(f"{type(e).__name__}: {e}")

    def late() -> None:
        while not done.is_set():
            try:
                with store.reader() as con:
                    con.execute("SELECT 1").fetchall()
                    done.wait(0.05)
                    con.execute("SELECT count(DISTINCT md5(attributes)) FROM spans").fetchall()
                    asked[0] += 1
            except (duckdb.Error, StoreError, AssertionError) as e:
                errors.append(f"{type(e).__name__}: {e}")

    with store.derivation() as con:
        con.execute("CREATE TABLE work.steps AS SELECT range AS i FROM range(1000)")
    store.refresh_views()
    threads = [threading.Thread(target=t) for t in (short, late)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        for _ in range(3):
            send(store)
        settled(store)
        clock.now += dt.timedelta(days=1)
        store.tend()
        store.forget(store.expired(3, None, clock.now))
        store.owe_rewrite("work")
        assert store.rewrite_owed()
    done.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert asked[0] > 20
    store.tend()
    with store.reader() as con:
        attached = con.execute(
            "SELECT count(*) FROM duckdb_databases() WHERE database_name LIKE 'spans%'"
        ).fetchone()
    assert attached == (len(store.files()),)


def test_a_file_written_anew_is_smaller_and_holds_no_deleted_bytes(store: Store) -> None:
    marker = "MARK" + os.urandom(8).hex()
    with store.derivation() as con:
        con.execute(
            f"CREATE TABLE work.steps AS SELECT range AS i, '{marker}' || md5(range::VARCHAR) AS t FROM range(200000)"
        )
        con.execute("CHECKPOINT work")
        size = store.folder.work.stat().st_size
        con.execute("DELETE FROM work.steps WHERE i > 10")
        con.execute("UPDATE work.steps SET t = 'kept'")
    store.owe_rewrite("work")
    assert store.rewrite_owed()
    assert store.folder.work.stat().st_size < size / 4
    assert not store.folder.owed("work").exists()
    assert marker.encode() not in store.folder.work.read_bytes()
    with store.derivation() as con:
        assert con.execute("SELECT count(*) FROM work.steps").fetchone() == (11,)


def test_a_write_during_the_copy_is_not_lost(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from collector import compaction

    whole = compaction.copy
    written = []

    def copy(con: duckdb.DuckDBPyConnection, alias: str, target: Path) -> None:
        whole(con, alias, target)
        if not written:
            with store.derivation() as other:
                other.execute("INSERT INTO core.notes VALUES (2)")
            written.append(1)

    with store.derivation() as con:
        con.execute("CREATE TABLE core.notes AS SELECT 1 AS n")
    monkeypatch.setattr(compaction, "copy", copy)
    store.owe_rewrite("core")
    assert store.rewrite_owed()
    with store.derivation() as con:
        assert con.execute("SELECT count(*) FROM core.notes").fetchone() == (2,)
