"""What a collector says and does when its files are gone, full or damaged, and when it is stopped meanwhile."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import grpc
import httpx
import pytest
from google.rpc.status_pb2 import Status
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from collector import seldom
from collector.layout import NoRoomError, StoreError
from collector.reader import ReaderError, open_reader
from collector.serve import Collector
from collector.store import Store
from tests.collector.conftest import StartCollector
from tests.collector.requests import body

HEADERS = {"content-type": "application/x-protobuf"}
HEADER = struct.Struct("<QQqqQ")
"""Of a DuckDB file: checksum, number, two blocks, how many blocks there are."""


def status(answer: httpx.Response) -> str:
    """The message of an error body."""
    return str(Status.FromString(answer.content).message)


def replace_folder(data: Path) -> None:
    shutil.rmtree(data)
    data.mkdir()


def remove_spans(data: Path) -> None:
    shutil.rmtree(data / "spans")


def replace_file(data: Path) -> None:
    hot = data / "spans" / "000001.duckdb"
    shutil.copy2(hot, hot.with_suffix(".copy"))
    hot.with_suffix(".copy").replace(hot)


def remove_log(data: Path) -> None:
    (data / "spans" / "000001.duckdb.wal").unlink()


@pytest.mark.parametrize("attack", [shutil.rmtree, replace_folder, remove_spans, replace_file, remove_log])
def test_a_folder_that_was_replaced_takes_nothing(
    collector: Collector, client: httpx.Client, attack: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.post("/v1/traces", content=body(), headers=HEADERS).status_code == 200
    data = collector.settings.data
    attack(data)
    before = sorted(data.rglob("*"))
    assert client.get("/readyz").status_code == 503  # though nobody sends
    for _ in range(3):
        answer = client.post("/v1/traces", content=body(), headers=HEADERS)
        assert (answer.status_code, "removed or replaced while the collector runs" in status(answer)) == (
            503,
            True,
        )
    assert client.get("/metrics").status_code == 200
    health = client.get("/healthz").json()
    assert (health["state"], "start it again" in health["failure"]) == ("failed", True)
    assert sum("removed or replaced" in r.getMessage() for r in caplog.records) == 1
    collector.store.tend()
    assert collector.store.expired(0, 0, collector.store._upkeep._now()) == []
    collector.stop()
    assert sorted(data.rglob("*")) == [p for p in before if p.exists()]


def test_nothing_is_derived_into_a_folder_that_was_replaced(
    start_collector: StartCollector, caplog: pytest.LogCaptureFixture
) -> None:
    passes: list[int] = []

    def derive(store: Store, stop: threading.Event) -> None:
        con = store.derivation()
        con.execute("CREATE TABLE IF NOT EXISTS core.passes (seq BIGINT)")
        seq = 0
        while not stop.is_set():
            seq = store.wait_for_spans(seq, timeout=0.05)
            con.execute("INSERT INTO core.passes VALUES (?)", [seq])
            passes.append(seq)

    collector = start_collector(background=derive)
    token = collector_token(collector)
    while not passes:
        time.sleep(0.01)
    replace_folder(collector.settings.data)
    while collector._background_failure is None:
        time.sleep(0.01)
    (collector.settings.data / "core.duckdb.wal").unlink(missing_ok=True)  # of the moment in which it went
    done = len(passes)
    time.sleep(0.2)
    answer = httpx.post(
        f"http://{collector.door}/sql",
        json={"sql": "SELECT 1"},
        headers={"authorization": f"Bearer {token}"},
        trust_env=False,
    )
    assert (answer.status_code, "start it again" in answer.text) == (503, True)
    collector.stop()
    assert (len(passes), list(collector.settings.data.iterdir())) == (done, [])
    assert not [r for r in caplog.records if r.exc_info]


def test_a_folder_that_comes_back_is_taken_again(collector: Collector, client: httpx.Client) -> None:
    data = collector.settings.data
    data.rename(data.with_name("aside"))
    assert client.post("/v1/traces", content=body(), headers=HEADERS).status_code == 503
    data.with_name("aside").rename(data)
    assert client.post("/v1/traces", content=body(), headers=HEADERS).status_code == 200
    assert client.get("/readyz").status_code == 200


def test_without_room_it_is_not_ready_and_says_so_once(
    collector: Collector,
    client: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    usage = shutil.disk_usage(collector.settings.data)
    monkeypatch.setattr("collector.store.shutil.disk_usage", lambda _: usage._replace(free=5 << 20))
    collector.store._checked_space = 0.0
    for _ in range(3):
        assert client.post("/v1/traces", content=body(), headers=HEADERS).status_code == 503
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["state"]) == (503, "full")
    assert "5 MiB free" in answer.json()["failure"]
    lines = [r.getMessage() for r in caplog.records if r.name == "agent_slo.intake"]
    assert len(lines) == 1
    assert "make room" in lines[0]
    monkeypatch.setattr(seldom, "SECONDS", 0.0)
    with pytest.raises(NoRoomError):
        collector.store._check_writable()
    assert client.post("/v1/traces", content=body(), headers=HEADERS).status_code == 503
    assert [r.getMessage() for r in caplog.records if r.name == "agent_slo.intake"][1].endswith(
        "(and 2 more since the last such line)"
    )
    monkeypatch.undo()
    assert client.get("/readyz").status_code == 200
    assert client.post("/v1/traces", content=body(), headers=HEADERS).status_code == 200


def test_a_failed_store_is_not_ready_and_comes_back_though_nobody_sends(
    collector: Collector, client: httpx.Client
) -> None:
    collector.store._failure = "database has been invalidated"
    assert client.get("/readyz").status_code == 503
    collector.store._recover()
    assert client.get("/readyz").status_code == 200
    assert client.post("/v1/traces", content=body(), headers=HEADERS).status_code == 200


def test_grpc_health_says_the_same(start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.serve._HEALTH_SECONDS", 0.01)
    collector = start_collector(grpc="127.0.0.1:0")
    states = HealthCheckResponse
    with grpc.insecure_channel(str(collector.grpc)) as channel:
        watched = HealthStub(channel).Watch(HealthCheckRequest(), timeout=30)
        assert next(watched).status == states.SERVING
        collector.store._failure = "database has been invalidated"
        assert next(watched).status == states.NOT_SERVING
        collector.store._recover()
        assert next(watched).status == states.SERVING
        watched.cancel()


def test_a_commit_that_failed_is_seen_for_a_while(
    collector: Collector, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = collector.store._commit

    def failing(*_: Any) -> None:
        raise duckdb.IOException("IO Error: no such device")

    monkeypatch.setattr(collector.store, "_commit", failing)
    assert client.post("/v1/traces", content=body(), headers=HEADERS).status_code == 503
    assert client.get("/readyz").json()["state"] == "failed"
    monkeypatch.setattr("collector.store._FAILED_SECONDS", 0.0)
    assert client.get("/readyz").status_code == 200  # or no sender would ever find out that it works again
    monkeypatch.setattr("collector.store._FAILED_SECONDS", 60.0)
    monkeypatch.setattr(collector.store, "_commit", commit)
    assert client.post("/v1/traces", content=body(), headers=HEADERS).status_code == 200
    assert client.get("/readyz").status_code == 200


# ------------------------------------------------------------------ damage


@pytest.fixture
def full_file(tmp_path: Path) -> Path:
    """A closed span file of some blocks, in a data folder that nobody has open."""
    data = tmp_path / "data"
    store = Store.open(data)
    con = store.derivation()
    con.execute(
        "INSERT INTO spans_000001.spans BY NAME SELECT range + 1 AS seq, md5(range::VARCHAR) AS trace_id, "
        "left(md5(range::VARCHAR), 16) AS span_id, repeat(md5(range::VARCHAR), 4) AS attributes, 'x' AS name, "
        "'{}' AS resource, now()::TIMESTAMP AS received_at, 1 AS start_ns, 'internal' AS kind, 'ok' AS status, "
        "'' AS status_message, '' AS scope, '' AS scope_version, '' AS trace_state FROM range(20000)"
    )
    con.execute("CHECKPOINT spans_000001")
    con.close()
    store.close()
    return data / "spans" / "000001.duckdb"


def test_a_file_that_was_cut_off_is_named_at_the_start(full_file: Path) -> None:
    size = full_file.stat().st_size
    os.truncate(full_file, size // 2)
    data = full_file.parent.parent
    with pytest.raises(StoreError, match=r"000001\.duckdb(: | is )damaged"):
        Store.open(data)
    assert full_file.stat().st_size == size // 2
    with open_reader(data) as reader:
        assert reader.skipped[0].startswith("000001.duckdb: at least ")
        with pytest.raises(ReaderError, match=r"000001\.duckdb: damaged"):
            reader.sql("SELECT max(attributes) FROM spans")


def test_a_file_whose_free_end_was_given_back_is_whole(full_file: Path) -> None:
    data = full_file.parent.parent
    store = Store.open(data)
    con = store.derivation()
    for statement in (
        "CREATE TABLE spans_000001.more AS SELECT md5(range::VARCHAR) FROM range(100000)",
        "DROP TABLE spans_000001.more",
    ):
        con.execute(statement)
        con.execute("CHECKPOINT spans_000001")
    con.close()
    store.close()
    # The header goes on counting the blocks that are not there any more.
    with full_file.open("rb") as f:
        headers = [HEADER.unpack_from(f.read(4096)) for _ in range(3)][1:]
    assert max(headers, key=lambda h: h[1])[4] * 262_144 > full_file.stat().st_size
    with open_reader(data) as reader:
        assert reader.skipped == []
    store = Store.open(data)
    assert store.last_seq == 20_000
    store.close()


def spoil(file: Path) -> None:
    """Write something else into the blocks of a file that hold its rows."""
    with file.open("r+b") as f:
        for block in range(2, file.stat().st_size // 262_144):
            f.seek(12_288 + block * 262_144 + 4096)
            f.write(os.urandom(64))


def test_bytes_that_changed_in_a_file_are_seen_by_the_first_query(
    full_file: Path, start_collector: StartCollector, caplog: pytest.LogCaptureFixture
) -> None:
    spoil(full_file)
    collector = start_collector(data=full_file.parent.parent)
    http = {"base_url": f"http://{collector.http}", "trust_env": False}
    assert httpx.Client(**http).get("/readyz").json()["state"] == "ok"  # type: ignore[arg-type]
    door = httpx.Client(
        base_url=f"http://{collector.door}",
        trust_env=False,
        headers={"authorization": f"Bearer {collector_token(collector)}"},
    )
    for select in ("max(attributes)", "max(attributes)", "attributes"):  # the last fails after the first rows
        answer = door.post("/sql", json={"sql": f"SELECT {select} FROM spans"})
        assert (answer.status_code, answer.json()["error"].startswith(f"{full_file}: damaged")) == (400, True)
    ready = httpx.get(f"http://{collector.http}/readyz", trust_env=False)
    assert (ready.status_code, ready.json()["state"]) == (
        200,
        "degraded",
    )  # what is sent is stored in another block
    [line] = ready.json()["damaged"]
    assert line.startswith(f"{full_file}: damaged")
    assert sum(line == r.getMessage() for r in caplog.records) == 1
    answer = httpx.post(
        f"http://{collector.http}/v1/traces", content=body(), headers=HEADERS, trust_env=False
    )
    assert answer.status_code == 200
    # Looking for the damage must not have given up the engine's lock.
    with pytest.raises(StoreError, match="in use by process"):
        locked_elsewhere(full_file)


def collector_token(collector: Collector) -> str:
    return str(json.loads((collector.settings.data / "door.json").read_text())["token"])


def locked_elsewhere(file: Path) -> None:
    """Open the file in another process. Raises StoreError when it is held."""
    code = f"import duckdb; duckdb.connect({str(file)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    if "Could not set lock" in done.stderr:
        raise StoreError("in use by process")


def test_without_a_collector_damage_is_named_too(full_file: Path) -> None:
    spoil(full_file)
    with (
        open_reader(full_file.parent.parent) as reader,
        pytest.raises(
            ReaderError, match=r"000001\.duckdb: damaged, bytes after \d+ are not what was written"
        ),
    ):
        reader.sql("SELECT max(attributes) FROM spans")


# ------------------------------------------------------------------ stopping


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_a_stop_during_a_slow_commit_tells_senders_to_send_again(
    start_collector: StartCollector,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    encoding: str,
) -> None:
    collector = start_collector(stop_seconds=1.2)
    entered, go = threading.Event(), threading.Event()
    append = collector.store.append

    def slow(batch: Any) -> int:
        entered.set()
        go.wait(30)
        return append(batch)

    monkeypatch.setattr(collector.store, "append", slow)
    answers: list[httpx.Response] = []
    one_span = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%s","spanId":"%s"}]}]}]}' % (
        b"ab" * 16,
        b"cd" * 8,
    )
    content, kind = (
        (body(), "application/x-protobuf") if encoding == "protobuf" else (one_span, "application/json")
    )

    def send() -> None:
        answers.append(
            httpx.post(
                f"http://{collector.http}/v1/traces",
                content=content,
                headers={"content-type": kind},
                trust_env=False,
            )
        )

    sender = threading.Thread(target=send)
    sender.start()
    assert entered.wait(30)
    stopping = threading.Thread(target=collector.stop)
    stopping.start()
    sender.join(30)
    go.set()
    stopping.join()
    [answer] = answers
    assert (answer.status_code, answer.headers["content-type"]) == (503, kind)
    assert 1 <= int(answer.headers["retry-after"]) <= 3
    told = status(answer) if encoding == "protobuf" else answer.json()["message"]
    assert told == "the collector is stopping, send again"
    assert not [r for r in caplog.records if r.exc_info]


def test_a_stop_does_not_wait_for_a_body_that_does_not_come(
    start_collector: StartCollector, caplog: pytest.LogCaptureFixture
) -> None:
    collector = start_collector(stop_seconds=1.2)
    assert collector.http is not None
    with socket.create_connection((collector.http.host, collector.http.port), timeout=30) as sender:
        sender.sendall(
            b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n"
            b"content-length: 10\r\n\r\nab"
        )
        while not collector.counters.prometheus().count("agent_slo_collector_queue_requests 1"):
            time.sleep(0.01)
        collector.stop()
        answer = sender.recv(65_536)
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"retry-after" in answer
    assert not [r for r in caplog.records if r.exc_info]


def test_a_log_line_of_one_cause_comes_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    lines = seldom.Seldom(logging.getLogger("agent_slo.test"))
    for cause in ("a", "b", "a", "a"):
        lines.tell(logging.WARNING, cause, f"cause {cause}")
    assert [r.getMessage() for r in caplog.records] == ["cause a", "cause b"]
