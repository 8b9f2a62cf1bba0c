from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.slo.windows import Duration, calendar_window, format_seconds, parse_duration, utc

VECTOR = json.loads((Path(__file__).parent / "vectors.json").read_text())["W1 calendar"]


@pytest.mark.parametrize(
    ("name", "duration", "anchor", "zone", "now"),
    [
        (
            "Berlin month, now 2026-03-29T12:00Z",
            Duration(1, "M"),
            datetime(2026, 1, 1),
            "Europe/Berlin",
            datetime(2026, 3, 29, 12),
        ),
        (
            "NY week anchor Sat 2022-01-01 12:00, now 2026-11-29T11:00Z",
            Duration(1, "w"),
            datetime(2022, 1, 1, 12),
            "America/New_York",
            datetime(2026, 11, 29, 11),
        ),
        (
            "UTC month anchor day 31, now 2026-02-15Z",
            Duration(1, "M"),
            datetime(2026, 1, 31),
            "UTC",
            datetime(2026, 2, 15),
        ),
        (
            "UTC quarter, now 2026-11-29Z",
            Duration(1, "Q"),
            datetime(2026, 1, 1),
            "UTC",
            datetime(2026, 11, 29),
        ),
        (
            "boundary: now == start belongs to new window",
            Duration(1, "M"),
            datetime(2026, 1, 1),
            "UTC",
            datetime(2026, 11, 1),
        ),
    ],
)
def test_w1_calendar(name: str, duration: Duration, anchor: datetime, zone: str, now: datetime) -> None:
    start, end, hours = VECTOR[name]
    found = calendar_window(duration, anchor, ZoneInfo(zone), now)
    assert [m.replace(tzinfo=UTC).isoformat() for m in found] == [start, end]
    assert (found[1] - found[0]).total_seconds() / 3600 == hours


@given(
    st.sampled_from(
        [Duration(1, "M"), Duration(1, "Q"), Duration(2, "w"), Duration(1, "d"), Duration(6, "h")]
    ),
    st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1)).map(lambda d: d.replace(microsecond=0)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    st.datetimes(datetime(1995, 1, 1), datetime(2040, 1, 1)),
)
def test_windows_tile_time(duration: Duration, anchor: datetime, zone: str, now: datetime) -> None:
    start, end = calendar_window(duration, anchor, ZoneInfo(zone), now)
    assert start <= now < end
    assert calendar_window(duration, anchor, ZoneInfo(zone), end)[0] == end
    assert calendar_window(duration, anchor, ZoneInfo(zone), start - timedelta(microseconds=1))[1] == start


@pytest.mark.parametrize(("text", "seconds"), [("28d", 2419200), ("15m", 900), ("1w", 604800), ("0m", 0)])
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text).seconds == seconds
    assert str(parse_duration(text)) == text


@pytest.mark.parametrize("text", ["", "28", "d", "1.5h", "-1d", "28 days", "1M", "1h30m"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        parse_duration(text)


def test_m_is_a_minute_and_capital_m_a_month() -> None:
    assert parse_duration("1m", "mM").seconds == 60
    with pytest.raises(ValueError, match="needs a calendar"):
        _ = parse_duration("1M", "mM").seconds


def test_names_of_windows() -> None:
    assert [format_seconds(s) for s in (0, 90, 300, 5400, 86400, 604800)] == [
        "0s",
        "90s",
        "5m",
        "90m",
        "1d",
        "7d",
    ]


def test_utc() -> None:
    berlin = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    assert utc(berlin) == datetime(2026, 7, 1, 10) == utc(datetime(2026, 7, 1, 10))
