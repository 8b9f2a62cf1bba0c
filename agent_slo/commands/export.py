"""`agent-slo export`: incidents as evaluation cases that reproduce their fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from importlib.metadata import version as installed
from pathlib import Path

import click

from agent_slo.actions import act
from agent_slo.case_actions import case_actions
from agent_slo.commands.incidents import require_grouped, require_kinds
from agent_slo.errors import CommandError
from agent_slo.options import Place, common, since_option
from agent_slo.output import print_json, say
from agent_slo.reading import reading
from incidents.bundle import Choice, ExportError, Written, check_folder, export
from incidents.reviews import SETS, Content
from incidents.targets import TARGETS

MOST_TOLD = 8
_BATCH = 400
"""Contents a command: below the limits of an action."""


def _names(context: click.Context, option: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Several values, given again or separated by commas."""
    return tuple(name.strip() for item in value for name in item.split(",") if name.strip())


@click.command("export")
@click.option(
    "--incident", "incidents", multiple=True, callback=_names, help="Only this incident; may be given again."
)
@since_option
@click.option(
    "--kind", "kinds", multiple=True, callback=_names, help="Only findings of this kind; may be given again."
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    default=("jsonl",),
    show_default=True,
    callback=_names,
    help=f"What to write for: {', '.join(TARGETS)}; several with commas.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder to write; it must not exist."
)
@click.option("--force", is_flag=True, help="Replace an earlier export in that folder.")
@click.option(
    "--set",
    "case_set",
    type=click.Choice(SETS),
    help="Only cases of this set; of regression and capability only approved ones.",
)
@click.option(
    "--include-draft",
    is_flag=True,
    help="Write cases that do not prove themselves, or are not approved, as well.",
)
@common
def export_cases(
    place: Place,
    incidents: tuple[str, ...],
    since: datetime | None,
    kinds: tuple[str, ...],
    targets: tuple[str, ...],
    out: Path,
    force: bool,
    case_set: str | None,
    include_draft: bool,
) -> None:
    """Write incidents as evaluation cases that reproduce their fault, redacted and proven.

    Each incident becomes a group: the incident, its twin with the opposite hidden effect, and a control. A case that
    does not prove itself (the recorded calls must fail it, a careful agent must pass, six trivial agents must not) is
    a draft: left out with its reason, written with --include-draft or when it is asked for by --incident. Rejected
    and retired cases are left out; `--set regression` writes only what `agent-slo cases approve` let in.
    """
    require_kinds(kinds)
    choice = Choice(incidents, since, kinds, targets, include_draft, case_set)
    settings = place.config().config
    try:
        check_folder(out, place.data, force)
        with reading(place.data) as reader:
            require_grouped(reader, place.data)
            written = export(reader, settings, out, choice, installed("agent-slo"))
    except ExportError as error:
        raise CommandError(str(error)) from error
    keep(place.data, written.fresh)
    _tell(written)


def keep(data: Path, fresh: Sequence[Content]) -> None:
    """Tell the store of contents it does not know, so that revisions count on over all exports."""
    for start in range(0, len(fresh), _BATCH):
        told = [asdict(one) for one in fresh[start : start + _BATCH]]
        act(data, case_actions(), "cases.record", {"cases": told})


def _tell(written: Written) -> None:
    drafts = sum(group["state"] == "draft" for group in written.groups)
    say(
        f"{len(written.groups)} groups with {written.cases} cases written to {written.folder}"
        + (f", {drafts} of them drafts" if drafts else "")
    )
    for group in written.groups:
        if group["state"] == "draft":
            say(f"draft {group['incident_id']}: {group['note']}")
    for row in written.excluded[:MOST_TOLD]:
        say(f"left out {row['incident_id']}: {row['reason']}")
    if len(written.excluded) > MOST_TOLD:
        say(f"and {len(written.excluded) - MOST_TOLD} more left out; manifest.json has them all")
    print_json(
        {
            "out": str(written.folder),
            "groups": len(written.groups),
            "cases": written.cases,
            "drafts": drafts,
            "excluded": len(written.excluded),
        }
    )
