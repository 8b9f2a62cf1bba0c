"""`agent-slo tasks`: the list of tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from agent_slo.options import Moment, Place, common, since_option
from agent_slo.output import plain, print_json, print_table, say
from agent_slo.reading import reading, require_derived, rows, warn_of_lag
from dashboard.format import OUTCOME_WORDS, count, duration, missing, usd, when, words


@click.command()
@click.option("--agent", "agents", multiple=True, help="Only this agent (repeatable).")
@click.option("--type", "task_types", multiple=True, help="Only this task type (repeatable).")
@click.option(
    "--outcome", "outcomes", multiple=True, type=click.Choice(list(OUTCOME_WORDS)), help="Repeatable."
)
@click.option("--duplicate", is_flag=True, help="Only tasks with an unprotected duplicate.")
@click.option("--human", is_flag=True, help="Only tasks with a human intervention.")
@click.option("--text", help="Part of a task, trace or conversation id.")
@since_option
@click.option("--until", type=Moment(), help="Only what started before.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@common
def tasks(
    place: Place,
    agents: Sequence[str],
    task_types: Sequence[str],
    outcomes: Sequence[str],
    duplicate: bool,
    human: bool,
    text: str | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    form: str,
) -> None:
    """List tasks, newest first."""
    with reading(place.data) as reader:
        require_derived(reader, place.data)
        warn_of_lag(reader)
        found = rows(
            reader,
            "task_list",
            days=None,
            since=_text(since),
            until=_text(until),
            services=None,
            environments=None,
            versions=None,
            agents=json.dumps(agents) if agents else None,
            task_types=json.dumps(task_types) if task_types else None,
            outcomes=json.dumps(outcomes) if outcomes else None,
            duplicates=duplicate,
            interventions=human,
            text=text,
            max_rows=limit,
            skip_rows=0,
        )
    if form == "json":
        print_json([{key: value for key, value in row.items() if key != "matching"} for row in found])
        return
    if not found:
        say("no task passes these filters")
        return
    print_table(
        ["task", "started", "agent", "type", "outcome", "evidence", "duplicates", "human", "wall", "cost"],
        [_shown(row) for row in found],
        right=(6, 7, 8, 9),
    )
    if found[0]["matching"] > len(found):
        say(f"{count(len(found))} of {count(found[0]['matching'])} tasks; more with --limit")


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else str(plain(moment)).removesuffix("Z")


def _shown(row: dict[str, Any]) -> list[Any]:
    cost = usd(row["cost_usd"])
    return [
        row["task_id"],
        when(row["started_at"]).removesuffix(" UTC"),
        row["agent"],
        row["task_type"],
        words(OUTCOME_WORDS, row["outcome"]),
        row["outcome_evidence"],
        count(row["duplicates_unprotected"]),
        count(row["interventions"]),
        duration(row["wall_s"]),
        cost if missing(row["cost_usd"]) or row["cost_complete"] else f">= {cost}",
    ]
