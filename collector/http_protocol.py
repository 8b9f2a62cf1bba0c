"""uvicorn's HTTP protocol with limits on what a client may leave unfinished."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections import Counter
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from collector.seldom import Seldom

log = logging.getLogger("agent_slo.http")

HEADER_SECONDS = 30.0
HEADER_BYTES = 65_536
SLOW_SECONDS = 2.0
LINGER_SECONDS = 5.0
_MOST_CONNECTIONS = 4_096
_MOST_FILES = 65_536
# Who came, or was answered, before whom; the loop's clock is the same for all that it does in one round.
_TURNS = itertools.count(1)

_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_GRPC = b"PRI * HTTP/2.0"
_TLS = b"\x16\x03"
_OTHER_PROTOCOLS = {
    _GRPC: "this looks like gRPC, which has a port of its own (--grpc, 4317 if nothing else is said); set the sender's "
    "endpoint to that one, or its protocol to http/protobuf",
    _TLS: "this looks like TLS, but the port speaks plain HTTP; write http:// in the sender's endpoint, or start the "
    "collector with --tls-certificate and --tls-key",
}
_seldom = Seldom(log)


def raise_file_limit() -> None:
    """Let this process open as many files as the system allows it at all, 65,536 at most."""
    with contextlib.suppress(
        ImportError, OSError, ValueError
    ):  # Windows; a system that says no: then as before
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections() -> int:
    """How many connections one server may hold: a quarter of the files that the process may open, 4,096 at most.

    The rest is for the other server, gRPC and the database files, which must never find none left.
    """
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return _MOST_CONNECTIONS
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (
        _MOST_CONNECTIONS if files == resource.RLIM_INFINITY else max(16, min(_MOST_CONNECTIONS, files // 4))
    )


class LimitedProtocol(HttpToolsProtocol):
    """Closes a connection whose request header is not complete after 30 s, is larger than 64 KiB or names two hosts.

    When there are too many connections, quiet ones of the peer that holds most are closed, the longest quiet first: a
    peer that opens connections and says nothing locks nobody out but itself.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._header_timer: asyncio.TimerHandle | None = None
        self._header_bytes = 0
        self._in_header = True
        self._messages = 0  # requests whose header is complete
        self._quiet_since = 0
        self._body_since = 0.0
        self._linger: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._quiet_since = next(_TURNS)
        self._await_header()
        if len(self.connections) > (most := most_connections()):
            self._make_room(most)

    def _make_room(self, most: int) -> None:
        """Close quiet connections, several at once, as finding them takes time; or this one when none may be closed.

        A peer makes room only among those that hold as many connections as it does, or more.
        """
        open_ = [
            c for c in self.connections if isinstance(c, LimitedProtocol) and not c.transport.is_closing()
        ]
        if len(open_) <= most:
            return
        held = Counter(c._peer for c in open_)
        quiet = [c for c in open_ if c is not self and c._quiet and held[c._peer] >= held[self._peer]]
        if not quiet:
            # Those that take their time with a body are next, for somebody else: to let a byte trickle in now and
            # then must not be a way to keep all others out.
            quiet = [c for c in open_ if c._slow and held[c._peer] > held[self._peer]]
        if not quiet:
            self.transport.write(_TOO_MANY)
            self.transport.close()
            return
        greediest = max((c._peer for c in quiet), key=lambda peer: held[peer])
        its = sorted((c for c in quiet if c._peer == greediest), key=lambda c: c._quiet_since)
        for one in its[: max(1, most // 32)]:
            one.transport.close()

    @property
    def _peer(self) -> str:
        """The other side's address; of senders behind one proxy, the proxy's."""
        return self.client[0] if self.client else ""

    @property
    def _quiet(self) -> bool:
        """Whether no request is being read, worked on or answered; the rest of an answered one counts for nothing."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def _slow(self) -> bool:
        """Whether the body of its request is not complete after some seconds."""
        unread = self.cycle is not None and not self.cycle.response_complete and self.cycle.more_body
        return unread and self.loop.time() - self._body_since > SLOW_SECONDS

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_linger()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self._messages if self._in_header else -1
        self._feed(data)
        if before != self._messages or not self._in_header:
            return  # this piece ended a header, or belonged to a body
        self._header_bytes += len(data)
        if self._header_bytes > HEADER_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def _feed(self, data: bytes) -> None:
        """As uvicorn does it, but what is no HTTP/1.1 is told by what it is and who sent it, once a minute."""
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # no web sockets here: answered as if it had not been asked
            return
        except httptools.HttpParserError:
            begin = next((b for b in _OTHER_PROTOCOLS if data.startswith(b)), b"")
            why = _OTHER_PROTOCOLS.get(begin, "this is not HTTP/1.1 as this server reads it")
            _seldom.tell(
                logging.WARNING, begin.hex(), f"refused a request of {self._peer or 'somebody'}: {why}"
            )
            self.send_400_response(why)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._header_timer is None:
            self._await_header()

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._in_header = False
        self._body_since = self.loop.time()
        self._messages += 1
        self._header_bytes = 0
        if sum(len(name) + len(value) for name, value in self.headers) > HEADER_BYTES:
            raise ValueError("header too large")  # httptools turns it into a parser error: 400 and close
        if sum(name == b"host" for name, _ in self.headers) > 1:
            raise ValueError("more than one host")  # what is checked and what is meant could differ; 400 too
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        self._quiet_since = next(_TURNS)
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body and not self.transport.is_closing():
            # Answered before its body was there. The rest may come, as closing with unread data destroys the answer
            # on its way; but not for ever.
            self._linger = self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._stop_linger()
        self._in_header = True

    def _await_header(self) -> None:
        self._in_header = True
        self._header_timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop_linger(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None
