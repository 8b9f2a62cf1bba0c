"""Client processes that post export requests over HTTP and count an answer only when it is 200.

Each process keeps a number of keep-alive connections busy, one request in flight on each.
"""

from __future__ import annotations

import asyncio
import multiprocessing as mp
import os
import time
from dataclasses import dataclass, field
from multiprocessing.queues import Queue as ProcessQueue

from benchmarks.agent_requests import SPANS_A_REQUEST, renewed, request, with_addresses


@dataclass
class Load:
    """What the clients saw. Latencies in milliseconds, sorted."""

    seconds: float = 0.0
    acked_requests: int = 0
    refused: int = 0
    failed: int = 0
    latencies: list[float] = field(default_factory=list)
    acked_marks: list[bytes] = field(default_factory=list)
    """First eight bytes of the trace ids of every acknowledged request."""

    @property
    def acked_spans(self) -> int:
        return self.acked_requests * SPANS_A_REQUEST

    def percentile(self, share: float) -> float:
        return (
            self.latencies[min(len(self.latencies) - 1, int(len(self.latencies) * share))]
            if self.latencies
            else 0.0
        )


async def _connection(
    port: int, bodies: list[bytes], until: float, first: float, interval: float, load: Load
) -> None:
    writer = None
    turn = os.getpid() % len(bodies)
    due = first
    while time.monotonic() < until:
        if interval:
            # By the clock, not after the last answer: a slow answer must not slow the senders down.
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due += interval
        mark = os.urandom(8)
        turn = (turn + 1) % len(bodies)
        body = renewed(bodies[turn], mark)
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
            started = time.monotonic()
            writer.write(
                b"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-protobuf\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body)
            )
            writer.write(body)
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head[9:12])
            length = 0
            for line in head.split(b"\r\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            await reader.readexactly(length)
            if status == 200:
                load.acked_requests += 1
                load.latencies.append((time.monotonic() - started) * 1000)
                load.acked_marks.append(mark)
            elif status == 503:
                load.refused += 1
                await asyncio.sleep(1.0)
            else:
                load.failed += 1
        except (OSError, asyncio.IncompleteReadError, ValueError):
            load.failed += 1
            if writer is not None:
                writer.close()
                writer = None
            await asyncio.sleep(0.05)
    if writer is not None:
        writer.close()


async def _connections(
    port: int, number: int, bodies: list[bytes], until: float, interval: float, load: Load
) -> None:
    began = time.monotonic()
    await asyncio.gather(
        *(
            _connection(port, bodies, until, began + interval * i / number, interval, load)
            for i in range(number)
        )
    )


def _process(
    port: int,
    connections: int,
    seconds: float,
    interval: float,
    personal: float,
    start: mp.synchronize.Barrier,  # type: ignore[name-defined]
    out: ProcessQueue[Load],
) -> None:
    bodies = [request() for _ in range(48)]
    for i in range(round(len(bodies) * personal)):
        bodies[i] = with_addresses(bodies[i])
    load = Load()
    start.wait()
    began = time.monotonic()
    try:
        import uvloop

        run = uvloop.run
    except ImportError:
        run = asyncio.run
    run(_connections(port, connections, bodies, began + seconds, interval, load))
    load.seconds = time.monotonic() - began
    out.put(load)


def post(
    port: int,
    *,
    connections: int,
    seconds: float,
    processes: int = 2,
    rate: float = 0.0,
    personal: float = 0.0,
) -> Load:
    """Post for `seconds`: as fast as `connections` connections go, or at a steady `rate` in spans a second.

    `personal`: share of the requests whose messages hold mail addresses.
    """
    interval = connections * SPANS_A_REQUEST / rate if rate else 0.0
    context = mp.get_context("spawn")
    start = context.Barrier(processes)
    out: ProcessQueue[Load] = context.Queue()
    share = [connections // processes + (i < connections % processes) for i in range(processes)]
    children = [
        context.Process(target=_process, args=(port, n, seconds, interval, personal, start, out))
        for n in share
    ]
    for child in children:
        child.start()
    total = Load()
    for _ in children:
        part = out.get(timeout=seconds + 120)
        total.seconds = max(total.seconds, part.seconds)
        total.acked_requests += part.acked_requests
        total.refused += part.refused
        total.failed += part.failed
        total.latencies += part.latencies
        total.acked_marks += part.acked_marks
    for child in children:
        child.join()
    total.latencies.sort()
    return total
