"""What an objective is, as its OpenSLO file says it: `slo_status` has its numbers only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from dashboard.configuration import objective_files
from metrics.openslo import Loaded, OpenSLOError, dump, load, load_all
from metrics.openslo import default_text as packaged_text
from metrics.openslo.model import AnyObject, Service, Sli, Slo, SloObjective
from metrics.slo.objective import Dimension, Objective, SloWindow
from metrics.slo.windows import parse_duration

Row = Mapping[str, Any]


def definitions(data: Path) -> Loaded:
    """All objects of the objective files in force. Raises `OpenSLOError` or `ConfigurationError`."""
    paths = objective_files(data)
    return _read(paths, tuple(path.stat().st_mtime_ns for path in paths))


@lru_cache(maxsize=2)
def _read(paths: tuple[Path, ...], changed_ns: tuple[int, ...]) -> Loaded:
    del changed_ns
    return load_all(list(paths)) if paths else load_all(packaged_text())


def definition(data: Path, row: Row) -> Objective | None:
    """The objective a row of `slo_status` was counted by; None when the files now say something else."""
    for whole in definitions(data).objectives:
        if whole.slo != row["slo"]:
            continue
        found = whole
        if row["split"]:
            values: dict[Dimension, str | None] = {"agent": row["agent"], "task_type": row["task_type"]}
            found = whole.narrowed(tuple((d, values[d]) for d in whole.per))
        if found.objective == row["objective"] and found.revision == row["revision"]:
            return found
    return None


def changed(objective: Objective, target: Decimal, days: int, cut: Decimal | None) -> Objective:
    """The same objective with another target, a rolling window of `days`, and another cut."""
    return replace(
        objective, target=target, window=SloWindow(parse_duration(f"{days}d")), cut=cut, alerts=None
    )


def openslo_text(data: Path, objective: Objective, *, whole_pack: bool = False) -> str:
    """An OpenSLO file with the objective as it is now: alone with its indicator and its service, or among all others.

    What was changed against the objective files is said in its title and its description, whose words may tell of the
    old numbers. The file is read back before it is returned. Raises `OpenSLOError` when the SLO cannot stand alone.
    """
    loaded = definitions(data)
    slo = next((o for o in loaded.objects if isinstance(o, Slo) and o.metadata.name == objective.slo), None)
    if slo is None:
        raise OpenSLOError(
            "the objective is in no file", object=objective.slo, remedy="save it from its file"
        )
    whole = objective.objective if not objective.scope else objective.objective.split(" [")[0]
    before = next((o for o in loaded.objectives if o.key == (objective.slo, whole)), None)
    changes = _changes(before, objective)
    parts = [
        _aimed(part, objective, bool(changes))
        if len(slo.spec.objectives) == 1 or part.display_name == whole
        else part
        for part in slo.spec.objectives
    ]
    window = {"duration": str(objective.window.duration), "isRolling": True}
    windows = [type(slo.spec.time_window[0]).model_validate(window)]
    spec = {"objectives": parts, "time_window": windows}
    metadata = slo.metadata
    if changes:
        spec["description"] = f"{slo.spec.description or ''} (Changed: {changes}.)".strip()
        title = marked_title(slo.metadata.display_name or slo.metadata.name, changes)
        notes = dict(slo.metadata.annotations)
        if _TITLE in notes:
            notes[_TITLE] = f"{notes[_TITLE]} ({changes})"
        metadata = slo.metadata.model_copy(update={"display_name": title, "annotations": notes})
    wanted = slo.model_copy(update={"metadata": metadata, "spec": slo.spec.model_copy(update=spec)})
    if whole_pack:
        text = dump([wanted if item is slo else item for item in loaded.objects])
    else:
        text = dump([*_needed(loaded.objects, slo), wanted])
    load(text)
    return text


_TITLE = "agent-slo/title"
_LONGEST_TITLE = 63
"""Characters of a `displayName`, which OpenSLO allows."""


def marked_title(title: str, changes: str) -> str:
    """A title that says what was changed, cut to what OpenSLO allows: `Tasks in time (cut 120 s, target 99.95 %)`."""
    mark = f" ({changes})"
    room = max(0, _LONGEST_TITLE - len(mark))
    return ((title if len(title) <= room else f"{title[: room - 1]}…") + mark)[:_LONGEST_TITLE].strip()


def _changes(before: Objective | None, now: Objective) -> str:
    """`cut 120 s, target 99.95 %`: what differs from the file, of cut, target and window; empty when nothing does."""
    said = []
    if now.cut is not None and (before is None or now.cut != before.cut):
        said.append(f"cut {now.cut.normalize():f} {now.unit or ''}".strip())
    if before is None or now.target != before.target:
        said.append(f"target {(now.target * 100).normalize():f} %")
    if before is None or str(now.window.duration) != str(before.window.duration):
        said.append(f"window {now.window.duration}")
    return ", ".join(said)


def _aimed(part: SloObjective, objective: Objective, changed: bool) -> SloObjective:
    """The objective as its file writes it, with another target and cut."""
    kept = part.model_dump(by_alias=True, exclude_unset=True)
    kept.pop("targetPercent", None)
    # A name such as "99%" or "within-5-min" would tell of the old target or cut.
    if changed and any(letter.isdigit() for letter in str(kept.get("displayName", ""))):
        kept.pop("displayName")
    kept["target"] = objective.target
    if objective.cut is not None:
        kept["value"] = objective.cut
    return SloObjective.model_validate(kept)


def _needed(objects: list[AnyObject], slo: Slo) -> list[AnyObject]:
    """The service and the indicators an SLO names, and everything its alert policies are made of."""
    names = {slo.spec.indicator_ref, *(o.indicator_ref for o in slo.spec.objectives)}
    alerts = bool(slo.spec.alert_policies)
    found: list[AnyObject] = []
    for item in objects:
        if isinstance(item, Service):
            needed = item.metadata.name == slo.spec.service
        elif isinstance(item, Sli):
            needed = item.metadata.name in names
        else:
            needed = alerts and not isinstance(item, Slo)
        if needed or item.kind == "DataSource":
            found.append(item)
    return found
