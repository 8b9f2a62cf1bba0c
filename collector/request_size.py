"""How much one request may hold, told before its parser allocates anything.

Bytes alone bound nothing: two bytes are an empty span, and compressed they are next to none, while each costs the
parsers some hundred bytes of memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from time import sleep as pause
from typing import Any, Literal, TypeVar

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.nesting import structure
from collector.policy import TooManyItems
from collector.wire import NoNumber, varint

MOST_RECORDS = 200_000
"""Spans or log records of one request; also its resources, and its scopes."""
_PARTS_A_RECORD = 20
MOST_PARTS = _PARTS_A_RECORD * MOST_RECORDS
"""Attributes, values, events, links and what else one request nests: a part every 16 bytes of 64 MiB."""
MOST_IN_ONE = 200_000
"""The same within one span, log record, resource or scope, and of one list in JSON."""
LARGE = 4 << 20
"""Bytes from which a request is decoded apart from the others, with pauses."""

_LEAST_BYTES = 2  # of one message inside another: its tag and its length
_STEP = 1 << 20
_PACE_ITEMS, _PACE_FIELDS = 512, 65_536
_PAUSE_SECONDS = 0.001

T = TypeVar("T")
_Fields = dict[int, Any]
_WORDS = {"traces": "spans", "logs": "log records"}
_WAYS = {
    "traces": ("resource_spans", "scope_spans", "spans"),
    "logs": ("resource_logs", "scope_logs", "log_records"),
}
_REQUESTS: dict[str, Descriptor] = {
    "traces": ExportTraceServiceRequest.DESCRIPTOR,
    "logs": ExportLogsServiceRequest.DESCRIPTOR,
}


def allow(records: int) -> None:
    """Let one request hold this many spans or log records, as many parts in one of them, and 20 times as many parts in
    all; for the whole process. What a request may take of the memory grows with it."""
    global MOST_RECORDS, MOST_IN_ONE, MOST_PARTS
    MOST_RECORDS = MOST_IN_ONE = records
    MOST_PARTS = _PARTS_A_RECORD * records


def paced(items: Iterable[T], body: bytes) -> Iterable[T]:
    """The items, of a large body with pauses between them in which other threads have their turn."""
    return items if len(body) <= LARGE else _paced(items)


def _paced(items: Iterable[T]) -> Iterator[T]:
    for number, item in enumerate(items):
        if number % _PACE_ITEMS == _PACE_ITEMS - 1:
            pause(_PAUSE_SECONDS)
        yield item


def check_records(number: int, what: str) -> None:
    """Raises TooManyItems for more than MOST_RECORDS spans, log records, resources or scopes."""
    if number > MOST_RECORDS:
        raise TooManyItems(f"more than {MOST_RECORDS} {what} in one request: send smaller batches")


def _check_parts(number: int) -> None:
    if number > MOST_PARTS:
        raise TooManyItems(
            f"more than {MOST_PARTS} attributes, events, links and values in one request: send smaller batches"
        )


def check_list(number: int) -> None:
    """Raises TooManyItems for more than MOST_IN_ONE attributes, events, links or values together."""
    if number > MOST_IN_ONE:
        raise TooManyItems(
            f"more than {MOST_IN_ONE} attributes, events, links and values in one span, log record or resource"
        )


# ---------------------------------------------------------------- JSON


def check_json(body: bytes) -> None:
    """Raises TooManyItems for JSON text with more objects and arrays than MOST_PARTS, or twice as many values.

    Brackets and commas inside texts do not count; they are only told apart where there are very many.
    """
    if len(body) <= MOST_PARTS:
        return
    opened, commas = body.count(b"{") + body.count(b"["), body.count(b",")
    if opened > MOST_PARTS or commas > 2 * MOST_PARTS:
        opened, commas = structure(body)
        _check_parts(max(opened, commas // 2))


# ---------------------------------------------------------------- protobuf


def check_protobuf(body: bytes, signal: Literal["traces", "logs"]) -> None:
    """Raises TooManyItems for an export request in protobuf that holds more than MOST_RECORDS or MOST_PARTS.

    Walks the wire format in the parser's own order, so what is not readable ends both at the same place, and it is
    left to the parser to say so.
    """
    if len(body) <= _LEAST_BYTES * min(MOST_RECORDS, MOST_PARTS, MOST_IN_ONE):
        return
    try:
        _walk(body, signal, _may_be_parts(body, signal) > MOST_PARTS)
    except (IndexError, NoNumber):  # it ends inside a number
        return


def _may_be_parts(body: bytes, signal: str) -> int:
    """At most so many messages are in it: bytes that could begin one. Never too few."""
    if len(body) <= _LEAST_BYTES * MOST_PARTS:
        return 0
    begins = _first_bytes(signal)
    text = np.frombuffer(body, np.uint8)
    return sum(int(np.count_nonzero(begins[text[at : at + _STEP]])) for at in range(0, len(text), _STEP))


def _walk(body: bytes, signal: str, inside: bool) -> None:
    """Count; `inside` tells whether resources, scopes and records are walked too, or only counted. Those so long that
    one alone could hold too much always are.

    Levels: 1 resources, 2 scopes, 3 spans or log records, beyond these only parts.
    """
    fields, envelope = _schema(signal)
    records = [0, 0, 0, 0]
    names = ("", "resources", "scopes", _WORDS[signal])
    parts = before = steps = at = 0
    longest = _LEAST_BYTES * MOST_IN_ONE
    end = len(body)
    level = 0  # of the message being walked; that of anything inside a record or a resource is more than 3
    above: list[tuple[_Fields, int, int]] = []
    while True:
        if at >= end:
            if not above:
                return
            fields, end, level = above.pop()
            continue
        steps += 1
        if steps % _PACE_FIELDS == 0:
            pause(_PAUSE_SECONDS)
        tag = body[at]
        at += 1
        if tag > 127:
            tag, at = varint(body, at - 1)
        wire = tag & 7
        if wire == 2:
            size = body[at]
            at += 1
            if size > 127:
                size, at = varint(body, at - 1)
            if at + size > end:
                return
            inner = fields.get(tag)
            if inner is None:
                at += size
                continue
            if level < 3 and envelope[level] == tag:
                deeper = level + 1
                records[deeper] += 1
                if records[deeper] > MOST_RECORDS:
                    check_records(records[deeper], names[deeper])
                before = parts
                if deeper == 3 and not inside and size <= longest:
                    at += size
                    continue
            else:
                if level < 3:
                    before = parts
                    if not inside and size <= longest:
                        at += size
                        continue
                deeper = 4
                parts += 1
                if parts > MOST_PARTS:
                    _check_parts(parts)
                if parts - before > MOST_IN_ONE:
                    check_list(parts - before)
            if size and inner:
                above.append((fields, end, level))
                fields, end, level = inner, at + size, deeper
            else:
                at += size
        elif wire == 0:
            while body[at] > 127:
                at += 1
            at += 1
        elif wire == 1:
            at += 8
        elif wire == 5:
            at += 4
        elif wire > 5:
            return
        # 3 and 4 begin and end a group, which no parser keeps: its fields are walked as if they stood here.


@cache
def _schema(signal: str) -> tuple[_Fields, tuple[int, int, int]]:
    """The messages of a request, each as its tags and what is in them (nothing: a repeated text), and the tags that
    lead to its records."""
    made: dict[str, _Fields] = {}

    def fields(message: Descriptor) -> _Fields:
        if message.full_name in made:
            return made[message.full_name]
        found = made[message.full_name] = {}
        written = DescriptorProto()
        message.CopyToProto(written)
        repeated = {f.number for f in written.field if f.label == FieldDescriptorProto.LABEL_REPEATED}
        for field in message.fields:
            tag = field.number << 3 | 2
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                found[tag] = fields(field.message_type)
            elif field.number in repeated:
                found[tag] = {}
        return found

    request = _REQUESTS[signal]
    tags, message = [], request
    for name in _WAYS[signal]:
        field = message.fields_by_name[name]
        tags.append(field.number << 3 | 2)
        message = field.message_type
    return fields(request), (tags[0], tags[1], tags[2])


@cache
def _first_bytes(signal: str) -> Any:
    """For each byte whether the tag of a message can begin with it, padded ones too."""
    begins = np.zeros(256, np.bool_)
    waiting, seen = [_schema(signal)[0]], set()
    while waiting:
        fields = waiting.pop()
        if id(fields) in seen:
            continue
        seen.add(id(fields))
        for tag, inner in fields.items():
            begins[tag & 127] = begins[tag & 127 | 128] = True
            waiting.append(inner)
    return begins
