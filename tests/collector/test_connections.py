"""Connections that say nothing: who must go when there are too many."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from collector import http_protocol, otlp_http
from collector.serve import Collector
from tests.collector.conftest import StartCollector

MOST = 6
GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
UNFINISHED = (
    b"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-protobuf\r\n"
    b"Content-Length: 100\r\n\r\nx"
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peers are told apart by 127.0.0.N")


@pytest.fixture
def crowded(start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch) -> Collector:
    monkeypatch.setattr(http_protocol, "most_connections", lambda: MOST)
    return start_collector()


@pytest.fixture
def peers() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def connect(collector: Collector, peers: contextlib.ExitStack, peer: int, say: bytes = b"") -> socket.socket:
    """A connection from 127.0.0.`peer`; with `say` something is sent."""
    assert collector.http is not None
    s = peers.enter_context(
        socket.create_connection(
            ("127.0.0.1", collector.http.port), timeout=30, source_address=(f"127.0.0.{peer}", 0)
        )
    )
    s.sendall(say)
    return s


def answered(s: socket.socket) -> int:
    """Status of the next answer, read whole enough; 0 when the connection was closed without one."""
    try:
        return int((s.recv(4096) or b"HTTP/1.1 0  ")[9:12])
    except ConnectionResetError:
        return 0


def asks(s: socket.socket) -> int:
    """The status that a request on this connection gets; 0 when it is closed."""
    try:
        s.sendall(GET)
    except OSError:
        return 0
    return answered(s)


def test_a_peer_that_says_nothing_locks_out_only_itself(
    crowded: Collector, peers: contextlib.ExitStack
) -> None:
    mine = connect(crowded, peers, 3, GET)
    assert answered(mine) == 200
    silent = [connect(crowded, peers, 2) for _ in range(3 * MOST)]
    late = connect(crowded, peers, 4, GET)
    assert answered(late) == 200
    assert asks(mine) == 200  # quiet for longer than any of them
    assert answered(silent[0]) == 0  # the longest quiet goes first
    assert asks(silent[-1]) == 200


def test_requests_at_work_are_never_closed_for_another(
    crowded: Collector, peers: contextlib.ExitStack
) -> None:
    working = [connect(crowded, peers, 2, UNFINISHED) for _ in range(MOST)]
    while "agent_slo_collector_queue_requests 6\n" not in crowded.counters.prometheus():
        time.sleep(0.01)
    assert answered(connect(crowded, peers, 2, GET)) == 503
    working[0].close()
    for s in working[1:]:
        s.sendall(b"\xff" * 99)
        assert answered(s) == 400  # no request, but read to its end and answered


def test_who_holds_more_makes_no_room_among_those_who_hold_less(
    crowded: Collector, peers: contextlib.ExitStack
) -> None:
    quiet = connect(crowded, peers, 3, GET)
    assert answered(quiet) == 200
    for _ in range(MOST - 1):
        connect(crowded, peers, 2, UNFINISHED)
    while "agent_slo_collector_queue_requests 5\n" not in crowded.counters.prometheus():
        time.sleep(0.01)
    assert answered(connect(crowded, peers, 2, GET)) == 503
    assert asks(quiet) == 200


def test_who_is_slow_with_a_body_makes_room_for_others(
    crowded: Collector, peers: contextlib.ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "SLOW_SECONDS", -1.0)
    slow = [connect(crowded, peers, 2, UNFINISHED) for _ in range(MOST)]
    while "agent_slo_collector_queue_requests 6\n" not in crowded.counters.prometheus():
        time.sleep(0.01)
    assert answered(connect(crowded, peers, 2, GET)) == 503  # not for one of its own
    assert answered(connect(crowded, peers, 3, GET)) == 200
    assert answered(slow[0]) == 0
    slow[-1].sendall(b"\xff" * 99)
    assert answered(slow[-1]) == 400


def test_after_a_408_the_connection_is_closed_though_bytes_still_come(
    collector: Collector, peers: contextlib.ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_http, "_STALL_SECONDS", 0.3)
    s = connect(collector, peers, 2, UNFINISHED)
    trickle = threading.Event()

    def send() -> None:
        with contextlib.suppress(OSError):
            while not trickle.wait(0.02):
                s.sendall(b"\xff")

    sender = threading.Thread(target=send)
    sender.start()
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := s.recv(4096):
            got += piece
    trickle.set()
    sender.join()
    assert got.startswith(b"HTTP/1.1 408")
    assert b"connection: close\r\n" in got


def test_the_rest_of_an_answered_request_is_not_waited_for_long(
    collector: Collector, peers: contextlib.ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "LINGER_SECONDS", 0.2)
    unread = UNFINISHED.replace(b"/v1/traces", b"/elsewhere")
    s = connect(collector, peers, 2, unread)
    assert answered(s) == 404
    assert s.recv(1) == b""
    # Whose body comes to its end in time goes on with the same connection.
    monkeypatch.setattr(http_protocol, "LINGER_SECONDS", 0.5)
    s = connect(collector, peers, 2, unread)
    assert answered(s) == 404
    s.sendall(b"x" * 99)
    time.sleep(1.0)
    assert asks(s) == 200


def test_the_rest_of_an_answered_request_is_quiet(crowded: Collector, peers: contextlib.ExitStack) -> None:
    answered_ones = [
        connect(crowded, peers, 2, UNFINISHED.replace(b"/v1/traces", b"/elsewhere")) for _ in range(MOST)
    ]
    assert [answered(s) for s in answered_ones] == [404] * MOST
    assert answered(connect(crowded, peers, 3, GET)) == 200


@pytest.mark.parametrize(("files", "most"), [(1024, 256), (40, 16), (1_000_000, 4_096), (-1, 4_096)])
def test_the_most_connections_leave_files_for_the_store(
    monkeypatch: pytest.MonkeyPatch, files: int, most: int
) -> None:
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert resource.RLIM_INFINITY == -1
    assert http_protocol.most_connections() == most


def test_the_file_limit_is_raised_as_far_as_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    asked: list[tuple[int, int]] = []
    for held in ((256, 9_000), (1024, -1), (100_000, 200_000), (-1, -1)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, held=held: held)
        monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
        http_protocol.raise_file_limit()
    assert asked == [(9_000, 9_000), (65_536, -1)]
