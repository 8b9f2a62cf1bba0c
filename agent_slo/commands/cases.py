"""`agent-slo cases`: which incidents have become evaluation cases, and what people decided of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from importlib.metadata import version as installed
from typing import Any

import click

from agent_slo.actions import account, act
from agent_slo.case_actions import case_actions
from agent_slo.commands.export import keep
from agent_slo.commands.incidents import require_grouped, require_kinds
from agent_slo.errors import CommandError
from agent_slo.options import Place, common, since_option
from agent_slo.output import print_json, print_table, say
from agent_slo.reading import reading
from dashboard.format import UNKNOWN, count, one_line
from incidents import evidence, reviews
from incidents.case import Group, make_group

FORMAT = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
Row = dict[str, Any]


@click.group()
def cases() -> None:
    """Evaluation cases of incidents: list, approve, reject, retire, reopen."""


def _derived(place: Place, rows: Callable[[Any], list[Row]]) -> tuple[list[Group], list[reviews.Content]]:
    """The groups of incidents as an export would write them now, and what the store does not know of them."""
    settings = place.config().config
    with reading(place.data) as reader:
        require_grouped(reader, place.data)
        chosen = rows(reader)
        kept = reviews.kept(reader, [row["incident_id"] for row in chosen])
        groups = [
            make_group(one, settings, f"agent-slo/{installed('agent-slo')}")
            for one in evidence.gather(reader, chosen)
        ]
    fresh = [content for group in groups for content in kept.fresh(group)]
    for group in groups:
        reviews.settle(group, kept)
    return groups, fresh


@cases.command("list")
@click.option("--state", "states", multiple=True, type=click.Choice(reviews.STATES), help="Repeatable.")
@click.option("--set", "sets", multiple=True, type=click.Choice(reviews.SETS), help="Repeatable.")
@click.option("--kind", "kinds", multiple=True, help="Only findings of this kind (repeatable).")
@since_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="How many incidents to derive, the newest first.",
)
@FORMAT
@common
def list_cases(
    place: Place,
    states: Sequence[str],
    sets: Sequence[str],
    kinds: Sequence[str],
    since: datetime | None,
    limit: int,
    form: str,
) -> None:
    """List the cases that the newest incidents make, with their state, their set and why a draft is one."""
    require_kinds(kinds)
    total = 0

    def newest(reader: Any) -> list[Row]:
        nonlocal total
        found = evidence.find(reader, since=since, kinds=kinds or None)
        total = len(found)
        return found[:limit]

    groups, _ = _derived(place, newest)
    found = [
        _row(group)
        for group in groups
        if (not states or group.incident["review"]["state"] in states)
        and (not sets or group.incident["set"] in sets)
    ]
    if form == "json":
        print_json(found)
        return
    if not found:
        say("no case passes these filters")
    else:
        print_table(
            ["case", "what", "state", "set", "rev", "by", "note"],
            [
                [
                    row["case_id"],
                    row["failure_mode"].replace(".", ": ").replace("_", " "),
                    row["state"].replace("_", " "),
                    row["set"],
                    count(row["revision"]),
                    row["by"] or UNKNOWN,
                    one_line(row["note"] or "", 120),
                ]
                for row in found
            ],
            right=(4,),
        )
    if total > limit:
        say(f"the newest {count(limit)} of {count(total)} incidents; more with --limit")


def _row(group: Group) -> Row:
    case = group.incident
    return {
        "case_id": case["case_id"],
        "incident_id": case["origin"]["incident_id"],
        "failure_mode": case["classification"]["failure_mode"],
        "title": case["title"],
        "state": case["review"]["state"],
        "set": case["set"],
        "split": case["split"],
        "revision": case["revision"],
        "content_hash": case["content_hash"],
        "by": case["review"]["by"],
        "at": case["review"]["at"],
        "note": case["review"]["note"],
        "roles": [member["role"] for member in group.cases],
    }


def _say(
    place: Place,
    ids: Sequence[str],
    state: str,
    note: str | None,
    by: str | None,
    case_set: str | None,
    form: str,
) -> None:
    wanted = list(dict.fromkeys(one.removesuffix("-twin").removesuffix("-control") for one in ids))
    groups, fresh = _derived(place, lambda reader: evidence.find(reader, ids=wanted))
    found = {group.incident["case_id"] for group in groups}
    missing = [one for one in wanted if one not in found]
    if missing:
        raise CommandError(f"no incident {missing[0]!r} in {place.data}; `agent-slo cases list` lists them")
    for group in groups:
        if state == "approved" and group.draft:
            raise CommandError(
                f"{group.incident['case_id']}: is a draft and cannot be approved: {group.reason}"
            )
    keep(place.data, fresh)
    answers = [
        act(
            place.data,
            case_actions(),
            "cases.say",
            {"case_id": one, "state": state, "case_set": case_set, "note": note, "by": by or account()},
        )
        for one in wanted
    ]
    if form == "json":
        print_json(answers)
        return
    for answer in answers:
        say(f"{answer['case_id']} is {state.replace('_', ' ')}")


IDS = click.argument("ids", metavar="ID...", nargs=-1, required=True)
NOTE = click.option("--note", help="Why, for those who wonder later.")
BY = click.option("--by", help="Who says so (default: the account that runs this).")


@cases.command()
@IDS
@click.option(
    "--set",
    "case_set",
    type=click.Choice(["regression", "capability"]),
    help="regression must pass for ever (the default), capability is followed as a rate.",
)
@NOTE
@BY
@FORMAT
@common
def approve(
    place: Place, ids: Sequence[str], case_set: str | None, note: str | None, by: str | None, form: str
) -> None:
    """Let cases into their set: you have read them, they say the right thing and nothing private.

    It holds for the content as it is now; when the case changes, it is in review again. A draft cannot be approved.
    """
    _say(place, ids, "approved", note, by, case_set, form)


@cases.command()
@IDS
@click.option("--note", required=True, help="Why, for those who wonder later.")
@BY
@FORMAT
@common
def reject(place: Place, ids: Sequence[str], note: str, by: str | None, form: str) -> None:
    """Keep cases out of every export: what they ask for is wrong, or nobody needs it."""
    _say(place, ids, "rejected", note, by, None, form)


@cases.command()
@IDS
@NOTE
@BY
@FORMAT
@common
def retire(place: Place, ids: Sequence[str], note: str | None, by: str | None, form: str) -> None:
    """Take cases out of their set for good: the tool or the policy they are about is gone."""
    _say(place, ids, "retired", note, by, None, form)


@cases.command()
@IDS
@NOTE
@BY
@FORMAT
@common
def reopen(place: Place, ids: Sequence[str], note: str | None, by: str | None, form: str) -> None:
    """Take back what was said: the cases are to be looked at again."""
    _say(place, ids, "in_review", note, by, None, form)
