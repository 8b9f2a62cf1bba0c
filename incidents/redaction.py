"""Takes secrets and personal data out of a case, last before anything is written.

One value becomes one typed placeholder within a case (`<EMAIL_1>`), wherever it stands, so that equal arguments stay
equal and the case still proves itself. Names of persons are not found: that needs a language model, and a guess
would cut ordinary words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

ENGINE = "builtin-1"
LEAST_SECRET = 6
"""Shorter values are not looked for outside their own place: they stand in ordinary words."""

# One alternation, most telling first: what a longer secret contains must not be cut out of it piecemeal.
_SHAPES: tuple[tuple[str, str], ...] = (
    ("PRIVATE_KEY", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[\s\S]{0,8000}?"
                    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)"),
    ("JWT", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("BEARER", r"(?i:\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{12,}"),
    ("URL_PASSWORD", r"(?<=://)[^\s/:@]{1,100}:[^\s/@]{1,200}(?=@)"),
    ("AWS_KEY", r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{16}\b"),
    ("GITHUB_TOKEN", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255})"),
    ("GITLAB_TOKEN", r"\bglpat-[A-Za-z0-9_-]{16,}"),
    ("SLACK_TOKEN", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("GOOGLE_KEY", r"\bAIza[A-Za-z0-9_-]{30,}"),
    ("STRIPE_KEY", r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9]{16,}"),
    ("API_KEY", r"\b(?:sk|pk|rk|lsv2|hf|npm|dop_v1|shpat|SG)[-_.][A-Za-z0-9][A-Za-z0-9._-]{18,}[A-Za-z0-9]"),
    ("EMAIL", r"[A-Za-z0-9._%+'-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b"),
    ("IBAN", r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b"),
    ("CARD", r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])"),
    ("SSN", r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"),
    ("PHONE", r"(?<![\w.])(?:\+\d{1,3}[ ./-]?(?:\(\d{1,4}\)[ ./-]?)?\d(?:[ ./-]?\d){5,12}|\(\d{3}\)[ ]?\d{3}[ .-]?\d{4}"
              r"|\d{3}[ .-]\d{3}[ .-]\d{4}|0\d{2,4}[ /]\d{3,4}[ -]?\d{2,5})(?![\w-])"),
    ("IP", r"(?<![\w.])(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}(?![\w.])"),
)  # fmt: skip
_PATTERN = re.compile("|".join(f"(?P<{name}>{shape})" for name, shape in _SHAPES))

# A key whose value is a secret by its name: `tokens` are counted and an idempotency key is business, so neither is one.
_SECRET_NAME = re.compile(
    r"(?i)(?:^|[_\-. ])(?:pass(?:word|wd|phrase|code)?|pwd|secrets?|api[_-]?key|apikey|access[_-]?key|private[_-]?key"
    r"|client[_-]?secret|(?:(?:access|auth|refresh|id|session|bearer|security|csrf|api)[_-]?)?token|auth(?:orization)?"
    r"|credentials?|cookies?|set-cookie|session[_-]?id|cvv|cvc|ssn|pin(?:[_-]?code)?|otp|iban|card[_-]?number"
    r"|account[_-]?number|routing[_-]?number|signature|connection[_-]?string|dsn)$"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NAMED_IN_TEXT = re.compile(
    r"""(?ix) (?P<name>\b(?:[a-z0-9]+[_-])*(?:password|passwd|passphrase|pwd|secret|api[_-]?key|apikey|access[_-]?key
    |private[_-]?key|client[_-]?secret|(?:access|auth|refresh|session)[_-]?token|token|cvv|cvc|pin)\b)
    (?P<gap>\\?["']?\s*(?:[:=]|\bis\b)\s*\\?["']?) (?P<value>[^\s"'\\,;<>]{4,200})"""
)
_PLACEHOLDER = re.compile(r"<[A-Z_]+_\d+>")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_MOD_97 = 97
_JSON_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_SCHEMA_VALUES = frozenset({"default", "example", "examples", "const", "enum"})


def is_card(text: str) -> bool:
    """Whether 13 to 19 digits pass the Luhn check (ISO/IEC 7812-1) and are not one digit over and over."""
    digits = [int(c) for c in text if c.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    doubled = [d if n % 2 == 0 else d * 2 - 9 * (d > 4) for n, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


def is_iban(text: str) -> bool:
    """Whether the check digits of an IBAN hold (ISO 13616, mod 97)."""
    plain = text.replace(" ", "")
    if not 15 <= len(plain) <= 34:
        return False
    moved = plain[4:] + plain[:4]
    return int("".join(str(int(c, 36)) for c in moved)) % _MOD_97 == 1


_CONFIRMS: dict[str, Callable[[str], bool]] = {"CARD": is_card, "IBAN": is_iban}


def is_secret_name(name: str) -> bool:
    """Whether a key with this name holds a secret."""
    return _SECRET_NAME.search(_CAMEL.sub("_", name)) is not None


class Redactor:
    """Redacts everything of one case with one set of placeholders. `counts` says how many values of each type."""

    def __init__(self) -> None:
        self._placeholders: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()
        self._by_name: dict[str, str] = {}
        self._known: dict[str, str] = {}

    @property
    def counts(self) -> dict[str, int]:
        """Distinct values found, by type; the values themselves are never told."""
        return dict(sorted(self._numbers.items()))

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
            return [self.redact(item) for item in value]
        if isinstance(value, int) and not isinstance(value, bool) and is_card(str(abs(value))):
            return self._placeholder("CARD", str(value))
        return value

    def text(self, text: str) -> str:
        """One text without secrets, and without lone surrogates, which no UTF-8 writer accepts."""
        known = self._known.get(text)
        if known is not None:
            return known
        clean = _LONE_SURROGATE.sub("�", text)
        clean = _NAMED_IN_TEXT.sub(self._named, clean)
        clean = _PATTERN.sub(self._shaped, clean)
        # what its name showed to be secret is secret in prose as well, where no shape would tell
        for value, placeholder in self._by_name.items():
            if value in clean:
                clean = clean.replace(value, placeholder)
        self._known[text] = clean
        return clean

    def _entry(self, key: str, item: Any) -> Any:
        if not is_secret_name(key) or item in (None, "", [], {}) or isinstance(item, bool):
            return self.redact(item)
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
        return text if _PLACEHOLDER.fullmatch(text) else self._placeholder("SECRET", text)

    def _named(self, match: re.Match[str]) -> str:
        value = match["value"]
        if _PLACEHOLDER.fullmatch(value) or not re.search(r"\d|[^A-Za-z]", value):
            return match[0]  # `password: required` is a word, not a password
        return match["name"] + match["gap"] + self._placeholder("SECRET", value)

    def _shaped(self, match: re.Match[str]) -> str:
        kind, value = str(match.lastgroup), match[0]
        confirms = _CONFIRMS.get(kind)
        if confirms is not None and not confirms(value):
            return value
        return self._placeholder(kind, value)

    def _placeholder(self, kind: str, value: str) -> str:
        known = self._placeholders.get(value)
        if known is None:
            self._numbers[kind] += 1
            known = self._placeholders[value] = f"<{kind}_{self._numbers[kind]}>"
            if kind == "SECRET" and len(value) >= LEAST_SECRET:
                self._by_name[value] = known
                self._known.clear()
        return known
