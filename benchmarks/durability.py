"""Kill the collector at random moments and count what it had acknowledged and does not have any more.

    python -m benchmarks.durability              14 kills during load with frequent rotation, then SIGTERMs
    python -m benchmarks.durability --kills 50

kill -9 keeps the machine's page cache: this says nothing about a power failure.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks.agent_requests import SPANS_A_REQUEST
from benchmarks.ingest import free_port
from benchmarks.load import Load, post
from collector.reader import open_reader


@dataclass
class Toll:
    """What a series of ends cost."""

    ends: int = 0
    acked_requests: int = 0
    lost_requests: int = 0
    partial_requests: int = 0
    stored_unacknowledged: int = 0
    slowest_exit_s: float = 0.0
    slowest_start_s: float = 0.0
    span_files: int = 0


def start(data: Path, port: int, rotate_spans: int) -> tuple[subprocess.Popen[str], float]:
    """A collector that listens, and how long that took."""
    began = time.monotonic()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "collector", "--data", str(data)),
            *("--http", f"127.0.0.1:{port}", "--grpc", "127.0.0.1:0", "--rotate-spans", str(rotate_spans)),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith("ready"):
        raise SystemExit(f"the collector did not start: {line!r}, exit code {process.wait()}")
    return process, time.monotonic() - began


def run(
    data: Path, ends: int, number: signal.Signals, *, rotate_spans: int, connections: int, rnd: random.Random
) -> Toll:
    """`ends` times: start, load, end it by the signal at a random moment; then compare acks with rows."""
    toll = Toll()
    acked: list[bytes] = []
    for _ in range(ends):
        port = free_port()
        process, took = start(data, port, rotate_spans)
        toll.slowest_start_s = max(toll.slowest_start_s, took)
        loads: list[Load] = []
        sender = threading.Thread(
            target=lambda port=port, loads=loads: loads.append(
                post(port, connections=connections, seconds=2.5, processes=1)
            )
        )
        sender.start()
        time.sleep(1.0 + rnd.random() * 2.0)  # client processes need about a second to begin
        began = time.monotonic()
        process.send_signal(number)
        process.wait()
        toll.slowest_exit_s = max(toll.slowest_exit_s, time.monotonic() - began)
        sender.join()
        acked += loads[0].acked_marks
        toll.ends += 1
        if process.stdout:
            process.stdout.close()
    process, _ = start(data, free_port(), rotate_spans)
    with open_reader(data) as reader:
        table = reader.sql("SELECT left(trace_id, 16) AS mark, count(*) AS n FROM spans GROUP BY 1")
        stored = dict(zip(table.column("mark").to_pylist(), table.column("n").to_pylist(), strict=True))
    process.terminate()
    process.wait()
    wanted = Counter(mark.hex() for mark in acked)
    toll.acked_requests = len(acked)
    toll.lost_requests = sum(stored.get(mark, 0) < n * SPANS_A_REQUEST for mark, n in wanted.items())
    toll.partial_requests = sum(n % SPANS_A_REQUEST != 0 for n in stored.values())
    toll.stored_unacknowledged = sum(mark not in wanted for mark in stored)
    toll.span_files = len(list((data / "spans").glob("*.duckdb")))
    return toll


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.durability", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--kills", type=int, default=14)
    parser.add_argument("--terms", type=int, default=4)
    parser.add_argument("--rotate-spans", type=int, default=4000)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rnd = random.Random(given.seed)
    lost = 0
    report = {}
    for name, number, ends in (
        ("SIGKILL", signal.SIGKILL, given.kills),
        ("SIGTERM", signal.SIGTERM, given.terms),
    ):
        folder = Path(tempfile.mkdtemp(prefix="agent-slo-durability-"))
        try:
            toll = run(
                folder / "data",
                ends,
                number,
                rotate_spans=given.rotate_spans,
                connections=given.connections,
                rnd=rnd,
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        report[name] = vars(toll)
        lost += toll.lost_requests + toll.partial_requests
        if not given.json:
            print(
                f"{name} x {toll.ends}: {toll.acked_requests} requests acknowledged "
                f"({toll.acked_requests * SPANS_A_REQUEST:,} spans), {toll.lost_requests} lost, "
                f"{toll.partial_requests} partial, {toll.stored_unacknowledged} stored without an answer; "
                f"{toll.span_files} span files; slowest exit {toll.slowest_exit_s:.2f} s, "
                f"slowest start {toll.slowest_start_s:.2f} s"
            )
    if given.json:
        print(json.dumps(report, indent=1))
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
