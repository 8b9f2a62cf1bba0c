"""What an export is made of: one folder, the same bytes for the same data, nothing in it that was taken out."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from incidents import otlp, reviews, targets
from incidents.case import Group, canonical_text, make_group, schema_text
from incidents.evidence import Row, Source, find, gather
from incidents.redaction import LEAST_SECRET
from metrics.settings import MetricsSettings

Json = dict[str, Any]
MANIFEST = "agent-slo/export"
MANIFEST_VERSION = "1.0.0"


class ExportError(Exception):
    """The export cannot be made; the message says what, where and how to mend it."""


@dataclass
class Written:
    """What an export did: groups written, groups left out with the reason, bytes."""

    folder: Path
    groups: list[Json] = field(default_factory=list)
    excluded: list[Json] = field(default_factory=list)
    cases: int = 0
    bytes: int = 0
    fresh: list[reviews.Content] = field(default_factory=list)
    """Contents that the store does not know yet: to be kept there, so that the next export numbers them on."""


@dataclass(frozen=True)
class Choice:
    """Which incidents are exported, and how."""

    incidents: Sequence[str] = ()
    since: datetime | None = None
    kinds: Sequence[str] = ()
    targets: Sequence[str] = ("jsonl",)
    include_draft: bool = False
    case_set: str | None = None
    """Only cases of this set, and of those only approved ones unless `include_draft`."""


def check_folder(out: Path, data: Path, force: bool) -> None:
    """Raise `ExportError` unless `out` can be written without destroying anything that is not an export of ours."""
    place, store = out.resolve(), data.resolve()
    if place == store or store in place.parents:
        raise ExportError(f"{out}: lies in the data folder {data}; name another folder with --out")
    if place in store.parents:
        raise ExportError(f"{out}: holds the data folder {data}; name another folder with --out")
    if out.is_symlink():
        raise ExportError(f"{out}: is a link; name the folder itself with --out")
    if not out.exists():
        return
    if not out.is_dir():
        raise ExportError(f"{out}: is a file; name a folder with --out")
    if not any(out.iterdir()):
        return
    if not force:
        raise ExportError(f"{out}: exists already; name a new folder, or replace it with --force")
    if _manifest(out) is None:
        raise ExportError(
            f"{out}: holds no export of agent-slo (no manifest.json of ours), so --force does not replace it; "
            "name a new folder"
        )


def export(
    source: Source,
    settings: MetricsSettings,
    out: Path,
    choice: Choice,
    version: str,
    progress: Callable[[int, int], None] | None = None,
) -> Written:
    """Write the bundle. `out` must have passed `check_folder`. Raises `ExportError` when nothing was found.

    The folder appears whole or not at all: it is written beside its place and moved there.
    """
    known = [name for name in choice.targets if name not in targets.TARGETS]
    if known:
        raise ExportError(f"no target {known[0]!r}; there are {', '.join(targets.TARGETS)}")
    incidents = _chosen(source, choice)
    earlier = _revisions(out)
    kept = reviews.kept(source, [row["incident_id"] for row in incidents])
    written = Written(out)
    parts: dict[str, str] = {}
    groups: list[Group] = []
    for number, evidence in enumerate(gather(source, incidents), start=1):
        group = make_group(evidence, settings, f"agent-slo/{version}")
        _number(group, earlier)
        reviews.settle(group, kept)
        written.fresh += kept.fresh(group)
        trace = canonical_text(otlp.export_request(evidence.spans, group.redactor)) + "\n"
        reason = _left_out(group, trace, choice)
        if reason:
            written.excluded.append({"incident_id": evidence.incident["incident_id"], "reason": reason})
        else:
            groups.append(group)
            parts[f"traces/{group.incident['case_id']}.otlp.json"] = trace
        if progress:
            progress(number, len(incidents))
    groups.sort(key=lambda group: str(group.incident["case_id"]))
    parts["cases.jsonl"] = "".join(canonical_text(case) + "\n" for group in groups for case in group.cases)
    parts["case.schema.json"] = schema_text()
    parts |= {f"replay/{name}": text for name, text in _replay_core()}
    for name in dict.fromkeys(choice.targets):
        parts |= targets.TARGETS[name](groups)
    parts["README.md"] = _readme(groups, choice)
    written.groups = [_summary(group) for group in groups]
    written.cases = sum(len(group.cases) for group in groups)
    parts["manifest.json"] = _manifest_text(written, parts, choice, version)
    written.bytes = sum(len(text.encode()) for text in parts.values())
    _place(out, parts)
    return written


def _chosen(source: Source, choice: Choice) -> list[Row]:
    found = find(
        source,
        since=choice.since,
        kinds=choice.kinds or None,
        ids=choice.incidents or None,
    )
    missing = [name for name in choice.incidents if name not in {row["incident_id"] for row in found}]
    if missing:
        raise ExportError(f"no incident {missing[0]!r}; `agent-slo incidents` lists them")
    if not choice.incidents:
        found = [row for row in found if row["state"] != "ignored" and row["verdict"] != "false_alarm"]
    if not found:
        raise ExportError("no incident matches; `agent-slo incidents` lists them")
    return found


def _left_out(group: Group, trace: str, choice: Choice) -> str | None:
    text = "".join(canonical_text(case) for case in group.cases) + trace
    for secret in sorted(group.redactor.found):
        if len(secret) >= LEAST_SECRET and (secret in text or json.dumps(secret)[1:-1] in text):
            return "a value that was redacted still stood in the case, so nothing of it was written"
    if choice.incidents and choice.case_set is None:
        return None
    review, case_id = group.incident["review"], group.incident["case_id"]
    if choice.case_set is not None and group.incident["set"] != choice.case_set:
        return f"in the set {group.incident['set']}, not {choice.case_set}"
    if review["state"] in ("rejected", "retired") and choice.case_set != "retired":
        return f"{review['state']}" + (f": {review['note']}" if review["note"] else "")
    if choice.include_draft:
        return None
    if group.draft:
        return f"draft: {group.reason}"
    if choice.case_set in reviews.GATED and review["state"] != "approved":
        return f"not approved: look at it, then `agent-slo cases approve {case_id}`"
    return None


def _number(group: Group, earlier: Mapping[str, tuple[str, int]]) -> None:
    """The revision grows when the same case is exported with another content: never a silent overwrite.

    This is the number by the export that is replaced; where the store knows the case, its number stands.
    """
    for case in group.cases:
        before = earlier.get(case["case_id"])
        if before is not None:
            case["revision"] = before[1] + (before[0] != case["content_hash"])


def _manifest(folder: Path) -> Json | None:
    try:
        found = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("schema") == MANIFEST else None


def _revisions(folder: Path) -> dict[str, tuple[str, int]]:
    manifest = _manifest(folder) if folder.is_dir() else None
    return {
        case["case_id"]: (case["content_hash"], int(case["revision"]))
        for group in (manifest or {}).get("groups", [])
        for case in group.get("cases", [])
    }


def _summary(group: Group) -> Json:
    incident = group.incident
    return {
        "split_group": incident["split_group"],
        "split": incident["split"],
        "incident_id": incident["origin"]["incident_id"],
        "failure_mode": incident["classification"]["failure_mode"],
        "title": incident["title"],
        "seen_count": incident["origin"]["seen_count"],
        "set": incident["set"],
        "state": incident["review"]["state"],
        "note": incident["review"]["note"],
        "recorded_fails": list(group.proof.recorded_fails),
        "cases": [
            {name: case[name] for name in ("case_id", "role", "revision", "content_hash")}
            for case in group.cases
        ],
    }


def _manifest_text(written: Written, parts: Mapping[str, str], choice: Choice, version: str) -> str:
    manifest = {
        "schema": MANIFEST,
        "schema_version": MANIFEST_VERSION,
        "exporter": f"agent-slo/{version}",
        "targets": list(dict.fromkeys(choice.targets)),
        "counts": {"groups": len(written.groups), "cases": written.cases, "excluded": len(written.excluded)},
        "groups": written.groups,
        "excluded": sorted(written.excluded, key=lambda row: str(row["incident_id"])),
        "files": {
            name: "sha256:" + hashlib.sha256(text.encode()).hexdigest()
            for name, text in sorted(parts.items())
        },
    }
    return json.dumps(manifest, indent=1, sort_keys=True) + "\n"


def _replay_core() -> Iterable[tuple[str, str]]:
    """The replay core as it stands: an export runs where agent-slo is not installed."""
    for entry in sorted((files("incidents") / "replay").iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".py"):
            yield entry.name, entry.read_text(encoding="utf-8")


def _readme(groups: Sequence[Group], choice: Choice) -> str:
    lines = [
        "# Evaluation cases from incidents",
        "",
        "One group is one incident: the incident as it happened, its twin (the same fault with the opposite hidden",
        "effect) and a control without a fault. An agent passes a group when it passes every member.",
        "",
        "| file | what it is |",
        "|---|---|",
        "| `cases.jsonl` | the cases, one line each, as `case.schema.json` describes them |",
        "| `replay/` | the simulator and the checks; Python's standard library is enough |",
        "| `traces/` | the recorded traces as OTLP/JSON, redacted |",
        "| `manifest.json` | what was exported, what was left out and why, hashes |",
        "",
        "Prove every group again (the recorded calls fail, a careful agent passes, six trivial agents do not):",
        "",
        "    python -m replay cases.jsonl",
        "",
        "Run any agent that is a command against the tools of each case, over MCP (needs agent-slo[replay]):",
        "",
        "    agent-slo replay . --agent 'your command'",
        "",
    ]
    for name in dict.fromkeys(choice.targets):
        lines += targets.HOW_TO[name]
    lines += ["## Groups", "", "| group | set | split | state | cases |", "|---|---|---|---|---|"]
    for group in groups:
        incident = group.incident
        # only ids and words of ours: a title may hold the name of a tool, which is data from a trace
        lines.append(
            f"| `{incident['split_group']}` | {incident['set']} | {incident['split']} | {incident['review']['state']} "
            f"| {', '.join('`' + case['case_id'] + '`' for case in group.cases)} |"
        )
    return "\n".join(lines) + "\n"


def _place(out: Path, parts: Mapping[str, str]) -> None:
    fresh = out.with_name(f".{out.name}.new-{os.getpid()}")
    old = out.with_name(f".{out.name}.old-{os.getpid()}")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    try:
        for name, text in sorted(parts.items()):
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        if out.exists():
            out.rename(old)
        fresh.rename(out)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        if old.exists() and not out.exists():
            old.rename(out)
        raise
    if old.exists():
        shutil.rmtree(old)
