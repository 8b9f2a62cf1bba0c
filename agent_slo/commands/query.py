"""`agent-slo query`: one SELECT over the public views."""

from __future__ import annotations

import sys

import click

from agent_slo.options import Place, common
from agent_slo.output import print_arrow_table
from agent_slo.reading import reading


@click.command()
@click.argument("sql")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "arrow"]),
    default="table",
    show_default=True,
)
@common
def query(place: Place, sql: str, form: str) -> None:
    """Answer one SELECT over the views.

    They are tasks, runs, steps, attempts, actions, findings, slo_status, spans and others.

    SQL may be - to read it from stdin. Works with the collector running or not; answers as of the last pass.
    """
    text = sys.stdin.read() if sql == "-" else sql
    with reading(place.data) as reader:
        answer = reader.sql(text)
    print_arrow_table(answer, form)
