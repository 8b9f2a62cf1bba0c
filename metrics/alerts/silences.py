"""When alerts are not told: silences of operators, of the configuration, and maintenance windows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase

import duckdb

from metrics.alerts.settings import Silence
from metrics.alerts.signal import Identity
from metrics.alerts.tables import create, rows_of
from metrics.settings import MaintenanceWindow


class SilenceError(ValueError):
    """A silence that makes no sense or does not exist; says how to mend."""


@dataclass(frozen=True)
class Quiet:
    """One reason not to tell; times are naive UTC, names are globs."""

    silence_id: str
    starts_at: datetime
    ends_at: datetime
    slo: str
    agent: str
    severity: str
    reason: str

    def covers(self, identity: Identity, now: datetime) -> bool:
        """Whether this alert is not told at this moment."""
        return (
            self.starts_at <= now < self.ends_at
            and fnmatchcase(identity.slo, self.slo)
            and fnmatchcase(identity.agent, self.agent)
            and fnmatchcase(identity.severity, self.severity)
        )


def _naive(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def configured(silences: Iterable[Silence], maintenance: Iterable[MaintenanceWindow]) -> list[Quiet]:
    """Silences and maintenance windows of the configuration.

    A window for one agent silences the alerts of that agent; one for all (`*`) silences all.
    """
    found = [
        Quiet(f"config:{i}", _naive(s.start), _naive(s.end), s.slo, s.agent, s.severity, s.reason)
        for i, s in enumerate(silences, start=1)
    ]
    found += [
        Quiet(f"maintenance:{i}", _naive(m.start), _naive(m.end), "*", m.agent, "*", m.reason)
        for i, m in enumerate(maintenance, start=1)
    ]
    return found


def add_silence(
    con: duckdb.DuckDBPyConnection,
    now: datetime,
    *,
    ends_at: datetime,
    reason: str,
    starts_at: datetime | None = None,
    slo: str = "*",
    agent: str = "*",
    severity: str = "*",
) -> Quiet:
    """Keep a silence in `core.alert_silences` (naive UTC). Raises SilenceError."""
    begin = starts_at or now
    if ends_at <= max(begin, now):
        raise SilenceError("a silence must end in the future and after its start; give a later end")
    if not reason.strip():
        raise SilenceError("a silence needs a reason; say why, for those who wonder later")
    quiet = Quiet(uuid.uuid4().hex[:12], begin, ends_at, slo, agent, severity, reason.strip())
    create(con, "alert_silences")
    con.execute(
        "INSERT INTO core.alert_silences VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
        [quiet.silence_id, begin, ends_at, slo, agent, severity, quiet.reason, now],
    )
    return quiet


def end_silence(con: duckdb.DuckDBPyConnection, silence_id: str, now: datetime) -> None:
    """End a silence now. Raises SilenceError when there is none of that name to end."""
    create(con, "alert_silences")
    found = con.execute(
        "UPDATE core.alert_silences SET ended_at = ? WHERE silence_id = ? AND ended_at IS NULL AND ends_at > ? "
        "RETURNING silence_id",
        [now, silence_id, now],
    ).fetchall()
    if not found:
        raise SilenceError(f"no silence {silence_id!r} to end; `agent-slo alerts list` shows them")


def operators_silences(con: duckdb.DuckDBPyConnection) -> list[Quiet]:
    """Silences kept in `core.alert_silences` that were not ended early."""
    found = rows_of(con, "alert_silences")
    return [
        Quiet(r["silence_id"], r["starts_at"], r["ends_at"], r["slo"], r["agent"], r["severity"], r["reason"])
        for r in found
        if r["ended_at"] is None
    ]


def covering(quiets: Sequence[Quiet], identity: Identity, now: datetime) -> Quiet | None:
    """The first reason not to tell this alert now."""
    return next((q for q in quiets if q.covers(identity, now)), None)
