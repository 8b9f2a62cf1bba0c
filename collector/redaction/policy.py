"""Who is redacted how, and which attributes mean something to the derivation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

Policy = Literal["keep", "redact", "drop-content"]


@dataclass(frozen=True)
class RedactionRules:
    """What is done to which service's spans and log records before they are stored.

    The collector knows no vendor's keys: whoever starts it says which attributes are mapped.
    """

    policies: tuple[tuple[str, Policy], ...] = (("*", "redact"),)
    """(glob over service.name, policy); the first that matches decides, `redact` when none does."""
    key_file: Path | None = None
    """Where the installation's key lies; None: the user's state folder. See collector.redaction.key."""
    mapped: frozenset[str] = frozenset()
    """Attributes that the derivation reads: never taken for a secret because of their name."""
    content: frozenset[str] = frozenset()
    """Attributes with prompts, messages and answers."""
    arguments: frozenset[str] = frozenset()
    """Attributes with the arguments of a tool call."""
    results: frozenset[str] = frozenset()
    """Attributes with the result of a tool call."""
    canonical: Callable[[str], str | None] | None = None
    """One spelling (JSON text) for equal arguments; None: JSON with sorted keys."""
    find_names: Callable[[str], list[tuple[int, int]]] | None = None
    """Where names of persons stand in a text; None: they are not looked for. See collector.redaction.names."""

    def policy(self, service: str | None) -> Policy:
        """The policy of one service; None: the sender named none."""
        for glob, policy in self.policies:
            if fnmatchcase(service or "", glob):
                return policy
        return "redact"

    def may_hold_names(self, key: str) -> bool:
        """Whether what stands under this key may be a text about people; ids and names of tools are none."""
        if key in self.content or key in self.arguments or key in self.results:
            return True
        return key not in self.mapped and not key.startswith("agent_slo.")

    @property
    def idle(self) -> bool:
        """Whether nothing can be redacted."""
        return all(p == "keep" for _, p in self.policies) and any(g == "*" for g, _ in self.policies)


REDACT = RedactionRules()
KEEP = RedactionRules(policies=(("*", "keep"),))
