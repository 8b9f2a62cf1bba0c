"""Takes secrets and personal data out of a case, last before anything is written.

What a secret looks like and what it is called is known to `collector.redaction`, for the store and the export alike.
One value becomes one typed placeholder within a case (`<EMAIL_1>`), wherever it stands, so that equal arguments stay
equal and the case still proves itself; what the collector replaced already (`<EMAIL:3f1a...>`) stays as it is, for
the same reason. Names of persons are not looked for here: where the collector does (extra `pii`), they come as
placeholders.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from collector.redaction import detectors, named, written
from collector.redaction.content import DROPPED
from collector.redaction.detectors import DETECTORS, Detector
from collector.redaction.named import TEXT_CANDIDATE

ENGINE = "builtin-3"
LEAST_SECRET = 6
"""Shorter values are not looked for outside their own place: they stand in ordinary words."""

# The store keeps these, since work is told apart by them; a case leaves the house and does not need them.
_ONLY_HERE = (
    Detector("SSN", r"[0-9]{3}-[0-9]{2}-[0-9]{4}", re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])")),
    Detector(
        "IP",
        r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}",
        re.compile(r"(?<![\w.])(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}(?![\w.])"),
    ),
)
_DETECTORS = (*DETECTORS, *_ONLY_HERE)
_ONLY_HERE_NAME = re.compile(r"(?i)(?:^|[_\-. ])(?:session[_-]?id|signature)$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CANDIDATES = re.compile("|".join(f"(?:{d.candidate})" for d in _DETECTORS))
_NAMED = re.compile(TEXT_CANDIDATE)
_PLACEHOLDER = re.compile(r"<([A-Z][A-Z_]*?)(?:_\d+|:[0-9a-f]{10})>")
_STORED = detectors.PLACEHOLDER
_WITHHELD = re.compile(rf"<(?:TEXT|VALUE|ARGUMENTS):[0-9a-f]{{10}}>|{DROPPED}")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_JSON_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_SCHEMA_VALUES = frozenset({"default", "example", "examples", "const", "enum"})
_LEAST_CARD = 10**12


def is_withheld(value: Any) -> bool:
    """Whether the collector's policy `drop-content` left no more of a text or an argument than its hash."""
    return isinstance(value, str) and _WITHHELD.fullmatch(value.strip()) is not None


@lru_cache(maxsize=20_000)
def is_secret_name(name: str) -> bool:
    """Whether a key with this name holds a secret."""
    return named.is_secret_key(name) or _ONLY_HERE_NAME.search(_CAMEL.sub("_", name)) is not None


@lru_cache(maxsize=20_000)
def _is_phone_name(name: str) -> bool:
    return named.is_phone_key(name)


class Redactor:
    """Redacts everything of one case with one set of placeholders. `counts` says how many values of each type."""

    def __init__(self) -> None:
        self._placeholders: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()
        self._by_name: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self._stored: set[str] = set()

    @property
    def counts(self) -> dict[str, int]:
        """Distinct values by type, those that the collector took out among them; the values are never told."""
        stored = Counter(placeholder[1:].partition(":")[0] for placeholder in self._stored)
        return dict(sorted((self._numbers + stored).items()))

    @property
    def found(self) -> frozenset[str]:
        """The values that were taken out: to search what is written for them, and for nothing else."""
        return frozenset(self._placeholders)

    def redact(self, value: Any) -> Any:
        """A copy of a JSON value without secrets: strings, keys of objects, and numbers that are card numbers."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._entry(str(key), item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            flags = [False, *(isinstance(item, str) and written.is_secret_flag(item) for item in value)]
            return [
                self._wiped(item) if flag and item != "" else self.redact(item)
                for flag, item in zip(flags, value, strict=False)
            ]
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LEAST_CARD:
            return self._placeholder("CARD", str(value)) if detectors.is_card(str(abs(value))) else value
        return value

    def text(self, text: str) -> str:
        """One text without secrets, and without lone surrogates, which no UTF-8 writer accepts."""
        known = self._known.get(text)
        if known is not None:
            return known
        clean = _LONE_SURROGATE.sub("�", text)
        stored = _STORED.findall(clean) if "<" in clean else []
        self._stored.update(stored)
        # `<SECRET:89abcdef01>` would be read as a secret with a name; what lies between such is looked at
        parts = [self._without(part) for part in (_STORED.split(clean) if stored else [clean])]
        clean = "".join(part + placeholder for part, placeholder in zip_longest(parts, stored, fillvalue=""))
        # what its name showed to be secret is secret in prose as well, where no shape would tell
        for value, placeholder in self._by_name.items():
            if value in clean:
                clean = clean.replace(value, placeholder)
        self._known[text] = clean
        return clean

    def _without(self, text: str) -> str:
        if _NAMED.search(text):
            text = written.secrets_named_in(text, self._placeholder)
        if _CANDIDATES.search(text):
            for detector in _DETECTORS:
                text = detector.sub(text, self._placeholder)
        return text

    def _entry(self, key: str, item: Any) -> Any:
        if item in (None, "", [], {}) or isinstance(item, bool):
            return item
        if named.is_phone_key(key) and isinstance(item, (str, int)) and named.is_phone_value(str(item)):
            return self._placeholder("PHONE", str(item))
        if not is_secret_name(key):
            return self.redact(item)
        if isinstance(item, str) and named.is_weak_key(key) and not named.is_secret_value(item):
            return self.redact(item)  # `"token": "the"` is how models tell what they were about to say
        if isinstance(item, Mapping) and str(item.get("type")) in _JSON_TYPES:
            # the schema of a secret argument is no secret, the example values in it are
            return {
                self.text(str(name)): self._wiped(value) if name in _SCHEMA_VALUES else self.redact(value)
                for name, value in item.items()
            }
        return self._wiped(item)

    def _wiped(self, item: Any) -> Any:
        if isinstance(item, Mapping):
            return {self.text(str(key)): self._wiped(inner) for key, inner in item.items()}
        if isinstance(item, (list, tuple)):
            return [self._wiped(inner) for inner in item]
        if item is None or isinstance(item, bool):
            return item
        text = _LONE_SURROGATE.sub("�", str(item))
        return self._placeholder("SECRET", text)

    def _placeholder(self, kind: str, value: str) -> str:
        if _PLACEHOLDER.fullmatch(value):
            if _STORED.fullmatch(value):
                self._stored.add(value)
            return value
        known = self._placeholders.get(value)
        if known is None:
            self._numbers[kind] += 1
            known = self._placeholders[value] = f"<{kind}_{self._numbers[kind]}>"
            if kind == "SECRET" and len(value) >= LEAST_SECRET:
                self._by_name[value] = known
                self._known.clear()
        return known
