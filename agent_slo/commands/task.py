"""`agent-slo task ID`: one task in words."""

from __future__ import annotations

from typing import Any

import click

from agent_slo.because import chain_of_reasons
from agent_slo.errors import CommandError
from agent_slo.options import Place, common
from agent_slo.output import answer_console, print_json, print_table
from agent_slo.reading import reading, require_derived, rows
from dashboard.format import (
    CAUSE_WORDS,
    DUPLICATE_WORDS,
    duration,
    missing,
    one_line,
    when,
    words,
)
from dashboard.verdict import evidence_ids, run_evidence, task_facts, verdict_notes, verdict_sentence


@click.command()
@click.argument("task_id", metavar="ID")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--explain", "explain", is_flag=True, help="Why: the rule behind each verdict, in words, with its spans."
)
@common
def task(place: Place, task_id: str, form: str, explain: bool) -> None:
    """Tell one task in words.

    Outcome with its rule and evidence, runs, attempts, interventions and cost.

    ID may be an earlier id of a task whose runs were merged.
    """
    with reading(place.data) as reader:
        require_derived(reader, place.data)
        found = rows(reader, "task", id=task_id)
        if not found:
            raise CommandError(f"no task {task_id!r} in {place.data}; `agent-slo tasks` lists them")
        chosen = found[0]
        parts = {
            name: rows(reader, f"task_{name}", id=chosen["task_id"])
            for name in ("runs", "attempts", "actions", "interventions", "findings", "revisions")
        }
    if form == "json":
        print_json({"task": chosen, **parts})
    elif explain:
        line = answer_console().out
        for text in chain_of_reasons(chosen, parts):
            line(text)
    else:
        _tell(chosen, parts)


def _tell(chosen: dict[str, Any], parts: dict[str, list[dict[str, Any]]]) -> None:
    line = answer_console().out
    line(f"Task {one_line(chosen['task_id'])}")
    named = [
        (key, chosen[key]) for key in ("agent", "task_type", "service", "environment", "conversation_id")
    ]
    stated = [f"{key.replace('_', ' ')} {one_line(value)}" for key, value in named if not missing(value)]
    line(", ".join([*stated, f"started {when(chosen['started_at'])}"]))
    line(verdict_sentence(chosen))
    for note in verdict_notes(chosen) + run_evidence(parts["runs"]):
        line(f"  {note}")
    line(", ".join(f"{label.lower()} {value}" for label, value in task_facts(chosen)))
    for finding in parts["findings"]:
        seen = ", ".join(evidence_ids(finding["evidence"]))
        text = (
            f"{words({}, finding['kind'])} ({one_line(finding['severity'])}): {one_line(finding['detail'])}"
        )
        line(f"Finding: {text}" + (f"; see span {seen}" if seen else ""))
    if parts["attempts"]:
        line("\nTool calls")
        actions = {key: f"#{n}" for n, key in enumerate(_distinct(parts["attempts"], "action_id"), start=1)}
        print_table(
            [
                "started",
                "tool",
                "action",
                "class",
                "outcome",
                "disposition",
                "duplicate",
                "rule",
                "arguments",
            ],
            [
                [
                    row["started_at"].strftime("%H:%M:%S.%f")[:-3],
                    row["tool"],
                    actions.get(row["action_id"], ""),
                    row["effect_class"],
                    row["outcome"],
                    row["disposition"],
                    _duplicate(row),
                    row["rule"],
                    one_line(row["arguments"], 60),
                ]
                for row in parts["attempts"]
            ],
        )
    if parts["interventions"]:
        line("\nHuman interventions")
        print_table(
            ["kind", "decision", "tool", "requested", "decided", "waited"],
            [
                [
                    words({}, row["kind"]),
                    row["decision"],
                    row["tool"],
                    when(row["requested_at"]),
                    when(row["decided_at"]),
                    duration(row["wait_s"]),
                ]
                for row in parts["interventions"]
            ],
        )
    for row in parts["revisions"]:
        change = f"{one_line(row['from_verdict'])} to {one_line(row['to_verdict'])}"
        line(f"Changed {when(row['changed_at'])}: {row['sli']} from {change} ({one_line(row['cause'])})")


def _duplicate(row: dict[str, Any]) -> str:
    if missing(row["duplicate"]):
        return "suspected" if row["suspected"] else ""
    return f"{words(DUPLICATE_WORDS, row['duplicate'])}: {words(CAUSE_WORDS, row['cause'])}"


def _distinct(found: list[dict[str, Any]], key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in found if not missing(row[key])))
