"""`agent-slo up`: collector, derivation and dashboard with one command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from agent_slo.options import Place, common
from agent_slo.output import answer_console, say
from agent_slo.stack import Addresses, Stack, running


def listening(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where to listen."""
    for option in (
        click.option(
            "--dashboard-port",
            type=click.IntRange(0, 65535),
            help="Port of the dashboard on 127.0.0.1 (default 8501; 0: any free one).",
        ),
        click.option("--grpc", metavar="HOST:PORT", help="Where to take OTLP/gRPC (default 127.0.0.1:4317)."),
        click.option("--http", metavar="HOST:PORT", help="Where to take OTLP/HTTP (default 127.0.0.1:4318)."),
    ):
        command = option(command)
    return command


def stack_for(
    place: Place, http: str | None, grpc: str | None, dashboard_port: int | None, *, pages: bool = True
) -> Stack:
    """The stack for these options; a faulty configuration is a `CommandError` before anything starts."""
    config = place.config().config
    place.objectives()
    port = config.dashboard.port if dashboard_port is None else dashboard_port
    options = [*(["--http", http] if http else []), *(["--grpc", grpc] if grpc else [])]
    return Stack(place, collect_options=options, dashboard_port=port if pages else None)


@click.command()
@listening
@common
def up(place: Place, http: str | None, grpc: str | None, dashboard_port: int | None) -> None:
    """Run collector, derivation and dashboard until Ctrl-C."""
    stack = stack_for(place, http, grpc, dashboard_port)
    try:
        with running(stack) as addresses:
            tell_addresses(place, addresses)
            stack.watch()
    except KeyboardInterrupt:
        pass  # Asked to stop while starting: stopping is all there is to do.
    say("stopped")


def tell_addresses(place: Place, addresses: Addresses) -> None:
    """Print where everything is and how to point an exporter at it."""
    line = answer_console().out
    line(f"Dashboard   {addresses.dashboard}")
    line(f"OTLP/HTTP   http://{addresses.http}")
    if addresses.grpc:
        line(f"OTLP/gRPC   http://{addresses.grpc}")
    line(f"Data        {place.data}")
    line("\nPoint an agent's exporter here, then start the agent:")
    line(f"  export OTEL_EXPORTER_OTLP_ENDPOINT=http://{addresses.http}")
    line("  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
    line("\nCtrl-C stops all.")
