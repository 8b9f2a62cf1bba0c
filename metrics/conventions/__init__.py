"""Conventions as data: which keys carry which canonical field, and what words mean.

One YAML file per emitter family. `compile_families` turns them into the pieces of SQL that `fields.sql` is made of:
one list of JSON paths for a single `json_extract_string` call and one expression per canonical field.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

BASE = "genai"


class Family(BaseModel):
    """One emitter family: its scopes and its keys per field, tried before the base's keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: str
    scopes: list[str]
    fields: dict[str, list[str]] = Field(default_factory=dict)
    resource_fields: dict[str, list[str]] = Field(default_factory=dict)
    roles: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True)
class Compiled:
    """SQL pieces for `fields.sql`, and the operation-to-role rows."""

    emitter: str
    attribute_paths: str
    resource_paths: str
    fields: str
    roles: tuple[tuple[str, str], ...]


@cache
def shipped() -> tuple[Family, ...]:
    """Return the families that come with agent-slo, the base first."""
    found = []
    for entry in sorted(files(__package__).iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".yaml") and entry.name != "words.yaml":
            found.append(Family.model_validate(yaml.safe_load(entry.read_text(encoding="utf-8"))))
    return tuple(sorted(found, key=lambda f: f.family != BASE))


@cache
def words() -> dict[str, Any]:
    """Return `words.yaml`: finish reasons, verbs, error words, pauses and denials."""
    text = files(__package__).joinpath("words.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def canonical_keys() -> frozenset[str]:
    """Return every key any family knows: what an alias may stand for."""
    keys: set[str] = set()
    for family in shipped():
        for names in (*family.fields.values(), *family.resource_fields.values()):
            keys.update(names)
    return frozenset(keys)


def compile_families(families: tuple[Family, ...], aliases: dict[str, str]) -> Compiled:
    """Compile families and a user's aliases (`their key -> the key it stands for`) into SQL."""
    base, others = families[0], families[1:]
    also: dict[str, list[str]] = {}
    for theirs, ours in aliases.items():
        also.setdefault(ours, []).append(theirs)

    attributes: dict[str, int] = {}
    resource: dict[str, int] = {}

    def number(index: dict[str, int], key: str) -> int:
        return index.setdefault(key, len(index) + 1)

    def tried(keys: list[str]) -> list[str]:
        out: list[str] = []
        for key in keys:
            out += [name for name in (key, *also.get(key, [])) if name not in out]
        return out

    def expression(keys: list[str], index: dict[str, int], column: str) -> str:
        parts = [f"nullif({column}[{number(index, key)}], '')" for key in tried(keys)]
        if not parts:
            return "NULL"
        return parts[0] if len(parts) == 1 else f"coalesce({', '.join(parts)})"

    lines = []
    for field, keys in base.fields.items():
        plain = expression(keys, attributes, "k")
        special = [
            (f.family, expression(f.fields[field] + [k for k in keys if k not in f.fields[field]], attributes, "k"))
            for f in others
            if f.fields.get(field)
        ]
        if special:
            cases = " ".join(f"WHEN {_text(name)} THEN {sql}" for name, sql in special)
            plain = f"CASE emitter {cases} ELSE {plain} END"
        lines.append(f"{plain} AS {field}")
    for field, keys in base.resource_fields.items():
        lines.append(f"{expression(keys, resource, 'r')} AS {field}")

    choices = " ".join(
        f"WHEN {' OR '.join(f'scope GLOB {_text(scope)}' for scope in f.scopes)} THEN {_text(f.family)}" for f in others
    )
    roles = {operation: role for family in families for operation, role in family.roles.items()}
    return Compiled(
        emitter=f"CASE {choices} ELSE {_text(base.family)} END" if choices else _text(base.family),
        attribute_paths=_paths(attributes),
        resource_paths=_paths(resource),
        fields=",\n  ".join(lines),
        roles=tuple(sorted(roles.items())),
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _paths(index: dict[str, int]) -> str:
    return "[" + ", ".join(_text('$."' + key.replace("\\", "\\\\").replace('"', '\\"') + '"') for key in index) + "]"
