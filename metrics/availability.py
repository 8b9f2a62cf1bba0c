"""Was an agent there when it had to be: its service hours cut into slices, each judged by the work of that time.

A slice is good when work taken or ended in it was finished, and bad when all work taken in it failed or was lost. A
slice without work proves nothing, unless the configuration says that there is always work. Without service hours there
are no slices, and availability is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fnmatch import fnmatchcase
from importlib.resources import files
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa

from metrics.settings import MaintenanceWindow, ServiceHours

LONGEST = timedelta(days=92)
"""How far back slices are judged: longer than any usual objective window with its history before it."""


@dataclass(frozen=True)
class Slice:
    """One slice of an agent's service hours, naive UTC, start included and end excluded."""

    agent: str
    start: datetime
    end: datetime
    in_maintenance: bool
    quiet_is_bad: bool


def hours_of(agent: str, service_hours: Mapping[str, ServiceHours]) -> ServiceHours | None:
    """The hours of an agent: those of the first glob that matches, None when none does."""
    return next((hours for glob, hours in service_hours.items() if fnmatchcase(agent, glob)), None)


def slices(hours: ServiceHours, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """(start, end) of the slices that lie within (since, until], naive UTC, in order.

    Days and hours are those of the local clock, so summer time moves them; a slice is as long as it says all the
    same, and the last one of a day ends with the hours.
    """
    zone = ZoneInfo(hours.zone)
    day = since.replace(tzinfo=UTC).astimezone(zone).date() - timedelta(days=2)
    last = until.replace(tzinfo=UTC).astimezone(zone).date()
    while day <= last:
        if hours.covers(day):
            at, end = _moment(day, hours.start_minute, zone), _moment(day, hours.end_minute, zone)
            while at < end:
                upto = min(at + hours.slice, end)
                if at >= since and upto <= until:
                    yield at, upto
                at = upto
        day += timedelta(days=1)


def _moment(day: date, minute: int, zone: ZoneInfo) -> datetime:
    """`minute` minutes after midnight of the local clock, as naive UTC; above 1440 it is the next day."""
    wall = datetime.combine(day, time()) + timedelta(minutes=minute)
    return wall.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)


def service_slices(
    agents: Mapping[str, datetime],
    service_hours: Mapping[str, ServiceHours],
    maintenance: Sequence[MaintenanceWindow],
    as_of: datetime,
) -> Iterator[Slice]:
    """Slices of every agent with hours, from its first task (naive UTC; at most `LONGEST` ago) to `as_of`."""
    for agent, first in agents.items():
        hours = hours_of(agent, service_hours)
        if hours is None:
            continue
        windows = [w for w in maintenance if fnmatchcase(agent, w.agent)]
        for start, end in slices(hours, max(first, as_of - LONGEST), as_of):
            quiet = any(w.start < end and start < w.end for w in windows)
            yield Slice(agent, start, end, quiet, hours.quiet == "bad")


def write_availability(
    con: duckdb.DuckDBPyConnection,
    service_hours: Mapping[str, ServiceHours],
    maintenance: Sequence[MaintenanceWindow],
    as_of: datetime,
) -> int:
    """Judge every slice anew and make them the `availability` events of `core.sli_events`; return how many.

    `con` may write `core` and sees the view `tasks`; `as_of` is naive UTC. Nothing happens where nothing is configured
    and nothing was.
    """
    agents = {
        str(agent): first
        for agent, first in con.execute(
            "SELECT agent, min(started_at) FROM core.tasks WHERE agent IS NOT NULL AND started_at <= ? GROUP BY agent",
            [as_of],
        ).fetchall()
    }
    found = list(service_slices(agents, service_hours, maintenance, as_of)) if service_hours else []
    cursor = con.cursor()
    try:
        cursor.register("_service_slices", _table(found))
        cursor.execute("BEGIN")
        try:
            # Only what is another verdict now is written: most slices never change again.
            text = (files("metrics") / "sql" / "passes" / "availability.sql").read_text(encoding="utf-8")
            cursor.execute(f"CREATE OR REPLACE TEMP TABLE _judged_slices AS\n{text}")
            same = (
                "n.subject_id = e.subject_id AND n.verdict = e.verdict AND n.event_time = e.event_time "
                "AND n.service IS NOT DISTINCT FROM e.service"
            )
            cursor.execute(
                "DELETE FROM core.sli_events e WHERE e.sli = 'availability' "
                f"AND NOT EXISTS (SELECT 1 FROM _judged_slices n WHERE {same})"
            )
            cursor.execute(
                "INSERT INTO core.sli_events BY NAME SELECT * FROM _judged_slices n WHERE NOT EXISTS "
                f"(SELECT 1 FROM core.sli_events e WHERE e.sli = 'availability' AND {same})"
            )
            cursor.execute("COMMIT")
            cursor.execute("DROP TABLE _judged_slices")
        except BaseException:
            cursor.execute("ROLLBACK")
            raise
        finally:
            cursor.unregister("_service_slices")
    finally:
        cursor.close()
    return len(found)


def _table(found: Iterable[Slice]) -> pa.Table:
    rows = list(found)
    return pa.table(
        {
            "agent": pa.array([s.agent for s in rows], pa.string()),
            "slice_start": pa.array([s.start for s in rows], pa.timestamp("us")),
            "slice_end": pa.array([s.end for s in rows], pa.timestamp("us")),
            "in_maintenance": pa.array([s.in_maintenance for s in rows], pa.bool_()),
            "quiet_is_bad": pa.array([s.quiet_is_bad for s in rows], pa.bool_()),
        }
    )
