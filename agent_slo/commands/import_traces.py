"""`agent-slo import`: traces that are already in files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import click
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from agent_slo.commands.collect import TOKEN_VARIABLE
from agent_slo.derivation import derive_once, now
from agent_slo.door import live_door, wait_until_derived
from agent_slo.errors import EXIT_FINDING, CommandError
from agent_slo.importing import Imported, ReceiverSink, Sink, StoreSink, bring_in
from agent_slo.options import Place, as_of_option, common
from agent_slo.output import say, words_console
from agent_slo.redaction import redactor
from collector.request_size import allow
from collector.store import Store, StoreOptions
from dashboard.format import count


@click.command()
@click.argument(
    "paths",
    metavar="FILE|DIR|- ...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, allow_dash=True),
)
@as_of_option
@common
def import_traces(place: Place, paths: Sequence[Path], as_of: datetime | None) -> None:
    """Bring in trace files.

    OTLP as JSON lines, as the Collector's file exporter writes it, or as protobuf, each plain or gzip.

    Goes through the running collector, or opens the store itself. Returns when tasks are derived; exit code 1
    when something was rejected (the rest went in). --as-of decides as if it were then, and needs the
    collector stopped.
    """
    door = live_door(place.data)
    if door is not None and as_of is not None:
        raise CommandError(
            f"--as-of: the collector of {place.data} (process {door.pid}) decides as of now; stop it first"
        )
    if door is not None:
        sink = ReceiverSink(door.http, os.environ.get(TOKEN_VARIABLE) or None)
        with _bar(paths) as (progress, bar):
            state = _bring_in(paths, sink, progress, bar)
            progress.update(bar, description="deriving", total=None)
            wait_until_derived(place.data)
    else:
        loaded = place.config()
        objectives = place.objectives()
        limits = loaded.config.collector
        if limits.max_request_items is not None:
            allow(limits.max_request_items)
        with _bar(paths) as (progress, bar):
            store = Store.open(
                place.data,
                StoreOptions(
                    memory_limit=limits.memory_limit,
                    threads=limits.threads,
                    redactor=redactor(loaded.config, place.data),
                ),
            )
            try:
                state = _bring_in(paths, StoreSink(store), progress, bar)
                progress.update(bar, description="deriving", total=None)
                derive_once(store, loaded.config, objectives, as_of or now())
            finally:
                store.close()
    words = f"{count(state.rows)} spans and log records stored from {count(state.requests)} requests"
    if state.rejected:
        say(f"{words}; {count(state.rejected)} rejected, named above")
        sys.exit(EXIT_FINDING)
    say(words)


def _bring_in(paths: Sequence[Path], sink: Sink, progress: Progress, bar: TaskID) -> Imported:
    def advance(state: Imported, size: int) -> None:
        progress.update(bar, advance=size, rows=count(state.rows))

    return bring_in(
        paths,
        sink,
        told=lambda line: progress.console.print(line, markup=False, soft_wrap=True),
        progress=advance,
    )


@contextmanager
def _bar(paths: Sequence[Path]) -> Iterator[tuple[Progress, TaskID]]:
    """A progress bar over the bytes of the files; without an end where the size is unknown (gzip, stdin)."""
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    known = all(file.suffix != ".gz" and file.is_file() for file in files if not file.is_dir())
    total = sum(file.stat().st_size for file in files if file.is_file()) if known else None
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rows]} spans"),
        TimeElapsedColumn(),
        console=words_console(),
        transient=True,
    ) as progress:
        yield progress, progress.add_task("importing", total=total, rows="0")
