"""What becomes of odd spans, in one place for every wire encoding.

A span without usable ids is rejected with a reason; everything else is kept, and what was repaired or
looks wrong is named in the span's `flags`.
"""

from __future__ import annotations

MAX_NS = 2**63 - 1
YEAR_2000_NS = 946_684_800_000_000_000
MAX_DEPTH = 64
"""Deepest nesting of attribute values that is kept; deeper parts become null, flagged `too_deep`."""

KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
STATUSES = ("unset", "ok", "error")
ZERO_TRACE = "0" * 32
ZERO_SPAN = "0" * 16

END_BEFORE_START = "end_before_start"
TIME_ZERO = "time_zero"
TIME_BEFORE_2000 = "time_before_2000"
TIME_OVERFLOW = "time_overflow"
INVALID_UTF8 = "invalid_utf8"
DUPLICATE_ATTRIBUTE = "duplicate_attribute"
UNKNOWN_ENUM = "unknown_enum"
BAD_PARENT_ID = "bad_parent_id"
TOO_DEEP = "too_deep"
BAD_ID = "bad_id"
"""Of log records, which may stand alone: an id that cannot be used is left out."""
REMOTE_PARENT = "remote_parent"
"""Nothing wrong: the sender says that the parent is a span of another process (bits 8 and 9 of the span's flags).
Then a parent that never arrives is no sign of a crash."""
_REMOTE_KNOWN, _REMOTE = 0x100, 0x200
JSON_NUMBER = "json_number"
ENUM_NAME = "enum_name"
DROPPED = ("dropped_attributes", "dropped_events", "dropped_links")
"""Flags that say the sender's own limits cut something off."""

REPAIRS = {
    END_BEFORE_START: "an end before its start became the start",
    TIME_OVERFLOW: "a time past 2^63 ns was clamped",
    INVALID_UTF8: "bytes that are not UTF-8 became U+FFFD",
    DUPLICATE_ATTRIBUTE: "of a repeated attribute key the last value was kept",
    UNKNOWN_ENUM: "an unknown kind, status or severity became unspecified or unset",
    JSON_NUMBER: "a bare NaN or Infinity, or a fraction as intValue, was kept as the double that it is",
    ENUM_NAME: "a kind, status or severity was given by its name, not its number",
    BAD_PARENT_ID: "a parent id that is not 8 bytes was left out",
    BAD_ID: "an id of a log record that cannot be used was left out",
    TOO_DEEP: f"a value nested deeper than {MAX_DEPTH} levels was cut",
}
"""Flags of what was changed on the way in, in words for the sender. The others name what looks wrong as it came."""


class BadRequest(Exception):
    """The request as a whole cannot be read; the message is for its sender."""


class TooManyItems(BadRequest):
    """The request holds more spans, log records or parts of them than one may; smaller ones are welcome."""


class BadSpan(Exception):
    """One span cannot be kept; the message is the reason counted in partial_success."""


def check_trace_id(text: str) -> str | None:
    """Reason to reject a hex trace id, None when it is usable."""
    if len(text) != 32:
        return "trace_id is not 16 bytes"
    return "trace_id is all zeros" if text == ZERO_TRACE else None


def check_span_id(text: str) -> str | None:
    """Reason to reject a hex span id, None when it is usable."""
    if len(text) != 16:
        return "span_id is not 8 bytes"
    return "span_id is all zeros" if text == ZERO_SPAN else None


def times(start: int, end: int, flags: list[str]) -> tuple[int, int | None]:
    """Start and end in nanoseconds as stored, with flags added for what looks wrong.

    An end of 0 is a span that never ended: NULL. Times past 2^63 are clamped, an end before its start
    becomes the start.
    """
    if start > MAX_NS or end > MAX_NS:
        flags.append(TIME_OVERFLOW)
        start, end = min(start, MAX_NS), min(end, MAX_NS)
    if start == 0:
        flags.append(TIME_ZERO)
    elif start < YEAR_2000_NS:
        flags.append(TIME_BEFORE_2000)
    if end == 0:
        return start, None
    if end < start:
        flags.append(END_BEFORE_START)
        end = start
    return start, end


def log_id(text: str, length: int, flags: list[str]) -> str | None:
    """A log record's trace id (`length` 32) or span id (16) in hex, None when it has none or it cannot be used."""
    if not text.strip("0"):
        return None
    if len(text) == length:
        return text
    flags.append(BAD_ID)
    return None


def log_time(time: int, flags: list[str]) -> int | None:
    """A log record's time in nanoseconds, None when it has none."""
    if time > MAX_NS:
        flags.append(TIME_OVERFLOW)
        return MAX_NS
    return time or None


def kind_name(number: int, flags: list[str]) -> str:
    if 0 <= number < len(KINDS):
        return KINDS[number]
    flags.append(UNKNOWN_ENUM)
    return KINDS[0]


def status_name(number: int, flags: list[str]) -> str:
    if 0 <= number < len(STATUSES):
        return STATUSES[number]
    flags.append(UNKNOWN_ENUM)
    return STATUSES[0]


def parent_id(text: str, bits: int, flags: list[str]) -> str | None:
    """The parent's hex id; an empty or all-zero one means a root. `bits`: the span's own `flags` field."""
    if not text or text == ZERO_SPAN:
        return None
    if len(text) != 16:
        flags.append(BAD_PARENT_ID)
        return None
    if bits & _REMOTE_KNOWN and bits & _REMOTE:
        flags.append(REMOTE_PARENT)
    return text


def joined(flags: list[str]) -> str | None:
    """The `flags` column: each flag once, sorted, or None."""
    return ",".join(sorted(set(flags))) if flags else None


_SEVERITIES = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
SEVERITIES = ("UNSPECIFIED", *(f"{s}{level or ''}" for s in _SEVERITIES for level in ("", 2, 3, 4)))
"""The specification's short names of the severity numbers 0 to 24."""


def severity(text: str, number: int) -> str | None:
    """Severity text, else the specification's short name of the number (1-24), else None."""
    if text:
        return text
    return SEVERITIES[number] if 1 <= number <= 24 else None
