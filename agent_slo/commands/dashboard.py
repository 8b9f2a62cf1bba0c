"""`agent-slo dashboard`: the pages, over a running collector or its files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from agent_slo.options import Place, common
from agent_slo.ports import require_free_port

ADDRESS = "127.0.0.1"
# Mirrors dashboard.door.DATA_VARIABLE, which cannot be imported here without loading Streamlit.
DATA_VARIABLE = "AGENT_SLO_DATA"
# Mirrors dashboard.configuration.FILE_VARIABLE.
CONFIG_VARIABLE = "AGENT_SLO_CONFIG"


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), help="Port on 127.0.0.1 (default 8501).")
@common
def dashboard(place: Place, port: int | None) -> None:
    """Show the pages on 127.0.0.1.

    They read through the collector while it runs, else from its files.
    """
    # The file is read even when the port is stated: its faults are told here, not by a page later.
    config = place.config().config
    chosen = port or config.dashboard.port
    require_free_port(ADDRESS, chosen, "the dashboard", "--port")
    arguments = streamlit_command(chosen)
    os.execve(arguments[0], arguments, dashboard_environment(place.data, place.config_file))


def streamlit_command(port: int) -> list[str]:
    """The command that serves the pages; its other settings lie in `dashboard/.streamlit/config.toml`."""
    return [
        sys.executable,
        # A package of this name in the working directory is not ours.
        "-P",
        "-m",
        "dashboard",
        "--server.address",
        ADDRESS,
        "--server.port",
        str(port),
        "--server.headless",
        "true",
        "--browser.gatherUsageStats",
        "false",
        "--logger.level",
        "warning",
    ]


def dashboard_environment(data: Path, config_file: Path | None = None) -> dict[str, str]:
    """The environment in which the pages find the data folder, and the configuration file if one was named."""
    named = {CONFIG_VARIABLE: str(config_file.resolve())} if config_file is not None else {}
    return {**os.environ, DATA_VARIABLE: str(data.resolve()), **named}
