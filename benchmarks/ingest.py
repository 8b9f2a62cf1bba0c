"""What receiving costs, against the bars it must hold and against the naive way, in one run and one JSON.

    python -m benchmarks.ingest                       everything, a minute for each load: some fifteen minutes
    python -m benchmarks.ingest --seconds 15          shorter
    python -m benchmarks.ingest --only paced visible  some of it
    python -m benchmarks.ingest --only steady         at a little more than the bars' rates, then until all is derived
    python -m benchmarks.ingest --json > figures.json

Real HTTP posts from processes of their own, 200 only after COMMIT, `agent-slo collect` with its derivation running.
Client and server share the machine: compare what was measured in the same run, and treat differences under 20 % as
noise. The bars are for two cores without other work.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.agent_requests import SPANS_A_REQUEST, renewed, request
from benchmarks.load import Load, post
from benchmarks.servers import MIB, Server, free_port, server
from collector.decode import decode
from collector.reader import ReaderError, open_reader
from collector.store import Store

_DISK_REQUESTS = 500
_DRAIN_SECONDS = 240.0
_DRAIN_POLL_SECONDS = 1.0
_PACED, _VISIBLE = 1_000, 5_000  # spans a second
# Offered spans a second, by policy: a little more than the bars, so that keeping up holds them.
_STEADY = {"keep": 24_000, "redact": 16_000}
# The probe asks through the door, on the same processors: more often, and it would measure itself.
_PROBE_POLL_SECONDS = 0.25
_IDLE_SECONDS = 5.0
ROWS = ("idle", "disk", "paced", "visible", "steady", "full")


@dataclass
class Figures:
    """One load on one server. Latencies from the first byte sent to the whole answer read."""

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
    """The derivation included, where it runs, until the load ended."""
    peak_rss_mib: float


@dataclass(frozen=True)
class Bar:
    """A number that must be held."""

    row: str
    what: str
    holds: Callable[[float], bool]
    bar: str


BARS = (
    Bar("steady_keep", f"durable spans/s of {_STEADY['keep']:,} offered", lambda v: v >= 22_000, ">= 22,000"),
    Bar(
        "steady_redact",
        f"durable spans/s of {_STEADY['redact']:,} offered, redacted",
        lambda v: v >= 15_000,
        ">= 15,000",
    ),
    Bar("steady_ack_max", "worst ack in ms in these two loads, with rotation", lambda v: v < 400, "< 400"),
    Bar("steady_drain", "seconds until all is derived after the later of them", lambda v: v <= 120, "<= 120"),
    Bar("keep", "durable spans/s, derivation running", lambda v: v >= 22_000, ">= 22,000"),
    Bar("redact", "durable spans/s, derivation running", lambda v: v >= 15_000, ">= 15,000"),
    Bar("addresses", "durable spans/s, mail addresses in every request", lambda v: v >= 15_000, ">= 15,000"),
    Bar("paced_p99", "ack p99 in ms at 1,000 spans/s", lambda v: v < 50, "< 50"),
    Bar("visible_max", "seconds from ack to a row of tasks at 5,000 spans/s, worst", lambda v: v < 2, "< 2"),
    Bar("start", "seconds from start to ready", lambda v: v < 3, "< 3"),
    Bar("idle_rss", "idle memory in MiB", lambda v: v < 250, "< 250"),
    Bar("disk", "bytes on disk a span with 2 KB bodies", lambda v: v < 500, "< 500"),
)


def collector_command(folder: Path, port: int, redaction: str = "redact") -> list[str | Path]:
    """`agent-slo collect` over a folder of its own, with its configuration in it."""
    folder.mkdir(parents=True)
    (folder / "agent-slo.yaml").write_text(f"collector:\n  redaction: {redaction}\n")
    return [
        *(sys.executable, "-m", "agent_slo", "collect", "--data", folder, "--http", f"127.0.0.1:{port}"),
        *("--grpc", f"127.0.0.1:{free_port()}"),
    ]


def naive_command(folder: Path, port: int, how: str) -> list[str | Path]:
    """One transaction a request into one default file."""
    folder.mkdir(parents=True)
    command: list[str | Path] = [sys.executable, "-m", "benchmarks.naive_server"]
    command += ["--database", folder / "naive.duckdb", "--port", str(port)]
    return [*command, "--rows"] if how == "rows" else command


def load_on(running: Server, port: int, what: str, **load: Any) -> Figures:
    """Post to a running server; `load` as `post` takes it."""
    before = running.cpu_s()
    seen = post(port, **load)
    return _figures(what, seen, running.cpu_s() - before, running.peak)


def _figures(what: str, load: Load, cpu: float, rss: int) -> Figures:
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
        round(rss / MIB),
    )


def steady(folder: Path, given: argparse.Namespace) -> tuple[list[Figures], dict[str, float]]:
    """A little more than the rates that must be held, derivation running; then until everything is derived."""
    runs, found = [], {"steady_drain": 0.0, "steady_ack_max": 0.0}
    for policy, rate in _STEADY.items():
        one, drained = _loaded(
            folder / f"steady-{policy}", policy, f"agent-slo collect, {policy}, {rate:,} spans/s offered",
            connections=given.connections, seconds=given.seconds, rate=rate, personal=0.2,
        )  # fmt: skip
        runs.append(one)
        found[f"steady_{policy}"] = one.spans_per_s
        found["steady_ack_max"] = max(found["steady_ack_max"], one.ack_max_ms)
        found["steady_drain"] = max(found["steady_drain"], drained)
    return runs, found


def full(folder: Path, given: argparse.Namespace) -> tuple[list[Figures], dict[str, float]]:
    """Full speed on 64 connections: by policy, and the naive way.

    How long the acks and the derivation take then is told, and no bar: the faster the collector, the more there is to
    derive, and with every connection always busy an ack takes as long as a round of all of them.
    """
    runs, found = [], {"full_drain": 0.0, "full_ack_max": 0.0}
    for name, policy, personal in (
        ("keep", "keep", 0.0),
        ("redact", "redact", 0.0),
        ("addresses", "redact", 1.0),
    ):
        one, drained = _loaded(
            folder / name, policy, f"agent-slo collect, {name}, full speed",
            connections=given.connections, seconds=given.seconds, personal=personal,
        )  # fmt: skip
        runs.append(one)
        found |= {name: one.spans_per_s, "full_ack_max": max(found["full_ack_max"], one.ack_max_ms)}
        found["full_drain"] = max(found["full_drain"], drained)
    if given.naive != "none":
        port = free_port()
        with server(naive_command(folder / "naive", port, given.naive), port) as running:
            what = f"naive: one transaction a request ({given.naive})"
            runs.append(load_on(running, port, what, connections=given.connections, seconds=given.seconds))
        found["ratio"] = round(found["redact"] / max(1.0, runs[-1].spans_per_s), 1)
    return runs, found


def _loaded(data: Path, policy: str, what: str, **load: Any) -> tuple[Figures, float]:
    """One load on a collector of its own, all of it stored; and the seconds until all of it was derived."""
    port = free_port()
    with server(collector_command(data, port, policy), port) as running:
        one = load_on(running, port, what, **load)
        drained = wait_derived(data)
        stored = _number(data, "SELECT count(*) FROM spans")
    if stored < one.spans:
        raise SystemExit(f"{what}: {one.spans} spans acknowledged, {stored} stored")
    shutil.rmtree(data)
    return one, drained


def paced(folder: Path, given: argparse.Namespace) -> tuple[list[Figures], dict[str, float]]:
    """Acks at a steady 1,000 spans/s."""
    seconds, runs = min(given.seconds, 30.0), []
    port = free_port()
    load = {"connections": 8, "seconds": seconds, "rate": _PACED, "processes": 1, "personal": 0.2}
    with server(collector_command(folder / "paced", port), port) as running:
        runs.append(load_on(running, port, f"agent-slo collect at {_PACED:,} spans/s", **load))
    found = {"paced_p99": runs[0].ack_p99_ms}
    if given.naive != "none":
        port = free_port()
        with server(naive_command(folder / "naive-paced", port, given.naive), port) as running:
            runs.append(load_on(running, port, f"naive ({given.naive}) at {_PACED:,} spans/s", **load))
        found["naive_paced_p99"] = runs[1].ack_p99_ms
    return runs, found


def visible(folder: Path, given: argparse.Namespace) -> tuple[list[Figures], dict[str, float]]:
    """From the ack of a request to its task in `tasks`, at a steady 5,000 spans/s; a probe each second.

    The probe looks every quarter of a second, so that it is late by as much.
    """
    data, port = folder / "visible", free_port()
    waits: list[float] = []
    ended = threading.Event()

    def probe() -> None:
        template = request()
        while not ended.wait(1.0):
            body = renewed(template, os.urandom(8))
            traces = {
                s.trace_id.hex()
                for s in ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans
            }
            sent = urllib.request.Request(
                f"http://127.0.0.1:{port}/v1/traces", body, {"content-type": "application/x-protobuf"}
            )
            with urllib.request.urlopen(sent, timeout=30):
                acked = time.monotonic()
            names = ", ".join(f"'{trace}'" for trace in traces)
            asked = (
                "SELECT count(DISTINCT t.task_id) FROM tasks t JOIN runs r USING (task_id) "
                f"WHERE r.trace_id IN ({names})"
            )
            while _number(data, asked) < len(traces) and time.monotonic() - acked < 60:
                time.sleep(_PROBE_POLL_SECONDS)
            waits.append(time.monotonic() - acked)

    with server(collector_command(data, port), port) as running:
        prober = threading.Thread(target=probe)
        prober.start()
        run = load_on(
            running, port, f"agent-slo collect at {_VISIBLE:,} spans/s",
            connections=16, seconds=min(given.seconds, 30.0), rate=_VISIBLE, processes=1,
        )  # fmt: skip
        ended.set()
        prober.join()
    waits.sort()
    return [run], {
        "visible_p50": round(waits[len(waits) // 2], 2),
        "visible_max": round(waits[-1], 2),
        "visible_probes": float(len(waits)),
    }


def idle(folder: Path, given: argparse.Namespace) -> tuple[list[Figures], dict[str, float]]:
    """Start to ready, and memory without load."""
    port = free_port()
    with server(collector_command(folder / "idle", port), port) as running:
        time.sleep(_IDLE_SECONDS)
        return [], {"start": round(running.start_s, 2), "idle_rss": round(running.rss() / MIB)}


def disk(folder: Path, given: argparse.Namespace) -> tuple[list[Figures], dict[str, float]]:
    """Bytes on disk a span, of requests that share no text (the load repeats its bodies)."""
    data = folder / "disk"
    with contextlib.closing(Store.open(data)) as store:
        for seed in range(_DISK_REQUESTS):
            store.append(decode("traces", "protobuf", request(seed)).batch)
    size = sum(f.stat().st_size for f in (data / "spans").rglob("*") if f.is_file())
    return [], {"disk": round(size / (_DISK_REQUESTS * SPANS_A_REQUEST))}


def _number(data: Path, sql: str) -> int:
    """One number through the door; -1 while what is asked for does not exist yet."""
    try:
        with open_reader(data) as reader:
            value = reader.sql(sql).column(0)[0].as_py()
    except ReaderError:
        return -1
    return -1 if value is None else int(value)


def wait_derived(data: Path) -> float:
    """Seconds until everything stored is derived; the limit when that takes longer, which no bar allows."""
    started = time.monotonic()
    lag = "SELECT (SELECT max(seq) FROM spans) - (SELECT max(derived_seq) FROM pipeline) <= 0"
    while time.monotonic() - started < _DRAIN_SECONDS:
        if _number(data, lag) == 1:
            break
        time.sleep(_DRAIN_POLL_SECONDS)
    return round(time.monotonic() - started, 1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingest", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), help="which rows to measure")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each load")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--naive", choices=["arrow", "rows", "none"], default="arrow")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    runs: list[Figures] = []
    found: dict[str, float] = {}
    folder = Path(tempfile.mkdtemp(prefix="agent-slo-bench-"))
    try:
        for row, measure in (
            ("idle", idle),
            ("disk", disk),
            ("paced", paced),
            ("visible", visible),
            ("steady", steady),
            ("full", full),
        ):
            if row in given.only:
                more, figures = measure(folder, given)
                runs += more
                found |= figures
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    bars = [
        {
            "what": bar.what,
            "row": bar.row,
            "bar": bar.bar,
            "measured": found[bar.row],
            "holds": bar.holds(found[bar.row]),
        }
        for bar in BARS
        if bar.row in found
    ]
    if given.json:
        machine = {"cores": os.cpu_count(), "load_average": os.getloadavg(), "python": sys.version.split()[0]}
        print(
            json.dumps(
                {"machine": machine, "bars": bars, "figures": found, "runs": [asdict(r) for r in runs]},
                indent=1,
            )
        )
    else:
        for run in runs:
            print(
                f"{run.what}\n"
                f"  {run.spans_per_s:,} spans/s durable ({run.spans:,} in {run.seconds} s)\n"
                f"  ack p50 {run.ack_p50_ms} ms, p99 {run.ack_p99_ms} ms, max {run.ack_max_ms} ms; "
                f"{run.refused} refused, {run.failed} failed\n"
                f"  server CPU {run.server_cpu_us_a_span} us a span, peak RSS {run.peak_rss_mib} MiB"
            )
        for line in bars:
            print(
                f"{'holds ' if line['holds'] else 'BROKEN'} {line['what']}: {line['measured']} ({line['bar']})"
            )
        if "full_drain" in found:
            print(
                f"at full speed: worst ack {found['full_ack_max']} ms, "
                f"all derived {found['full_drain']} s later at most"
            )
        if "ratio" in found:
            print(f"`redact` against the naive way in this run: {found['ratio']} x")
    return 0 if all(line["holds"] for line in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
