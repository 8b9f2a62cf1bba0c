"""Messages on their way: written with the state they tell of, sent at least once, never lost silently."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import duckdb

from metrics.alerts.message import Message, from_text
from metrics.alerts.settings import SecretMissing, Target
from metrics.alerts.tables import rows_of
from metrics.alerts.targets.send import Refused, Sender, TryLater

log = logging.getLogger("agent_slo.alerts")

FIRST_RETRY = timedelta(seconds=5)
LONGEST_RETRY = timedelta(minutes=10)
KEEP_DELIVERED = timedelta(days=3)
KEEP_DEAD = timedelta(days=30)


@dataclass(frozen=True)
class Waiting:
    """A row of the outbox that is neither delivered nor dead."""

    message_id: str
    alert_id: str
    target: str
    event: str
    message: Message
    created_at: datetime
    attempts: int
    next_at: datetime


def put(con: duckdb.DuckDBPyConnection, target: str, message: Message, now: datetime) -> str:
    """Add a message for a target; the caller holds the transaction. Returns its id.

    A reminder takes the place of an earlier one that still waits, and the end of an alert makes waiting
    reminders pointless.
    """
    if message.event in ("resend", "resolved"):
        con.execute(
            "DELETE FROM core.alert_outbox WHERE alert_id = ? AND target = ? AND event = 'resend' "
            "AND delivered_at IS NULL AND dead_at IS NULL",
            [message.alert_id, target],
        )
    message_id = uuid.uuid4().hex
    con.execute(
        "INSERT INTO core.alert_outbox VALUES (?, ?, ?, ?, ?, ?, 0, ?, NULL, NULL, NULL)",
        [message_id, message.alert_id, target, message.event, message.text(), now, now],
    )
    return message_id


def last_told(con: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], datetime]:
    """(alert, target) -> when its start or a reminder was last put into the outbox."""
    rows = con.execute(
        "SELECT alert_id, target, max(created_at) FROM core.alert_outbox "
        "WHERE event IN ('fired', 'resend') GROUP BY alert_id, target"
    ).fetchall()
    return {(r[0], r[1]): r[2] for r in rows}


def waiting(con: duckdb.DuckDBPyConnection) -> list[Waiting]:
    """What is still to be sent, oldest first."""
    found = [r for r in rows_of(con, "alert_outbox") if r["delivered_at"] is None and r["dead_at"] is None]
    found.sort(key=lambda r: (r["created_at"], r["event"] != "fired"))
    return [
        Waiting(
            r["message_id"],
            r["alert_id"],
            r["target"],
            r["event"],
            from_text(r["message"]),
            r["created_at"],
            r["attempts"],
            r["next_at"],
        )
        for r in found
    ]


def dead_letters(con: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Messages that were given up, newest first."""
    found = [r for r in rows_of(con, "alert_outbox") if r["dead_at"] is not None]
    return sorted(found, key=lambda r: r["dead_at"], reverse=True)


@dataclass
class Delivered:
    """What one round of delivery did."""

    sent: int = 0
    failed: int = 0
    dead: int = 0
    next_at: datetime | None = None
    """When the earliest waiting message is due."""


def deliver(
    con: duckdb.DuckDBPyConnection,
    targets: Sequence[Target],
    sender: Sender,
    now: datetime,
    give_up: timedelta,
) -> Delivered:
    """Send what is due, each target's messages about one alert in their order.

    A message is marked as delivered after its target took it, so a crash in between sends it twice and never
    not at all. A target that fails is left alone for the rest of the round. What is refused for good (or
    older than `give_up`) goes to the dead letters.
    """
    by_name: Mapping[str, Target] = {t.name: t for t in targets}
    done = Delivered()
    held: set[tuple[str, str]] = set()
    down: set[str] = set()
    for item in waiting(con):
        lane = (item.target, item.alert_id)
        if lane in held or item.target in down:
            continue
        target = by_name.get(item.target)
        if target is None:
            _bury(con, item, now, "there is no target of this name in the configuration any more", done)
            continue
        if item.next_at > now:
            held.add(lane)
            done.next_at = min(done.next_at or item.next_at, item.next_at)
            continue
        try:
            sender(target, item.message, item.message_id, now)
        except Refused as error:
            _bury(con, item, now, str(error), done)
        except (TryLater, SecretMissing) as error:
            after = error.after if isinstance(error, TryLater) else None
            held.add(lane)
            down.add(item.target)
            if now - item.created_at >= give_up:
                _bury(con, item, now, f"given up: {error}", done)
            else:
                _later(con, item, now, str(error), after, done)
        else:
            _mark_delivered(con, item, now)
            done.sent += 1
    if done.sent or done.dead:
        _forget(con, now)
    return done


def _mark_delivered(con: duckdb.DuckDBPyConnection, item: Waiting, now: datetime) -> None:
    con.execute(
        "UPDATE core.alert_outbox SET delivered_at = ?, attempts = attempts + 1, error = NULL WHERE message_id = ?",
        [now, item.message_id],
    )
    if item.event == "resend":
        con.execute(
            "DELETE FROM core.alert_outbox WHERE alert_id = ? AND target = ? AND event = 'resend' "
            "AND delivered_at IS NOT NULL AND message_id <> ?",
            [item.alert_id, item.target, item.message_id],
        )


def _later(
    con: duckdb.DuckDBPyConnection,
    item: Waiting,
    now: datetime,
    error: str,
    after: timedelta | None,
    done: Delivered,
) -> None:
    pause = after or min(FIRST_RETRY * 2 ** min(item.attempts, 10), LONGEST_RETRY)
    log.warning(
        "alert %s to %s: %s; again in %.0f s", item.alert_id, item.target, error, pause.total_seconds()
    )
    con.execute(
        "UPDATE core.alert_outbox SET attempts = attempts + 1, next_at = ?, error = ? WHERE message_id = ?",
        [now + pause, error, item.message_id],
    )
    done.failed += 1
    done.next_at = min(done.next_at or now + pause, now + pause)


def _bury(con: duckdb.DuckDBPyConnection, item: Waiting, now: datetime, error: str, done: Delivered) -> None:
    log.error("alert %s to %s is not delivered: %s", item.alert_id, item.target, error)
    con.execute(
        "UPDATE core.alert_outbox SET attempts = attempts + 1, dead_at = ?, error = ? WHERE message_id = ?",
        [now, error, item.message_id],
    )
    done.dead += 1


def _forget(con: duckdb.DuckDBPyConnection, now: datetime) -> None:
    """Old rows; the last word to each target about each alert stays, since reminders are timed by it."""
    con.execute(
        "DELETE FROM core.alert_outbox WHERE dead_at < $dead OR (delivered_at < $delivered AND message_id NOT IN "
        "(SELECT arg_max(message_id, created_at) FROM core.alert_outbox GROUP BY alert_id, target))",
        {"dead": now - KEEP_DEAD, "delivered": now - KEEP_DELIVERED},
    )
