"""The actions of alerts: silence, end a silence, end an alert, begin a baseline of drift anew."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, get_args

import duckdb
from pydantic import Field, field_validator

from agent_slo.actions import Action, Arguments, Moment, registry
from metrics.alerts.conditions import severity_of
from metrics.alerts.engine import AlertEngine
from metrics.alerts.settings import Severity
from metrics.alerts.silences import add_silence, end_silence
from metrics.drift.baselines import begin_anew
from metrics.drift.evaluate import METRICS

_GLOB = frozenset("*?[")
_SEVERITIES = {
    "alerts": "SELECT DISTINCT severity FROM core.alerts",
    "slo_status": "SELECT DISTINCT unnest(json_extract_string(pairs, '$[*].severity')) FROM core.slo_status",
}
"""Where objectives with severities of their own are known from, by table."""


class SilenceArguments(Arguments):
    """Do not tell matching alerts for a while."""

    ends_at: Moment = Field(description="when the silence ends; a silence needs an end")
    starts_at: Moment | None = Field(default=None, description="when it begins; at once when left out")
    reason: str = Field(min_length=1, description="why, for those who wonder later")
    slo: str = Field(default="*", description="name or glob of the objective")
    agent: str = Field(default="*", description="name or glob of the agent")
    severity: str = Field(default="*", description="page, ticket, or a glob")


class UnsilenceArguments(Arguments):
    """End a silence now."""

    silence_id: str = Field(min_length=1, description="the id that `alerts.silence` answered")


class ResolveArguments(Arguments):
    """End an alert by hand."""

    alert_id: str = Field(min_length=1, description="the alert's id, or the beginning of it")
    reason: str = Field(default="ended by an operator", description="told to the targets with the end")


class RebaselineArguments(Arguments):
    """Let drift learn anew what is normal."""

    since: Moment | None = Field(default=None, description="when the new baseline begins; now when left out")
    reason: str = Field(min_length=1, description="why, for those who wonder later")
    metric: str = Field(default="*", description="name of the metric, or *")
    agent: str = Field(default="*", description="name or glob of the agent")
    task_type: str = Field(default="*", description="name or glob of the task type")

    @field_validator("metric")
    @classmethod
    def _known_metric(cls, metric: str) -> str:
        if not any(fnmatchcase(known, metric) for known in METRICS):
            raise ValueError(f"{metric!r} is no metric with a baseline; there are {', '.join(METRICS)}, or *")
        return metric


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def _check_severity(con: duckdb.DuckDBPyConnection, severity: str) -> None:
    """Raises ValueError for a word that is no severity of any objective or alert; globs are taken as they are."""
    if not severity or _GLOB.intersection(severity):
        return
    known = set(get_args(Severity))
    # What does not exist yet is not asked: an error would end the transaction.
    tables = con.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'core'").fetchall()
    for table, sql in _SEVERITIES.items():
        if (table,) in tables:
            known |= {severity_of(found) for (found,) in con.execute(sql).fetchall() if found}
    if severity not in known:
        raise ValueError(
            f"alerts.silence: severity: {severity!r} is none; there are {', '.join(sorted(known))}, or a glob such as *"
        )


def alert_actions(engine: AlertEngine) -> dict[str, Action[Any]]:
    """Actions by name."""

    def silence(con: duckdb.DuckDBPyConnection, given: SilenceArguments) -> Mapping[str, Any]:
        _check_severity(con, given.severity)
        quiet = add_silence(
            con,
            _now(),
            ends_at=given.ends_at,
            starts_at=given.starts_at,
            reason=given.reason,
            slo=given.slo,
            agent=given.agent,
            severity=given.severity,
        )
        return {"silence_id": quiet.silence_id, "starts_at": quiet.starts_at, "ends_at": quiet.ends_at}

    def unsilence(con: duckdb.DuckDBPyConnection, given: UnsilenceArguments) -> Mapping[str, Any]:
        end_silence(con, given.silence_id, _now())
        return {"silence_id": given.silence_id}

    def resolve(con: duckdb.DuckDBPyConnection, given: ResolveArguments) -> Mapping[str, Any]:
        alert = engine.resolve(con, given.alert_id, _now(), given.reason)
        return {"alert_id": alert.key, "state": alert.state}

    def rebaseline(con: duckdb.DuckDBPyConnection, given: RebaselineArguments) -> Mapping[str, Any]:
        since = given.since or _now()
        begin_anew(
            con,
            _now(),
            since=since,
            reason=given.reason,
            metric=given.metric,
            agent=given.agent,
            task_type=given.task_type,
        )
        return {"since": since}

    return registry(
        Action("alerts.rebaseline", RebaselineArguments, rebaseline),
        Action("alerts.silence", SilenceArguments, silence),
        Action("alerts.unsilence", UnsilenceArguments, unsilence),
        # The engine commits by itself, and again when the delivery was faster; an ended alert stays ended.
        Action("alerts.resolve", ResolveArguments, resolve, atomic=False),
    )
