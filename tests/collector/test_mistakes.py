"""Mistakes that senders and operators make, and the line that each is told."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from collector import http_protocol
from collector.seldom import Seldom
from collector.serve import Collector, CollectorError, CollectorSettings
from collector.store import Store
from tests.collector.conftest import StartCollector
from tests.collector.requests import body

PROTOBUF = {"content-type": "application/x-protobuf"}


def said(collector: Collector, what: bytes) -> bytes:
    """What the HTTP port answers to these bytes."""
    assert collector.http is not None
    with socket.create_connection((collector.http.host, collector.http.port), timeout=30) as sender:
        sender.sendall(what)
        answer = b""
        while piece := sender.recv(65_536):
            answer += piece
    return answer


@pytest.mark.parametrize(
    ("begin", "words"),
    [
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "looks like gRPC, which has a port of its own"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "looks like TLS, but the port speaks plain HTTP"),
        (b"\x00\x01hello\r\n\r\n", "is not HTTP/1.1"),
    ],
)
def test_another_protocol_on_the_http_port_is_named_once(
    collector: Collector,
    begin: bytes,
    words: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_protocol, "_seldom", Seldom(http_protocol.log))
    for _ in range(3):
        answer = said(collector, begin)
        assert answer.startswith(b"HTTP/1.1 400")
        assert words.encode() in answer
    [line] = [r.getMessage() for r in caplog.records]
    assert words in line
    assert "127.0.0.1" in line


def test_a_question_with_an_unknown_key_is_refused(collector: Collector) -> None:
    token = json.loads((collector.settings.data / "door.json").read_text())["token"]
    answer = httpx.post(
        f"http://{collector.door}/sql",
        json={"sql": "SELECT ?", "parameters": [1]},
        headers={"authorization": f"Bearer {token}"},
        trust_env=False,
    )
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "'parameters': no such key; there are 'sql' and 'params'",
    )


def test_hosts_of_this_machine(client: httpx.Client) -> None:
    for host in ("localhost.", "localhost.:4318", "LOCALHOST:1", "127.0.0.1"):
        assert client.post("/v1/traces", content=body(), headers=PROTOBUF | {"host": host}).status_code == 200
    answer = client.post("/v1/traces", content=body(), headers=PROTOBUF | {"host": "collector:4318"})
    assert answer.status_code == 421
    assert b"set collector.http (or --http) to 0.0.0.0:4318, and a token" in answer.content


@pytest.mark.parametrize("origin", ["*", "https://*.example.com", "app.example.com", "https://a.example/x"])
def test_an_origin_that_no_browser_sends_is_refused(origin: str, tmp_path: Path) -> None:
    with pytest.raises(CollectorError, match=r"write each like https://app\.example\.com"):
        CollectorSettings(data=tmp_path, origins=(origin,)).checked_origins()


@pytest.mark.skipif(os.name != "posix", reason="no modes of files")
def test_a_new_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    data = tmp_path / "deep" / "data"
    Store.open(data).close()
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (data, data / "spans", *data.rglob("*.duckdb"))}
    assert modes == {
        "data": 0o700,
        "spans": 0o700,
        "000001.duckdb": 0o600,
        "core.duckdb": 0o600,
        "work.duckdb": 0o600,
    }


@pytest.mark.skipif(os.name != "posix", reason="no modes of files")
def test_a_folder_open_to_others_is_told_at_the_start_and_left_as_it_is(
    start_collector: StartCollector, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    start_collector(data=data)
    [line] = [r.getMessage() for r in caplog.records if "other users" in r.getMessage()]
    assert f"{data}: other users of this machine may look into it (mode 0755)" in line
    assert stat.S_IMODE(data.stat().st_mode) == 0o755


@pytest.mark.skipif(os.name != "posix", reason="no modes of files")
def test_the_process_makes_its_files_for_its_owner_only(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "collector", "--data", str(tmp_path), "--http", "127.0.0.1:0"]
    tmp_path.chmod(0o755)
    with subprocess.Popen(
        [*command, "--grpc", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        http = process.stdout.readline().split()[1].removeprefix("http=")
        assert httpx.post(
            f"http://{http}/v1/traces", content=body(), headers=PROTOBUF, trust_env=False
        ).is_success
        log = tmp_path / "spans" / "000001.duckdb.wal"
        assert stat.S_IMODE(log.stat().st_mode) == 0o600
        process.terminate()
        assert process.wait(30) == 0
