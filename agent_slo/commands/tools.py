"""`agent-slo tools`: every tool seen, its class, and how to correct it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import click
import yaml

from agent_slo.options import Place, common
from agent_slo.output import answer_console, print_json, print_table, say
from agent_slo.reading import reading, require_derived, rows
from dashboard.format import count, one_line

Row = dict[str, Any]

SOURCES = {
    "configured": "your configuration",
    "stated": "the sender",
    "hinted": "a hint of the tool's server",
    "guessed": "guessed from its name",
    "unknown": "not known",
}
_CHOICES = "read, write, idempotent_write, escalate or control"


@click.command()
@click.option(
    "--format", "form", type=click.Choice(["text", "yaml", "json"]), default="text", show_default=True,
    help="yaml: only the stanza for agent-slo.yaml.",
)  # fmt: skip
@common
def tools(place: Place, form: str) -> None:
    """List every tool seen, its class, and where the class came from.

    The class decides what counts as an action: reads never do, and a tool of unknown class stays outside the
    duplicate objective. Below the table stands the stanza for agent-slo.yaml that states or corrects the
    classes nobody has stated; what you write there wins.
    """
    with reading(place.data) as reader:
        require_derived(reader, place.data)
        found = rows(reader, "tools_seen")
    if form == "json":
        print_json({"tools": found})
        return
    if not found:
        say("no tool has been called yet")
        return
    if form == "text":
        print_table(
            ["tool", "class", "where from", "calls", "executed", "with a key", "unprotected duplicates"],
            [
                [
                    one_line(row["tool"], 60),
                    row["effect_class"],
                    SOURCES.get(row["class_source"], row["class_source"]),
                    count(row["calls"]),
                    count(row["executed"]),
                    count(row["keyed"]),
                    count(row["duplicates"]),
                ]
                for row in found
            ],
        )
    line = answer_console().out
    for text in stanza(found):
        line(text)


def stanza(found: Iterable[Row]) -> list[str]:
    """Return the lines of a `tools:` section for all tools whose class neither you nor the sender stated.

    A tool of unknown class is a comment: only you know what it does.
    """
    lines = []
    for row in found:
        if row["class_source"] in ("configured", "stated"):
            continue
        name = _key(row["tool"])
        if row["effect_class"] == "unknown":
            lines.append(f"  # {name}: {{effect: }}  # {_CHOICES}")
        else:
            lines.append(f"  {name}: {{effect: {row['effect_class']}}}")
    head = ["", "# for agent-slo.yaml: correct what is wrong, then `agent-slo rederive`", "tools:"]
    return [*head, *lines] if lines else []


def _key(tool: str) -> str:
    """A tool's name as a YAML key that matches this name alone: globs are taken literally."""
    literal = re.sub(r"([*?\[])", r"[\1]", tool)
    dumped = yaml.safe_dump({literal: 0}, default_flow_style=True, width=10_000, allow_unicode=True).strip()
    key = dumped.removeprefix("{").removesuffix("}").rsplit(":", 1)[0]
    return key if "\n" not in key and not key.startswith("?") else json.dumps(literal)
