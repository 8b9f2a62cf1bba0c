"""Families of log records that tell of work: coding agents that log their calls, tools and decisions without traces.

One YAML file per family; the head of `claude_code.yaml` says what a file can say. `compile_logs` turns them into the
pieces of SQL that `metrics/sql/passes/logs.sql` is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["prompt", "model", "tool", "human"]
Decision = Literal["approved", "rejected", "edited"]
FIELDS = (
    "conversation", "run", "sequence", "prompt", "tool", "call_id", "arguments", "succeeded", "error", "error_type",
    "status", "model", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost",
    "duration_ms", "attempt", "decision",
)  # fmt: skip
"""What can be read from a record."""


class Record(BaseModel):
    """One kind of record: its events, what it is, and what its attributes must say for that."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    event: list[str] = Field(min_length=1)
    kind: Kind = Field(alias="is")
    where: dict[str, str] = Field(default_factory=dict)
    failed: Literal[True, "only"] | None = None


class LogFamily(BaseModel):
    """One family: the event names by which it is known, its records, keys and words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: str
    agent: str
    events: list[str] = Field(min_length=1)
    services: list[str] = Field(default_factory=list)
    records: list[Record]
    fields: dict[Literal[FIELDS], list[str]]  # type: ignore[valid-type]
    cached: Literal["inside", "outside"] = "inside"
    decided_on: list[Kind] = Field(default_factory=list)
    decisions: dict[Decision, list[str]] = Field(default_factory=dict)


@dataclass(frozen=True)
class CompiledLogs:
    """SQL pieces for `logs.sql`, over the columns `event`, `told`, `service`, `family`, `k`, `kind` and `decided`."""

    family: str
    told: str
    paths: str
    fields: str
    kind: str
    failed: str
    cached_outside: str
    agent: str
    decision: str


@cache
def shipped() -> tuple[LogFamily, ...]:
    """Return the families that come with agent-slo, by name."""
    found = [
        LogFamily.model_validate(yaml.safe_load(entry.read_text(encoding="utf-8")))
        for entry in files(__package__).iterdir()
        if entry.name.endswith(".yaml")
    ]
    return tuple(sorted(found, key=lambda family: family.family))


def compile_logs(families: tuple[LogFamily, ...]) -> CompiledLogs:
    """Compile families into SQL."""
    places: dict[str, int] = {}

    def text(key: str) -> str:
        return f"nullif(k[{places.setdefault(key, len(places) + 1)}], '')"

    def by_family(sql_of: Callable[[LogFamily], str], otherwise: str = "NULL") -> str:
        whens = " ".join(f"WHEN {_quoted(f.family)} THEN {sql_of(f)}" for f in families)
        return f"CASE family {whens} ELSE {otherwise} END"

    def value(field: str) -> Callable[[LogFamily], str]:
        def of(family: LogFamily) -> str:
            keys = [text(key) for key in family.fields.get(field, ())]
            return f"coalesce({', '.join(keys)}, NULL)" if keys else "NULL::VARCHAR"

        return of

    def fits(record: Record, failed: str) -> str:
        tests = [f"told IN ({', '.join(map(_quoted, record.event))})"]
        tests += [f"lower({text(key)}) GLOB {_quoted(glob)}" for key, glob in record.where.items()]
        return " AND ".join([*tests, failed] if record.failed == "only" else tests)

    def kind(family: LogFamily) -> str:
        error = value("error")(family)
        whens = " ".join(
            f"WHEN {fits(r, f'{error} IS NOT NULL')} THEN {_quoted(r.kind)}" for r in family.records
        )
        return f"CASE {whens} END"

    def failed(family: LogFamily) -> str:
        always = [event for r in family.records if r.failed is True for event in r.event]
        tests = [f"told IN ({', '.join(map(_quoted, always))})"] if always else []
        # a person's word on a call is not the call
        tests += ["lower(succeeded) = 'false'", "(kind <> 'human' AND error IS NOT NULL)"]
        return " OR ".join(tests)

    def decision(family: LogFamily) -> str:
        whens = " ".join(
            f"WHEN lower(decision) IN ({', '.join(map(_quoted, said))}) THEN {_quoted(meant)}"
            for meant, said in family.decisions.items()
        )
        on = ", ".join(map(_quoted, family.decided_on))
        return f"CASE WHEN kind IN ({on}) THEN CASE {whens} END END" if whens and on else "NULL"

    def known_by(family: LogFamily) -> str:
        tests = [f"event GLOB {_quoted(glob)}" for glob in family.events]
        return " OR ".join([*tests, *(f"service = {_quoted(service)}" for service in family.services)])

    names = " ".join(f"WHEN {known_by(family)} THEN {_quoted(family.family)}" for family in families)
    prefixes = "|".join(
        event.rstrip("*").replace(".", r"\.") for f in families for event in f.events if event.endswith("*")
    )
    fields = ",\n    ".join(f"{by_family(value(field))} AS {field}" for field in FIELDS)
    kinds = by_family(kind)
    outside = [_quoted(f.family) for f in families if f.cached == "outside"]
    return CompiledLogs(
        family=f"CASE {names} END",
        told=f"regexp_replace(event, {_quoted(f'^({prefixes})')}, '')",
        fields=fields,
        kind=kinds,
        failed=by_family(failed, "false"),
        cached_outside=f"family IN ({', '.join(outside)})" if outside else "false",
        agent=by_family(lambda family: _quoted(family.agent)),
        decision=by_family(decision),
        # last: by now every key has its place
        paths="[" + ", ".join(_quoted(f'$."{key}"') for key in places) + "]",
    )


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
