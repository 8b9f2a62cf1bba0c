"""Export requests from files, for import: JSON lines, the Collector's file exporter, protobuf, gzip."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.decode import BadRequest, Encoding, Signal
from collector.decode_json import quoted
from collector.wire import repair

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_MAX_FILE = 1 << 30  # of protobuf, which is read whole
_SUFFIXES = (".jsonl", ".json", ".ndjson", ".pb", ".bin", ".binpb", ".otlp")


@dataclass(frozen=True)
class FileRequest:
    """One export request of a file: feed it to `collector.decode.decode(signal, encoding, body)`."""

    source: str
    place: int
    """Line number from 1 for JSON lines, byte offset (after decompression) for protobuf."""
    signal: Signal
    encoding: Encoding
    body: bytes


@dataclass(frozen=True)
class Problem:
    """A part of a file that holds no export request; reading goes on where that is possible."""

    source: str
    place: int
    unit: Literal["line", "byte", "file"]
    message: str

    def __str__(self) -> str:
        where = self.source if self.unit == "file" else f"{self.source}, {self.unit} {self.place}"
        return f"{where}: {self.message}"


def read_requests(paths: Iterable[str | Path]) -> Iterator[FileRequest | Problem]:
    """Every export request in these files, in order; a folder means the files in it, `-` standard input.

    Formats are told apart by content: JSON lines or one JSON document (also a Collector file exporter's
    lines), protobuf as a single request or length-delimited (varint, or the file exporter's 4 byte
    big-endian), each plain or gzip. What cannot be read is a Problem, never an exception.
    """
    for path in paths:
        if str(path) == "-":
            yield from _read(sys.stdin.buffer, "standard input")
            continue
        path = Path(path)
        if path.is_dir():
            found = sorted(p for p in path.rglob("*") if p.is_file() and _known(p))
            if not found:
                names = ", ".join(_SUFFIXES)
                yield Problem(str(path), 0, "file", f"no trace files in this folder ({names}, also .gz)")
            for file in found:
                yield from _read_file(file)
        else:
            yield from _read_file(path)


def _known(path: Path) -> bool:
    name = path.name.lower().removesuffix(".gz")
    return name.endswith(_SUFFIXES)


def _read_file(path: Path) -> Iterator[FileRequest | Problem]:
    try:
        with path.open("rb") as f:
            yield from _read(f, str(path))
    except OSError as e:
        yield Problem(str(path), 0, "file", f"cannot be read: {e.strerror}")


def _read(raw: Any, source: str) -> Iterator[FileRequest | Problem]:
    stream: io.BufferedReader[Any] = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)
    if stream.peek(2)[:2] == _GZIP:
        stream = io.BufferedReader(gzip.GzipFile(fileobj=stream))
    last = 0
    lines = True
    try:
        first = stream.peek(64).removeprefix(_BOM).lstrip()[:1]
        if not first and not stream.read(1):
            yield Problem(source, 0, "file", "empty")
        elif first in (b"{", b"["):
            for item in _json(stream, source):
                last = item.place
                yield item
        else:
            lines = False
            yield from _protobuf(stream.read(_MAX_FILE + 1), source)
    except (gzip.BadGzipFile, zlib.error, EOFError) as e:
        yield Problem(source, last, "line" if lines else "file", f"broken gzip after this: {e}")


# ------------------------------------------------------------------ JSON


def _json(stream: Iterable[bytes], source: str) -> Iterator[FileRequest | Problem]:
    """JSON lines. A document spread over lines (pretty-printed) is recognised by its first line."""
    lines = enumerate(stream, 1)
    for number, line in lines:
        text = line.removeprefix(_BOM).strip() if number == 1 else line.strip()
        if number == 1 and not _is_json(text):
            rest = [following for _, following in lines]
            whole = text + b"\n" + b"".join(rest)
            if _is_json(whole):
                yield from _documents(whole, source, 1)
                return
            lines = enumerate(rest, 2)
            yield from _documents(text, source, 1)
            for later, following in lines:
                yield from _line(following.strip(), source, later)
            return
        yield from _line(text, source, number)


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(quoted(text))
    except orjson.JSONDecodeError:
        return False
    return True


def _line(text: bytes, source: str, number: int) -> Iterator[FileRequest | Problem]:
    if text:
        yield from _documents(text, source, number)


def _documents(text: bytes, source: str, number: int) -> Iterator[FileRequest | Problem]:
    """The requests in one JSON text: an export request, one resourceSpans object, or an array of either."""
    text = quoted(text)
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as e:
        # Text faults (a lone surrogate, bytes that are not UTF-8) and too deep values are mended by the decoder.
        signal = _signal_in(text)
        if signal and any(fault in e.msg for fault in ("surrogate", "UTF-8", "depth")):
            yield FileRequest(source, number, signal, "json", text)
        else:
            yield Problem(source, number, "line", f"not JSON: {e.msg} (column {e.colno})")
        return
    if document == []:
        yield Problem(source, number, "line", "not an export request: an array with nothing in it")
    whole = isinstance(document, dict)
    for part in [document] if whole else document if isinstance(document, list) else [document]:
        if not isinstance(part, dict):
            yield Problem(source, number, "line", "not an export request: no JSON object")
            continue
        known = False
        for signal, key, inner in (
            ("traces", "resourceSpans", "scopeSpans"),
            ("logs", "resourceLogs", "scopeLogs"),
        ):
            if key in part:
                known = True
                body = text if whole else orjson.dumps(part)
                yield FileRequest(source, number, "logs" if signal == "logs" else "traces", "json", body)
            elif inner in part:
                known = True
                body = orjson.dumps({key: [part]})
                yield FileRequest(source, number, "logs" if signal == "logs" else "traces", "json", body)
        if not known and part and "resourceMetrics" not in part:
            keys = ", ".join(sorted(map(str, part))[:3])
            yield Problem(
                source,
                number,
                "line",
                f"not an export request: no resourceSpans or resourceLogs (keys: {keys})",
            )


def _signal_in(text: bytes) -> Signal | None:
    if b'"resourceSpans"' in text:
        return "traces"
    return "logs" if b'"resourceLogs"' in text else None


# ------------------------------------------------------------------ protobuf


def _protobuf(data: bytes, source: str) -> Iterator[FileRequest | Problem]:
    signal = _protobuf_signal(data)
    if signal is not None:
        yield FileRequest(source, 0, signal, "protobuf", data)
        return
    for prefix in (_varint_prefix, _four_byte_prefix):
        first = prefix(data, 0)
        if first is not None and _protobuf_signal(data[first[0] : first[0] + first[1]]) is not None:
            yield from _delimited(data, source, prefix)
            return
    if b'"resource' in data:  # JSON lines whose first line is something else
        yield from _json(io.BytesIO(data), source)
        return
    if len(data) > _MAX_FILE:
        yield Problem(source, 0, "file", f"protobuf files of more than {_MAX_FILE} bytes: split the file")
        return
    yield Problem(source, 0, "file", "neither JSON nor protobuf export requests (single or length-delimited)")


def _delimited(
    data: bytes, source: str, prefix: Callable[[bytes, int], tuple[int, int] | None]
) -> Iterator[FileRequest | Problem]:
    at = 0
    while at < len(data):
        found = prefix(data, at)
        if found is None or found[0] + found[1] > len(data):
            yield Problem(source, at, "byte", "cut off: the last request is not complete")
            return
        start, size = found
        body = data[start : start + size]
        signal = _protobuf_signal(body)
        if signal is None:
            yield Problem(source, at, "byte", f"these {size} bytes are no export request")
        else:
            yield FileRequest(source, at, signal, "protobuf", body)
        at = start + size


def _varint_prefix(data: bytes, at: int) -> tuple[int, int] | None:
    size = shift = 0
    for i in range(at, min(at + 5, len(data))):
        size |= (data[i] & 127) << shift
        shift += 7
        if data[i] < 128:
            return i + 1, size
    return None


def _four_byte_prefix(data: bytes, at: int) -> tuple[int, int] | None:
    if at + 4 > len(data):
        return None
    return at + 4, int.from_bytes(data[at : at + 4], "big")


def _protobuf_signal(body: bytes) -> Signal | None:
    """Which export request these bytes are. Traces and logs share their envelope's field numbers, so the
    items decide: a span has a 16 byte trace id in field 1, a log record a fixed64 time there."""
    traces = _parsed(ExportTraceServiceRequest(), body, "traces")
    if traces is not None and any(
        span.trace_id for r in traces.resource_spans for s in r.scope_spans for span in s.spans
    ):
        return "traces"
    logs = _parsed(ExportLogsServiceRequest(), body, "logs")
    if logs is not None and any(
        record.time_unix_nano or record.observed_time_unix_nano or record.HasField("body")
        for r in logs.resource_logs
        for s in r.scope_logs
        for record in s.log_records
    ):
        return "logs"
    return None


def _parsed(message: Any, body: bytes, kind: str) -> Any | None:
    try:
        message.ParseFromString(body)
    except DecodeError:
        try:
            message.ParseFromString(repair(body, kind)[0])
        except (DecodeError, BadRequest):
            return None
    return message
