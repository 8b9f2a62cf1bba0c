"""`agent-slo incidents` and `agent-slo incident ID`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from agent_slo.actions import act
from agent_slo.errors import CommandError
from agent_slo.finding_kinds import check_kind
from agent_slo.incident_actions import incident_actions
from agent_slo.options import Place, common, since_option
from agent_slo.output import answer_console, print_json, print_table, say
from agent_slo.reading import has_view, reading, require_derived
from collector.reader import Reader
from dashboard.format import UNKNOWN, count, missing, one_line, percent, when, words
from incidents import evidence, timeline
from incidents.grouping import REVIEWS, STATES
from incidents.queries import query_text

SHOWN_STATES = (*STATES, "reopened")


def require_grouped(reader: Reader, data: Path) -> None:
    """Raise `CommandError` when the folder was derived by a version that knew no incidents."""
    require_derived(reader, data)
    if not has_view(reader, "incident_findings") or not has_view(reader, "cases"):
        raise CommandError(
            f"{data}: incidents are not grouped yet; run `agent-slo rederive --data {data}` once"
        )


def require_kinds(kinds: Sequence[str]) -> None:
    """Raise `CommandError` naming the nearest for a kind that no finding has: it would pass nothing."""
    for kind in kinds:
        try:
            check_kind(kind)
        except ValueError as error:
            raise CommandError(f"--kind: {error}") from error


@click.command()
@click.option("--kind", "kinds", multiple=True, help="Only this kind of finding (repeatable).")
@click.option("--state", "states", multiple=True, type=click.Choice(SHOWN_STATES), help="Repeatable.")
@click.option("--agent", "agents", multiple=True, help="Only this agent (repeatable).")
@since_option
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@click.option("--accuracy", is_flag=True, help="How many of each kind a person called real or a false alarm.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@common
def incidents(
    place: Place,
    kinds: Sequence[str],
    states: Sequence[str],
    agents: Sequence[str],
    since: datetime | None,
    limit: int,
    accuracy: bool,
    form: str,
) -> None:
    """List incidents: findings with the same structure, the open and severe ones first."""
    require_kinds(kinds)
    with reading(place.data) as reader:
        require_grouped(reader, place.data)
        if accuracy:
            _reviews(reader.sql(query_text("incident_accuracy_list")).to_pylist(), form)
            return
        found: list[dict[str, Any]] = reader.sql(
            query_text("incident_list"),
            {
                "since": since,
                "kinds": list(kinds) or None,
                "states": list(states) or None,
                "agents": list(agents) or None,
                "max_rows": limit,
            },
        ).to_pylist()
    if form == "json":
        print_json([{key: value for key, value in row.items() if key != "matching"} for row in found])
        return
    if not found:
        say("no incident passes these filters")
        return
    print_table(
        ["incident", "what", "severity", "state", "agent", "tool", "seen", "first", "last"],
        [
            [
                row["incident_id"],
                _mode(row["mode"]),
                row["severity"],
                words({}, row["state"]),
                row["agent"] or UNKNOWN,
                row["tool"] or UNKNOWN,
                count(row["seen_count"]),
                when(row["first_seen"], seconds=False).removesuffix(" UTC"),
                when(row["last_seen"], seconds=False).removesuffix(" UTC"),
            ]
            for row in found
        ],
        right=(6,),
    )
    if found[0]["matching"] > len(found):
        say(f"{count(len(found))} of {count(found[0]['matching'])} incidents; more with --limit")


def _mode(mode: str) -> str:
    """`duplicate_action.crash_replay` as `duplicate action: crash replay`."""
    return mode.replace(".", ": ").replace("_", " ")


def _reviews(found: list[dict[str, Any]], form: str) -> None:
    if form == "json":
        print_json(found)
        return
    print_table(
        ["kind", "incidents", "reviewed", "real", "false alarms", "precision", "95 %"],
        [
            [
                row["kind"],
                count(row["incidents"]),
                count(row["reviewed"]),
                count(row["real"]),
                count(row["false_alarms"]),
                percent(row["precision"]),
                UNKNOWN
                if missing(row["precision_low"])
                else f"{percent(row['precision_low'])} to {percent(row['precision_high'])}",
            ]
            for row in found
        ],
        right=(1, 2, 3, 4, 5, 6),
    )


@click.command()
@click.argument("incident_id", metavar="ID")
@click.option(
    "--state", type=click.Choice(STATES), help="Say that it is open, acknowledged, resolved or ignored."
)
@click.option("--verdict", type=click.Choice(REVIEWS), help="Say that the finding is real or a false alarm.")
@click.option("--note", help="Keep a note with it.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@common
def incident(
    place: Place, incident_id: str, state: str | None, verdict: str | None, note: str | None, form: str
) -> None:
    """Tell one incident as a timeline, or say something of it.

    A resolved incident that is seen again is shown as reopened.
    """
    if state or verdict or note:
        said = {"incident_id": incident_id, "state": state, "verdict": verdict, "note": note}
        act(place.data, incident_actions(), "incidents.say", said)
    with reading(place.data) as reader:
        require_grouped(reader, place.data)
        rows = evidence.find(reader, ids=[incident_id])
        told = list(evidence.gather(reader, rows))
    if not told:
        raise CommandError(f"no incident {incident_id!r} in {place.data}; `agent-slo incidents` lists them")
    chosen = told[0]
    lines = timeline.tell(chosen)
    if form == "json":
        print_json(
            {
                "incident": chosen.incident,
                "evidence_span_ids": chosen.evidence_span_ids,
                "task_ids": list(dict.fromkeys(row["task_id"] for row in chosen.findings)),
                "timeline": [
                    {"at": line.at, "text": line.text, "span_ids": list(line.span_ids), "fault": line.fault}
                    for line in lines
                ],
            }
        )
        return
    _tell(chosen, lines)


def _tell(chosen: evidence.Evidence, lines: Sequence[timeline.Line]) -> None:
    out = answer_console()
    row = chosen.incident

    def line(text: str) -> None:
        out.print(text, markup=False, soft_wrap=True)

    line(f"Incident {row['incident_id']}: {one_line(_mode(row['mode']))}")
    facts = [
        f"severity {row['severity']}",
        f"state {words({}, row['state'])}",
        f"agent {one_line(row['agent'])}" if row["agent"] else "",
        f"tool {one_line(row['tool'])}" if row["tool"] else "",
    ]
    line(", ".join(fact for fact in facts if fact))
    line(f"seen in {count(row['seen_count'])} tasks, {when(row['first_seen'])} to {when(row['last_seen'])}")
    if not missing(row["verdict"]):
        line(f"reviewed: {words({}, row['verdict'])}")
    if not missing(row["note"]):
        line(f"note: {one_line(row['note'])}")
    for finding in chosen.own_findings:
        line(f"Finding: {one_line(finding['detail'])} ({one_line(finding['rule'])})")
    line(f"\nTask {one_line(chosen.task['task_id'])}")
    for moment in lines:
        mark = "!" if moment.fault else " "
        line(f"{mark} {moment.at:%Y-%m-%d %H:%M:%S}  {one_line(moment.text, 300)}")
    others = [t for t in dict.fromkeys(f["task_id"] for f in chosen.findings) if t != chosen.task["task_id"]]
    if others:
        line(
            "\nAlso in "
            + ", ".join(one_line(task) for task in others[:8])
            + (", ..." if len(others) > 8 else "")
        )
    line(f"\nAs an evaluation case: agent-slo export --incident {row['incident_id']} --out DIR")
