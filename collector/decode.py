"""One request's bytes to Arrow, whatever its encoding and signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from collector import decode_json, decode_protobuf
from collector.batch import Batch, Rejected, log_table, span_table
from collector.policy import BadRequest

__all__ = ["BadRequest", "Decoded", "Encoding", "Signal", "decode"]

Signal = Literal["traces", "logs"]
Encoding = Literal["protobuf", "json"]


@dataclass
class Decoded:
    """What one request holds: rows to store, and what had to be left out or repaired."""

    batch: Batch
    rejected: Rejected


def decode(signal: Signal, encoding: Encoding, body: bytes) -> Decoded:
    """Decode one export request.

    Raises BadRequest when it cannot be read, or when it holds items and every one of them is rejected:
    many exporters ignore a partial success, none ignores a 400.
    """
    rejected = Rejected()
    module = decode_json if encoding == "json" else decode_protobuf
    if signal == "traces":
        rows = module.spans(body, rejected)
        for row in rows:
            if row[-1] is not None:
                rejected.repaired(row[-1].split(","))
        batch = Batch(spans=span_table(rows) if rows else None)
    else:
        records = module.logs(body, rejected)
        batch = Batch(logs=log_table(records) if records else None)
    if rejected.number and not batch.rows:
        raise BadRequest(f"nothing in this request can be kept: {rejected}")
    return Decoded(batch, rejected)
