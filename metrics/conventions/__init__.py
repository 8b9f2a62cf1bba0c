"""Conventions as data: which keys carry which canonical field, what a span is, and what words mean.

One YAML file per emitter family. `compile_families` turns them into the pieces of SQL that `fields.sql` is made of:
one list of JSON paths for a single `json_extract_string` call and one expression per canonical field. The head of
`genai.yaml` says what a family file can say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

BASE = "genai"

Role = Literal[
    "agent",
    "workflow",
    "chain",
    "model",
    "tool",
    "retrieval",
    "guardrail",
    "evaluator",
    "human",
    "build",
    "other",
]
Where = Literal["inside", "outside"]


class Tokens(BaseModel):
    """Whether cached tokens are part of the input count, and reasoning tokens part of the output count."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cached: Where = "inside"
    reasoning: Where = "inside"


class Conversation(BaseModel):
    """Where an emitter tells what a task began with: what the derivation does not need and an evaluation case does.

    In `flat_messages` and `flat_definitions` the keys hold `{n}`, a number, and `{part}`, what of it is told.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    instructions: list[str] = Field(default_factory=list)
    definitions: list[str] = Field(default_factory=list)
    flat_messages: list[str] = Field(default_factory=list)
    flat_definitions: list[str] = Field(default_factory=list)
    message_events: dict[str, Literal["system", "user", "assistant"]] = Field(default_factory=dict)
    detail_events: list[str] = Field(default_factory=list)


class Family(BaseModel):
    """One emitter family: its scopes, its keys per field and its roles, tried before the base's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: str
    scopes: list[str]
    extends: list[str] = Field(default_factory=list)
    shared: bool = False
    fields: dict[str, list[str]] = Field(default_factory=dict)
    without: dict[str, list[str]] = Field(default_factory=dict)
    resource_fields: dict[str, list[str]] = Field(default_factory=dict)
    roles: dict[str, dict[str, Role]] = Field(default_factory=dict)
    tokens: Tokens = Tokens()
    conversation: Conversation = Conversation()
    setting: str | None = None


@dataclass(frozen=True)
class Compiled:
    """SQL pieces for `fields.sql`."""

    emitter: str
    attribute_paths: str
    resource_paths: str
    names: str
    fields: str


@cache
def shipped() -> tuple[Family, ...]:
    """Return the families that come with agent-slo, the base first."""
    found = [
        Family.model_validate(yaml.safe_load(entry.read_text(encoding="utf-8")))
        for entry in sorted(files(__package__).iterdir(), key=lambda e: e.name)
        if entry.name.endswith(".yaml") and entry.name != "words.yaml"
    ]
    return tuple(sorted(found, key=lambda f: f.family != BASE))


@cache
def words() -> dict[str, Any]:
    """Return `words.yaml`: finish reasons, verbs, error words, pauses and denials."""
    text = files(__package__).joinpath("words.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def canonical_keys() -> frozenset[str]:
    """Return every key any family knows and every canonical field: what an alias may stand for."""
    keys: set[str] = set()
    for family in shipped():
        for fields in (family.fields, family.resource_fields):
            keys.update(fields)
            for names in fields.values():
                keys.update(name.split(" -> ")[0] for name in names)
    return frozenset(keys - {"$name"})


def content_setting(name: str) -> str:
    """Return what a family's users switch on to send content: its own words, else those of what it extends."""
    families = {family.family: family for family in shipped()}
    lineage = _lineage(families[name], families, families[BASE], []) if name in families else [families[BASE]]
    return next(family.setting for family in lineage if family.setting)


def compile_families(
    families: tuple[Family, ...],
    aliases: Mapping[str, str],
    roles: Mapping[str, Mapping[str, Role]] | None = None,
    only: frozenset[str] | None = None,
) -> Compiled:
    """Compile families, a user's aliases (`their key -> the key or field it stands for`) and roles into SQL.

    `roles`: key -> value -> role, tried before every family's own. `only`: the families whose spans are there to be
    read; the SQL for all of them takes DuckDB 150 ms to plan, the SQL for the two or three of one company 15.
    """
    base = families[0]
    by_name = {family.family: family for family in families}
    shared = [family for family in families if family.shared]
    also: dict[str, list[str]] = {}
    for theirs, ours in aliases.items():
        also.setdefault(ours, []).append(theirs)

    lineages = {family.family: _lineage(family, by_name, base, shared) for family in families}
    present = tuple(family for family in families if only is None or family.family in only) or (base,)
    attributes = _Index("k")
    resource = _Index("r")

    def value_of(field: str) -> Callable[[Family], str]:
        return lambda family: _value(_keys(field, lineages[family.family], also), attributes)

    def role_of(family: Family) -> str:
        return _role(lineages[family.family], roles or {}, attributes)

    lines = [f"{_by_family(present, value_of(field))} AS {field}" for field in base.fields]
    lines.append(f"{_by_family(present, role_of)} AS kind_stated")
    for where, field in (("cached", "cached_outside"), ("reasoning", "reasoning_outside")):
        outside = [_text(f.family) for f in families if getattr(f.tokens, where) == "outside"]
        test = f"emitter IN ({', '.join(outside)})" if outside else "false"
        lines.append(f"{test} AS {field}")
    lines += [
        f"{_value(_keys(field, [base], also, resource=True), resource)} AS {field}"
        for field in base.resource_fields
    ]

    scopes = [(scope, f.family) for f in families if f is not base for scope in f.scopes]
    # the scope name that says most decides: a literal before a glob, a longer one before a shorter one
    scopes.sort(key=lambda s: (s[0].count("*"), -len(s[0]), s[0]))
    choices = " ".join(f"WHEN scope GLOB {_text(scope)} THEN {_text(name)}" for scope, name in scopes)
    return Compiled(
        emitter=f"CASE {choices} ELSE {_text(base.family)} END" if choices else _text(base.family),
        attribute_paths=attributes.paths(),
        resource_paths=resource.paths(),
        names=f"{attributes.names()}, {resource.names()}",
        fields=",\n  ".join(lines),
    )


class _Index:
    """Gives every key a place in the one list of paths that is extracted per span."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._places: dict[str, int] = {}

    def text(self, key: str) -> str:
        """Return the SQL of a key's text: `$name`, a key, or `key -> path` into JSON text under a key."""
        if key == "$name":
            return "name"
        name, _, path = key.partition(" -> ")
        place = self._places.setdefault(name, len(self._places) + 1)
        held = f"{self._column}{place}"
        if not path:
            return held
        inner = "$" + path if path.startswith("[") else "$." + path
        return f"CASE WHEN json_valid({held}) THEN json_extract_string({held}, {_text(inner)}) END"

    def paths(self) -> str:
        quoted = (key.replace("\\", "\\\\").replace('"', '\\"') for key in self._places)
        return "[" + ", ".join(_text(f'$."{key}"') for key in quoted) + "]"

    def names(self) -> str:
        """Return the SQL that gives every extracted text a column of its own; an empty one is none."""
        places = range(1, len(self._places) + 1)
        return ", ".join(f"nullif({self._column}[{n}], '') AS {self._column}{n}" for n in places)


def _lineage(family: Family, by_name: dict[str, Family], base: Family, shared: list[Family]) -> list[Family]:
    """Return a family, what it extends, the base, and what every span may carry besides, without repeats."""
    found: list[Family] = []

    def add(one: Family) -> None:
        if one not in found:
            found.append(one)
            for name in one.extends:
                add(by_name[name])

    add(family)
    for one in (base, *shared):
        add(one)
    return found


def _keys(
    field: str, lineage: list[Family], also: dict[str, list[str]], *, resource: bool = False
) -> list[str]:
    dropped = set(lineage[0].without.get(field, ()))
    tried: list[str] = []
    for family in lineage:
        for key in (family.resource_fields if resource else family.fields).get(field, ()):
            if key not in dropped:
                tried += [name for name in (key, *also.get(key, ())) if name not in tried]
    return tried + [name for name in also.get(field, ()) if name not in tried]


def _value(keys: list[str], index: _Index) -> str:
    # a text inside a JSON text, and a span's name, have not been through `names`
    parts = [
        f"nullif({index.text(key)}, '')" if key == "$name" or " -> " in key else index.text(key)
        for key in keys
    ]
    if not parts:
        return "NULL::VARCHAR"
    return parts[0] if len(parts) == 1 else f"coalesce({', '.join(parts)})"


def _role(lineage: list[Family], stated: Mapping[str, Mapping[str, Role]], index: _Index) -> str:
    """Return the SQL that gives a span's role: the first listed key whose value is listed."""
    tried: dict[str, dict[str, str]] = {key: dict(values) for key, values in stated.items()}
    for family in lineage:
        for key, values in family.roles.items():
            known = tried.setdefault(key, {})
            for value, meant in values.items():
                known.setdefault(value, meant)
    whens = []
    for key, listed in tried.items():
        text = index.text(key)
        for role in dict.fromkeys(listed.values()):
            exact = [_text(v) for v, r in listed.items() if r == role and "*" not in v]
            globs = [v for v, r in listed.items() if r == role and "*" in v]
            tests = [f"{text} IN ({', '.join(exact)})"] if exact else []
            tests += [f"{text} GLOB {_text(glob)}" for glob in globs]
            whens.append(f"WHEN {' OR '.join(tests)} THEN {_text(role)}")
    return "CASE " + " ".join(whens) + " END"


def _by_family(families: tuple[Family, ...], sql_of: Callable[[Family], str]) -> str:
    """Return one expression over `emitter`; families with the same SQL share a branch, the commonest is the rest."""
    branches: dict[str, list[str]] = {}
    for family in families:
        branches.setdefault(sql_of(family), []).append(family.family)
    rest = max(branches, key=lambda sql: len(branches[sql]))
    whens = [
        f"WHEN emitter IN ({', '.join(map(_text, names))}) THEN {sql}"
        for sql, names in branches.items()
        if sql != rest
    ]
    return f"CASE {' '.join(whens)} ELSE {rest} END" if whens else rest


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
