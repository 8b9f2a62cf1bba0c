from __future__ import annotations

import gzip
import os
import zlib

import pytest

from collector.inflate import MOST_MEMBERS, TooLarge, inflate
from collector.policy import BadRequest

DATA = b"telemetry " * 5000


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(data) + stream.flush()


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(DATA), "gzip"),
        (gzip.compress(DATA[:100]) + gzip.compress(DATA[100:]), "gzip"),
        (gzip.compress(DATA) + b"\0" * 8, "gzip"),
        (zlib.compress(DATA), "deflate"),
        (raw_deflate(DATA), "deflate"),
    ],
)
def test_whole_streams(body: bytes, encoding: str) -> None:
    assert inflate(body, encoding, len(DATA)) == DATA


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize(
    "body", [b"", b"plain text", gzip.compress(DATA)[:-20], gzip.compress(DATA) + b"junk"]
)
def test_broken_streams(body: bytes, encoding: str) -> None:
    with pytest.raises(BadRequest):
        inflate(body, encoding, 1 << 30)


@pytest.mark.parametrize("parts", [1, 3])
def test_the_limit_holds_over_all_members(parts: int) -> None:
    body = b"".join(gzip.compress(bytes(1 << 20)) for _ in range(parts))
    with pytest.raises(TooLarge):
        inflate(body, "gzip", parts * (1 << 20) - 1)
    assert len(inflate(body, "gzip", parts * (1 << 20))) == parts << 20


def test_members_are_counted_and_read_in_one_pass() -> None:
    assert inflate(gzip.compress(b"ab") * MOST_MEMBERS, "gzip", 1 << 20) == b"ab" * MOST_MEMBERS
    with pytest.raises(BadRequest, match="more than 1000 members"):
        inflate(gzip.compress(b"") * 500_000, "gzip", 1 << 20)


def test_a_large_member_and_one_after_it() -> None:
    noise = os.urandom(300_000)
    body = gzip.compress(noise) + gzip.compress(DATA) + gzip.compress(b"") + bytes(100_000)
    assert inflate(body, "gzip", 1 << 20) == noise + DATA
    with pytest.raises(BadRequest, match="cut off"):
        inflate(gzip.compress(noise)[:-1], "gzip", 1 << 20)
