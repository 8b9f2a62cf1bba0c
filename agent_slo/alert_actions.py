"""The actions of alerts: silence, end a silence, end an alert, begin a baseline of drift anew."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import duckdb

from agent_slo.actions import Action
from metrics.alerts.engine import AlertEngine
from metrics.alerts.silences import add_silence, end_silence
from metrics.drift.baselines import begin_anew


def _moment(value: Any, name: str) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"{name}: {value!r} is no time; write 2026-11-28T14:00Z") from None
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def alert_actions(engine: AlertEngine) -> dict[str, Action]:
    """Actions by name; times are ISO 8601."""

    def silence(con: duckdb.DuckDBPyConnection, given: Mapping[str, Any]) -> Mapping[str, Any]:
        ends_at = _moment(given.get("ends_at"), "ends_at")
        if ends_at is None:
            raise ValueError("ends_at: a silence needs an end; give a time")
        quiet = add_silence(
            con,
            _now(),
            ends_at=ends_at,
            starts_at=_moment(given.get("starts_at"), "starts_at"),
            reason=str(given.get("reason") or ""),
            slo=str(given.get("slo") or "*"),
            agent=str(given.get("agent") or "*"),
            severity=str(given.get("severity") or "*"),
        )
        return {"silence_id": quiet.silence_id, "starts_at": quiet.starts_at, "ends_at": quiet.ends_at}

    def unsilence(con: duckdb.DuckDBPyConnection, given: Mapping[str, Any]) -> Mapping[str, Any]:
        end_silence(con, str(given.get("silence_id") or ""), _now())
        return {"silence_id": given["silence_id"]}

    def resolve(con: duckdb.DuckDBPyConnection, given: Mapping[str, Any]) -> Mapping[str, Any]:
        reason = str(given.get("reason") or "ended by an operator")
        alert = engine.resolve(con, str(given.get("alert_id") or ""), _now(), reason)
        return {"alert_id": alert.key, "state": alert.state}

    def rebaseline(con: duckdb.DuckDBPyConnection, given: Mapping[str, Any]) -> Mapping[str, Any]:
        since = _moment(given.get("since"), "since") or _now()
        begin_anew(
            con,
            _now(),
            since=since,
            reason=str(given.get("reason") or ""),
            metric=str(given.get("metric") or "*"),
            agent=str(given.get("agent") or "*"),
            task_type=str(given.get("task_type") or "*"),
        )
        return {"since": since}

    return {
        "alerts.rebaseline": rebaseline,
        "alerts.silence": silence,
        "alerts.unsilence": unsilence,
        "alerts.resolve": resolve,
    }
