"""`agent-slo demo`: everything running on sample traces."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from agent_slo.commands.report import collect as collect_report
from agent_slo.commands.report import tell
from agent_slo.commands.up import listening, stack_for
from agent_slo.config import CONFIG_NAME
from agent_slo.door import wait_until_derived
from agent_slo.errors import CommandError
from agent_slo.options import DEFAULT_DATA, Place, common
from agent_slo.output import answer_console, say, words_console
from agent_slo.reading import reading, rows
from agent_slo.stack import Addresses, running
from sample_traces import replay

DEMO_DATA = DEFAULT_DATA / "demo"
MARK = "demo.json"
"""In a data folder: it holds sample traces, so the demo may write there again."""


@click.command()
@click.option(
    "--samples", type=click.Choice(replay.NAMES), help="Which set (default: the largest installed)."
)
@click.option(
    "--exit-after-load", is_flag=True, help="Stop once everything is loaded and reported; for scripts."
)
@listening
@common
def demo(
    place: Place,
    samples: str | None,
    exit_after_load: bool,
    http: str | None,
    grpc: str | None,
    dashboard_port: int | None,
) -> None:
    """Run everything on sample traces.

    Starts what `up` starts, sends the samples through it and says what to look at first. Ctrl-C stops all.

    Uses ./agent-slo-data/demo unless --data names another folder, so that samples never mix with real traces.
    """
    place = place if place.stated else Place(DEMO_DATA, place.config_file, stated=False)
    names = [samples] if samples else [_largest()]
    _prepare(place.data, names)
    stack = stack_for(place, http, grpc, dashboard_port, pages=not exit_after_load)
    try:
        with running(stack) as addresses:
            _load(names, addresses)
            with words_console().status("deriving tasks and objectives"):
                wait_until_derived(place.data)
            _show(place, addresses)
            if not exit_after_load:
                stack.watch()
    except KeyboardInterrupt:
        pass  # Asked to stop while loading: stopping is all there is to do.
    say("stopped")


def _largest() -> str:
    """The set with most to see, of those that are installed."""
    for name in reversed(replay.NAMES):
        if resources.files("sample_traces").joinpath(f"{name}.jsonl.gz").is_file():
            return name
    raise CommandError("no sample set is installed; install agent-slo again")


def _prepare(data: Path, names: Sequence[str]) -> None:
    """Mark the folder as the demo's own and give it the samples' settings; refuse one with other data."""
    if (data / "format.json").exists() and not (data / MARK).exists():
        raise CommandError(
            f"{data}: holds other traces, and samples must not mix with them; name another with --data"
        )
    data.mkdir(parents=True, exist_ok=True)
    (data / MARK).write_text(json.dumps({"samples": list(names)}) + "\n", encoding="utf-8")
    with resources.as_file(resources.files("sample_traces").joinpath(CONFIG_NAME)) as settings:
        shutil.copyfile(settings, data / CONFIG_NAME)


def _load(names: Sequence[str], addresses: Addresses) -> None:
    with Progress(
        TextColumn("sending samples"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("spans"),
        console=words_console(),
    ) as progress:
        for name in names:
            bar = progress.add_task(name, total=None)
            end = replay.demo_end(datetime.now(UTC), replay.recorded_end(name))
            sent = replay.send(
                f"http://{addresses.http}",
                replay.shifted(replay.load(name), end),
                lambda done, total, bar=bar: progress.update(bar, completed=done, total=total),  # type: ignore[misc]
            )
            if sent.rejected:
                say(f"{sent.rejected} spans of {name} were rejected: {'; '.join(sent.messages)}")


def _show(place: Place, addresses: Addresses) -> None:
    line = answer_console().out
    with reading(place.data) as reader:
        tell(collect_report(reader, None))
        duplicates = rows(reader, "overview_duplicates")
    if addresses.dashboard:
        line("\nLook at these first")
        line(f"  objectives and budgets      {addresses.dashboard}/")
        if duplicates:
            twice = quote(duplicates[0]["task_id"], safe="")
            line(f"  something done twice        {addresses.dashboard}/task?id={twice}")
        line(f"  tasks a human stepped into  {addresses.dashboard}/tasks?human=true")
        line(f"\nSend your own traces to http://{addresses.http} (data in {place.data}). Ctrl-C stops all.")
