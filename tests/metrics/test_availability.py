"""Availability: slices of service hours, judged by the work of their time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import duckdb
import pytest
from pydantic import ValidationError

from metrics.availability import LONGEST, slices, write_availability
from metrics.settings import MetricsSettings, ServiceHours

DAY = datetime(2026, 11, 2)  # a Monday


def hours(**given: Any) -> ServiceHours:
    return ServiceHours.model_validate(given)


def settings(**given: Any) -> MetricsSettings:
    return MetricsSettings.model_validate(given)


def test_hours_are_cut_into_slices_of_the_local_clock() -> None:
    office = hours(days=["mon", "tue"], start="08:00", end="17:30", zone="Europe/Berlin", slice="2h")
    found = list(slices(office, DAY - timedelta(days=1), DAY + timedelta(days=7)))
    assert len(found) == 10
    assert found[0] == (datetime(2026, 11, 2, 7), datetime(2026, 11, 2, 9))
    # the last one of a day ends with the hours
    assert found[4] == (datetime(2026, 11, 2, 15), datetime(2026, 11, 2, 16, 30))
    assert found[5][0] == datetime(2026, 11, 3, 7)


@pytest.mark.parametrize(
    ("midnight", "next_midnight", "count"),
    [
        (datetime(2026, 3, 28, 23), datetime(2026, 3, 29, 22), 23),
        (datetime(2026, 10, 24, 22), datetime(2026, 10, 25, 23), 25),
        (datetime(2026, 5, 31, 22), datetime(2026, 6, 1, 22), 24),
    ],
)
def test_a_day_on_which_the_clock_is_changed_has_other_hours(
    midnight: datetime, next_midnight: datetime, count: int
) -> None:
    found = list(slices(hours(zone="Europe/Berlin"), midnight, next_midnight))
    assert len(found) == count
    assert (found[0][0], found[-1][1]) == (midnight, next_midnight)
    assert all(a[1] == b[0] for a, b in pairwise(found))


def test_hours_over_midnight_belong_to_the_day_they_begin_on() -> None:
    night = hours(days=["mon"], start="22:00", end="02:00")
    assert list(slices(night, DAY, DAY + timedelta(days=3))) == [
        (DAY + timedelta(hours=h), DAY + timedelta(hours=h + 1)) for h in (22, 23, 24, 25)
    ]


def test_only_whole_slices_of_the_past_are_judged() -> None:
    found = list(slices(hours(), DAY + timedelta(minutes=30), DAY + timedelta(hours=3, minutes=59)))
    assert [s.hour for s, _ in found] == [1, 2]


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckdb.connect()
    con.execute("ATTACH ':memory:' AS core")
    con.execute(
        "CREATE TABLE core.tasks (task_id VARCHAR, agent VARCHAR, service VARCHAR, outcome VARCHAR, "
        "started_at TIMESTAMP, ended_at TIMESTAMP, excluded_reason VARCHAR)"
    )
    con.execute(
        "CREATE TABLE core.sli_events (sli VARCHAR, task_id VARCHAR, subject_id VARCHAR, event_time TIMESTAMP, "
        "verdict VARCHAR, value DOUBLE, agent VARCHAR, task_type VARCHAR, service VARCHAR, environment VARCHAR, "
        "app_version VARCHAR, excluded_reason VARCHAR, settled BOOLEAN, evidence VARCHAR)"
    )
    yield con
    con.close()


def work(
    con: duckdb.DuckDBPyConnection,
    start: float,
    end: float | None,
    outcome: str = "completed",
    agent: str = "a",
    excluded: str | None = None,
) -> None:
    """One task that starts and ends so many hours after midnight."""
    ended = None if end is None else DAY + timedelta(hours=end)
    row = ["t", agent, f"{agent}-service", outcome, DAY + timedelta(hours=start), ended, excluded]
    con.execute("INSERT INTO core.tasks VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def judged(con: duckdb.DuckDBPyConnection, config: MetricsSettings, until: float) -> dict[str, list[str]]:
    """Verdicts by agent, one a slice, after judging as of so many hours after midnight."""
    write_availability(con, config.service_hours, config.maintenance, DAY + timedelta(hours=until))
    rows = con.execute("SELECT agent, verdict FROM core.sli_events ORDER BY agent, event_time").fetchall()
    found: dict[str, list[str]] = {}
    for agent, verdict in rows:
        found.setdefault(agent, []).append(verdict)
    return found


ALWAYS: dict[str, Any] = {"service_hours": {"*": {}}}


def test_what_a_slice_is(con: duckdb.DuckDBPyConnection) -> None:
    work(con, 0, 0.1)
    work(con, 1.1, 1.2, "failed")
    work(con, 2.1, 2.2, "failed")
    work(con, 2.3, 2.4)  # one finished: it was there
    work(con, 3.1, None, "lost")
    # hour 4: nothing was asked of it
    work(con, 5.5, 6.5)  # long work proves both the hour it was taken in and the hour it ended in
    work(con, 7.1, None, "running")
    work(con, 8.1, 8.2, "unknown")
    assert judged(con, settings(**ALWAYS), 9.5) == {
        "a": ["good", "bad", "good", "bad", "unknown", "good", "good", "unknown", "unknown"]
    }
    (row,) = con.execute(
        "SELECT subject_id, service, event_time, task_id FROM core.sli_events WHERE event_time = ?",
        [DAY + timedelta(hours=1)],
    ).fetchall()
    assert row == ("a 2026-11-02T00:00:00Z", "a-service", DAY + timedelta(hours=1), None)


def test_an_agent_that_always_has_work_is_down_when_nothing_happens(con: duckdb.DuckDBPyConnection) -> None:
    work(con, 0, 0.1)
    config = settings(service_hours={"a": {"quiet": "bad"}})
    assert judged(con, config, 3) == {"a": ["good", "bad", "bad"]}


def test_the_first_entry_that_fits_an_agent_decides_and_others_have_no_hours(
    con: duckdb.DuckDBPyConnection,
) -> None:
    work(con, 0, 0.1, agent="desk_a")
    work(con, 0, 0.1, agent="other")
    config = settings(service_hours={"desk_*": {"slice": "30m"}, "*_a": {"slice": "1h"}})
    assert judged(con, config, 1) == {"desk_a": ["good", "unknown"]}


def test_maintenance_and_excluded_traffic_prove_nothing(con: duckdb.DuckDBPyConnection) -> None:
    work(con, 0, 0.1)
    work(con, 1.1, 1.2, "failed", excluded="environment:test")
    work(con, 2.1, 2.2, "failed")
    windows = [{"start": "2026-11-02T02:30:00Z", "end": "2026-11-02T02:40:00Z"}]
    assert judged(con, settings(**ALWAYS, maintenance=windows), 3) == {"a": ["good", "unknown", "excluded"]}


def test_a_late_end_changes_a_slice_and_nothing_else_is_written(con: duckdb.DuckDBPyConnection) -> None:
    work(con, 0, 0.1)
    work(con, 1.5, None, "running")
    config = settings(**ALWAYS)
    assert judged(con, config, 2) == {"a": ["good", "unknown"]}
    con.execute("UPDATE core.sli_events SET value = 7")
    con.execute(
        "UPDATE core.tasks SET outcome = 'completed', ended_at = ? WHERE ended_at IS NULL",
        [DAY + timedelta(hours=2.5)],
    )
    assert judged(con, config, 3) == {"a": ["good", "good", "good"]}
    kept = con.execute("SELECT value FROM core.sli_events ORDER BY event_time").fetchall()
    assert kept == [(7.0,), (None,), (None,)]


def test_other_events_are_left_alone_and_hours_taken_out_take_their_slices(
    con: duckdb.DuckDBPyConnection,
) -> None:
    work(con, 0, 0.1)
    con.execute("INSERT INTO core.sli_events (sli, agent, verdict) VALUES ('lost_task', 'x', 'good')")
    assert judged(con, settings(**ALWAYS), 1) == {"a": ["good"], "x": ["good"]}
    assert judged(con, settings(), 1) == {"x": ["good"]}


def test_slices_go_back_only_so_far(con: duckdb.DuckDBPyConnection) -> None:
    work(con, -24 * 200, -24 * 200 + 0.1)
    count = write_availability(con, settings(**ALWAYS).service_hours, [], DAY)
    assert count == LONGEST / timedelta(hours=1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"start": "25:00"}, "'25:00' is no time of day; write 08:00"),
        ({"start": "08:61"}, "is no time of day"),
        ({"zone": "Mars/Base"}, "'Mars/Base' is no time zone; use an IANA name"),
        ({"zone": "../../etc/passwd"}, "is no time zone"),
        ({"slice": "1m"}, "a slice is 5m to 1d long"),
        ({"days": []}, "at least 1 item"),
        ({"days": ["monday"]}, "'mon', 'tue'"),
        ({"quiet": "good"}, "'unknown' or 'bad'"),
        ({"from": "08:00"}, "Extra inputs"),
    ],
)
def test_hours_that_make_no_sense_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words.replace("(", r"\(")):
        hours(**given)


def test_an_unquoted_hour_of_yaml_is_that_hour() -> None:
    assert hours(start="08:30", end=1080) == hours(start=510, end="18:00")
