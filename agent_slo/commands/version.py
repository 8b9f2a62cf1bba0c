"""`agent-slo version`."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed

import click

from agent_slo.output import print_json


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def version(form: str) -> None:
    """Print the versions of agent-slo and its base."""
    parts = {
        "agent-slo": installed("agent-slo"),
        "python": platform.python_version(),
        "duckdb": installed("duckdb"),
        "streamlit": installed("streamlit"),
    }
    if form == "json":
        print_json(parts)
    else:
        click.echo(" ".join(f"{name} {number}" for name, number in parts.items()))
