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


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), help="Port on 127.0.0.1 (default 8501).")
@common
def dashboard(place: Place, port: int | None) -> None:
    """Show the pages on 127.0.0.1.

    They read through the collector while it runs, else from its files.
    """
    chosen = port or place.config().config.dashboard.port
    require_free_port(ADDRESS, chosen, "the dashboard", "--port")
    arguments = streamlit_command(chosen)
    os.execve(arguments[0], arguments, dashboard_environment(place.data))


def streamlit_command(port: int) -> list[str]:
    """The command that serves the pages; its other settings lie in `dashboard/.streamlit/config.toml`."""
    import dashboard as pages

    script = Path(pages.__file__).parent / "app.py"
    return [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(script),
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


def dashboard_environment(data: Path) -> dict[str, str]:
    """The environment in which the pages find the data folder."""
    return {**os.environ, DATA_VARIABLE: str(data.resolve())}
