from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import httpx
import pytest

from collector.reader import open_reader
from collector.serve import Collector, CollectorError, CollectorSettings
from collector.store import Store
from tests.collector.conftest import StartCollector, rows
from tests.collector.requests import body

HEADERS = {"content-type": "application/x-protobuf"}


def test_a_taken_port_is_named_with_the_option(start_collector: StartCollector, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for settings, option in (
            ({"http": f"127.0.0.1:{port}"}, "--http HOST:PORT"),
            ({"grpc": f"127.0.0.1:{port}"}, "--grpc HOST:PORT"),
            ({"door": port}, "--door PORT"),
        ):
            with pytest.raises(CollectorError, match=f"port {port} on 127.0.0.1 .*{option}"):
                start_collector(data=tmp_path / option.split()[0], **settings)


@pytest.mark.parametrize("option", ["http", "grpc"])
def test_other_machines_need_a_token(option: str, tmp_path: Path) -> None:
    open_to_all = {option: "0.0.0.0:0"}
    with pytest.raises(CollectorError, match=f"--{option} .*without a token.*--insecure"):
        CollectorSettings(data=tmp_path, **open_to_all).addresses()
    CollectorSettings(data=tmp_path, token="a-token-1", **open_to_all).addresses()
    CollectorSettings(data=tmp_path, insecure=True, **open_to_all).addresses()
    with pytest.raises(CollectorError, match=f"--{option} .*role ingest has fewer than 8 characters"):
        CollectorSettings(data=tmp_path, token="a-token", **open_to_all).addresses()
    CollectorSettings(data=tmp_path, token="a-token", insecure=True, **open_to_all).addresses()
    CollectorSettings(data=tmp_path, token="a-token").addresses()


@pytest.mark.parametrize("text", ["127.0.0.1:http", "localhost", "127.0.0.1:70000", ""])
def test_a_malformed_address_is_named(text: str) -> None:
    with pytest.raises(CollectorError, match=r"--http .*write it like"):
        CollectorSettings(http=text).addresses()


@pytest.mark.parametrize("text", ["localhost:1", "127.3.2.1:1", "[::1]:1", ":1", "4318"])
def test_loopback_addresses(text: str) -> None:
    assert CollectorSettings(http=text).addresses()[0].loopback


def test_half_a_tls_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CollectorError, match="both a certificate and a key"):
        CollectorSettings(tls_key=tmp_path / "k").addresses()
    with pytest.raises(CollectorError, match=r"TLS file .*not found"):
        CollectorSettings(tls_key=tmp_path / "k", tls_certificate=tmp_path / "c").addresses()


def test_the_background_work_gets_the_store_and_is_asked_to_stop(start_collector: StartCollector) -> None:
    seen: list[int] = []
    ended = threading.Event()

    def work(store: Store, stop: threading.Event) -> None:
        seq = 0
        while not stop.is_set():
            seq = store.wait_for_spans(seq, timeout=0.1)
            if seq:
                seen.append(seq)
        ended.set()

    collector = start_collector(background=work)
    httpx.post(f"http://{collector.http}/v1/traces", content=body(3), headers=HEADERS, trust_env=False)
    deadline = time.monotonic() + 30
    while not seen and time.monotonic() < deadline:
        time.sleep(0.01)
    collector.stop()
    assert seen[0] == 3
    assert ended.is_set()


def test_background_work_in_a_long_statement_is_interrupted(start_collector: StartCollector) -> None:
    entered = threading.Event()
    raised: list[duckdb.Error] = []

    def work(store: Store, stop: threading.Event) -> None:
        con = store.derivation()
        entered.set()
        try:
            con.execute(
                "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 1"
            )
        except duckdb.Error as e:
            raised.append(e)
            raise

    collector = start_collector(background=work, stop_seconds=2.5)
    assert entered.wait(30)
    collector.stop()
    assert [type(e) for e in raised] == [duckdb.InterruptException]
    assert not collector._left_running


def test_failing_background_work_is_shown_and_tried_again(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.serve._BACKGROUND_RETRY_SECONDS", 0.05)
    go = threading.Event()
    calls: list[int] = []

    def work(store: Store, stop: threading.Event) -> None:
        calls.append(1)
        if not go.is_set():
            raise RuntimeError("no such table")

    collector = start_collector(background=work)
    with httpx.Client(base_url=f"http://{collector.http}", trust_env=False) as client:
        deadline = time.monotonic() + 30
        while client.get("/healthz").json()["state"] != "degraded" and time.monotonic() < deadline:
            time.sleep(0.02)
        # What is sent is stored all the same: whoever balances the load must not keep senders away.
        health = client.get("/readyz")
        assert (health.status_code, health.json()["background_failure"]) == (
            200,
            "RuntimeError: no such table",
        )
        assert client.post("/v1/traces", content=body(), headers=HEADERS).status_code == 200
        go.set()
        while client.get("/healthz").json()["state"] != "ok" and time.monotonic() < deadline:
            time.sleep(0.02)
        assert client.get("/readyz").status_code == 200
    assert len(calls) >= 2


def test_stop_answers_what_is_in_flight_after_its_commit(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    collector = start_collector()
    append, entered, go = collector.store.append, threading.Event(), threading.Event()

    def slow(batch: object) -> int:
        entered.set()
        go.wait(30)
        return append(batch)  # type: ignore[arg-type]

    monkeypatch.setattr(collector.store, "append", slow)
    answers: list[int] = []
    sender = threading.Thread(
        target=lambda: answers.append(
            httpx.post(
                f"http://{collector.http}/v1/traces",
                content=body(4),
                headers=HEADERS,
                trust_env=False,
                timeout=60,
            ).status_code
        )
    )
    sender.start()
    assert entered.wait(30)
    stopping = threading.Thread(target=collector.stop)
    stopping.start()
    go.set()
    stopping.join()
    sender.join()
    assert answers == [200]
    with open_reader(tmp_path / "data") as reader:
        assert reader.sql("SELECT count(*) AS n FROM spans").to_pylist() == [{"n": 4}]


def test_a_start_stop_start_keeps_everything(start_collector: StartCollector) -> None:
    for n in (1, 2):
        collector: Collector = start_collector()
        httpx.post(f"http://{collector.http}/v1/traces", content=body(2), headers=HEADERS, trust_env=False)
        assert rows(collector, "SELECT count(*) AS n FROM spans") == [{"n": 2 * n}]
        collector.stop()


def run_module(data: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "collector",
            "--data",
            str(data),
            "--http",
            "127.0.0.1:0",
            "--grpc",
            "127.0.0.1:0",
            *options,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_module_runs_and_ends_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    with run_module(tmp_path / "data") as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("ready http=127.0.0.1:")
        process.send_signal(number)
        assert process.wait(20) == 0
    assert not (tmp_path / "data" / "door.json").exists()
    assert list((tmp_path / "data").rglob("*.wal")) == []


def test_an_unusable_folder_is_exit_code_2_and_one_line(tmp_path: Path) -> None:
    (tmp_path / "format.json").write_text(json.dumps({"version": 99}))
    with run_module(tmp_path) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors.startswith("agent-slo: data folder ")
    assert errors.count("\n") == 1
    assert os.path.exists(tmp_path / "format.json")
