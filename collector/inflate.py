"""Bounded decompression: a small body must not be able to fill the memory."""

from __future__ import annotations

import re
import zlib

from collector.policy import BadRequest

_STEP = 1 << 20
_FEED = 64 << 10
_PADDING = re.compile(rb"\0*")
MOST_MEMBERS = 1000
"""Members of one gzip body; a sender that flushes for every span makes fewer."""


class TooLarge(Exception):
    """The body is larger than allowed, as sent or after decompression."""


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """Decompress `gzip` (several members allowed) or `deflate` (zlib-wrapped or raw).

    Raises TooLarge past `limit` bytes of output, BadRequest when the stream is broken or cut off.
    """
    if encoding == "gzip":
        return _gzip(body, limit)
    try:
        return _member(body, 0, zlib.MAX_WBITS, limit, encoding)[0]
    except BadRequest:
        return _member(body, 0, -zlib.MAX_WBITS, limit, encoding)[0]


def _gzip(body: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    start = size = 0
    while True:
        if len(parts) == MOST_MEMBERS:
            raise BadRequest(f"the gzip body has more than {MOST_MEMBERS} members; compress it as one")
        out, start = _member(body, start, 16 + zlib.MAX_WBITS, limit - size, "gzip")
        parts.append(out)
        size += len(out)
        padded = _PADDING.match(body, start)  # after the last member it is allowed
        start = padded.end() if padded else start
        if start == len(body):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _member(body: bytes, start: int, window: int, limit: int, encoding: str) -> tuple[bytes, int]:
    """The member at `start`, and where it ends."""
    stream = zlib.decompressobj(window)
    out = bytearray()
    view = memoryview(body)
    # In pieces: what follows a member is copied by zlib, and should be little.
    at = start
    data: bytes | memoryview = b""
    try:
        while not stream.eof:
            if not data:
                if at == len(body):
                    break
                data = view[at : at + _FEED]
                at += len(data)
            out += stream.decompress(data, _STEP)
            data = stream.unconsumed_tail
            if len(out) > limit:
                raise TooLarge
        if not stream.eof:
            # nothing more comes in, something may still come out
            out += stream.flush(limit - len(out) + 1)
            if len(out) > limit:
                raise TooLarge
    except zlib.error as e:
        raise BadRequest(f"the body is said to be {encoding} but cannot be decompressed: {e}") from e
    if not stream.eof:
        raise BadRequest(f"the {encoding} body was cut off")
    return bytes(out), at - len(stream.unused_data)
