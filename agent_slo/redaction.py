"""What is redacted, from the configuration and the conventions: the collector itself knows no vendor's keys."""

from __future__ import annotations

from pathlib import Path

from agent_slo.config import Config
from collector.redaction.key import load_key
from collector.redaction.names import NameRules, name_finder
from collector.redaction.policy import RedactionRules
from collector.redaction.redactor import Redactor
from metrics.canonical import canonical
from metrics.conventions import canonical_keys, shipped

_CONTENT = ("input_messages", "output_messages", "output", "tool_calls")
_ARGUMENTS = ("arguments", "decision_arguments")
_RESULTS = ("result",)


def redaction_rules(config: Config) -> RedactionRules:
    """The `collector.redaction` section with every mapped attribute, the user's aliases among them.

    Loads the language model where names are to be replaced. Raises CollectorError when it is not installed.
    """
    names = config.collector.redaction_names
    aliases = config.conventions.aliases
    return RedactionRules(
        policies=tuple(config.collector.redaction.items()),
        key_file=config.collector.redaction_key_file,
        mapped=canonical_keys() | frozenset(aliases),
        content=_keys(_CONTENT, aliases),
        arguments=_keys(_ARGUMENTS, aliases),
        results=_keys(_RESULTS, aliases),
        canonical=canonical,
        find_names=None if names is None else name_finder(NameRules(**names.model_dump())),
    )


def redactor(config: Config, data: Path) -> Redactor | None:
    """What a store of this data folder redacts with; None when everything is kept."""
    rules = redaction_rules(config)
    return None if rules.idle else Redactor(rules, load_key(data, rules.key_file))


def _keys(fields: tuple[str, ...], aliases: dict[str, str]) -> frozenset[str]:
    """Attributes that carry one of these canonical fields in any family, and the aliases that stand for them."""
    found = {
        key.split(" -> ")[0]
        for family in shipped()
        for field in fields
        for key in family.fields.get(field, ())
    } - {"$name"}
    return frozenset(found | {theirs for theirs, ours in aliases.items() if ours in found or ours in fields})
