"""Durations and windows: rolling ones end now, calendar ones follow a local calendar."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_MONTHS = {"M": 1, "Q": 3, "Y": 12}
_MOST = {u: 36_500 * 86_400 // s for u, s in _UNIT_SECONDS.items()} | {
    u: 1200 // m for u, m in _MONTHS.items()
}
"""A hundred years in each unit. Above it, sums of times leave what a timestamp can hold."""
_DURATION = re.compile(r"([1-9][0-9]*|0)([a-zA-Z])")


@dataclass(frozen=True)
class Duration:
    """`28d`, `1M`: a count of a unit. m is a minute, M a month (also Q quarter, Y year: calendar units)."""

    count: int
    unit: str

    @property
    def seconds(self) -> int:
        """Length in seconds; ValueError for M, Q and Y, which have none of their own."""
        if self.unit not in _UNIT_SECONDS:
            raise ValueError(f"{self} has no fixed length; it needs a calendar")
        return self.count * _UNIT_SECONDS[self.unit]

    @property
    def is_calendar(self) -> bool:
        return self.unit in _MONTHS

    def __str__(self) -> str:
        return f"{self.count}{self.unit}"


def parse_duration(text: str, units: str = "smhdw") -> Duration:
    """`text` as a Duration of one of `units`. Raises ValueError that says what is accepted."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or match[2] not in units:
        raise ValueError(
            f"{text!r} is no duration; write a whole number and one of {', '.join(units)}, as in 28d"
        )
    # digits first: int() of ten thousand of them is an error of its own
    if len(match[1]) > 10 or int(match[1]) > _MOST[match[2]]:
        raise ValueError("a duration of more than 100 years; write at most 36500d, or 100Y on a calendar")
    return Duration(int(match[1]), match[2])


def format_seconds(seconds: int) -> str:
    """Shortest exact spelling in d, h, m or s; the name burn windows go by (86400 -> 1d)."""
    for unit in ("d", "h", "m"):
        if seconds and seconds % _UNIT_SECONDS[unit] == 0:
            return f"{seconds // _UNIT_SECONDS[unit]}{unit}"
    return f"{seconds}s"


def utc(moment: datetime) -> datetime:
    """`moment` as naive UTC, the form of every derived table; a naive one is taken as UTC already."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _plus_months(start: datetime, months: int) -> datetime:
    """`start` + months on its own wall clock, from the anchor's day: Jan 31 -> Feb 28 -> Mar 31."""
    index = start.year * 12 + start.month - 1 + months
    year, month = divmod(index, 12)
    day = min(start.day, calendar.monthrange(year, month + 1)[1])
    return start.replace(year=year, month=month + 1, day=day)


def _nth(anchor: datetime, duration: Duration, n: int, zone: ZoneInfo) -> datetime:
    """Start of the n-th window in naive UTC. Days and weeks step on the wall clock, so DST keeps midnight."""
    if duration.is_calendar:
        local = _plus_months(anchor, n * duration.count * _MONTHS[duration.unit])
    elif duration.unit in "dw":
        local = anchor + timedelta(seconds=n * duration.seconds)
    else:
        first = anchor.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
        return first + timedelta(seconds=n * duration.seconds)
    return local.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)


def calendar_window(
    duration: Duration, anchor: datetime, zone: ZoneInfo, now: datetime
) -> tuple[datetime, datetime]:
    """[start, end) in naive UTC of the calendar window that holds `now`.

    `anchor` is a local wall-clock time in `zone` at which some window starts; windows go on in both
    directions. `now` on a boundary belongs to the new window. DST and month ends change the length
    (March 2026 in Berlin has 743 hours).
    """
    moment = utc(now)
    if duration.is_calendar:
        months = duration.count * _MONTHS[duration.unit]
        n = ((moment.year - anchor.year) * 12 + moment.month - anchor.month) // months
    else:
        first = anchor.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
        n = (moment - first) // timedelta(seconds=duration.seconds)
    # The estimate is off by at most one: the zone's offset and the anchor's day within the month.
    while _nth(anchor, duration, n, zone) > moment:
        n -= 1
    while _nth(anchor, duration, n + 1, zone) <= moment:
        n += 1
    return _nth(anchor, duration, n, zone), _nth(anchor, duration, n + 1, zone)
