"""OTLP over HTTP: /v1/traces, /v1/logs, /v1/metrics; health and the collector's own counters."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from collector import answers
from collector.access import Access
from collector.answers import CONTENT_TYPE, JSON, PROTOBUF
from collector.decode import BadRequest, Encoding, Signal
from collector.inflate import TooLarge, inflate
from collector.intake import Intake, Outcome

_ENCODINGS: dict[str, Encoding] = {PROTOBUF: "protobuf", "application/protobuf": "protobuf", JSON: "json"}
_INFLATE_INLINE = 65_536
_DRAIN_SECONDS = 5.0
_DRAIN_BYTES = 256 << 20
_BODY_SECONDS = 60.0
_STALL_SECONDS = 10.0
_STALL_BYTES = 65_536
_PREFLIGHT = {
    "access-control-allow-methods": "POST",
    "access-control-allow-headers": "authorization, content-type, content-encoding",
    "access-control-max-age": "600",
}
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_FOREIGN = (
    "this address is for local senders: use the host 127.0.0.1 or localhost in the endpoint. To take spans from "
    "containers and other machines set collector.http (or --http) to 0.0.0.0:4318, and a token"
)
_STOPPING = "the collector is stopping, send again"
READY = ("ok", "degraded")
"""States in which what is sent is stored."""


class Refusal(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


def busy(message: str) -> Refusal:
    """503 that every exporter retries; a long Retry-After would make them drop, so 1 to 3 s, spread."""
    return Refusal(503, message, {"retry-after": str(random.randint(1, 3))})


class OtlpHttp:
    """The ASGI application of the HTTP receiver."""

    def __init__(
        self,
        intake: Intake,
        *,
        max_bytes: int,
        access: Access,
        check_host: bool,
        origins: frozenset[str] = frozenset(),
        health: Callable[[], dict[str, Any]],
    ) -> None:
        self.intake = intake
        self.counters = intake.counters
        self.max_bytes = max_bytes
        self.access = access
        self.check_host = check_host
        self.origins = origins
        self.health = health
        self.closing = False
        self._given_up = False
        self._reading: set[asyncio.Timeout] = set()
        self._inflaters = ThreadPoolExecutor(2, thread_name_prefix="inflate")
        self.app = Starlette(
            routes=[
                Route("/v1/traces", _Export(self, "traces")),
                Route("/v1/logs", _Export(self, "logs")),
                Route("/v1/metrics", _Export(self, None)),
                Route("/healthz", self._healthz, methods=["GET"]),
                Route("/readyz", self._readyz, methods=["GET"]),
                Route("/metrics", self._metrics, methods=["GET"]),
            ],
            exception_handlers={404: _not_found, 405: _not_allowed},
        )

    def _foreign(self, request: Request, *, guarded: bool) -> Response | None:
        """The refusal of a host name that is not this machine's: a web page that had its own name point here."""
        if guarded or not self.check_host or host_name(request.headers.get("host", "")) in LOOPBACK_HOSTS:
            return None
        return PlainTextResponse(f"{_FOREIGN}\n", 421)

    async def _healthz(self, request: Request) -> Response:
        refused = self._foreign(request, guarded=self.access.needed("ingest"))
        return refused or JSONResponse(self.health())

    async def _readyz(self, request: Request) -> Response:
        if (refused := self._foreign(request, guarded=self.access.needed("ingest"))) is not None:
            return refused
        health = self.health()
        # Ready means: send here. Spans are stored as safely while the derivation lags or fails, and a sender that is
        # kept away loses what it cannot hold.
        return JSONResponse(health, 200 if health["state"] in READY else 503)

    async def _metrics(self, request: Request) -> Response:
        if (refused := self._foreign(request, guarded=self.access.needed("read"))) is not None:
            return refused
        if self.access.needed("read"):
            may = self.access.allows(request.headers.get("authorization", ""), "read")
            if may != "yes":
                words = "a bearer token of the role read is needed\n"
                return PlainTextResponse(
                    words, 401 if may == "unknown" else 403, {"www-authenticate": "Bearer"}
                )
        return PlainTextResponse(self.counters.prometheus(), media_type="text/plain; version=0.0.4")

    async def export(self, signal: Signal | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one export request; `signal` None means metrics, which are read and dropped."""
        headers = dict(reversed(scope["headers"]))
        content_type = headers.get(b"content-type", b"").decode("latin-1").split(";")[0].strip().lower()
        encoding = _ENCODINGS.get(content_type)
        label = signal or "metrics"
        incoming = _Body(receive)
        cors = self._cors(headers)
        if cors and scope["method"] == "OPTIONS":
            await _respond(send, 204, b"", "text/plain", {**cors, **_PREFLIGHT}, drain=incoming)
            return
        try:
            self._admit(scope["method"], headers, content_type, encoding)
            assert encoding is not None
            try:
                outcome = await self._take(signal, encoding, headers, incoming)
            except MemoryError as e:
                raise self._full("memory") from e
            body = answers.success(label, encoding, outcome.rejected)
            await _respond(send, 200, body, CONTENT_TYPE[encoding], cors)
            self.counters.add("requests", transport="http", signal=label, answer="200")
        except Refusal as r:
            self.counters.add("requests", transport="http", signal=label, answer=str(r.status))
            error_encoding: Encoding = encoding or "json"
            body = answers.error(r.status, r.message, error_encoding)
            # Who was too slow with the body is not waited for again, nor anybody by a collector that ends.
            slow = {"connection": "close"} if r.status == 408 or self._given_up else {}
            await _respond(
                send,
                r.status,
                body,
                CONTENT_TYPE[error_encoding],
                {**r.headers, **cors, **slow},
                drain=None if slow else incoming,
            )

    def _cors(self, headers: dict[bytes, bytes]) -> dict[str, str]:
        """The headers that let a page of a listed origin read the answer; none for any other."""
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin.lower() not in self.origins:
            return {}
        return {"access-control-allow-origin": origin, "vary": "origin"}

    def _admit(
        self, method: str, headers: dict[bytes, bytes], content_type: str, encoding: Encoding | None
    ) -> None:
        """Everything that can be refused before a byte of the body is read."""
        if self.access.needed("ingest"):
            may = self.access.allows(headers.get(b"authorization", b""), "ingest")
            if may == "unknown":
                raise Refusal(
                    401,
                    "a bearer token is needed: send the header 'authorization: Bearer TOKEN'",
                    {"www-authenticate": "Bearer"},
                )
            if may == "denied":
                raise Refusal(403, "this token is not for sending; use one of the role ingest")
        elif b"origin" in headers and not self._cors(headers):
            raise Refusal(403, "requests from web pages are not accepted here")
        elif self.check_host and host_name(headers.get(b"host", b"").decode("latin-1")) not in LOOPBACK_HOSTS:
            raise Refusal(421, _FOREIGN)
        if method != "POST":
            raise Refusal(405, f"{method} is not an export: use POST", {"allow": "POST"})
        if encoding is None:
            raise Refusal(
                415,
                f"content type {content_type or '(none)'!r}: use application/x-protobuf or application/json",
            )

    async def _take(
        self, signal: Signal | None, encoding: Encoding, headers: dict[bytes, bytes], incoming: _Body
    ) -> Outcome:
        compression = headers.get(b"content-encoding", b"identity").decode("latin-1").strip().lower()
        if compression not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise Refusal(415, f"content encoding {compression!r}: use gzip, deflate or none")
        declared = headers.get(b"content-length", b"0")
        length = int(declared) if declared.isdigit() else 0
        if length > self.max_bytes:
            raise self._too_large()
        if self.closing:
            raise busy(_STOPPING)
        budget = self.intake.budget
        if budget.requests >= budget.max_requests:
            raise self._full("requests")
        held, entered = 0, False
        budget.reading += 1
        try:
            # What was declared only refuses early: it is charged as it arrives, or a few senders that send
            # nothing would keep all others out.
            if budget.bytes + length > budget.max_bytes:
                raise self._full("bytes")
            body = bytearray()
            try:
                async with asyncio.timeout(_BODY_SECONDS) as limit:
                    with self._may_give_up(limit):
                        while incoming.more:
                            async for piece in _window(incoming):
                                body += piece
                                if len(body) > self.max_bytes:
                                    raise self._too_large()
                                if not budget.take(len(body) - held):
                                    raise self._full("bytes")
                                held = len(body)
            except TimeoutError as e:
                if self._given_up:
                    raise busy(_STOPPING) from e
                raise Refusal(408, f"the body was not complete after {_BODY_SECONDS:.0f} s") from e
            if not budget.enter():
                raise self._full("requests")
            budget.reading -= 1
            entered = True
            data = bytes(body)
            del body
            if compression not in ("", "identity"):
                data = await self._inflate(data, compression.removeprefix("x-"))
                if len(data) > held:
                    if not budget.take(len(data) - held):
                        raise self._full("bytes")
                    held = len(data)
            if signal is None:
                self.counters.add("dropped_metrics")
                return Outcome("stored")
            outcome = await self.intake.submit(signal, encoding, data)
        finally:
            budget.give(held)
            if entered:
                budget.leave()
            else:
                budget.reading -= 1
        if outcome.kind == "bad":
            raise Refusal(400, outcome.message)
        if outcome.kind == "failed":
            raise Refusal(400, outcome.message)
        if outcome.kind == "large":
            raise Refusal(413, outcome.message)
        if outcome.kind == "busy":
            self.counters.add("refused", reason="store")
            raise busy(outcome.message)
        return outcome

    @contextlib.contextmanager
    def _may_give_up(self, limit: asyncio.Timeout) -> Iterator[None]:
        self._reading.add(limit)
        try:
            yield
        finally:
            self._reading.discard(limit)

    def give_up(self) -> None:
        """Answer all whose body is still coming with 503: the stop has no more time for them. From the event loop."""
        self._given_up = True
        now = asyncio.get_running_loop().time()
        for limit in self._reading:
            if not limit.expired():
                limit.reschedule(now)

    async def _inflate(self, data: bytes, compression: str) -> bytes:
        try:
            if len(data) <= _INFLATE_INLINE:
                # Small as sent is not small inside: a stream that grows is handed to a thread.
                limit = min(16 * _INFLATE_INLINE, self.max_bytes)
                with contextlib.suppress(TooLarge):
                    return inflate(data, compression, limit)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._inflaters, inflate, data, compression, self.max_bytes)
        except BadRequest as e:
            raise Refusal(400, str(e)) from e
        except TooLarge as e:
            raise self._too_large() from e

    def _too_large(self) -> Refusal:
        self.counters.add("too_large", reason="bytes")
        return Refusal(413, f"more than {self.max_bytes} bytes in one request: send smaller batches")

    def _full(self, what: str) -> Refusal:
        self.counters.add("refused", reason=f"queue_{what}")
        return busy("the collector is behind: send again")


class _Body:
    """The request body piece by piece; `more` is False once it was read to its end."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.more = True

    async def read(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.more = False
            raise Refusal(400, "the sender went away")
        self.more = message.get("more_body", False)
        piece: bytes = message.get("body", b"")
        return piece


async def _window(incoming: _Body) -> AsyncIterator[bytes]:
    """The pieces of the next _STALL_BYTES or the rest. Raises Refusal when they do not come within _STALL_SECONDS."""
    until = asyncio.get_running_loop().time() + _STALL_SECONDS
    came = 0
    while incoming.more and came < _STALL_BYTES:
        stalled = asyncio.timeout_at(until)
        try:
            async with stalled:
                piece = await incoming.read()
        except TimeoutError as e:
            if not stalled.expired():
                raise
            raise Refusal(
                408, f"the body stalled: less than {_STALL_BYTES} bytes in {_STALL_SECONDS:.0f} s"
            ) from e
        came += len(piece)
        yield piece


class _Export:
    def __init__(self, http: OtlpHttp, signal: Signal | None) -> None:
        self.http, self.signal = http, signal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.http.export(self.signal, scope, receive, send)


def host_name(header: str) -> str:
    """The name or address in a Host header, lower case, without the port and the dot that ends a full name."""
    host = header.lower()
    if host.startswith("["):
        return host[1:].split("]")[0]
    return (host.rsplit(":", 1)[0] if host.count(":") == 1 else host).removesuffix(".")


async def _respond(
    send: Send,
    status: int,
    body: bytes,
    content_type: str,
    headers: dict[str, str],
    drain: _Body | None = None,
) -> None:
    """Send an answer. With `drain` the rest of the request is read and thrown away before the end, since
    closing a socket with unread data would destroy the answer on its way."""
    fields = {"content-type": content_type, "content-length": str(len(body)), **headers}
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(k.encode("latin-1"), v.encode("latin-1")) for k, v in fields.items()],
        }
    )
    more = drain is not None and drain.more
    await send({"type": "http.response.body", "body": body, "more_body": more})
    if drain is None or not more:
        return
    seen = 0
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while drain.more and seen < _DRAIN_BYTES:
                seen += len(await drain.read())
    except (TimeoutError, Refusal):
        pass  # a slow sender has its answer, one that went away needs none
    await send({"type": "http.response.body", "body": b""})


def _request_encoding(request: Request) -> Encoding:
    content_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    return _ENCODINGS.get(content_type, "json")


async def _not_found(request: Request, exc: Exception) -> Response:
    return _status(request, 404, f"{request.url.path}: nothing here; traces go to /v1/traces")


async def _not_allowed(request: Request, exc: Exception) -> Response:
    return _status(request, 405, f"{request.method} is not possible on {request.url.path}")


def _status(request: Request, status: int, message: str) -> Response:
    encoding = _request_encoding(request)
    return Response(answers.error(status, message, encoding), status, media_type=CONTENT_TYPE[encoding])
