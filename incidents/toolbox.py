"""The tools of a case: what each does to the world, what makes two calls one intent, and where its key stands."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from incidents.evidence import Call, Evidence, arguments
from incidents.notes import Notes
from metrics.conventions import words
from metrics.settings import MetricsSettings, ToolRule

KEY_NAME = re.compile(r"idempot|request_?id$|client_?token|dedup|nonce", re.IGNORECASE)
DEFAULT_KEY = "idempotency_key"
_WORD = re.compile(r"[^a-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TYPES: dict[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True)
class Tool:
    """One tool as the replay knows it."""

    name: str
    description: str
    parameters: dict[str, Any]
    effect: str
    """`read` or `write`."""
    intent_args: tuple[str, ...] | None
    key_arg: str | None = None
    honours_key: bool = True
    idempotent: bool = False
    escalates: bool = False
    compensates: str | None = None

    @property
    def writes(self) -> bool:
        return self.effect == "write"

    def without_key(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in args.items() if name != self.key_arg}

    def intent(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that say what is wanted, without key and prose."""
        plain = self.without_key(args)
        if self.intent_args is None:
            return plain
        return {name: plain[name] for name in self.intent_args if name in plain}

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "effect": self.effect,
            "parameters": self.parameters,
        }
        if self.intent_args is not None:
            found["intent_args"] = list(self.intent_args)
        if self.key_arg is not None:
            found.update(key_arg=self.key_arg, honours_key=self.honours_key)
        for name in ("idempotent", "escalates"):
            if getattr(self, name):
                found[name] = True
        if self.compensates:
            found["compensates"] = self.compensates
        return found


def split_name(name: str) -> list[str]:
    """The words of a tool's name in lower case."""
    return [word for word in _WORD.split(_CAMEL.sub("_", name).lower()) if word]


@cache
def _verbs() -> dict[str, str]:
    known = words()
    found = {word: effect for effect, listed in known["weak_verbs"].items() for word in listed}
    found |= {word: effect for effect, listed in known["verbs"].items() for word in listed}
    return found


@cache
def _weak() -> frozenset[str]:
    return frozenset(word for listed in words()["weak_verbs"].values() for word in listed)


def nouns(name: str) -> frozenset[str]:
    """The things a tool's name speaks of: its words without the verb it begins with and words such as status."""
    first, *rest = split_name(name) or [""]
    kept = rest if first in _verbs() and first not in _weak() else [first, *rest]
    return frozenset(word.rstrip("s") for word in kept) - {
        "statu",
        "state",
        "list",
        "all",
        "detail",
        "by",
        "id",
        "",
    }


def rule_for(settings: MetricsSettings, tool: str) -> ToolRule | None:
    """What the configuration says of a tool; the first match wins."""
    return next((rule for glob, rule in settings.tools.items() if fnmatch.fnmatchcase(tool, glob)), None)


def build(evidence: Evidence, settings: MetricsSettings, notes: Notes) -> dict[str, Tool]:
    """Every tool the task was given or called, by name."""
    defined = {item["name"]: item for item in evidence.told.definitions}
    called: dict[str, list[Call]] = {}
    for call in evidence.calls:
        called.setdefault(call.tool, []).append(call)
    asked = {
        item["name"]: item["arguments"]
        for turn in evidence.turns
        for item in turn["requested"] or []
        if item["name"] and item["name"] not in called and turn["run_id"] is not None
    }
    names = list(dict.fromkeys([*defined, *called, *asked]))
    if defined:
        notes.sure("tools: as the model was given them")
    elif called:
        notes.infer("tools: only those that were called, with the arguments they were called with")
    undoes = {by: tool for tool in names for by in _undoers(settings, tool, names)}
    return {
        name: _tool(
            name,
            defined.get(name),
            called.get(name, []),
            arguments(asked.get(name)),
            evidence,
            settings,
            notes,
            undoes.get(name),
        )
        for name in names
    }


def _undoers(settings: MetricsSettings, tool: str, names: Sequence[str]) -> list[str]:
    rule = rule_for(settings, tool)
    globs = rule.compensated_by if rule else []
    return [name for name in names if any(fnmatch.fnmatchcase(name, glob) for glob in globs)]


def _tool(
    name: str,
    defined: Mapping[str, Any] | None,
    calls: Sequence[Call],
    asked: Mapping[str, Any] | None,
    evidence: Evidence,
    settings: MetricsSettings,
    notes: Notes,
    compensates: str | None,
) -> Tool:
    rule = rule_for(settings, name)
    effect = _effect(name, defined, calls, rule, notes)
    seen: list[Mapping[str, Any]] = [call.args for call in calls if call.captured] or [asked or {}]
    parameters = _parameters(name, defined, seen, notes)
    properties: dict[str, Any] = parameters["properties"]
    writes = effect in ("write", "idempotent_write", "escalate")
    key_arg, honours = _key(name, calls, properties, writes and effect != "escalate", evidence, notes)
    return Tool(
        name=name,
        description=str((defined or {}).get("description") or f"{name} (description not captured)"),
        parameters=parameters,
        effect="write" if writes else "read",
        intent_args=_intent(name, calls, properties, key_arg, rule, notes) if writes else None,
        key_arg=key_arg,
        honours_key=honours,
        idempotent=effect == "idempotent_write",
        escalates=effect == "escalate",
        compensates=compensates,
    )


def _effect(
    name: str, defined: Mapping[str, Any] | None, calls: Sequence[Call], rule: ToolRule | None, notes: Notes
) -> str:
    if rule and rule.effect:
        notes.sure(f"effect({name})={rule.effect}: configured")
        return rule.effect
    classed = next((call for call in calls if call.effect_class != "unknown"), None)
    if classed is not None:
        line = f"effect({name})={classed.effect_class}: {classed.class_source}"
        (notes.infer if classed.class_source == "guessed" else notes.sure)(line)
        return classed.effect_class
    if (defined or {}).get("annotations", {}).get("readOnlyHint") is True:
        notes.infer(f"effect({name})=read: its MCP annotation says so")
        return "read"
    listed = split_name(name)
    known = words()
    if any(word in known["escalation_words"] for word in listed):
        notes.infer(f"effect({name})=escalate: guessed from its name")
        return "escalate"
    strong = next((_verbs()[w] for w in listed if w in _verbs() and w not in _weak()), None)
    guess = strong or next((_verbs()[w] for w in listed if w in _verbs()), None)
    if guess is None:
        notes.ask(f"effect({name}): its name does not tell; taken as read. Set tools.{name}.effect")
        return "read"
    notes.infer(f"effect({name})={guess}: guessed from its name")
    return guess


def _parameters(
    name: str, defined: Mapping[str, Any] | None, seen: Sequence[Mapping[str, Any]], notes: Notes
) -> dict[str, Any]:
    schema = dict((defined or {}).get("parameters") or {})
    if isinstance(schema.get("properties"), dict) and schema["properties"]:
        properties = {
            key: _fitting(name, key, value, seen, notes) for key, value in schema["properties"].items()
        }
        return {**schema, "type": "object", "properties": properties}
    properties = {}
    for args in seen:
        for key, value in args.items():
            if value is not None:
                properties.setdefault(key, {"type": _TYPES.get(type(value), "string")})
    always = [key for key in properties if all(key in args for args in seen)]
    return {"type": "object", "properties": properties, "required": always}


def _fitting(name: str, key: str, schema: Any, seen: Sequence[Mapping[str, Any]], notes: Notes) -> Any:
    """A declared type that the calls contradict follows the calls: a strict tool would refuse what was done."""
    stated = schema.get("type") if isinstance(schema, dict) else None
    types = {_TYPES.get(type(args[key]), "string") for args in seen if args.get(key) is not None}
    fits = types <= {stated} or (stated == "integer" and all(isinstance(args.get(key), int) for args in seen))
    if not isinstance(stated, str) or fits or len(types) != 1:
        return schema
    (called,) = types
    notes.infer(
        f"parameters({name}): {key} is declared {stated} and called with {called}; the schema follows the calls"
    )
    return {**{k: v for k, v in schema.items() if k not in ("enum", "format", "pattern")}, "type": called}


def _key(
    name: str,
    calls: Sequence[Call],
    properties: dict[str, Any],
    offers: bool,
    evidence: Evidence,
    notes: Notes,
) -> tuple[str | None, bool]:
    """Where the key stands and whether the receiver honours it. Adds the argument where the replay must offer one."""
    if not offers:
        return None, True
    broken = any(
        finding["rule"] == "duplicate.key_not_honoured" and call.span_id in (finding["evidence"] or [])
        for finding in evidence.own_findings
        for call in calls
    )
    honours = not broken
    if any(call.duplicate == "protected" for call in calls):
        notes.sure(f"honours_key({name}): a repeat under its key had no second effect")
    elif broken:
        notes.sure(f"honours_key({name})=false: two effects under one key")
    else:
        notes.infer(f"honours_key({name}): not seen in the trace")
    sent = {call.key for call in calls if call.key}
    for candidate in properties:
        values = {str(call.args.get(candidate)) for call in calls if call.args.get(candidate) is not None}
        if KEY_NAME.search(candidate) or (sent and values and values <= sent):
            return candidate, honours
    properties[DEFAULT_KEY] = {
        "type": "string",
        "description": "Repeat the call with the same key and it is done once.",
    }
    if sent:
        notes.infer(
            f"key_arg({name})={DEFAULT_KEY}: the key travelled beside the arguments, the replay takes it as one"
        )
    else:
        notes.ask(
            f"key_arg({name})={DEFAULT_KEY}: no recorded call carried a key; the replay offers one. "
            "Does the real tool take it?"
        )
    return DEFAULT_KEY, honours


def _intent(
    name: str,
    calls: Sequence[Call],
    properties: Mapping[str, Any],
    key_arg: str | None,
    rule: ToolRule | None,
    notes: Notes,
) -> tuple[str, ...]:
    seen = [key for key in properties if any(key in call.args for call in calls)] or list(properties)
    if rule and rule.key_fields and any(field in seen for field in rule.key_fields):
        notes.sure(f"intent_args({name}): configured")
        return tuple(field for field in rule.key_fields if field in seen)
    free = set(words()["free_text"])
    plain = [key for key in seen if key != key_arg]
    business = [key for key in plain if key not in free]
    notes.infer(f"intent_args({name}): its arguments without key and prose")
    return tuple(business or plain)
