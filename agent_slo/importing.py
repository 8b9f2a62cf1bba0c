"""Trace files into a data folder: through a running collector, or straight into the store."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import httpx
import orjson
import pyarrow as pa
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from agent_slo.errors import CommandError
from collector.batch import Batch
from collector.decode import BadRequest, decode
from collector.files import FileRequest, Problem, read_requests
from collector.store import Store

ROWS_A_COMMIT = 20_000
TRIES = 60
RETRYABLE = (429, 502, 503, 504)


@dataclass
class Imported:
    """What became of the files. `rows` counts spans and log records stored."""

    requests: int = 0
    rows: int = 0
    rejected: int = 0
    problems: list[str] = field(default_factory=list)

    def refuse(self, place: str, reason: str, number: int = 1) -> str:
        """Count something that was not taken; returns the line about it."""
        line = f"{place}: {reason}"
        self.rejected += number
        self.problems.append(line)
        return line


class Sink(Protocol):
    """Takes requests one by one; `finish` stores what is still held."""

    def take(self, request: FileRequest) -> tuple[int, int, str]:
        """Store one request: rows kept, items rejected, and why. Raises `BadRequest` when none is kept."""
        ...

    def finish(self) -> None:
        """Store what is still held."""
        ...


def bring_in(
    paths: Iterable[Path],
    sink: Sink,
    *,
    told: Callable[[str], None],
    progress: Callable[[Imported, int], None],
) -> Imported:
    """Read all files into the sink; what is wrong is told at once by file, line and reason, the rest goes in.

    `progress` gets the state so far and the number of bytes of this request.
    """
    state = Imported()
    for item in _in_order(paths):
        if isinstance(item, Problem):
            state.rejected += 1
            state.problems.append(str(item))
            told(str(item))
            continue
        place = f"{item.source}, {'line' if item.encoding == 'json' else 'byte'} {item.place}"
        try:
            rows, rejected, reason = sink.take(item)
        except BadRequest as error:
            told(state.refuse(place, str(error)))
        else:
            state.requests += 1
            state.rows += rows
            if rejected or (reason and not rows):  # nothing in it was recognised
                told(state.refuse(place, reason, max(1, rejected)))
        progress(state, len(item.body))
    sink.finish()
    return state


def _in_order(paths: Iterable[Path]) -> Iterator[FileRequest | Problem]:
    for path in paths:
        yield from read_requests([path])


class StoreSink:
    """Decodes here and commits many requests at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._spans: list[pa.Table] = []
        self._logs: list[pa.Table] = []
        self._rows = 0

    def take(self, request: FileRequest) -> tuple[int, int, str]:
        """Decode and hold the rows. Raises `BadRequest`."""
        decoded = decode(request.signal, request.encoding, request.body)
        if decoded.batch.spans is not None:
            self._spans.append(decoded.batch.spans)
        if decoded.batch.logs is not None:
            self._logs.append(decoded.batch.logs)
        self._rows += decoded.batch.rows
        if self._rows >= ROWS_A_COMMIT:
            self.finish()
        return decoded.batch.rows, decoded.rejected.number, str(decoded.rejected) or decoded.rejected.note

    def finish(self) -> None:
        """Commit what is held."""
        if self._rows:
            spans = pa.concat_tables(self._spans) if self._spans else None
            logs = pa.concat_tables(self._logs) if self._logs else None
            self._store.append(Batch(spans=spans, logs=logs))
        self._spans, self._logs, self._rows = [], [], 0


class ReceiverSink:
    """Posts to the OTLP/HTTP receiver of a running collector, which answers after its commit."""

    def __init__(self, address: str, token: str | None) -> None:
        self._url = f"http://{address}"
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(headers=headers, timeout=120.0, trust_env=False)

    def take(self, request: FileRequest) -> tuple[int, int, str]:
        """Post one request, waiting while the collector is busy. Raises `BadRequest` or `CommandError`."""
        kind = "application/json" if request.encoding == "json" else "application/x-protobuf"
        url = f"{self._url}/v1/{request.signal}"
        for _ in range(TRIES):
            try:
                answer = self._client.post(url, content=request.body, headers={"content-type": kind})
            except httpx.HTTPError as error:
                raise CommandError(
                    f"the collector at {self._url} stopped answering ({error}); start it and import again: "
                    "what is stored already is recognised"
                ) from error
            if answer.status_code not in RETRYABLE:
                break
            time.sleep(min(float(answer.headers.get("retry-after", 1)), 5.0))
        if answer.status_code == 401:
            raise CommandError(f"the collector at {self._url} wants a token; put it into AGENT_SLO_TOKEN")
        if answer.status_code >= 500 or answer.status_code == 429:
            raise CommandError(f"the collector at {self._url} cannot take more: {_message(answer)}")
        if answer.status_code != 200:
            raise BadRequest(_message(answer))
        rejected, reason = _partial(request, answer)
        return _items(request) - rejected, rejected, reason

    def finish(self) -> None:
        """Close the connection; the receiver holds nothing back."""
        self._client.close()


def _items(request: FileRequest) -> int:
    """Spans or log records in a request that the receiver has taken, so it can be parsed."""
    outer, inner, leaf = (
        ("resourceSpans", "scopeSpans", "spans")
        if request.signal == "traces"
        else ("resourceLogs", "scopeLogs", "logRecords")
    )
    if request.encoding == "json":
        body = orjson.loads(request.body)
        return sum(len(s.get(leaf) or ()) for r in body.get(outer) or () for s in r.get(inner) or ())
    if request.signal == "traces":
        traces = ExportTraceServiceRequest.FromString(request.body)
        return sum(len(s.spans) for r in traces.resource_spans for s in r.scope_spans)
    logs = ExportLogsServiceRequest.FromString(request.body)
    return sum(len(s.log_records) for r in logs.resource_logs for s in r.scope_logs)


def _message(answer: httpx.Response) -> str:
    try:
        if "json" in answer.headers.get("content-type", ""):
            return str(json.loads(answer.content)["message"])
        status = Status()
        status.ParseFromString(answer.content)
        return status.message or f"HTTP {answer.status_code}"
    except (ValueError, KeyError, TypeError, DecodeError):
        return f"HTTP {answer.status_code}"


def _partial(request: FileRequest, answer: httpx.Response) -> tuple[int, str]:
    """Rejected items of an accepted request, and why."""
    if request.encoding == "json":
        part = json.loads(answer.content or b"{}").get("partialSuccess") or {}
        number = part.get("rejectedSpans") or part.get("rejectedLogRecords") or 0
        return int(number), str(part.get("errorMessage", ""))
    if request.signal == "traces":
        traces = ExportTraceServiceResponse.FromString(answer.content).partial_success
        return traces.rejected_spans, traces.error_message
    logs = ExportLogsServiceResponse.FromString(answer.content).partial_success
    return logs.rejected_log_records, logs.error_message
