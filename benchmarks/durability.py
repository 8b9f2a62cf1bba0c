"""Kill the collector at random moments and count what it had acknowledged and does not have any more.

    python -m benchmarks.durability    30 kills during load, half at a rotation; SIGTERMs; a full disk
    python -m benchmarks.durability --kills 50

The full disk is a small tmpfs, which needs the right to mount one; without it that part is left out and said so.
kill -9 keeps the machine's page cache: this says nothing about a power failure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.agent_requests import SPANS_A_REQUEST
from benchmarks.load import Load, post
from collector.reader import open_reader


@dataclass
class Toll:
    """What a series of ends cost."""

    ends: int = 0
    at_rotation: int = 0
    """Ends within 50 ms after a new span file appeared."""
    refused_requests: int = 0
    acked_requests: int = 0
    lost_requests: int = 0
    partial_requests: int = 0
    stored_unacknowledged: int = 0
    slowest_exit_s: float = 0.0
    slowest_start_s: float = 0.0
    span_files: int = 0


def start(data: Path, rotate_spans: int) -> tuple[subprocess.Popen[str], int, float]:
    """A collector that listens, on which port, and how long that took."""
    began = time.monotonic()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "collector", "--data", str(data)),
            *("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--rotate-spans", str(rotate_spans)),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith("ready"):
        raise SystemExit(f"the collector did not start: {line!r}, exit code {process.wait()}")
    port = int(line.split("http=")[1].split()[0].rsplit(":", 1)[1])
    return process, port, time.monotonic() - began


def _end_at(data: Path, rnd: random.Random, *, rotation: bool) -> bool:
    """Wait for the moment of the end; whether it is one of rotation."""
    time.sleep(1.0 + rnd.random() * 1.5)  # client processes need about a second to begin
    if not rotation:
        return False
    before, deadline = len(list((data / "spans").glob("*.duckdb"))), time.monotonic() + 10
    while len(list((data / "spans").glob("*.duckdb"))) <= before:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    time.sleep(rnd.random() * 0.05)
    return True


def _sending(port: int, connections: int, seconds: float) -> tuple[threading.Thread, list[Load]]:
    loads: list[Load] = []
    sender = threading.Thread(
        target=lambda: loads.append(post(port, connections=connections, seconds=seconds, processes=1))
    )
    sender.start()
    return sender, loads


def run(
    data: Path, ends: int, number: signal.Signals, *, rotate_spans: int, connections: int, rnd: random.Random
) -> Toll:
    """`ends` times: start, load, end it by the signal; every other time at a rotation. Then compare acks with rows."""
    toll = Toll()
    acked: list[bytes] = []
    for turn in range(ends):
        process, port, took = start(data, rotate_spans)
        toll.slowest_start_s = max(toll.slowest_start_s, took)
        sender, loads = _sending(port, connections, 4.0)
        toll.at_rotation += _end_at(data, rnd, rotation=turn % 2 == 1)
        began = time.monotonic()
        process.send_signal(number)
        process.wait()
        toll.slowest_exit_s = max(toll.slowest_exit_s, time.monotonic() - began)
        sender.join()
        acked += loads[0].acked_marks
        toll.refused_requests += loads[0].refused
        toll.ends += 1
        if process.stdout:
            process.stdout.close()
    compare(data, acked, toll, rotate_spans)
    return toll


def compare(data: Path, acked: list[bytes], toll: Toll, rotate_spans: int) -> None:
    """Start once more and hold what is stored against what was acknowledged."""
    process, _, _ = start(data, rotate_spans)
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


class NoVolume(Exception):
    """No small file system can be made here; the message says why."""


@contextlib.contextmanager
def small_volume(folder: Path, size_mib: int) -> Iterator[Path]:
    """A tmpfs of this size, gone afterwards. Raises NoVolume."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        raise NoVolume(made.stderr.strip() or f"mount ended with {made.returncode}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(file: Path) -> None:
    """Write into the file until the volume is full to its last byte."""
    with file.open("wb", buffering=0) as f, contextlib.suppress(OSError):
        while f.write(bytes(1 << 16)):
            pass


def full_disk(folder: Path, *, connections: int) -> Toll:
    """Fill the volume in the middle of a load, make room, load again, kill; then compare acks with rows."""
    toll, acked = Toll(ends=1), list[bytes]()
    with small_volume(folder, 512) as volume:
        data = volume / "data"
        process, port, toll.slowest_start_s = start(data, 1_000_000)
        sender, loads = _sending(port, connections, 8.0)
        time.sleep(4.0)
        fill(volume / "ballast")
        sender.join()
        acked += loads[0].acked_marks
        toll.refused_requests += loads[0].refused
        (volume / "ballast").unlink()
        sender, loads = _sending(port, connections, 6.0)
        sender.join()
        if not toll.refused_requests or not loads[0].acked_requests:
            raise SystemExit(
                f"nothing was shown: {toll.refused_requests} requests refused by the full volume, "
                f"{loads[0].acked_requests} taken when there was room again"
            )
        acked += loads[0].acked_marks
        sender, loads = _sending(port, connections, 6.0)
        time.sleep(4.0)
        process.kill()
        process.wait()
        sender.join()
        acked += loads[0].acked_marks
        compare(data, acked, toll, 1_000_000)
    return toll


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.durability", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--terms", type=int, default=6)
    parser.add_argument("--rotate-spans", type=int, default=4000)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rnd = random.Random(given.seed)
    report: dict[str, Any] = {}
    for name, number, ends in (
        ("SIGKILL", signal.SIGKILL, given.kills),
        ("SIGTERM", signal.SIGTERM, given.terms),
    ):
        with tempfile.TemporaryDirectory(prefix="agent-slo-durability-") as folder:
            report[name] = run(
                Path(folder) / "data",
                ends,
                number,
                rotate_spans=given.rotate_spans,
                connections=given.connections,
                rnd=rnd,
            )
    with tempfile.TemporaryDirectory(prefix="agent-slo-durability-") as folder:
        try:
            report["full disk"] = full_disk(Path(folder) / "volume", connections=given.connections)
        except NoVolume as e:
            report["full disk"] = str(e)
    if given.json:
        print(json.dumps({k: v if isinstance(v, str) else vars(v) for k, v in report.items()}, indent=1))
    else:
        for name, toll in report.items():
            print(
                f"{name}: left out, {toll}"
                if isinstance(toll, str)
                else f"{name} x {toll.ends}: {_told(toll)}"
            )
    tolls = [toll for toll in report.values() if isinstance(toll, Toll)]
    return 1 if any(toll.lost_requests or toll.partial_requests for toll in tolls) else 0


def _told(toll: Toll) -> str:
    return (
        f"{toll.at_rotation} at a rotation; {toll.acked_requests} requests acknowledged "
        f"({toll.acked_requests * SPANS_A_REQUEST:,} spans), {toll.lost_requests} lost, "
        f"{toll.partial_requests} partial, {toll.stored_unacknowledged} stored without an answer, "
        f"{toll.refused_requests} refused; {toll.span_files} span files; "
        f"slowest exit {toll.slowest_exit_s:.2f} s, slowest start {toll.slowest_start_s:.2f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
