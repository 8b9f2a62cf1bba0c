"""uvicorn's HTTP protocol with limits on what a client may leave unfinished."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 30.0
HEADER_BYTES = 65_536

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class LimitedProtocol(HttpToolsProtocol):
    """Closes a connection whose request header is not complete after 30 s, is larger than 64 KiB or names two hosts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._header_timer: asyncio.TimerHandle | None = None
        self._header_bytes = 0
        self._in_header = True
        self._messages = 0  # requests whose header is complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_header()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self._messages if self._in_header else -1
        super().data_received(data)
        if before != self._messages or not self._in_header:
            return  # this piece ended a header, or belonged to a body
        self._header_bytes += len(data)
        if self._header_bytes > HEADER_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._header_timer is None:
            self._await_header()

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._in_header = False
        self._messages += 1
        self._header_bytes = 0
        if sum(len(name) + len(value) for name, value in self.headers) > HEADER_BYTES:
            raise ValueError("header too large")  # httptools turns it into a parser error: 400 and close
        if sum(name == b"host" for name, _ in self.headers) > 1:
            raise ValueError("more than one host")  # what is checked and what is meant could differ; 400 too
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_header = True

    def _await_header(self) -> None:
        self._in_header = True
        self._header_timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None
