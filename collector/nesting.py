"""JSON text that nests deeper than any parser reads, made shallow enough to be read.

One value nested 500 deep must not cost its request. What is cut lies far below the deepest value that is kept
(`policy.MAX_DEPTH`), so the decoder flags it, refuses its span, or never looks at it, as it would have anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

MOST_LEVELS = 900
"""Deepest nesting of JSON arrays and objects that is left. The parser stops at 1024; 64 kept values need about 270."""

_STEP = 1 << 20
_QUOTE, _BACKSLASH, _COMMA = ord('"'), ord("\\"), ord(",")
_OPEN, _CLOSE = (ord("["), ord("{")), (ord("]"), ord("}"))


def shallow(body: bytes, levels: int = MOST_LEVELS) -> bytes:
    """The text with every array or object below `levels` replaced by null; the same object when there is none.

    Works in pieces of 1 MiB, so the memory it takes does not grow with the body. The text need not be valid JSON.
    """
    if body.count(b"[") + body.count(b"{") <= levels:
        return body
    text = np.frombuffer(body, np.uint8)
    starts, ends = [], []
    depth = 0
    for at, piece, within in _pieces(text):
        change = np.isin(piece, _OPEN).astype(np.int64) - np.isin(piece, _CLOSE)
        change[within] = 0
        after = np.cumsum(change) + depth
        depth = int(after[-1])
        starts.append(np.flatnonzero((change == 1) & (after == levels + 1)) + at)
        ends.append(np.flatnonzero((change == -1) & (after == levels)) + at)
    out, kept = [], 0
    # Where a text ends inside, the last start has no end; the parser then says what is wrong with it.
    for start, end in zip(np.concatenate(starts).tolist(), np.concatenate(ends).tolist(), strict=False):
        if end < start:
            return body
        out += [body[kept:start], b"null"]
        kept = end + 1
    return b"".join([*out, body[kept:]]) if out else body


def structure(body: bytes) -> tuple[int, int]:
    """How many arrays and objects the text opens, and how many commas part their members; none of those in strings."""
    opened = commas = 0
    for _, piece, within in _pieces(np.frombuffer(body, np.uint8)):
        opened += int(np.count_nonzero(np.isin(piece, _OPEN) & ~within))
        commas += int(np.count_nonzero((piece == _COMMA) & ~within))
    return opened, commas


def outside_strings(body: bytes, positions: Sequence[int]) -> list[bool]:
    """For each of these positions, which ascend, whether it is in no string."""
    wanted, found = np.asarray(positions, np.int64), np.zeros(len(positions), np.bool_)
    for at, piece, within in _pieces(np.frombuffer(body, np.uint8)):
        first, last = np.searchsorted(wanted, (at, at + len(piece)))
        found[first:last] = ~within[wanted[first:last] - at]
    outside: list[bool] = found.tolist()
    return outside


def _pieces(
    text: npt.NDArray[np.uint8],
) -> Iterator[tuple[int, npt.NDArray[np.uint8], npt.NDArray[np.bool_]]]:
    """Where each piece of 1 MiB begins, the piece, and which of its bytes lie in a string."""
    inside, backslashes = False, 0
    for at in range(0, len(text), _STEP):
        piece = text[at : at + _STEP]
        quotes, backslashes = _quotes(piece, backslashes)
        within = (
            np.cumsum(quotes) + inside
        ) % 2 == 1  # at a closing quote already False, which is no bracket
        inside = bool(within[-1])
        yield at, piece, within


def _quotes(piece: npt.NDArray[np.uint8], before: int) -> tuple[npt.NDArray[np.bool_], int]:
    """Which bytes are quotes that no backslash escapes, and how many backslashes end the piece.

    `before`: backslashes that end the piece before this one.
    """
    place = np.arange(len(piece))
    other = np.maximum.accumulate(np.where(piece != _BACKSLASH, place, -1))
    run = place - other  # backslashes up to and including this byte
    run[other < 0] += before
    ahead = np.concatenate(([before], run[:-1]))
    return (piece == _QUOTE) & (ahead % 2 == 0), int(run[-1])
