"""Bounded decompression: a small body must not be able to fill the memory."""

from __future__ import annotations

import zlib

from collector.policy import BadRequest

_STEP = 1 << 20


class TooLarge(Exception):
    """The body is larger than allowed, as sent or after decompression."""


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """Decompress `gzip` (several members allowed) or `deflate` (zlib-wrapped or raw).

    Raises TooLarge past `limit` bytes of output, BadRequest when the stream is broken or cut off.
    """
    if encoding == "gzip":
        return _gzip(body, limit)
    try:
        return _member(body, zlib.MAX_WBITS, limit, encoding)[0]
    except BadRequest:
        return _member(body, -zlib.MAX_WBITS, limit, encoding)[0]


def _gzip(body: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    rest: bytes = body
    size = 0
    while True:
        out, rest = _member(rest, 16 + zlib.MAX_WBITS, limit - size, "gzip")
        parts.append(out)
        size += len(out)
        rest = rest.lstrip(b"\0")  # padding after the last member is allowed
        if not rest:
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _member(body: bytes, window: int, limit: int, encoding: str) -> tuple[bytes, bytes]:
    stream = zlib.decompressobj(window)
    out = bytearray()
    data: bytes = body
    try:
        while not stream.eof:
            piece = stream.decompress(data, _STEP)
            data = stream.unconsumed_tail
            out += piece
            if len(out) > limit:
                raise TooLarge
            if not piece and not data:
                break
    except zlib.error as e:
        raise BadRequest(f"the body is said to be {encoding} but cannot be decompressed: {e}") from e
    if not stream.eof:
        raise BadRequest(f"the {encoding} body was cut off")
    return bytes(out), stream.unused_data
