"""Status rows, findings and drifts -> signals. Nothing is remembered here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

import duckdb

from metrics.alerts.settings import AlertSettings, EventRule
from metrics.alerts.signal import Condition, Identity, Signal
from metrics.alerts.words import (
    budget_words,
    burn_annotations,
    burn_summary,
    k_of_n,
    length,
    share,
    short_length,
)
from metrics.drift.evaluate import DriftRow
from metrics.slo.cube import run, sql_text
from metrics.slo.objective import Objective
from metrics.slo.status import StatusRow
from metrics.slo.windows import parse_duration

SEVERITIES: Mapping[str, str] = {"critical": "page", "high": "page", "warning": "ticket", "low": "ticket"}
"""Severities of other tools' alert conditions -> ours; what is not named stays as it is."""

_SURE_EXHAUSTED = 0.05
"""Chance that the target is met below which a spent budget is told: not for a budget spent by one event."""


def severity_of(text: str) -> str:
    """The severity alerts go by."""
    return SEVERITIES.get(text.lower(), text.lower())


def _identity(row: StatusRow, kind: Any, severity: str) -> Identity:
    return Identity(
        kind=kind,
        slo=row.slo,
        objective=row.objective,
        severity=severity,
        service=row.service,
        agent=row.agent or "",
        task_type=row.task_type or "",
    )


def _seconds(window: str) -> int:
    return parse_duration(window).seconds


def burn_signals(
    rows: Sequence[StatusRow], settings: AlertSettings, fired_by: Mapping[str, Sequence[str]]
) -> list[Signal]:
    """One signal per objective and severity; `fired_by` holds the pairs behind alerts that are active now.

    An alert may end only when the short windows of the pairs that raised it hold enough events: an empty one
    says nothing.
    """
    found: list[Signal] = []
    for row in rows:
        pairs: list[dict[str, Any]] = json.loads(row.pairs)
        for severity in dict.fromkeys(severity_of(p["severity"]) for p in pairs):
            own = [p for p in pairs if severity_of(p["severity"]) == severity]
            identity = _identity(row, "burn", severity)
            found.append(_burn(row, identity, own, settings, fired_by.get(identity.key, ())))
    return found


def _burn(
    row: StatusRow,
    identity: Identity,
    pairs: list[dict[str, Any]],
    settings: AlertSettings,
    fired_by: Sequence[str],
) -> Signal:
    firing: list[Mapping[str, Any]] = [p for p in pairs if p["firing"] and not p["frozen"]]
    burn = json.loads(row.burn)
    condition: Condition
    if row.state == "invalid":
        condition = "frozen"
    elif firing:
        condition = "firing"
    elif any(p["frozen"] for p in pairs):
        condition = "frozen"
    else:
        behind = [p for p in pairs if p["key"] in fired_by] or pairs
        seen = min(burn[p["short"]]["n"] for p in behind)
        condition = "clear" if seen >= settings.resolve_events else "frozen"
    if not firing:
        summary = f"{row.title}: burning no faster than allowed; {budget_words(row)}"
        return Signal(identity, condition, summary, burn_annotations(row, []))
    least = settings.pending.total_seconds() if settings.pending else 0.0
    return Signal(
        identity,
        condition,
        burn_summary(row, firing[0]),
        burn_annotations(row, firing),
        after_s=min(float(p["after_s"]) or least for p in firing),
        subjects=tuple(p["key"] for p in firing),
        targets=tuple(dict.fromkeys(t for p in firing for t in p["targets"])),
        tell_end=any(p["tell_end"] for p in firing),
        longest_s=max(_seconds(p["long"]) for p in firing),
    )


def budget_signals(rows: Sequence[StatusRow]) -> list[Signal]:
    """A spent budget, once it is hardly chance."""
    found: list[Signal] = []
    for row in rows:
        spent = row.state == "exhausted" and (row.p_met is None or row.p_met < _SURE_EXHAUSTED)
        condition: Condition = "firing" if spent else "clear" if row.state in ("ok", "at_risk") else "frozen"
        summary = f"{row.title}: {k_of_n(row)}, SLI {share(row.sli)}, target {share(row.target)}; {budget_words(row)}"
        span = int((row.window_end - row.window_start).total_seconds())
        identity = _identity(row, "budget", "ticket")
        found.append(Signal(identity, condition, summary, burn_annotations(row, []), longest_s=span))
    return found


@dataclass(frozen=True)
class AgentActivity:
    """When an agent last had a task (naive UTC)."""

    agent: str
    service: str
    last_at: datetime


def agent_activity(con: duckdb.DuckDBPyConnection, as_of: datetime) -> list[AgentActivity]:
    """The last task of every agent of the last 28 days, by start or end."""
    rows = con.execute(sql_text("metrics.alerts", "agent_activity"), {"as_of": as_of}).fetchall()
    return [AgentActivity(r[0] or "", r[1] or "", r[2]) for r in rows]


def no_data_signals(
    agents: Sequence[AgentActivity], settings: AlertSettings, as_of: datetime
) -> list[Signal]:
    """An agent that had tasks and now has none; forgotten when the 28 days are over."""
    rule = settings.no_data
    if rule is None:
        return []
    found: list[Signal] = []
    for agent in agents:
        if not fnmatchcase(agent.agent, rule.agent):
            continue
        quiet = as_of - agent.last_at
        condition: Condition = "firing" if quiet > rule.after else "clear"
        summary = f"{agent.agent or 'unnamed agent'}: no task for {length(quiet.total_seconds())}"
        identity = Identity("no_data", "tasks", "", rule.severity, service=agent.service, agent=agent.agent)
        words = {
            "last_task_at": f"{agent.last_at:%Y-%m-%d %H:%M:%S} UTC",
            "allowed": short_length(rule.after),
        }
        found.append(Signal(identity, condition, summary, words, since=agent.last_at + rule.after))
    return found


def silent_objectives(
    rows: Sequence[StatusRow],
    objectives: Sequence[Objective],
    settings: AlertSettings,
    as_of: datetime,
) -> list[Signal]:
    """Objectives whose alert policy asks for an alert without data (`alertWhenNoData`)."""
    asked = {o.key for o in objectives if o.no_data}
    after = settings.no_data.after if settings.no_data else timedelta(hours=24)
    severity = settings.no_data.severity if settings.no_data else "ticket"
    found: list[Signal] = []
    for row in rows:
        if (row.slo, row.objective) not in asked or row.state == "invalid":
            continue
        last = row.last_event_at
        condition: Condition = "firing" if last is None or as_of - last > after else "clear"
        text = (
            "no event in its whole window"
            if last is None
            else f"no event for {length((as_of - last).total_seconds())}"
        )
        found.append(Signal(_identity(row, "no_data", severity), condition, f"{row.title}: {text}"))
    return found


def event_signals(
    con: duckdb.DuckDBPyConnection, rules: Sequence[EventRule], as_of: datetime
) -> list[Signal]:
    """Findings that alert by themselves: one signal per rule, agent and tool, firing until it is quiet again.

    Reads the views `findings`, `attempts` and `tasks`. Nothing for a rule whose findings are all older than
    its `max_age`.
    """
    if not rules:
        return []
    oldest = as_of - max(r.max_age for r in rules)
    kinds = sorted({r.finding for r in rules})
    rows = run(
        con, sql_text("metrics.alerts", "events"), {"oldest": oldest, "as_of": as_of, "kinds": kinds}
    ).fetchall()
    groups: dict[Identity, list[tuple[Any, ...]]] = {}
    quiet: dict[Identity, timedelta] = {}
    for row in rows:
        kind, _, _, happened_at, _, tool, agent, service = row
        for rule in rules:
            if kind != rule.finding or as_of - happened_at > rule.max_age:
                continue
            if not fnmatchcase(tool or "", rule.tool) or not fnmatchcase(agent or "", rule.agent):
                continue
            identity = Identity(
                "event",
                rule.name,
                "",
                rule.severity,
                service=service or "",
                agent=agent or "",
                tool=tool or "",
            )
            groups.setdefault(identity, []).append(row)
            quiet[identity] = rule.quiet
    return [_event(identity, found, quiet[identity], as_of) for identity, found in groups.items()]


def _event(identity: Identity, rows: list[tuple[Any, ...]], quiet: timedelta, as_of: datetime) -> Signal:
    rows = sorted(rows, key=lambda r: (r[4], r[1]))
    # From when it was found: a late span must alert even when it happened before the quiet time.
    last = max(r[4] for r in rows)
    condition: Condition = "firing" if as_of - last <= quiet else "clear"
    recent = [r for r in rows if as_of - r[4] <= quiet] or rows[-1:]
    latest = recent[-1]
    where = f"{identity.agent or 'unnamed agent'}, {identity.tool}" if identity.tool else identity.agent
    more = f", {len(recent)} in the last {short_length(quiet)}" if len(recent) > 1 else ""
    summary = f"{latest[0].replace('_', ' ')} ({where}){more}: {latest[2]}"
    tasks = list(dict.fromkeys(r[1] for r in reversed(recent)))[:5]
    return Signal(
        identity,
        condition,
        summary,
        {
            "finding": latest[0],
            "happened_at": f"{latest[3]:%Y-%m-%d %H:%M:%S} UTC",
            "count": str(len(recent)),
        },
        subjects=tuple(tasks),
        since=min(r[3] for r in recent),
    )


def drift_signals(rows: Sequence[DriftRow]) -> list[Signal]:
    """Streams of cost or latency that have risen and stay so; days that cannot be tested say nothing."""
    found: list[Signal] = []
    for row in rows:
        condition: Condition = (
            "firing" if row.state == "rising" else "clear" if row.state == "steady" else "frozen"
        )
        identity = Identity(
            "drift", f"{row.metric}-drift", "", "ticket", agent=row.agent or "", task_type=row.task_type or ""
        )
        who = " / ".join((row.agent or "unnamed agent", row.task_type or "unnamed type"))
        summary = f"{who}: {row.metric} as usual"
        words: dict[str, str] = {}
        if row.shift is not None and row.shift_lower is not None and row.shift_upper is not None:
            summary = (
                f"{who}: {row.metric} is {row.shift:.2f} times what it was "
                f"({row.shift_lower:.2f} to {row.shift_upper:.2f})"
            )
            words = {
                "typical": f"{row.typical:.4g}, before {row.baseline_typical:.4g}",
                "tasks": f"{row.n} in {row.window_days} days against {row.baseline_n} in {row.baseline_days}",
                "p": f"{row.p:.2g}",
                "detectable": f"from {row.detectable:.2f} times on",
            }
        if row.agent_mix is not None and row.agent_rate is not None and row.agent_mean_before:
            before = row.agent_mean_before
            words["agent_mean"] = (
                f"{row.agent_mean:.4g}, before {before:.4g}: {row.agent_mix / before * 100:+.0f} % by other task "
                f"types, {row.agent_rate / before * 100:+.0f} % within the same"
            )
        since = None if row.opened_on is None else datetime(*row.opened_on.timetuple()[:3])
        found.append(Signal(identity, condition, summary, words, since=since))
    return found
