"""OTLP/JSON requests to rows.

The mapping is the specification's, not protobuf's general one: lowerCamelCase keys only, ids in hex of
either case, enums as integers, 64-bit integers as numbers or strings, unknown keys ignored.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import orjson

from collector import policy
from collector.batch import LogRow, Rejected, SpanRow
from collector.decode_protobuf import service_name
from collector.nesting import outside_strings, shallow
from collector.policy import MAX_DEPTH, TOO_DEEP, BadRequest, BadSpan
from collector.request_size import check_json, check_list, check_records, paced
from collector.values import Value, double, from_bytes, json_text

_HEX = re.compile(r"[0-9a-fA-F]*")
_INTEGER = re.compile(r"-?\d{1,20}")
_SURROGATE = re.compile(
    rb"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_DECIMAL = re.compile(r"-?\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3})?")
_BARE = re.compile(rb"NaN|-?Infinity")
# What a bare NaN becomes, so that it can be told from the text "NaN": an object is wrong wherever a number is.
_BARE_KEY = ""
_MOST_BARE = 200_000
_BOM = b"\xef\xbb\xbf"
_REPLACEMENT = "\ufffd"


def load(body: bytes) -> tuple[dict[str, Any], bool]:
    """The request object, and whether bad text in it had to be replaced by U+FFFD. Too deep values in it are null.

    Raises BadRequest when the body is not JSON or no object, TooManyItems when it holds too much.
    """
    check_json(body)
    body = body.removeprefix(_BOM)
    repaired = False
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError as e:
        text = _mend(body)
        mended = quoted(shallow(text))
        if mended is body:
            raise BadRequest(f"the body is not JSON: {e}{_cure(body)}") from e
        try:
            request, repaired = orjson.loads(mended), text is not body
        except orjson.JSONDecodeError as again:
            raise BadRequest(f"the body is not JSON: {again}{_cure(mended)}") from again
    if not isinstance(request, dict):
        raise BadRequest(f"the body is a JSON {_type(request)}, an export request is an object")
    return request, repaired


def _mend(body: bytes) -> bytes:
    """The body with invalid UTF-8 and lone surrogates replaced; the same object when it has neither."""
    try:
        body.decode()
        mended = body
    except UnicodeDecodeError:
        mended = body.decode(errors="replace").encode()
    if b"\\u" in mended:
        mended = _SURROGATE.sub(
            lambda m: m.group(0) if len(m.group(2)) == 12 else m.group(1) + b"\\ufffd", mended
        )
    return mended if mended != body else body


def quoted(body: bytes) -> bytes:
    """The body with each NaN, Infinity and -Infinity outside strings, which Python and others write though JSON does
    not know them, as an object that a doubleValue understands; the same object when it has none, or too many."""
    if not 0 < body.count(b"NaN") + body.count(b"Infinity") <= _MOST_BARE:
        return body
    found = list(_BARE.finditer(body))
    out, kept = [], 0
    for token, bare in zip(found, outside_strings(body, [m.start() for m in found]), strict=True):
        if bare:
            out += [body[kept : token.start()], b'{"":"%s"}' % token.group()]
            kept = token.end()
    return b"".join([*out, body[kept:]]) if out else body


def _cure(body: bytes) -> str:
    """What to do about numbers that JSON does not know, where that may be what is wrong."""
    return '; NaN and Infinity are written in quotes: "NaN"' if _BARE.search(body) else ""


def spans(body: bytes, rejected: Rejected) -> list[SpanRow]:
    """Rows of an ExportTraceServiceRequest in JSON; spans that cannot be kept are counted in `rejected`.

    Raises BadRequest when the body or its envelopes cannot be read.
    """
    request, repaired = load(body)
    _check_number(request, "resourceSpans", "scopeSpans", "spans", "spans")
    rows: list[SpanRow] = []
    for resource_spans in _objects(request, "resourceSpans", ""):
        resource_flags: list[str] = []
        _, resource_text, service = _resource(resource_spans, resource_flags)
        for scope_spans in _objects(resource_spans, "scopeSpans", "resourceSpans."):
            scope, scope_version = _scope(scope_spans)
            for span in paced(_array(scope_spans, "spans", "resourceSpans.scopeSpans."), body):
                flags = list(resource_flags)
                try:
                    if not isinstance(span, dict):
                        raise BadSpan(f"span is a JSON {_type(span)}, not an object")
                    row = _span(span, flags, service, scope, scope_version, resource_text)
                except BadSpan as e:
                    rejected.add(str(e))
                    continue
                if repaired and any(isinstance(v, str) and _REPLACEMENT in v for v in row):
                    row = (*row[:-1], policy.joined([*flags, policy.INVALID_UTF8]))
                rows.append(row)
    if not rows:
        _note_unknown(request, rejected, "spans", ("resourceSpans", "scopeSpans", "spans"))
    return rows


def _span(
    span: dict[str, Any], flags: list[str], service: str | None, scope: str, scope_version: str, resource: str
) -> SpanRow:
    trace_id, span_id = _hex(span, "traceId"), _hex(span, "spanId")
    reason = policy.check_trace_id(trace_id) or policy.check_span_id(span_id)
    if reason is not None:
        raise BadSpan(reason)
    start, end = policy.times(_unsigned(span, "startTimeUnixNano"), _unsigned(span, "endTimeUnixNano"), flags)
    attributes = json_text(_attributes(span.get("attributes"), flags))
    for key, flag in zip(
        ("droppedAttributesCount", "droppedEventsCount", "droppedLinksCount"), policy.DROPPED, strict=True
    ):
        if _unsigned(span, key):
            flags.append(flag)
    events = [_event(e, flags) for e in _span_objects(span, "events")]
    links = [_link(link, flags) for link in _span_objects(span, "links")]
    status = span.get("status")
    if status is None:
        status = {}
    elif not isinstance(status, dict):
        raise BadSpan(f"status is a JSON {_type(status)}, not an object")
    return (
        trace_id,
        span_id,
        policy.parent_id(_hex(span, "parentSpanId"), _unsigned(span, "flags"), flags),
        _text(span, "name"),
        policy.kind_name(_enum(span, "kind", "SPAN_KIND_", policy.KINDS, flags), flags),
        start,
        end,
        policy.status_name(_enum(status, "code", "STATUS_CODE_", policy.STATUSES, flags), flags),
        _text(status, "message"),
        service,
        scope,
        scope_version,
        _text(span, "traceState"),
        attributes,
        resource,
        json_text(events) if events else None,
        json_text(links) if links else None,
        policy.joined(flags),
    )


def logs(body: bytes, rejected: Rejected) -> list[LogRow]:
    """Rows of an ExportLogsServiceRequest in JSON; records that cannot be kept are counted in `rejected`."""
    request, repaired = load(body)
    _check_number(request, "resourceLogs", "scopeLogs", "logRecords", "log records")
    rows: list[LogRow] = []
    for resource_logs in _objects(request, "resourceLogs", ""):
        resource_flags: list[str] = []
        _, resource_text, service = _resource(resource_logs, resource_flags)
        for scope_logs in _objects(resource_logs, "scopeLogs", "resourceLogs."):
            scope, _ = _scope(scope_logs)
            for record in paced(_array(scope_logs, "logRecords", "resourceLogs.scopeLogs."), body):
                try:
                    if not isinstance(record, dict):
                        raise BadSpan(f"log record is a JSON {_type(record)}, not an object")
                    flags = list(resource_flags)
                    row = _log(record, flags, service, scope, resource_text)
                except BadSpan as e:
                    rejected.add(str(e))
                    continue
                if repaired and any(isinstance(v, str) and _REPLACEMENT in v for v in row):
                    flags.append(policy.INVALID_UTF8)
                rejected.repaired(flags)
                rows.append(row)
    if not rows:
        _note_unknown(request, rejected, "log records", ("resourceLogs", "scopeLogs", "logRecords"))
    return rows


def _log(record: dict[str, Any], flags: list[str], service: str | None, scope: str, resource: str) -> LogRow:
    body = record.get("body")
    return (
        policy.log_id(_hex(record, "traceId"), 32, flags),
        policy.log_id(_hex(record, "spanId"), 16, flags),
        policy.log_time(_unsigned(record, "timeUnixNano"), flags),
        policy.log_time(_unsigned(record, "observedTimeUnixNano"), flags),
        policy.severity(
            _text(record, "severityText"),
            _enum(record, "severityNumber", "SEVERITY_NUMBER_", policy.SEVERITIES, flags),
        ),
        _text(record, "eventName") or None,
        None if body is None else json_text(_value(body, flags)),
        json_text(_attributes(record.get("attributes"), flags)),
        resource,
        service,
        scope,
    )


def _event(event: dict[str, Any], flags: list[str]) -> dict[str, Any]:
    return {
        "name": _text(event, "name"),
        "time_ns": min(_unsigned(event, "timeUnixNano"), policy.MAX_NS),
        "attributes": _attributes(event.get("attributes"), flags),
    }


def _link(link: dict[str, Any], flags: list[str]) -> dict[str, Any]:
    return {
        "trace_id": _hex(link, "traceId"),
        "span_id": _hex(link, "spanId"),
        "attributes": _attributes(link.get("attributes"), flags),
    }


# ---------------------------------------------------------------- envelopes: an error here is the request's


def _array(parent: dict[str, Any], key: str, path: str) -> list[Any]:
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadRequest(f"{path}{key} is a JSON {_type(value)}, not an array")
    return value


def _objects(parent: dict[str, Any], key: str, path: str) -> list[dict[str, Any]]:
    values = _array(parent, key, path)
    for value in values:
        if not isinstance(value, dict):
            raise BadRequest(f"{path}{key} holds a JSON {_type(value)}, not an object")
    return values


def _resource(parent: dict[str, Any], flags: list[str]) -> tuple[dict[str, Value], str, str | None]:
    resource = parent.get("resource") or {}
    if not isinstance(resource, dict):
        raise BadRequest(f"resource is a JSON {_type(resource)}, not an object")
    try:
        found = _attributes(resource.get("attributes"), flags)
    except BadSpan as e:
        raise BadRequest(f"resource: {e}") from e
    return found, json_text(found), service_name(found)


def _scope(parent: dict[str, Any]) -> tuple[str, str]:
    scope = parent.get("scope") or {}
    if not isinstance(scope, dict):
        raise BadRequest(f"scope is a JSON {_type(scope)}, not an object")
    try:
        return _text(scope, "name"), _text(scope, "version")
    except BadSpan as e:
        raise BadRequest(f"scope: {e}") from e


def _note_unknown(
    request: dict[str, Any], rejected: Rejected, what: str, known: tuple[str, str, str]
) -> None:
    """Say of a request in which nothing was recognised which of its keys are not known. They are ignored, as the
    specification wants it, but a sender that writes all of them otherwise should learn of it."""
    if rejected.number:
        return
    resources, scopes, records = known
    unknown = [key for key in request if key != resources]
    for resource in request.get(resources) or ():
        unknown += [key for key in resource if key not in ("resource", scopes, "schemaUrl")]
        for scope in resource.get(scopes) or ():
            unknown += [key for key in scope if key not in ("scope", records, "schemaUrl")]
    if unknown:
        names = ", ".join(repr(key[:40]) for key in dict.fromkeys(unknown[:3]))
        rejected.note = f"no {what} were found: keys not known here: {names}; known are {', '.join(known)}"


def _check_number(request: dict[str, Any], resources: str, scopes: str, records: str, words: str) -> None:
    """Raises TooManyItems; what is not as it should be is left to those who read it."""
    resource_list = request.get(resources)
    if not isinstance(resource_list, list):
        return
    check_records(len(resource_list), "resources")
    scope_number = record_number = 0
    for resource in resource_list:
        scope_list = resource.get(scopes) if isinstance(resource, dict) else None
        if not isinstance(scope_list, list):
            continue
        scope_number += len(scope_list)
        check_records(scope_number, "scopes")
        for scope in scope_list:
            record_list = scope.get(records) if isinstance(scope, dict) else None
            if isinstance(record_list, list):
                record_number += len(record_list)
    check_records(record_number, words)


# ---------------------------------------------------------------- fields: an error here is the span's


def _span_objects(parent: dict[str, Any], key: str) -> list[dict[str, Any]]:
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise BadSpan(f"{key} is not an array of objects")
    check_list(len(value))
    return value


def _text(parent: dict[str, Any], key: str) -> str:
    value = parent.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadSpan(f"{key} is a JSON {_type(value)}, not a string")
    return value


def _hex(parent: dict[str, Any], key: str) -> str:
    text = _text(parent, key)
    if not _HEX.fullmatch(text):
        raise BadSpan(f"{key} is not hexadecimal")
    return text.lower()


def _integer(value: Any, name: str) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise BadSpan(f"{name} is not an integer")


def _unsigned(parent: dict[str, Any], key: str) -> int:
    value = parent.get(key)
    if value is None:
        return 0
    number = _integer(value, key)
    if not 0 <= number < 2**64:
        raise BadSpan(f"{key} is outside the unsigned 64-bit range")
    return number


def _enum(parent: dict[str, Any], key: str, prefix: str, names: Sequence[str], flags: list[str]) -> int:
    """The number of an enum, given as such or, though that is no OTLP, by its name in protobuf's general mapping."""
    value = parent.get(key)
    if value is None:
        return 0
    if not isinstance(value, str) or _INTEGER.fullmatch(value):
        return _integer(value, key)
    name = value.removeprefix(prefix).lower()
    number = next((i for i, known in enumerate(names) if known.lower() == name), None)
    flags.append(policy.UNKNOWN_ENUM if number is None else policy.ENUM_NAME)
    return number or 0


def _int_value(value: Any, flags: list[str]) -> Value:
    """An intValue, also one written with a fraction of zeros or an exponent; one with a real fraction is a double."""
    if isinstance(value, str) and not _INTEGER.fullmatch(value) and _DECIMAL.fullmatch(value):
        if abs(float(value)) >= 2**64:
            raise BadSpan("intValue is outside the signed 64-bit range")
        number = Decimal(value)
        value = int(number) if number == number.to_integral_value() else float(value)
    if isinstance(value, float) and not value.is_integer():
        flags.append(policy.JSON_NUMBER)
        return value
    found = _integer(value, "intValue")
    if not -(2**63) <= found < 2**63:
        raise BadSpan("intValue is outside the signed 64-bit range")
    return found


def _attributes(pairs: Any, flags: list[str], depth: int = 0) -> dict[str, Value]:
    if pairs is None:
        return {}
    if not isinstance(pairs, list):
        raise BadSpan(f"attributes are a JSON {_type(pairs)}, not an array")
    check_list(len(pairs))
    out: dict[str, Value] = {}
    for pair in pairs:
        if not isinstance(pair, dict):
            raise BadSpan(f"an attribute is a JSON {_type(pair)}, not an object")
        out[_text(pair, "key")] = _value(pair.get("value"), flags, depth)
    if len(out) != len(pairs):
        flags.append(policy.DUPLICATE_ATTRIBUTE)
    return out


def _value(value: Any, flags: list[str], depth: int = 0) -> Value:
    """An AnyValue object; of several kinds in one object the last one counts, as on the binary wire."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise BadSpan(f"an attribute value is a JSON {_type(value)}, not an object")
    out: Value = None
    for kind, inner in value.items():
        if inner is None:
            continue
        if kind == "stringValue":
            out = _text(value, kind)
        elif kind == "intValue":
            out = _int_value(inner, flags)
        elif kind == "boolValue":
            if not isinstance(inner, bool):
                raise BadSpan(f"boolValue is a JSON {_type(inner)}, not true or false")
            out = inner
        elif kind == "doubleValue":
            out = _double(inner, flags)
        elif kind == "bytesValue":
            out = _bytes(inner)
        elif kind in ("arrayValue", "kvlistValue"):
            out = _nested(kind, inner, flags, depth)
    return out


def _nested(kind: str, inner: Any, flags: list[str], depth: int) -> Value:
    if depth >= MAX_DEPTH:
        flags.append(TOO_DEEP)
        return None
    if not isinstance(inner, dict):
        raise BadSpan(f"{kind} is a JSON {_type(inner)}, not an object")
    values = inner.get("values")
    if kind == "kvlistValue":
        return _attributes(values, flags, depth + 1)
    if values is None:
        return []
    if not isinstance(values, list):
        raise BadSpan(f"arrayValue.values is a JSON {_type(values)}, not an array")
    check_list(len(values))
    return [_value(v, flags, depth + 1) for v in values]


def _double(value: Any, flags: list[str]) -> Value:
    if isinstance(value, dict) and list(value) == [_BARE_KEY]:  # a bare NaN, see quoted
        flags.append(policy.JSON_NUMBER)
        value = value[_BARE_KEY]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadSpan(f"doubleValue is a JSON {_type(value)}, not a number")
    try:
        return double(float(value))
    except (ValueError, OverflowError) as e:
        raise BadSpan("doubleValue is not a number") from e


def _bytes(value: Any) -> Value:
    if not isinstance(value, str):
        raise BadSpan(f"bytesValue is a JSON {_type(value)}, not a base64 string")
    text = value.replace("-", "+").replace("_", "/")
    try:
        return from_bytes(base64.b64decode(text + "=" * (-len(text) % 4), validate=True))
    except (binascii.Error, ValueError) as e:
        raise BadSpan("bytesValue is not base64") from e


def _type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {dict: "object", list: "array", str: "string", int: "number", float: "number"}
    return names.get(type(value), "value")
