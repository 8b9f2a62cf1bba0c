"""What a secret or a piece of personal data looks like: one table, shared by everything that redacts.

Each detector has two patterns. `candidate` is RE2 and runs over whole Arrow columns: cheap, may say yes too often,
never no too often. `shape` is Python's and only meets texts that a candidate let through; `confirm` then decides by
checksum or by form. The order matters: what a longer secret contains must not be cut out of it piecemeal.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

PLACEHOLDER = re.compile(r"<[A-Z][A-Z_]*:[0-9a-f]{10}>")
"""What stands in place of a value: its type and ten hex digits of its HMAC."""

_CARD_LENGTHS = range(13, 20)
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28,
    "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
    "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
    "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20,
    "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18,
    "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24,
    "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24,
    "XK": 20,
}  # fmt: skip
"""Length of an IBAN by country (ISO 13616 registry); mod 97 alone lets one code in 97 through."""


def is_card(text: str) -> bool:
    """Whether these are 13 to 19 digits of a card network that pass the Luhn check (ISO/IEC 7812-1).

    The first digits count as well: a tenth of all order numbers passes Luhn.
    """
    digits = [int(c) for c in text if c.isdigit()]
    if len(digits) not in _CARD_LENGTHS or len(set(digits)) < 2:
        return False
    two, four = digits[0] * 10 + digits[1], int("".join(map(str, digits[:4])))
    known = (
        (digits[0] == 4 and len(digits) in (13, 16, 19))
        or ((51 <= two <= 55 or 2221 <= four <= 2720) and len(digits) == 16)
        or (two in (34, 37) and len(digits) == 15)
        or (two in (36, 38, 39) and len(digits) == 14)
        or (3000 <= four <= 3059 and len(digits) == 14)
        or ((four == 6011 or two in (64, 65)) and len(digits) == 16)
        or (3528 <= four <= 3589 and len(digits) == 16)
        or (two == 62 and len(digits) >= 16)
        or (two in (50, 56, 57, 58, 63, 67) and len(digits) >= 16)
    )  # fmt: skip
    if not known:
        return False
    doubled = [d if n % 2 == 0 else d * 2 - 9 * (d > 4) for n, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


def is_iban(text: str) -> bool:
    """Whether country, length and check digits of an IBAN hold (ISO 13616, mod 97)."""
    plain = text.replace(" ", "")
    if len(plain) != _IBAN_LENGTHS.get(plain[:2]):
        return False
    moved = plain[4:] + plain[:4]
    return int("".join(str(int(c, 36)) for c in moved)) % 97 == 1


def is_phone(text: str) -> bool:
    """Whether this is a telephone number: 8 to 15 digits, in international or in one of two national spellings."""
    digits = re.sub(r"\D", "", text)
    if not 8 <= len(digits) <= 15 or len(set(digits)) < 3:
        return False
    if text.startswith("+") or text.startswith("0"):
        return digits[0] != "0" or not text.startswith("+")
    # North America: neither an area nor an exchange begins with 0 or 1
    return len(digits) == 10 and digits[0] in "23456789" and digits[3] in "23456789"


def _is_basic(text: str) -> bool:
    """`Basic` is a word; as a credential it is base64 of `user:password`. A bearer token has digits."""
    scheme, _, value = text.partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return re.search(r"\d", value) is not None or len(value) >= 32
    try:
        return b":" in base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_dense(text: str) -> bool:
    """Whether a token is more than words joined by dashes."""
    body = text[3:]
    return (
        len(re.findall(r"\d", body)) >= 2
        and re.search(r"[A-Za-z0-9]{12}|[A-Z].*[a-z]|[a-z].*[A-Z]", body) is not None
    )


_LOCAL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+'-"
_DOMAIN = re.compile(r"(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b")


def _find_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Where mail addresses stand. From `@` to `@`: looking at every word of a prompt costs ten times as much."""
    before, end = 0, 0
    at = text.find("@")
    while at >= 0:
        domain = _DOMAIN.match(text, at + 1)
        # An address begins where its word does; one that begins inside the address before it is none.
        start = before + len(text[before:at].rstrip(_LOCAL))
        before = at + 1
        if domain is not None and end <= start < at:
            end = domain.end()
            yield start, end
        at = text.find("@", before)


def replace_addresses(text: str, replace: Callable[[str, str], str]) -> str:
    """The text with every mail address replaced by `replace("EMAIL", address)`.

    Also right for a JSON text as a whole, as long as no address in it follows a backslash (see `EMAIL_ESCAPED`):
    neither addresses nor placeholders hold a character that JSON escapes.
    """
    parts, kept = [], 0
    for start, end in _find_addresses(text):
        parts += [text[kept:start], replace("EMAIL", text[start:end])]
        kept = end
    return "".join([*parts, text[kept:]]) if parts else text


@dataclass(frozen=True)
class Detector:
    """One type of secret: where it may be (`candidate`, RE2), what it is (`shape`), and whether it is one."""

    name: str
    candidate: str
    shape: re.Pattern[str]
    confirm: Callable[[str], bool] | None = None
    fast: Callable[[str, Callable[[str, str], str]], str] | None = None
    """The same as `shape`, quicker."""

    def sub(self, text: str, replace: Callable[[str, str], str]) -> str:
        """The text with every confirmed match replaced by `replace(type, value)`."""
        if self.fast is not None:
            return self.fast(text, replace)
        confirm, name = self.confirm, self.name

        def one(match: re.Match[str]) -> str:
            value = match[0]
            return value if confirm is not None and not confirm(value) else replace(name, value)

        return self.shape.sub(one, text)


DETECTORS: tuple[Detector, ...] = (
    Detector(
        "PRIVATE_KEY",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY",
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]{0,16000}?"
            r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
        ),
    ),
    Detector(
        "JWT",
        r"eyJ[A-Za-z0-9_-]{8}",
        re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    ),
    Detector(
        "BEARER",
        r"(?i:bearer|basic) +[A-Za-z0-9._~+/=-]{12}",
        re.compile(r"(?i:\b(?:bearer|basic) +)[A-Za-z0-9._~+/=-]{11,}[A-Za-z0-9_~/=-]"),
        _is_basic,
    ),
    Detector(
        "URL_PASSWORD",
        r"://[^\s/:@\"]+:[^\s/@\"]+@",
        re.compile(r"(?<=://)[^\s/:@\"]{0,100}:[^\s/@\"]{1,200}(?=@)"),
    ),
    Detector(
        "AWS_KEY",
        r"A(?:KIA|SIA|GPA|IDA|ROA)[A-Z0-9]{16}",
        re.compile(r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{16}\b"),
    ),
    Detector(
        "GITHUB_TOKEN",
        r"gh[pousr]_[A-Za-z0-9]{20}|github_pat_[A-Za-z0-9_]{20}",
        re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255})"),
    ),
    Detector("GITLAB_TOKEN", r"glpat-[A-Za-z0-9_-]{16}", re.compile(r"\bglpat-[A-Za-z0-9_-]{16,}")),
    Detector(
        "SLACK_TOKEN", r"xox[abeoprs]-[A-Za-z0-9-]{10}", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")
    ),
    Detector("GOOGLE_KEY", r"AIza[A-Za-z0-9_-]{30}", re.compile(r"\bAIza[A-Za-z0-9_-]{30,}")),
    Detector(
        "STRIPE_KEY",
        r"[srp]k_(?:live|test)_[A-Za-z0-9]{10}|whsec_[A-Za-z0-9]{16}",
        re.compile(r"\b(?:[srp]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{16,})"),
    ),
    Detector(
        "API_KEY",
        r"\b(?:[spr]k-[A-Za-z0-9]|hf_[A-Za-z0-9]{20}|npm_[A-Za-z0-9]{20}|lsv2_|pypi-[A-Za-z0-9_]|dop_v1_|shpat_|SG\.)",
        re.compile(
            r"\b(?:[spr]k-[A-Za-z0-9][A-Za-z0-9_-]{14,}[A-Za-z0-9]|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{20,}"
            r"|lsv2_[a-z]{2}_[A-Za-z0-9_]{20,}|pypi-[A-Za-z0-9_-]{20,}|dop_v1_[a-f0-9]{20,}|shpat_[a-fA-F0-9]{20,}"
            r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})"
        ),
        _is_dense,
    ),
    Detector(
        "EMAIL",
        r"[A-Za-z0-9._%+'-]@[A-Za-z0-9-]+\.",
        # possessive, from the start of a word: every word is looked at once
        re.compile(
            r"(?<![A-Za-z0-9._%+'-])[A-Za-z0-9._%+'-]++@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b"
        ),
        fast=replace_addresses,
    ),
    Detector(
        "IBAN",
        r"\b[A-Z]{2}[0-9]{2} ?[A-Z0-9]{4}",
        re.compile(r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b"),
        is_iban,
    ),
    Detector(
        "CARD",
        r"(?:^|[^0-9A-Za-z_.-])[2-6](?:[ -]?[0-9]){12}",
        re.compile(r"(?<![\w.-])[2-6](?:[ -]?\d){12,18}(?![\w-])"),
        is_card,
    ),
    Detector(
        "PHONE",
        r"\+[1-9]|\([2-9][0-9]{2}\) ?[2-9]|\b[2-9][0-9]{2}[ .-][2-9][0-9]{2}[ .-][0-9]{4}\b|\b0[0-9]{2,4}[ /][0-9]{5}",
        re.compile(
            r"(?<![\w.])(?:\+[1-9]\d{0,2}[ ./-]?(?:\(\d{1,4}\)[ ./-]?)?\d(?:[ ./-]?\d){5,12}"
            r"|\([2-9]\d{2}\)[ ]?[2-9]\d{2}[ .-]?\d{4}|[2-9]\d{2}([ .-])[2-9]\d{2}\1\d{4}"
            r"|0\d{2,4}[ /]\d{5,9})(?![\w-]|\.\d)"
        ),
        is_phone,
    ),
)

EMAIL_ESCAPED = r"\\[A-Za-z0-9._%+'-]+@"
"""RE2: in a JSON text, an address right after a backslash, whose first letter may be part of an escape."""

# A key whose value is secret by its name. Not among them: `..._tokens` (they are counted), an idempotency key and
# a session id (they say which work belongs together).
_SECRET_KEY = re.compile(
    r"(?i)(?:^|[_\-. ])(?:pass(?:word|wd|phrase|code)?|pwd|secrets?|api[_-]?key|apikey|(?:secret[_-]?)?access[_-]?key"
    r"|private[_-]?key|secret[_-]?key|client[_-]?secret|auth(?:orization)?|credentials?|cookies?|set[_-]cookie"
    r"|cvv2?|cvc2?|ssn|pin(?:[_-]?code)?|otp|iban|card[_-]?number|account[_-]?number|routing[_-]?number"
    r"|connection[_-]?string|dsn|(?:(?:access|auth|refresh|id|session|bearer|security|csrf|api)[_-]?)?token)$"
)
# Of these a short word is no secret: `"token": "the"` is how models tell what they were about to say.
_WEAK_KEY = re.compile(r"(?i)(?:token|auth|pass|dsn|credentials?|secrets?)$")
_PHONE_KEY = re.compile(
    r"(?i)(?:^|[_\-. ])(?:(?:tele|mobile[_-]?|cell[_-]?)?phone|mobile|msisdn|whatsapp|fax|tel)(?:[_-]?(?:no|number))?$"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
KEY_CANDIDATE = (
    r"(?i:pass(?:word|wd|phrase|code)?|pwd|secrets?|api[_-]?key|(?:access|private|secret)[_-]?key|token"
    r"|auth(?:orization)?|credentials?|cookies?|cvv2?|cvc2?|ssn|pin(?:[_-]?code)?|otp|iban"
    r"|(?:card|account|routing)[_-]?number|connection[_-]?string|dsn"
    r"|(?:phone|mobile|msisdn|whatsapp|fax|tel)(?:[_-]?(?:no|number))?)"
    r"\\*[\"']?\s*(?:[:=]|is )"
)
"""RE2: a key, in JSON or in a text, that may be secret by its name."""
TEXT_CANDIDATE = (
    r"(?i:password|passwd|passphrase|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|token|cvv|cvc|pin)"
    r"\\?[\"']?\s*(?:[:=]|is )"
)
"""RE2: a secret named in running text."""
_IN_TEXT = re.compile(
    r"""(?ix) (?P<name>\b(?:[a-z0-9]+[_-])*(?:password|passwd|passphrase|pwd|secret|api[_-]?key|apikey|access[_-]?key
    |private[_-]?key|client[_-]?secret|(?:access|auth|refresh|session)[_-]?token|token|cvv|cvc|pin)\b)
    (?P<gap>\\?["']?\s*(?:[:=]|\bis\b)\s*\\?["']?) (?P<value>[^\s"'\\,;<>(){}\[\]]{4,200})"""
)


def is_secret_key(name: str) -> bool:
    """Whether a key of this name holds a secret."""
    return _SECRET_KEY.search(_CAMEL.sub("_", name)) is not None


def is_weak_key(name: str) -> bool:
    """Whether only what looks like a secret is one under this name; see `is_secret_value`."""
    return _WEAK_KEY.search(name) is not None


def is_secret_value(text: str) -> bool:
    """Whether a text under a key such as `token` can be a secret: no short word, no sentence."""
    return len(text) >= 4 and not re.search(r"\s", text) and re.search(r"[\d\W_]|.{20}", text) is not None


def is_phone_key(name: str) -> bool:
    """Whether a key of this name holds a telephone number."""
    return _PHONE_KEY.search(_CAMEL.sub("_", name)) is not None


def is_phone_value(text: str) -> bool:
    """Whether a value under a telephone key is a number: 7 to 15 digits and nothing but separators."""
    return re.fullmatch(r"\+?[\d ()./-]+", text) is not None and 7 <= len(re.sub(r"\D", "", text)) <= 15


def secrets_named_in(text: str, replace: Callable[[str, str], str]) -> str:
    """A text with `password: X` and the like replaced. `password: required` is a word and stays."""

    def one(match: re.Match[str]) -> str:
        value = match["value"].rstrip(".!?")
        rest = match["value"][len(value) :]
        if len(value) < 4 or not re.search(r"\d|[^A-Za-z.:/-]", value):
            return match[0]
        return match["name"] + match["gap"] + replace("SECRET", value) + rest

    return _IN_TEXT.sub(one, text)
