"""`agent-slo alerts`: what fires, who is told, and when not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from agent_slo.actions import act
from agent_slo.alert_actions import alert_actions
from agent_slo.derivation import now
from agent_slo.errors import EXIT_FINDING, CommandError
from agent_slo.options import Moment, Place, common
from agent_slo.output import print_json, print_table, say
from agent_slo.reading import has_view, reading
from collector.reader import Reader
from dashboard.format import when
from metrics.alerts.engine import AlertEngine, trial
from metrics.alerts.settings import SecretMissing
from metrics.alerts.targets.send import Refused, TryLater, send
from metrics.drift.evaluate import METRICS
from metrics.settings import parse_duration

FORMAT = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
Row = dict[str, Any]


@click.group()
def alerts() -> None:
    """Alerts: test the targets, list what fires, silence, end."""


@alerts.command()
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@common
def test(place: Place, targets: Sequence[str]) -> None:
    """Send a test message to the configured targets (all, or those named) and say what they answered.

    Exit code 1 when one of them did not take it. The collector need not run.
    """
    settings = place.config().config.alerts
    known = [t.name for t in settings.targets]
    if not known:
        raise CommandError("no target is configured; add one under alerts: targets: in agent-slo.yaml")
    for name in targets:
        if name not in known:
            raise CommandError(f"no target {name!r}; there are {', '.join(known)}")
    failed = 0
    for target in settings.targets:
        if targets and target.name not in targets:
            continue
        try:
            send(target, trial(settings, now()), "test", now())
        except (TryLater, Refused, SecretMissing) as error:
            failed += 1
            click.echo(f"{target.name} ({target.type}): failed: {error}")
        else:
            click.echo(f"{target.name} ({target.type}): taken")
    if failed:
        sys.exit(EXIT_FINDING)


@alerts.command("list")
@click.option("--all", "every", is_flag=True, help="Also those that ended within the last week.")
@click.option("--dead", is_flag=True, help="Messages that could not be delivered, instead.")
@click.option("--silences", is_flag=True, help="Silences of operators, instead.")
@FORMAT
@common
def list_alerts(place: Place, every: bool, dead: bool, silences: bool, form: str) -> None:
    """Show alerts that are pending or fire, the newest first."""
    if dead and silences:
        raise CommandError("--dead and --silences: one of them at a time")
    with reading(place.data) as reader:
        if dead:
            found = _dead(reader)
        elif silences:
            found = _rows(reader, "alert_silences", "WHERE ended_at IS NULL ORDER BY starts_at")
        else:
            where = "" if every else "WHERE state <> 'resolved'"
            found = _rows(
                reader, "alerts", f"{where} ORDER BY coalesce(fired_at, pending_since) DESC, alert_id"
            )
    if form == "json":
        print_json(found)
        return
    if not found:
        say("none")
        return
    if dead:
        print_table(
            ["alert", "target", "what", "given up", "tries", "why"],
            [
                [r["alert_id"], r["target"], r["event"], when(r["dead_at"]), r["attempts"], r["error"]]
                for r in found
            ],
            right=(4,),
        )
    elif silences:
        print_table(
            ["silence", "from", "until", "slo", "agent", "severity", "reason"],
            [
                [
                    r["silence_id"],
                    when(r["starts_at"]),
                    when(r["ends_at"]),
                    r["slo"],
                    r["agent"],
                    r["severity"],
                    r["reason"],
                ]
                for r in found
            ],
        )
    else:
        print_table(
            ["alert", "state", "severity", "since", "what"],
            [
                [
                    r["alert_id"],
                    r["state"] + (" (silenced)" if r["silenced_by"] and r["state"] != "resolved" else ""),
                    r["severity"],
                    when(r["fired_at"] or r["pending_since"]),
                    r["summary"],
                ]
                for r in found
            ],
        )


@alerts.command()
@click.option("--for", "length", help="How long from now (or from --from), as in 2h.")
@click.option("--until", type=Moment(), help="When it ends, instead of --for.")
@click.option("--from", "start", type=Moment(), help="When it begins (default now).")
@click.option("--slo", default="*", show_default=True, help="Name or glob of the SLO or event rule.")
@click.option("--agent", default="*", show_default=True, help="Name or glob of the agent.")
@click.option("--severity", default="*", show_default=True, help="page, ticket, or a glob.")
@click.option("--reason", required=True, help="Why, for those who wonder later.")
@common
def silence(
    place: Place,
    length: str | None,
    until: datetime | None,
    start: datetime | None,
    slo: str,
    agent: str,
    severity: str,
    reason: str,
) -> None:
    """Do not tell matching alerts for a while. They are still evaluated, and told when the silence ends."""
    if (length is None) == (until is None):
        raise CommandError("give one of --for and --until: a silence needs an end")
    if length is not None:
        try:
            until = (start or now()) + parse_duration(length)
        except ValueError as error:
            raise CommandError(f"--for: {error}") from error
    arguments = {
        "starts_at": start,
        "ends_at": until,
        "slo": slo,
        "agent": agent,
        "severity": severity,
        "reason": reason,
    }
    found = _act(place, "alerts.silence", arguments)
    click.echo(found["silence_id"])
    say(f"silent until {found['ends_at']}")


@alerts.command()
@click.argument("silence_id")
@common
def unsilence(place: Place, silence_id: str) -> None:
    """End a silence now."""
    _act(place, "alerts.unsilence", {"silence_id": silence_id})
    say("ended; alerts that still fire are told at the next evaluation")


@alerts.command()
@click.argument("alert_id")
@click.option("--reason", help="Told to the targets with the end.")
@common
def resolve(place: Place, alert_id: str, reason: str | None) -> None:
    """End an alert by hand, as one that is frozen because no further tasks come.

    It fires again when its condition still holds. The beginning of the id is enough.
    """
    found = _act(place, "alerts.resolve", {"alert_id": alert_id, "reason": reason})
    say(f"{found['alert_id']} ended")


@alerts.command()
@click.option("--since", type=Moment(), help="When the new baseline begins (default now).")
@click.option("--agent", default="*", show_default=True, help="Name or glob of the agent.")
@click.option("--type", "task_type", default="*", show_default=True, help="Name or glob of the task type.")
@click.option("--metric", type=click.Choice(["*", *METRICS]), default="*", show_default=True)
@click.option("--reason", required=True, help="Why, as a deployment that is dearer on purpose.")
@common
def rebaseline(
    place: Place, since: datetime | None, agent: str, task_type: str, metric: str, reason: str
) -> None:
    """Let drift learn anew what is normal: 28 days from --since on are the baseline."""
    arguments = {"since": since, "agent": agent, "task_type": task_type, "metric": metric, "reason": reason}
    found = _act(place, "alerts.rebaseline", arguments)
    say(f"the baseline begins at {found['since']}; drift is judged again when it is 28 days old")


def _act(place: Place, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    config = place.config().config
    engine = AlertEngine(config.alerts, config.maintenance)
    return act(place.data, alert_actions(engine), name, arguments)


def _rows(reader: Reader, view: str, rest: str) -> list[Row]:
    if not has_view(reader, view):
        return []
    found: list[Row] = reader.sql(f"SELECT * FROM {view} {rest}").to_pylist()
    return found


def _dead(reader: Reader) -> list[Row]:
    return _rows(reader, "alert_outbox", "WHERE dead_at IS NOT NULL ORDER BY dead_at DESC")
