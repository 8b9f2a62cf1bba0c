"""Reads exported cases back: a folder of an export, or a file of cases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from incidents.case import SCHEMA, SCHEMA_VERSION
from incidents.replay import CHECKS

Json = dict[str, Any]
_NEEDED = (
    "case_id", "role", "split_group", "content_hash", "revision", "origin", "review", "task", "tools", "world",
    "faults", "expect", "observed",
)  # fmt: skip


class CaseFileError(Exception):
    """A file holds no cases this version can replay; the message says where and what."""


def read_cases(place: Path) -> list[Json]:
    """The cases of an export folder (its `cases.jsonl`), of a JSON-lines file, or of a file with one case.

    Raises `CaseFileError` with file and line.
    """
    path = place / "cases.jsonl" if place.is_dir() else place
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CaseFileError(
            f"{path}: there is no such file; name a folder that `agent-slo export` wrote, or a file of cases"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise CaseFileError(f"{path}: cannot be read ({error}); name a file of cases") from error
    whole = _parsed(text) if text.lstrip().startswith("{") else None
    found = [_case(whole, str(path))] if whole is not None else _lines(text, path)
    if not found:
        raise CaseFileError(f"{path}: holds no case")
    return found


def _lines(text: str, path: Path) -> list[Json]:
    return [
        _case(_parsed(line), f"{path}:{number}")
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip()
    ]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _case(value: Any, where: str) -> Json:
    if not isinstance(value, Mapping) or value.get("schema") != SCHEMA:
        raise CaseFileError(f"{where}: is no case of agent-slo (a JSON object with schema {SCHEMA!r})")
    version = str(value.get("schema_version", ""))
    if version.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
        raise CaseFileError(
            f"{where}: is of schema version {version!r}; this agent-slo reads {SCHEMA_VERSION}"
        )
    missing = [name for name in _NEEDED if name not in value]
    if missing:
        raise CaseFileError(f"{where}: lacks {missing[0]!r}; export it again")
    unknown = [check["kind"] for check in value["expect"]["checks"] if check["kind"] not in CHECKS]
    if unknown:
        raise CaseFileError(f"{where}: has an unknown check {unknown[0]!r}; take a newer agent-slo")
    return dict(value)
