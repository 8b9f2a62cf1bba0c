"""Mending protobuf bytes that the runtime refuses whole, so that one bad span does not cost its request.

Only run after a failed parse. It walks the wire format with the few message types an export request is
made of, replaces bytes that are not UTF-8 in string fields by U+FFFD, and empties attribute values that
are nested deeper than the runtime reads.
"""

from __future__ import annotations

from collector.policy import INVALID_UTF8, MAX_DEPTH, TOO_DEEP, BadRequest

# Field number -> "s" for a string, else the message type of a length-delimited field. Other fields pass.
_VALUE = {1: "s", 5: "array", 6: "kvlist"}
_MESSAGES: dict[str, dict[int, str]] = {
    "traces": {1: "resource_spans"},
    "resource_spans": {1: "resource", 2: "scope_spans", 3: "s"},
    "scope_spans": {1: "scope", 2: "span", 3: "s"},
    "span": {3: "s", 5: "s", 9: "pair", 11: "event", 13: "link", 15: "status"},
    "event": {2: "s", 3: "pair"},
    "link": {3: "s", 4: "pair"},
    "status": {2: "s"},
    "logs": {1: "resource_logs"},
    "resource_logs": {1: "resource", 2: "scope_logs", 3: "s"},
    "scope_logs": {1: "scope", 2: "record", 3: "s"},
    "record": {3: "s", 5: "value", 6: "pair", 12: "s"},
    "resource": {1: "pair"},
    "scope": {1: "s", 2: "s", 3: "pair"},
    "pair": {1: "s", 2: "value"},
    "value": _VALUE,
    "array": {1: "value"},
    "kvlist": {1: "pair"},
}
# The runtime stops at 100 nested messages; a span's value begins at 5, each level of a map costs 3.
_MAX_VALUES = min(MAX_DEPTH, 28)


class _Walk:
    def __init__(self) -> None:
        self.flags: dict[int, list[str]] = {}
        self.span = -1  # ordinal of the span or log record being walked, in document order
        self.values = 0

    def flag(self, name: str) -> None:
        if self.span >= 0:
            self.flags.setdefault(self.span, []).append(name)

    def message(self, data: memoryview, kind: str) -> bytes:
        fields = _MESSAGES[kind]
        out = bytearray()
        at, end = 0, len(data)
        while at < end:
            start = at
            tag, at = varint(data, at)
            number, wire = tag >> 3, tag & 7
            if wire == 0:
                _, at = varint(data, at)
            elif wire == 1:
                at += 8
            elif wire == 5:
                at += 4
            elif wire == 2:
                size, body = varint(data, at)
                at = body + size
                if at > end:
                    raise BadRequest("the body ends inside a field: it was cut off")
                inner = fields.get(number)
                if inner is not None:
                    content = self.field(data[body:at], inner)
                    out += _encoded(tag) + _encoded(len(content)) + content
                    continue
            else:
                raise BadRequest(f"the body holds wire type {wire}, which no OTLP message uses")
            if at > end:
                raise BadRequest("the body ends inside a field: it was cut off")
            out += data[start:at]
        return bytes(out)

    def field(self, data: memoryview, inner: str) -> bytes:
        if inner == "s":
            return self.text(data)
        if inner in ("span", "record"):
            self.span += 1
        if inner != "value":
            return self.message(data, inner)
        if self.values >= _MAX_VALUES:
            self.flag(TOO_DEEP)
            return b""
        self.values += 1
        try:
            return self.message(data, inner)
        finally:
            self.values -= 1

    def text(self, data: memoryview) -> bytes:
        raw = bytes(data)
        try:
            raw.decode()
        except UnicodeDecodeError:
            self.flag(INVALID_UTF8)
            return raw.decode(errors="replace").encode()
        return raw


def repair(body: bytes, kind: str) -> tuple[bytes, dict[int, list[str]]]:
    """The body with bad text and over-deep values mended, and the flags of each span or log record by its ordinal.

    `kind` is "traces" or "logs". Raises BadRequest when the bytes are not protobuf at all.
    """
    walk = _Walk()
    return walk.message(memoryview(body), kind), walk.flags


class NoNumber(BadRequest):
    """Where a number should stand, none does."""


def varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number at a place, and where what follows it begins. Raises NoNumber."""
    value = shift = 0
    while True:
        if at >= len(data):
            raise NoNumber("the body ends inside a number: it was cut off or is not protobuf")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift >= 70:
            raise NoNumber("the body holds a number of more than ten bytes: it is not protobuf")


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
