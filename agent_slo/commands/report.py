"""`agent-slo report`: are the objectives met, and what stands in their way."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import click

from agent_slo.costs import waste_line, week
from agent_slo.options import Place, as_of_option, common, since_option
from agent_slo.output import answer_console, plain, print_json, print_table
from agent_slo.reading import has_view, lag, reading, require_derived, rows
from collector.reader import Reader
from dashboard.format import (
    CAUSE_WORDS,
    OUTCOME_WORDS,
    STATE_WORDS,
    burn_line,
    count,
    interval,
    json_list,
    json_object,
    percent,
    target_percent,
    when,
    words,
)

Row = dict[str, Any]


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@since_option
@as_of_option
@common
def report(place: Place, form: str, since: datetime | None, as_of: datetime | None) -> None:
    """Show objectives, findings and duplicates.

    Each objective with k of n, interval, budget left, burn and state.

    --since bounds task counts, findings and duplicates; objectives keep their own windows. --as-of decides
    into a temporary copy, and nothing in the data folder changes.
    """
    place.config()  # a file the collector would refuse is not passed over
    with _reader(place, as_of) as reader:
        found = collect(reader, since)
    if form == "json":
        print_json(found)
    else:
        tell(found)


def _reader(place: Place, as_of: datetime | None) -> AbstractContextManager[Reader]:
    if as_of is None:
        return reading(place.data)
    from agent_slo.as_of import reading_as_of

    return reading_as_of(place, as_of)


def collect(reader: Reader, since: datetime | None) -> Row:
    """Everything the report says: as_of, slos, tasks (outcome to count), findings, duplicates.

    `as_of` is the moment the objectives were evaluated; the last pass may be later.
    """
    require_derived(reader, reader.folder.root)
    bound = None if since is None else str(plain(since)).removesuffix("Z")
    moment = [row["evaluated_at"] or row["as_of"] for row in rows(reader, "pipeline")]
    status = rows(reader, "overview_status") if has_view(reader, "slo_status") else []
    return {
        "as_of": moment[0] if moment else None,
        "warning": lag(reader),
        "slos": [row | _parsed(row) for row in status],
        "tasks": {row["outcome"]: row["tasks"] for row in rows(reader, "report_outcomes", since=bound)},
        "findings": rows(reader, "report_findings", since=bound),
        "duplicates": rows(reader, "report_duplicates", since=bound),
        "waste": week(reader),
    }


def _parsed(row: Row) -> Row:
    """The JSON columns of a status row as values, so that a machine need not parse twice."""
    lists = ("firing", "pairs", "notes")
    found: Row = {name: json_list(row[name]) for name in lists if name in row}
    return found | {
        name: json_object(row[name]) for name in ("burn", "exhaustion", "excluded_by") if name in row
    }


def tell(found: Row) -> None:
    """Print the report for people."""
    line = answer_console().out
    if found["warning"]:
        line(f"Warning: {found['warning']}")
    line(f"Objectives as of {when(found['as_of'])}")
    print_table(
        ["objective", "SLI", "k of n", "95% interval", "target", "budget left", "burn", "state"],
        [_objective(row) for row in found["slos"]],
        right=(1, 2, 3, 4, 5),
    )
    outcomes = [f"{count(n)} {words(OUTCOME_WORDS, outcome)}" for outcome, n in found["tasks"].items()]
    line("\nTasks: " + (", ".join(outcomes) or "none"))
    if found["waste"]:
        line(waste_line(found["waste"]))
    if found["findings"]:
        line("\nFindings")
        print_table(
            ["what", "severity", "findings", "tasks", "latest task"],
            [
                [
                    words({}, f["kind"]),
                    f["severity"],
                    count(f["findings"]),
                    count(f["tasks"]),
                    f["latest_task"],
                ]
                for f in found["findings"]
            ],
            right=(2, 3),
        )
    if found["duplicates"]:
        line("\nUnprotected duplicates")
        print_table(
            ["tool", "cause", "duplicates", "tasks", "latest task"],
            [
                [
                    d["tool"],
                    words(CAUSE_WORDS, d["cause"]),
                    count(d["duplicates"]),
                    count(d["tasks"]),
                    d["latest_task"],
                ]
                for d in found["duplicates"]
            ],
            right=(2, 3),
        )


def _objective(row: Row) -> list[str]:
    return [
        row["title"] or row["slo"],
        percent(row["sli"]),
        f"{count(row['good'])} of {count(row['n'])}",
        interval(row["lower"], row["upper"]),
        target_percent(row["target"]),
        percent(row["remaining"], 0),
        burn_line(row["burn"]),
        words(STATE_WORDS, row["state"]) + (", alert firing" if row["firing"] else ""),
    ]
