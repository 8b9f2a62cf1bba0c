"""One request's bytes to Arrow, whatever its encoding and signal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from collector import decode_json, decode_protobuf
from collector.batch import Batch, LogRow, Rejected, SpanRow, log_table, span_table
from collector.policy import BadRequest

__all__ = ["BadRequest", "Decoded", "Encoding", "Rows", "Signal", "decode", "decode_rows", "tables"]

Signal = Literal["traces", "logs"]
Encoding = Literal["protobuf", "json"]


@dataclass
class Rows:
    """What one request holds, row by row: what to store, and what had to be left out or repaired."""

    spans: list[SpanRow]
    logs: list[LogRow]
    rejected: Rejected

    @property
    def number(self) -> int:
        return len(self.spans) + len(self.logs)


@dataclass
class Decoded:
    """The same as one table each."""

    batch: Batch
    rejected: Rejected


def decode_rows(signal: Signal, encoding: Encoding, body: bytes) -> Rows:
    """Decode one export request.

    Raises BadRequest when it cannot be read, or when it holds items and every one of them is rejected:
    many exporters ignore a partial success, none ignores a 400.
    """
    rejected = Rejected()
    module = decode_json if encoding == "json" else decode_protobuf
    if signal == "traces":
        found = Rows(module.spans(body, rejected), [], rejected)
        for row in found.spans:
            if row[-1] is not None:
                rejected.repaired(row[-1].split(","))
    else:
        found = Rows([], module.logs(body, rejected), rejected)
    if rejected.number and not found.number:
        raise BadRequest(f"nothing in this request can be kept: {rejected}")
    return found


def decode(signal: Signal, encoding: Encoding, body: bytes) -> Decoded:
    """`decode_rows` of one request as tables. Raises BadRequest as it does."""
    rows = decode_rows(signal, encoding, body)
    return Decoded(tables([rows]), rows.rejected)


def tables(requests: Sequence[Rows]) -> Batch:
    """The rows of all these requests in one table each, None without any.

    In one piece: tables in many pieces cost a third more to insert, and as much again to make.
    """
    spans = [row for request in requests for row in request.spans]
    logs = [row for request in requests for row in request.logs]
    return Batch(span_table(spans) if spans else None, log_table(logs) if logs else None)
