"""What was acknowledged is there after any end."""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import httpx
import pytest

from collector.reader import open_reader
from tests.collector.requests import body
from tests.collector.test_serve import HEADERS, run_module

SPANS = 20


class Senders:
    """Threads that post until the collector has gone; `acked` names every acknowledged request."""

    def __init__(self, address: str, round_: int) -> None:
        self.acked: list[str] = []
        self.other: list[int] = []
        self._address, self._round = address, round_
        self._threads = [threading.Thread(target=self._send, args=(i,)) for i in range(4)]
        for thread in self._threads:
            thread.start()

    def _send(self, sender: int) -> None:
        with httpx.Client(base_url=f"http://{self._address}", trust_env=False, timeout=30) as client:
            for i in range(100_000):
                name = f"{self._round}-{sender}-{i}"
                try:
                    answer = client.post("/v1/traces", content=body(SPANS, name=name), headers=HEADERS)
                except httpx.HTTPError:
                    return
                if answer.status_code != 200:
                    self.other.append(answer.status_code)
                    return
                self.acked.append(name)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


def start(data: Path) -> tuple[subprocess.Popen[str], str]:
    process = run_module(data, "--rotate-spans", "400")
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("ready http=")
    return process, line.split("http=")[1].split()[0]


def end(process: subprocess.Popen[str], number: signal.Signals) -> int:
    process.send_signal(number)
    code = process.wait(30)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    return code


def stored(data: Path) -> dict[str, int]:
    with open_reader(data) as reader:
        table = reader.sql("SELECT name, count(*) AS n FROM spans GROUP BY name")
        assert reader.skipped == []
    return dict(zip(table.column("name").to_pylist(), table.column("n").to_pylist(), strict=True))


def test_killed_ten_times_under_load_with_rotation(tmp_path: Path) -> None:
    data = tmp_path / "data"
    moments = random.Random(7)
    acked: list[str] = []
    for round_ in range(10):
        process, address = start(data)
        senders = Senders(address, round_)
        # by what was acknowledged, so that a busy machine is killed in the middle of its work as well
        wanted, deadline = moments.randrange(0, 40), time.monotonic() + 30
        while len(senders.acked) < wanted and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(moments.random() * 0.05)
        end(process, signal.SIGKILL)
        senders.join()
        assert senders.other == []
        acked += senders.acked
    found = stored(data)  # by files, without the repair a collector would do
    assert len(acked) > 50
    assert [name for name in acked if found.get(name) != SPANS] == []
    assert [n for n in found.values() if n != SPANS] == [], "a request was stored in part"
    process, _ = start(data)
    assert stored(data) == found
    assert end(process, signal.SIGTERM) == 0
    assert len(list((data / "spans").glob("*.duckdb"))) > 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_under_load_loses_nothing_and_ends_in_time(tmp_path: Path, number: signal.Signals) -> None:
    data = tmp_path / "data"
    process, address = start(data)
    senders = Senders(address, 0)
    deadline = time.monotonic() + 30
    while len(senders.acked) < 20 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert end(process, number) == 0
    senders.join()
    assert set(senders.other) <= {503}
    found = stored(data)
    assert [name for name in senders.acked if found.get(name) != SPANS] == []
    assert list(data.rglob("*.wal")) == []


def test_a_resent_request_leaves_rows_that_can_be_told_apart(tmp_path: Path) -> None:
    process, address = start(tmp_path / "data")
    again = body(3)
    with httpx.Client(base_url=f"http://{address}", trust_env=False) as client:
        for _ in range(2):
            assert client.post("/v1/traces", content=again, headers=HEADERS).status_code == 200
    with open_reader(tmp_path / "data") as reader:
        [row] = reader.sql(
            "SELECT count(*) AS n, count(DISTINCT (trace_id, span_id)) AS spans, count(DISTINCT seq) AS seqs "
            "FROM spans"
        ).to_pylist()
    assert row == {"n": 6, "spans": 3, "seqs": 6}
    assert end(process, signal.SIGTERM) == 0
