"""The front door: one command a module in `agent_slo.commands`, errors as one clear line."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from agent_slo.errors import EXIT_USAGE, CommandError

# Command, module, attribute. Modules are imported when their command is asked for, so that `agent-slo
# version` does not load a database.
COMMANDS = {
    "up": ("up", "up"),
    "demo": ("demo", "demo"),
    "collect": ("collect", "collect"),
    "dashboard": ("dashboard", "dashboard"),
    "import": ("import_traces", "import_traces"),
    "report": ("report", "report"),
    "tasks": ("tasks", "tasks"),
    "task": ("task", "task"),
    "label": ("label", "label"),
    "tools": ("tools", "tools"),
    "incidents": ("incidents", "incidents"),
    "incident": ("incidents", "incident"),
    "cases": ("cases", "cases"),
    "export": ("export", "export_cases"),
    "replay": ("replay", "replay"),
    "query": ("query", "query"),
    "prices": ("prices", "prices"),
    "slo": ("slo", "slo"),
    "alerts": ("alerts", "alerts"),
    "check": ("check", "check"),
    "doctor": ("doctor", "doctor"),
    "rederive": ("rederive", "rederive"),
    "storage": ("storage", "storage"),
    "version": ("version", "version"),
}


class Failure(click.ClickException):
    """An expected error, shown without a traceback."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: Any = None) -> None:
        """Write each line to stderr as `agent-slo: ...`; an indented one goes on with what was said before it."""
        for line in self.message.splitlines() or ["failed"]:
            if line.strip():
                click.echo(line if line.startswith(" ") else f"agent-slo: {line}", err=True)


class FrontDoor(click.Group):
    """The group of all commands, loaded lazily."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order in which people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        found = COMMANDS.get(cmd_name)
        if found is None:
            return None
        command = getattr(importlib.import_module(f"agent_slo.commands.{found[0]}"), found[1])
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, naming the nearest known command."""
        import difflib

        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "`agent-slo --help` lists them"
            raise Failure(f"no command {args[0]!r}; {hint}", EXIT_USAGE)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; expected errors of the floors below become one line each."""
        try:
            return super().invoke(ctx)
        except CommandError as error:
            raise Failure(str(error), error.exit_code) from error
        except click.ClickException:
            raise
        except BrokenPipeError:
            # The reader of our stdout (`head`, `less`) has gone; Python would complain again at its exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except Exception as error:
            message = _expected(error)
            if message is None:
                raise
            raise Failure(message, EXIT_USAGE) from error


def _expected(error: Exception) -> str | None:
    """The line for an error that a floor below raises on purpose; None for a defect of ours."""
    module = type(error).__module__
    if module == "collector.reader":
        # The database shows the place below its words: one fault over several lines.
        first, *below = str(error).splitlines() or ["the question cannot be answered"]
        return "\n".join([first, *(f"  {line}" for line in below if line.strip())])
    if module.startswith(("collector.", "metrics.", "sample_traces.")) and str(error):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"the package {error.name!r} is missing; install agent-slo again in an environment of its own"
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror.lower()}; mend the path or its permissions"
    return None


@click.group(
    cls=FrontDoor,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Answers go to stdout, words to stderr. "
    "Exit: 0 ok, 1 finding or failed gate, 2 usage or environment.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="AGENT_SLO_DATA",
    help="Data folder (default ./agent-slo-data).",
)
@click.option(
    "--config", "config_file", type=click.Path(path_type=Path, dir_okay=False), help="Settings file."
)
@click.pass_context
def cli(context: click.Context, data: Path | None, config_file: Path | None) -> None:
    """Service level objectives for AI agents, from their OpenTelemetry traces."""
    context.obj = {"data": data, "config_file": config_file}


def main() -> None:
    """Entry point of the command `agent-slo`."""
    cli(prog_name="agent-slo")
