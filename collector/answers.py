"""Bodies of OTLP answers: export responses, and google.rpc.Status on every error."""

from __future__ import annotations

import orjson
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.batch import Rejected
from collector.decode import Encoding

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
CONTENT_TYPE: dict[Encoding, str] = {"protobuf": PROTOBUF, "json": JSON}

# Of a message to a sender; the specification allows an answer 4 MiB.
_MOST_WORDS = 4000
# HTTP status -> google.rpc.Code
_CODE = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 408: 4, 413: 8, 415: 3, 421: 7, 431: 8, 500: 13, 503: 14}


def success(signal: str, encoding: Encoding, rejected: Rejected | None) -> bytes:
    """The export response. partial_success is set when something was left out, or changed: then with 0 rejected."""
    message = rejected.message() if rejected is not None else ""
    if rejected is None or not message:
        return b"{}" if encoding == "json" else b""
    if len(message) > _MOST_WORDS:
        message = message[:_MOST_WORDS] + "..."
    if encoding == "json":
        key = "rejectedLogRecords" if signal == "logs" else "rejectedSpans"
        return orjson.dumps({"partialSuccess": {key: str(rejected.number), "errorMessage": message}})
    if signal == "logs":
        logs = ExportLogsServiceResponse()
        logs.partial_success.rejected_log_records = rejected.number
        logs.partial_success.error_message = message
        return bytes(logs.SerializeToString())
    traces = ExportTraceServiceResponse()
    traces.partial_success.rejected_spans = rejected.number
    traces.partial_success.error_message = message
    return bytes(traces.SerializeToString())


def error(http_status: int, message: str, encoding: Encoding) -> bytes:
    """A google.rpc.Status in the request's encoding."""
    code = _CODE.get(http_status, 2)
    if encoding == "json":
        return orjson.dumps({"code": code, "message": message})
    return bytes(Status(code=code, message=message).SerializeToString())


def retry_status(message: str, seconds: int) -> bytes:
    """Status UNAVAILABLE with RetryInfo, for the trailer grpc-status-details-bin."""
    detail = AnyMessage()
    detail.Pack(RetryInfo(retry_delay=Duration(seconds=seconds)))
    return bytes(Status(code=14, message=message, details=[detail]).SerializeToString())
