"""How fast spans become durable: real HTTP posts from separate processes, 200 only after COMMIT.

    python -m benchmarks.ingest                  the collector, then the naive way, and their ratio
    python -m benchmarks.ingest --redaction keep      without looking for secrets
    python -m benchmarks.ingest --derive         `agent-slo collect`, derivation running, and its drain time
    python -m benchmarks.ingest --seconds 60     longer

Client and server share the machine; treat differences under about 20 % as noise.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from benchmarks.agent_requests import SPANS_A_REQUEST, request
from benchmarks.load import Load, post
from collector.decode import decode
from collector.reader import ReaderError, open_reader
from collector.store import Store

_MIB = 1 << 20
_DISK_REQUESTS = 500


@dataclass
class Figures:
    """One run. Latencies are from the first byte sent to the whole answer read."""

    what: str
    seconds: float
    spans: int
    spans_per_s: float
    ack_p50_ms: float
    ack_p99_ms: float
    ack_max_ms: float
    refused: int
    failed: int
    server_cpu_us_a_span: float
    peak_rss_mib: float
    stored_rows: int | None
    drain_s: float | None = None


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextlib.contextmanager
def server(command: list[str], port: int) -> Iterator[psutil.Process]:
    """A server process that answers /readyz; ended gracefully, or killed after 20 s."""
    child = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 60
        while True:
            if child.poll() is not None:
                raise SystemExit(f"server ended with {child.returncode}: {' '.join(command)}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1):
                    break
            except OSError:
                if time.monotonic() > deadline:
                    raise SystemExit("server not ready after 60 s") from None
                time.sleep(0.05)
        yield psutil.Process(child.pid)
    finally:
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


class _Rss(threading.Thread):
    def __init__(self, process: psutil.Process) -> None:
        super().__init__(daemon=True)
        self.process, self.peak, self.ended = process, 0, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.2):
            with contextlib.suppress(psutil.NoSuchProcess):
                self.peak = max(self.peak, self.process.memory_info().rss)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _figures(what: str, load: Load, cpu: float, rss: int, rows: int | None) -> Figures:
    spans = load.acked_spans
    return Figures(
        what,
        round(load.seconds, 1),
        spans,
        round(spans / load.seconds),
        round(load.percentile(0.5), 1),
        round(load.percentile(0.99), 1),
        round(load.latencies[-1] if load.latencies else 0.0, 1),
        load.refused,
        load.failed,
        round(cpu / max(1, spans) * 1e6, 1),
        round(rss / _MIB),
        rows,
    )


def _size(*folders: Path) -> int:
    return sum(f.stat().st_size for folder in folders for f in folder.rglob("*") if f.is_file())


def measure_collector(data: Path, given: argparse.Namespace) -> Figures:
    port = free_port()
    address = ["--data", str(data), "--http", f"127.0.0.1:{port}", "--grpc", f"127.0.0.1:{free_port()}"]
    if given.derive:
        program = Path(sys.executable).with_name("agent-slo")
        if not program.exists():
            raise SystemExit("--derive needs the agent-slo command; install the project first")
        command = [str(program), "collect", *address]
    else:
        command = [sys.executable, "-m", "collector", "--redaction", given.redaction, *address]
    drain = None
    with server(command, port) as process:
        rss = _Rss(process)
        rss.start()
        before = _cpu(process)
        load = post(
            port,
            connections=given.connections,
            seconds=given.seconds,
            pause=given.pause,
            personal=given.personal,
        )
        cpu = _cpu(process) - before
        if given.derive:
            drain = _wait_derived(data, given.drain_seconds)
        with open_reader(data) as reader:
            rows = int(reader.sql("SELECT count(*) AS n FROM spans").column("n")[0].as_py())
        rss.ended.set()
    figures = _figures(
        "agent-slo collect (derivation on)" if given.derive else f"collector, {given.redaction}",
        load,
        cpu,
        rss.peak,
        rows,
    )
    if rows < load.acked_spans:
        raise SystemExit(f"{load.acked_spans} spans acknowledged, {rows} stored")
    figures.drain_s = drain
    return figures


def measure_disk(data: Path, requests: int) -> int:
    """Bytes on disk a span, of `requests` requests that share no text (the load repeats its bodies)."""
    with contextlib.closing(Store.open(data)) as store:
        for seed in range(requests):
            store.append(decode("traces", "protobuf", request(seed)).batch)
    return round(_size(data / "spans") / (requests * SPANS_A_REQUEST))


def _wait_derived(data: Path, limit: float) -> float | None:
    """Seconds until everything stored is derived, None when that takes more than `limit` seconds."""
    started = time.monotonic()
    while time.monotonic() - started < limit:
        try:
            with open_reader(data) as reader:
                lag = reader.sql(
                    "SELECT (SELECT max(seq) FROM spans) - (SELECT max(derived_seq) FROM pipeline) AS lag"
                )
            behind = lag.column("lag")[0].as_py()
        except ReaderError:
            behind = None
        if behind is not None and behind <= 0:
            return round(time.monotonic() - started, 1)
        time.sleep(0.25)
    print(f"the derivation did not catch up within {limit:g} s", file=sys.stderr)
    return None


def measure_naive(folder: Path, given: argparse.Namespace) -> Figures:
    port = free_port()
    database = folder / "naive.duckdb"
    command = [
        sys.executable,
        "-m",
        "benchmarks.naive_server",
        "--database",
        str(database),
        "--port",
        str(port),
    ]
    if given.naive == "rows":
        command.append("--rows")
    with server(command, port) as process:
        rss = _Rss(process)
        rss.start()
        before = _cpu(process)
        load = post(
            port,
            connections=given.connections,
            seconds=given.seconds,
            pause=given.pause,
            personal=given.personal,
        )
        cpu = _cpu(process) - before
        rss.ended.set()
    what = "naive: one transaction a request, " + (
        "executemany row by row" if given.naive == "rows" else "one Arrow insert each"
    )
    return _figures(what, load, cpu, rss.peak, None)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingest", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between requests of a connection")
    parser.add_argument("--redaction", choices=["keep", "redact", "drop-content"], default="redact")
    parser.add_argument(
        "--personal", type=float, default=0.2, help="share of requests whose messages hold mail addresses"
    )
    parser.add_argument("--derive", action="store_true", help="run the whole `agent-slo collect`")
    parser.add_argument("--drain-seconds", type=float, default=180.0)
    parser.add_argument("--naive", choices=["arrow", "rows", "none"], default="arrow")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="agent-slo-bench-"))
    try:
        runs = [measure_collector(folder / "data", given)]
        if given.naive != "none":
            (folder / "naive").mkdir()
            runs.append(measure_naive(folder / "naive", given))
        disk = measure_disk(folder / "disk", _DISK_REQUESTS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    ratio = round(runs[0].spans_per_s / max(1, runs[1].spans_per_s), 1) if len(runs) > 1 else None
    if given.json:
        print(
            json.dumps(
                {"runs": [asdict(r) for r in runs], "ratio": ratio, "disk_bytes_a_span": disk}, indent=1
            )
        )
        return
    print(f"{given.connections} connections, {SPANS_A_REQUEST} spans a request, 200 only after COMMIT\n")
    for run in runs:
        print(
            f"{run.what}\n"
            f"  {run.spans_per_s:,} spans/s durable ({run.spans:,} in {run.seconds} s)\n"
            f"  ack p50 {run.ack_p50_ms} ms, p99 {run.ack_p99_ms} ms, max {run.ack_max_ms} ms; "
            f"{run.refused} refused, {run.failed} failed\n"
            f"  server CPU {run.server_cpu_us_a_span} us a span, peak RSS {run.peak_rss_mib} MiB"
            + (f"\n  derivation drained in {run.drain_s} s" if run.drain_s is not None else "")
        )
    print(f"\ndisk: {disk} bytes a span ({_DISK_REQUESTS * SPANS_A_REQUEST:,} spans of distinct text)")
    if ratio is not None:
        print(f"ratio in this run: {ratio} x")


if __name__ == "__main__":
    main()
