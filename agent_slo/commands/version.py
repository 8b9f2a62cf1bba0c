"""`agent-slo version`."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed

import click

from agent_slo.output import print_json


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def version(form: str) -> None:
    """Print the version of agent-slo and of what it stands on."""
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
