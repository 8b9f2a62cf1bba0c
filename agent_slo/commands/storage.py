"""`agent-slo storage`: what takes the room in the data folder, and what retention keeps."""

from __future__ import annotations

from dataclasses import asdict

import click

from agent_slo.config import StorageConfig
from agent_slo.options import Place, common
from agent_slo.output import print_json, print_table, say
from agent_slo.reading import reading
from dashboard.format import count
from dashboard.storage import Part, measure
from dashboard.storage import total as total_of


@click.command()
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@common
def storage(place: Place, form: str) -> None:
    """Show what takes the room in the data folder.

    Span files by day, derived files, logs of both, and what retention keeps. Works with the collector running or not.
    """
    with reading(place.data) as reader:
        parts = measure(reader)
    kept = place.config().config.storage
    total = total_of(parts)
    if form == "json":
        print_json({"bytes": total, "parts": [asdict(p) for p in parts], "storage": kept.model_dump()})
        return
    rows = [
        (
            part.what,
            _days(part),
            "" if part.rows is None else count(part.rows),
            f"{part.bytes / 1e6:,.1f} MB",
            f"{part.bytes / total:.0%}" if total else "",
        )
        for part in parts
    ]
    rows.append(("all", "", "", f"{total / 1e6:,.1f} MB", ""))
    print_table(("what", "received", "rows", "size", "share"), rows, right=(2, 3, 4))
    say(words(kept))


def words(kept: StorageConfig) -> str:
    """What retention does, in one line."""
    said = []
    if kept.keep_days is not None:
        said.append(f"spans, steps and attempts go after {kept.keep_days} days")
    if kept.keep_gb is not None:
        said.append(f"the oldest go above {kept.keep_gb:g} GB of span files")
    if kept.tasks_days is not None:
        said.append(f"tasks and SLI events go after {kept.tasks_days} days")
    if not said:
        return "everything is kept; storage.keep_days and storage.keep_gb in agent-slo.yaml say otherwise"
    return "; ".join(said)


def _days(part: Part) -> str:
    if part.first_day is None:
        return ""
    return str(part.first_day) if part.first_day == part.last_day else f"{part.first_day} to {part.last_day}"
