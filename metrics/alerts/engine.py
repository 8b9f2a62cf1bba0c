"""One evaluation of all alerts: what is true now, what becomes of what was true, who is told.

State and messages are written in one transaction: an alert that fired has its messages in the outbox, whatever
happens to the process in between.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import quote

import duckdb

from metrics.alerts import conditions, outbox
from metrics.alerts.machine import Alert, Transition, end, step
from metrics.alerts.message import Event, Message, TaskLink, stamp
from metrics.alerts.settings import AlertSettings, Target
from metrics.alerts.signal import Signal
from metrics.alerts.silences import Quiet, configured, covering, operators_silences
from metrics.alerts.tables import alert_of, alert_row, create_tables, rows_of, write_alerts
from metrics.alerts.words import length
from metrics.drift.evaluate import DriftRow
from metrics.settings import MaintenanceWindow
from metrics.slo.evaluate import split_objectives
from metrics.slo.objective import Objective
from metrics.slo.status import StatusRow
from metrics.slo.windows import utc
from metrics.slo.worst import worst_tasks

KEEP_RESOLVED = timedelta(days=7)

WRITE_TRIES = 3

REMINDER_SLACK = timedelta(seconds=5)
"""A reminder due within so much is sent now: evaluations come every minute, but never to the second."""


class AlertError(ValueError):
    """An alert or target that does not exist; says how to mend."""


@dataclass
class Evaluated:
    """What one evaluation did: alerts that fired, ended, and are active now."""

    fired: int = 0
    resolved: int = 0
    active: int = 0
    messages: int = 0


class AlertEngine:
    """Evaluates alerts over a connection that may write `core` and sees the public views.

    Keeps nothing itself: another engine over the same tables goes on where this one stopped.
    """

    def __init__(self, settings: AlertSettings, maintenance: Sequence[MaintenanceWindow] = ()) -> None:
        self.settings = settings
        self._configured = configured(settings.silences, maintenance)

    def migrate(self, con: duckdb.DuckDBPyConnection) -> None:
        """Create the tables where they are missing."""
        create_tables(con)

    # -- evaluation -------------------------------------------------------------------------------

    def evaluate(
        self,
        con: duckdb.DuckDBPyConnection,
        objectives: Sequence[Objective],
        rows: Sequence[StatusRow],
        as_of: datetime,
        drifts: Sequence[DriftRow] = (),
    ) -> Evaluated:
        """Hold all alerts against the status rows of the same moment and put messages into the outbox."""
        now = utc(as_of)
        self.migrate(con)
        before = {a.key: a for a in (alert_of(r) for r in rows_of(con, "alerts"))}
        tasks = {r["alert_id"]: r["tasks"] for r in rows_of(con, "alerts")}
        signals = {s.identity.key: s for s in self._signals(con, objectives, rows, now, before, drifts)}
        quiets = [*self._configured, *operators_silences(con)]
        told = outbox.last_told(con)
        every = split_objectives(objectives, rows)
        done = Evaluated()
        changed: list[list[object]] = []
        messages: list[tuple[Target, Message]] = []
        for key in dict.fromkeys([*before, *signals]):
            old = before.get(key)
            alert, transition = step(old, signals.get(key), now)
            if alert is None:
                continue
            if transition == "fired" and self._covered(alert, signals):
                # The row of all says no more than the row of the one agent that burns.
                continue
            quiet = covering(quiets, alert.identity, now)
            examples = tasks.get(key, "[]")
            if transition == "fired" or (alert.state == "firing" and self._reminders_due(alert, told, now)):
                examples = self._examples(con, every, alert.signal, now)
            alert, sent = self._tell(alert, transition, examples, quiet, told, now)
            messages += sent
            done.fired += transition == "fired"
            done.resolved += transition == "resolved"
            done.active += alert.is_active
            if alert.state == "resolved" and alert.resolved_at and now - alert.resolved_at > KEEP_RESOLVED:
                continue
            changed.append(alert_row(alert, examples, quiet.silence_id if quiet else None))
        self._write(con, before, changed, messages, now)
        done.messages = len(messages)
        return done

    def _signals(
        self,
        con: duckdb.DuckDBPyConnection,
        objectives: Sequence[Objective],
        rows: Sequence[StatusRow],
        now: datetime,
        before: dict[str, Alert],
        drifts: Sequence[DriftRow],
    ) -> Iterable[Signal]:
        settings = self.settings
        if settings.burn:
            fired_by = {k: a.signal.subjects for k, a in before.items() if a.is_active}
            yield from conditions.burn_signals(rows, settings, fired_by)
        if settings.budget_exhausted:
            yield from conditions.budget_signals(rows)
        if settings.no_data is not None:
            yield from conditions.no_data_signals(conditions.agent_activity(con, now), settings, now)
        yield from conditions.silent_objectives(rows, objectives, settings, now)
        yield from conditions.event_signals(con, settings.events, now)
        if settings.drift:
            yield from conditions.drift_signals(drifts)

    @staticmethod
    def _covered(alert: Alert, signals: dict[str, Signal]) -> bool:
        """Whether an alert about all agents is about to repeat that of one agent or type."""
        one = alert.identity
        if one.kind not in ("burn", "budget") or one.agent or one.task_type:
            return False
        return any(
            s.condition == "firing"
            and s.after_s <= 0
            and (s.identity.agent or s.identity.task_type)
            and (s.identity.kind, s.identity.slo, s.identity.severity) == (one.kind, one.slo, one.severity)
            and s.identity.objective.startswith(f"{one.objective} [")
            for s in signals.values()
        )

    def _targets(self, alert: Alert) -> list[Target]:
        """Who is told: those the alert's policy names, where they exist, else whoever takes its severity."""
        named = [t for t in self.settings.targets if t.name in alert.signal.targets]
        return named or [t for t in self.settings.targets if t.takes(alert.identity.severity)]

    def _reminders_due(self, alert: Alert, told: dict[tuple[str, str], datetime], now: datetime) -> bool:
        return any(_due(told.get((alert.key, t.name)), t, now) for t in self._targets(alert))

    def _tell(
        self,
        alert: Alert,
        transition: Transition | None,
        examples: str,
        quiet: Quiet | None,
        told: dict[tuple[str, str], datetime],
        now: datetime,
    ) -> tuple[Alert, list[tuple[Target, Message]]]:
        """The messages of this evaluation, and the alert with the moment its start was told."""
        targets = self._targets(alert)
        if transition == "resolved":
            if alert.told_at is None or not alert.signal.tell_end:
                return alert, []  # Its start was silenced: nobody waits for its end.
            message = self._message(alert, "resolved", examples, now)
            return alert, [(t, message) for t in targets if t.resolved]
        if not alert.is_active or quiet is not None:
            return alert, []
        if alert.told_at is None:
            message = self._message(alert, "fired", examples, now)
            return replace(alert, told_at=now), [(t, message) for t in targets]
        message = self._message(alert, "resend", examples, now)
        return alert, [(t, message) for t in targets if _due(told.get((alert.key, t.name)), t, now)]

    def _write(
        self,
        con: duckdb.DuckDBPyConnection,
        before: dict[str, Alert],
        changed: list[list[object]],
        messages: Sequence[tuple[Target, Message]],
        now: datetime,
    ) -> None:
        keys = [*before, *(str(row[0]) for row in changed)]
        if not keys and not messages:
            return
        for attempt in range(WRITE_TRIES):
            try:
                self._write_once(con, keys, changed, messages, now)
                return
            except duckdb.TransactionException:
                # The delivery has marked a reminder that this was about to replace; the next try sees that.
                if attempt == WRITE_TRIES - 1:
                    raise

    @staticmethod
    def _write_once(
        con: duckdb.DuckDBPyConnection,
        keys: Sequence[str],
        changed: list[list[object]],
        messages: Sequence[tuple[Target, Message]],
        now: datetime,
    ) -> None:
        con.execute("BEGIN")
        try:
            write_alerts(con, dict.fromkeys(keys), changed)
            for target, message in messages:
                outbox.put(con, target.name, message, now)
            con.execute("COMMIT")
        except BaseException:
            with suppress(duckdb.Error):  # a failed COMMIT has ended the transaction already
                con.execute("ROLLBACK")
            raise

    # -- words ------------------------------------------------------------------------------------

    def _message(self, alert: Alert, event: Event, examples: str, now: datetime) -> Message:
        base = self.settings.dashboard
        return Message(
            alert_id=alert.key,
            event=event,
            kind=alert.identity.kind,
            labels=alert.identity.labels(),
            summary=alert.signal.summary,
            annotations=alert.signal.annotations,
            starts_at=stamp(alert.fired_at or now),
            ends_at=stamp(alert.resolved_at) if alert.resolved_at and event == "resolved" else None,
            at=stamp(alert.fired_at or now if event == "fired" else now),
            tasks=tuple(TaskLink(**t) for t in json.loads(examples)),
            url=base or "",
            reason=alert.reason if event == "resolved" else "",
            extra={"source": self.settings.source},
        )

    def _link(self, task_id: str, words: str) -> TaskLink:
        base = self.settings.dashboard
        return TaskLink(task_id, words, f"{base}/task?id={quote(task_id, safe='')}" if base else "")

    def _examples(
        self, con: duckdb.DuckDBPyConnection, objectives: Sequence[Objective], signal: Signal, now: datetime
    ) -> str:
        """JSON of the worst tasks behind a signal, with links."""
        identity = signal.identity
        found: list[TaskLink] = []
        if identity.kind == "event":
            found = [self._link(t, identity.tool or "finding") for t in signal.subjects]
        elif identity.kind in ("burn", "budget"):
            one = next((o for o in objectives if o.key == (identity.slo, identity.objective)), None)
            if one is not None:
                start = now - timedelta(seconds=signal.longest_s + one.settle_s)
                for task in worst_tasks(con, one, start, now):
                    words = f"{task.at:%Y-%m-%d %H:%M} UTC"
                    if task.value is not None:
                        shown = length(task.value) if one.unit == "s" else f"{task.value:.4g} {one.unit}"
                        words += f", {shown}"
                    found.append(self._link(task.task_id, words))
        return json.dumps([asdict(t) for t in found], ensure_ascii=False)

    # -- operators --------------------------------------------------------------------------------

    def resolve(self, con: duckdb.DuckDBPyConnection, alert_id: str, now: datetime, reason: str) -> Alert:
        """End an alert by an operator's word, as for one that is frozen. Raises AlertError.

        It fires again at the next evaluation if its condition still holds.
        """
        self.migrate(con)
        rows = [r for r in rows_of(con, "alerts") if r["alert_id"].startswith(alert_id)] if alert_id else []
        if len(rows) != 1:
            words = "no alert" if not rows else f"{len(rows)} alerts"
            raise AlertError(f"{words} with the id {alert_id!r}; `agent-slo alerts list` shows them")
        old = alert_of(rows[0])
        alert, transition = end(old, now, reason)
        if alert is None:
            self._write(con, {old.key: old}, [], [], now)
            return replace(old, state="resolved", resolved_at=now, reason=reason)
        alert, messages = self._tell(alert, transition, rows[0]["tasks"], None, {}, now)
        self._write(con, {old.key: old}, [alert_row(alert, rows[0]["tasks"], None)], messages, now)
        return alert


def _due(last: datetime | None, target: Target, now: datetime) -> bool:
    return last is None or now - last >= target.repeat - REMINDER_SLACK


def trial(settings: AlertSettings, now: datetime) -> Message:
    """The message of `agent-slo alerts test`: plainly a test, with everything a real one has."""
    base = settings.dashboard or ""
    return Message(
        alert_id="test",
        event="test",
        kind="burn",
        labels={"alertname": "AgentSloTest", "severity": "ticket", "slo": "test", "service": "agent-slo"},
        summary="This is a test of agent-slo's alerts; nothing is wrong.",
        annotations={"window": "0 bad of 0", "budget": "100 % of the budget left"},
        starts_at=stamp(now),
        ends_at=None,
        at=stamp(now),
        url=base,
        extra={"source": settings.source},
    )
