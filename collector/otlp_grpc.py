"""OTLP over gRPC, with raw bytes: undecodable requests must become INVALID_ARGUMENT, not UNKNOWN.

A call is taken before its message: who may send and whether there is room is decided while the message still waits at
its sender, held back by HTTP/2 flow control. So no number of calls can fill the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from collector import answers
from collector.decode import Signal
from collector.intake import Intake
from collector.settings import Address, CollectorError, CollectorSettings

_SERVICES: dict[str, Signal | None] = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": None,
}
# The official JavaScript exporter never retries on gRPC, so a full queue makes it wait, well inside the
# usual deadline of 10 s.
_WAIT_SECONDS = 7.0
_RETRY_SECONDS = 1
# A message must come in this time to keep its place among those being read; a slower one needs one of the few places
# for slow ones, so that some senders that hang do not stop all others.
_PROMPT_SECONDS = 2.0
_MESSAGE_SECONDS = 15.0
_SLOW = 4


class OtlpGrpc(grpc.GenericRpcHandler):  # type: ignore[misc]
    """The gRPC receiver: traces and logs are stored, metrics answered and dropped."""

    def __init__(self, intake: Intake, settings: CollectorSettings, address: Address) -> None:
        self.intake = intake
        self.counters = intake.counters
        self.access = settings.access()
        self.closing = False
        # How large a message is shows only when it is there, so each one being read counts as the largest allowed:
        # together at most one more queue full.
        self._reading = asyncio.Semaphore(max(4, min(64, settings.queue_bytes // settings.max_request_bytes)))
        self._slow = asyncio.Semaphore(_SLOW)
        self._health = health.aio.HealthServicer()
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", settings.max_request_bytes),
                ("grpc.so_reuseport", 0),
                # What a call may send before it is read: 64 KiB, and no guesses of the bandwidth that raise it.
                ("grpc.http2.bdp_probe", 0),
                ("grpc.max_concurrent_streams", 256),
                # Clients ping every 10-30 s; by default that is answered with GOAWAY too_many_pings.
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", 1000),
                ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
                ("grpc.http2.max_ping_strikes", 0),
            ],
        )
        self._server.add_generic_rpc_handlers((self,))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self.port = self._bind(address, settings)
        self.address = Address(address.host, self.port)

    def _bind(self, address: Address, settings: CollectorSettings) -> int:
        try:
            if settings.tls_certificate is not None and settings.tls_key is not None:
                authorities = settings.tls_client_ca.read_bytes() if settings.tls_client_ca else None
                credentials = grpc.ssl_server_credentials(
                    [(settings.tls_key.read_bytes(), settings.tls_certificate.read_bytes())],
                    authorities,
                    require_client_auth=authorities is not None,
                )
                return int(self._server.add_secure_port(str(address), credentials))
            return int(self._server.add_insecure_port(str(address)))
        except RuntimeError as e:
            raise CollectorError(
                f"port {address.port} on {address.host} cannot be used for OTLP/gRPC, another process may "
                "have it; choose another with --grpc HOST:PORT"
            ) from e

    def service(self, details: Any) -> Any:
        """The handler of a method, None for unknown ones (UNIMPLEMENTED)."""
        if details.method not in _SERVICES:
            return None
        # On the wire the same as one with a single message, but it is read when the handler asks for it.
        return grpc.stream_unary_rpc_method_handler(self._handler(_SERVICES[details.method]))

    def _handler(self, signal: Signal | None) -> Callable[[Any, Any], Awaitable[bytes]]:
        async def export(_messages: Any, context: Any) -> bytes:
            return await self._export(signal, context)

        return export

    async def _export(self, signal: Signal | None, context: Any) -> bytes:
        label = signal or "metrics"
        if self.access.needed("ingest"):
            given = dict(context.invocation_metadata() or ()).get("authorization", "")
            may = self.access.allows(given, "ingest")
            if may == "denied":
                self._count(label, "PERMISSION_DENIED")
                await context.abort(
                    grpc.StatusCode.PERMISSION_DENIED,
                    "this token is not for sending; use one of the role ingest",
                )
            if may == "unknown":
                self._count(label, "UNAUTHENTICATED")
                await context.abort(
                    grpc.StatusCode.UNAUTHENTICATED,
                    "a bearer token is needed: send the metadata 'authorization: Bearer TOKEN'",
                )
        deadline = self._deadline(context)
        budget = self.intake.budget
        if not await self._wait(budget.enter, deadline):
            await self._behind(label, context)
        held = 0
        try:
            body, held = await self._message(label, context, deadline)
            if signal is None:
                self.counters.add("dropped_metrics")
                self._count(label, "OK")
                return b""
            outcome = await self.intake.submit(signal, "protobuf", body)
        except MemoryError:  # nothing is wrong with the request
            self.counters.add("refused", reason="store")
            await self._unavailable(label, "no memory for this request right now; send it again", context)
        finally:
            budget.give(held)
            budget.leave()
        if outcome.kind in ("bad", "failed"):
            self._count(label, "INVALID_ARGUMENT")
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, outcome.message)
        if outcome.kind == "large":
            self._count(label, "RESOURCE_EXHAUSTED")
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, outcome.message)
        if outcome.kind == "busy":
            self.counters.add("refused", reason="store")
            await self._unavailable(label, outcome.message, context)
        self._count(label, "OK")
        return answers.success(label, "protobuf", outcome.rejected)

    async def _message(self, label: str, context: Any, deadline: float) -> tuple[bytes, int]:
        """The call's message and the bytes taken from the budget for it."""
        place = self._reading
        try:
            async with asyncio.timeout_at(deadline):
                await place.acquire()
        except TimeoutError:
            await self._behind(label, context)
        coming = asyncio.ensure_future(context.read())
        try:
            if not (await asyncio.wait((coming,), timeout=_PROMPT_SECONDS))[0] and not self._slow.locked():
                await self._slow.acquire()
                place.release()
                place = self._slow
                await asyncio.wait((coming,), timeout=_MESSAGE_SECONDS - _PROMPT_SECONDS)
            if not coming.done():
                self._count(label, "DEADLINE_EXCEEDED")
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the message did not come in time")
            body = coming.result()
            if body is grpc.aio.EOF:
                self._count(label, "INVALID_ARGUMENT")
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the call came without a message")
            size = len(body)
            if not await self._wait(lambda: self.intake.budget.take(size), deadline):
                await self._behind(label, context)
            return body, size
        finally:
            coming.cancel()
            place.release()

    def _deadline(self, context: Any) -> float:
        """Time of the event loop until which this caller may be let wait."""
        remaining = context.time_remaining()
        wait = _WAIT_SECONDS if remaining is None else min(_WAIT_SECONDS, remaining - 1.0)
        return asyncio.get_running_loop().time() + wait

    async def _wait(self, admit: Callable[[], bool], deadline: float) -> bool:
        """Whether there was room before the deadline."""
        while not self.closing:
            if admit():
                return True
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(0.05)
        return False

    async def _behind(self, label: str, context: Any) -> None:
        self.counters.add("refused", reason="queue")
        await self._unavailable(label, "the collector is behind: send again", context)

    async def _unavailable(self, label: str, message: str, context: Any) -> None:
        self._count(label, "UNAVAILABLE")
        details = answers.retry_status(message, _RETRY_SECONDS)
        await context.abort(grpc.StatusCode.UNAVAILABLE, message, (("grpc-status-details-bin", details),))

    def _count(self, label: str, answer: str) -> None:
        self.counters.add("requests", transport="grpc", signal=label, answer=answer)

    async def start(self) -> None:
        await self._server.start()
        await self.tell_health(True)

    async def tell_health(self, serving: bool) -> None:
        """What grpc.health.v1 says from now on."""
        status = health_pb2.HealthCheckResponse
        await self._health.set("", status.SERVING if serving else status.NOT_SERVING)

    async def stop(self, grace: float) -> None:
        """Refuse new calls, let those in flight finish for `grace` seconds."""
        self.closing = True
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace)
