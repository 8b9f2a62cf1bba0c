"""What a secret or a piece of personal data looks like: one table, shared by everything that redacts.

Each detector has two patterns. `candidate` is RE2 and runs over whole Arrow columns: cheap, may say yes too often,
never no too often. `shape` is Python's and only meets texts that a candidate let through; `confirm` then decides by
checksum or by form. The order matters: what a longer secret contains must not be cut out of it piecemeal.

Whoever sends a text chooses it, so the time for a text grows with its length and no faster: no pattern may look for
its end from every place where it could begin. Either what is repeated has an upper bound, or what lies between two
beginnings is read once.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from collector.redaction.vendors import FORMS

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
    plain = re.sub(r"\s", "", text).upper()
    if len(plain) != _IBAN_LENGTHS.get(plain[:2]):
        return False
    moved = plain[4:] + plain[:4]
    return int("".join(str(int(c, 36)) for c in moved)) % 97 == 1


# A coordinate; telephone numbers with one dot have more digits after it (`+1.4155550132`).
_DECIMAL = re.compile(r"\+\d{1,3}\.\d{1,7}")


def is_phone(text: str) -> bool:
    """Whether this is a telephone number: 8 to 15 digits after `+`, 10 to 13 of a national spelling.

    A national one begins with 0, or is North American, where neither area nor exchange begins with 0 or 1.
    """
    digits = re.sub(r"\D", "", text)
    if _DECIMAL.fullmatch(text):
        return False
    if not 8 <= len(digits) <= 15 or len(set(digits)) < 3:
        return False
    if text.startswith("+"):
        return digits[0] != "0"
    if text.startswith("0"):
        return 10 <= len(digits) <= 13
    digits = digits.removeprefix("1")
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
    """Whether a token is more than words joined by dashes: no word is as long as an issuer's random part."""
    body = text[3:]
    if re.search(r"[A-Za-z0-9]{32}", body):
        return True
    return len(re.findall(r"[0-9]", body)) >= 2 and (
        re.search(r"[A-Za-z0-9]{12}", body) is not None
        or (re.search("[A-Z]", body) is not None and re.search("[a-z]", body) is not None)
    )


# `PasswordHash`, `APIKey`, `getToken`: words written together.
_CAMEL_WORDS = re.compile(r"(?:[a-z]+)?(?:[A-Z]{2,5}(?=[A-Z][a-z]|$)|[A-Z][a-z]{2,})*")


def is_jumbled(text: str) -> bool:
    """Whether letters in both cases are no words written together: `hTxQbWzRkLpY`."""
    letters = text[:200]
    return (
        len(letters) >= 8
        and re.fullmatch(r"[A-Za-z]+", letters) is not None
        and not letters.islower()
        and not letters.isupper()
        and _CAMEL_WORDS.fullmatch(letters) is None
    )


_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")


def is_mixed(value: str) -> bool:
    """Whether letters and digits stand together, or letters in no order: neither a word nor a number."""
    return (_DIGIT.search(value) is not None and _LETTER.search(value) is not None) or is_jumbled(value)


def is_token(text: str, digests: bool = False) -> bool:
    """Whether a text can only be a credential or an id: 16 characters and more, letters and digits mixed, no UUID.

    `digests`: whether 32, 40 or 64 hex digits are one too; mostly they are the sum of something.
    """
    if not 16 <= len(text) <= 4096 or not _TOKEN.fullmatch(text) or _UUID.fullmatch(text):
        return False
    if not digests and _DIGEST.fullmatch(text):
        return False
    return any(
        re.search(r"\d", run) is not None and re.search("[A-Za-z]", run) is not None
        for run in re.findall(r"[A-Za-z0-9]{12,}", text)
    ) or any(is_jumbled(run) for run in re.findall(r"[A-Za-z]{16,}", text))


_TOKEN = re.compile(r"[A-Za-z0-9_+/=.~-]+")
_DIGEST = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}")
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


# Letters of alphabets that are written with spaces between the words: elsewhere an address begins within a word.
_WIDE_LETTERS = "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0370-\u04ff"
_LOCAL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+'-"
_WIDE_LOCAL = _LOCAL + "".join(c for c in map(chr, range(0xC0, 0x500)) if re.match(f"[{_WIDE_LETTERS}]", c))
_DOMAIN = re.compile(
    rf"(?:[A-Za-z0-9{_WIDE_LETTERS}-]{{1,63}}\.){{1,8}}[A-Za-z{_WIDE_LETTERS}]{{2,24}}(?![A-Za-z0-9_{_WIDE_LETTERS}])"
)

# `git@host:owner/repository` is where a repository lies.
_REMOTE = re.compile(rf"(?:^|[^A-Za-z0-9._%+'{_WIDE_LETTERS}-])git$")


def replace_addresses(text: str, replace: Callable[[str, str], str]) -> str:
    """The text with every mail address replaced by `replace("EMAIL", address)`.

    Also right for a JSON text as a whole, as long as no address in it follows a backslash (see `EMAIL_ESCAPED`):
    neither addresses nor placeholders hold a character that JSON escapes.
    """
    # From `@` to `@`: looking at every word of a prompt costs ten times as much.
    piece, *following = text.split("@")
    if not following:
        return text
    parts: list[str] = []
    add, domain_at, taken = parts.append, _DOMAIN.match, 0
    for after in following:
        domain = domain_at(after)
        if domain is not None and not (
            after.startswith((":", "/"), domain.end()) and _REMOTE.search(piece[-4:])
        ):
            # An address begins where its word does; one that begins inside the address before it is none.
            left = piece.rstrip(_LOCAL)
            if left and "\u00c0" <= left[-1] <= "\u04ff":
                left = piece.rstrip(_WIDE_LOCAL)
            start = len(left)
            if taken <= start < len(piece):
                add(piece[taken:start])
                add(replace("EMAIL", f"{piece[start:]}@{domain[0]}"))
                piece, taken = after, domain.end()
                continue
        add(piece[taken:])
        add("@")
        piece, taken = after, 0
    add(piece[taken:])
    return "".join(parts)


def _replaced(
    text: str, name: str, places: Iterator[tuple[int, int]], replace: Callable[[str, str], str]
) -> str:
    parts, kept = [], 0
    for start, end in places:
        parts += [text[kept:start], replace(name, text[start:end])]
        kept = end
    return "".join([*parts, text[kept:]]) if parts else text


_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_LONGEST_PEM = 16_000


def _find_private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Where PEM blocks stand; one without an end is taken as far as a key may go."""
    end, place = 0, -1
    for begin in _PEM_BEGIN.finditer(text):
        if begin.start() < end:
            continue
        if place < begin.end():  # otherwise the end found before is still the next one
            found = _PEM_END.search(text, begin.end())
            place, last = (found.start(), found.end()) if found else (len(text), len(text))
        end = last if place - begin.end() <= _LONGEST_PEM else begin.end() + _LONGEST_PEM
        yield begin.start(), end


_JWT_BEGIN = re.compile(r"(?<![A-Za-z0-9])eyJ")
_JWT_PART = re.compile(r"[A-Za-z0-9_-]*+")
_LEAST_JWT_PART = 8


def _find_jwts(text: str) -> Iterator[tuple[int, int]]:
    """Where JSON web tokens stand. Many of them may seem to begin in one part: its end is looked for once."""
    end, part = 0, -1
    for begin in _JWT_BEGIN.finditer(text):
        start = begin.start()
        if start < end:
            continue
        if part <= start:
            part = _end_of_part(text, start)
        if part - start - 3 < _LEAST_JWT_PART or not text.startswith(".", part):
            continue
        second = _end_of_part(text, part + 1)
        if second - part - 1 < _LEAST_JWT_PART:
            continue
        end = _end_of_part(text, second + 1) if text.startswith(".", second) else second
        yield start, end


def _end_of_part(text: str, start: int) -> int:
    found = _JWT_PART.match(text, start)
    return start if found is None else found.end()


_SIGNATURES = "sig|Signature|X-Amz-Signature|X-Goog-Signature"
_SIGNED = re.compile(
    rf"[?&;, ](?:(?<![, ])(?:{_SIGNATURES})=(?P<query>[A-Za-z0-9%+/=_~-]{{16,}})"
    "|(?<=[, ])Signature=(?P<header>[0-9a-f]{64})(?![0-9A-Za-z]))"
)


def _find_signatures(text: str) -> Iterator[tuple[int, int]]:
    """Where the signatures of addresses and of AWS' headers stand."""
    return (found.span(found.lastgroup or 0) for found in _SIGNED.finditer(text))


@dataclass(frozen=True)
class Detector:
    """One type of secret: where it may be (`candidate`, RE2), what it is (`shape`), and whether it is one."""

    name: str
    candidate: str
    shape: re.Pattern[str]
    confirm: Callable[[str], bool] | None = None
    find: Callable[[str], Iterator[tuple[int, int]]] | None = None
    """The same as `shape` (where it begins, at least), in one pass."""
    replaced: Callable[[str, Callable[[str, str], str]], str] | None = None
    """The same as `shape`, in one pass and in whole."""
    beside: re.Pattern[str] | None = None
    """What must stand within `_BESIDE` characters before it: for numbers that could be anything."""

    def sub(self, text: str, replace: Callable[[str, str], str]) -> str:
        """The text with every confirmed match replaced by `replace(type, value)`."""
        if self.replaced is not None:
            return self.replaced(text, replace)
        if self.find is not None:
            return _replaced(text, self.name, self.find(text), replace)
        confirm, name, beside = self.confirm, self.name, self.beside

        def one(match: re.Match[str]) -> str:
            value = match[0]
            if confirm is not None and not confirm(value):
                return value
            if beside is not None and not beside.search(
                text[max(0, match.start() - _BESIDE) : match.start()]
            ):
                return value
            return replace(name, value)

        return self.shape.sub(one, text)


_BESIDE = 48
# Where a word may begin in a JSON text as it stands: also after an escape, whose letter is none of the word.
_CARD_START = r"(?:^|[^0-9A-Za-z_.-]|\\[nrtbf]|\\u[0-9A-Fa-f]{4})"
# A space that does not break, as it stands and as JSON texts within a document escape it.
_WIDE_SPACE = "\u00a0|\u202f|" r"\\+u(?:00[aA]0|202[fF])"
_START = r"(?:^|[^0-9A-Za-z]|\\[nrtbf]|\\u[0-9A-Fa-f]{4})"


def _issued(name: str, confirm: Callable[[str], bool] | None = None) -> Detector:
    """The detector of a type of key, from the list of issuers."""
    forms = [form for form in FORMS if form.type == name]
    shapes = [
        "(?<![_.-])" * f.alone
        + f"{f.prefix}[{f.body}]{{{f.least}{'' if f.exact else ','}}}{f.tail}"
        + "(?![A-Za-z0-9])" * f.exact
        for f in forms
    ]
    begins = "|".join(f.prefix + f"[{f.body}]{{8}}" * f.exact for f in forms)
    return Detector(
        name,
        # what follows is looked at by `shape`: a pattern per issuer would be slow to build for every batch
        _START + f"(?:{begins})[A-Za-z0-9_+/=.@-]{{8}}",
        re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(shapes) + ")"),
        confirm,
    )


DETECTORS: tuple[Detector, ...] = (
    Detector("PRIVATE_KEY", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY", _PEM_BEGIN, find=_find_private_keys),
    Detector("JWT", r"eyJ[A-Za-z0-9_-]{8}", _JWT_BEGIN, find=_find_jwts),
    Detector(
        "BEARER",
        r"(?i:bearer|basic) +[A-Za-z0-9._~+/=-]{12}",
        re.compile(r"(?i:(?<![A-Za-z0-9])(?:bearer|basic) +)[A-Za-z0-9._~+/=-]{11,}[A-Za-z0-9_~/=-]"),
        _is_basic,
    ),
    Detector(
        "URL_PASSWORD",
        r"://[^\s/:\"]*:[^\s/@\"]+@",
        # as far as the last @ before the host; user and password may hold one
        re.compile(
            r"(?<=://)[^\s/:@\"]{0,100}(?:@[^\s/:@\"?#,;<>()]{1,100})?:[^\s/@\"]{1,200}"
            r"(?:@[^\s/@\"?#,;<>()]{1,200}){0,8}(?=@)"
        ),
    ),
    _issued("AWS_KEY"),
    _issued("GITHUB_TOKEN"),
    _issued("GITLAB_TOKEN"),
    _issued("SLACK_TOKEN"),
    _issued("GOOGLE_KEY"),
    _issued("STRIPE_KEY"),
    _issued("API_KEY", _is_dense),
    Detector(
        "SAS",
        rf"[?&;](?:{_SIGNATURES})=[A-Za-z0-9%+/_~-]{{16}}|[, ]Signature=[0-9a-f]{{16}}",
        _SIGNED,
        find=_find_signatures,
    ),
    Detector(
        "EMAIL",
        r"[^\s\"<>(),;:@\[\]]@[^\s\"<>(),;:@.\[\]]+\.",
        # possessive, from the start of a word: every word is looked at once
        re.compile(
            rf"(?<![A-Za-z0-9._%+'{_WIDE_LETTERS}-])(?!git@{_DOMAIN.pattern}[:/])"
            rf"[A-Za-z0-9._%+'{_WIDE_LETTERS}-]++@{_DOMAIN.pattern}"
        ),
        replaced=replace_addresses,
    ),
    Detector(
        "EMAIL",
        r"[A-Za-z0-9._+-]%40[A-Za-z0-9-]+[.][A-Za-z]",
        re.compile(
            r"(?<![A-Za-z0-9._+-])[A-Za-z0-9._+-]{1,64}+%40(?:[A-Za-z0-9-]{1,63}[.]){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9_])"
        ),
    ),
    Detector(
        "IBAN",
        _START + rf"(?:[A-Z]{{2}}[0-9]{{2}}(?: |{_WIDE_SPACE})?[A-Z0-9]{{4}}"
        rf"|[a-z]{{2}}[0-9]{{2}}(?: |{_WIDE_SPACE})?[a-z0-9]{{4}}(?: |{_WIDE_SPACE})?[0-9]{{4}})",
        # in lower case each group has a digit: a word after the number is none of it
        re.compile(
            r"\b(?:[A-Z]{2}\d{2}(?:[ \u00a0\u202f]?[A-Z0-9]{4}){2,7}(?:[ \u00a0\u202f]?[A-Z0-9]{1,3})?"
            r"|[a-z]{2}\d{2}[ \u00a0\u202f]?[a-z0-9]{4}(?:[ \u00a0\u202f]?(?=[a-z]{0,3}\d)[a-z0-9]{4}){1,6}"
            r"(?:[ \u00a0\u202f]?(?=[a-z]{0,2}\d)[a-z0-9]{1,3})?)\b"
        ),
        is_iban,
    ),
    Detector(
        "CARD",
        _CARD_START + r"(?:[2-6](?:[ -]?[0-9]){12}"
        rf"|[2-6][0-9]{{3}}(?:(?:[.]|{_WIDE_SPACE})[0-9]{{4,6}}){{2}})",
        # with dots only in groups of a card: otherwise fractions are such numbers
        re.compile(
            r"(?<![\w.-])(?:[2-6](?:[ -]?\d){12,18}"
            r"|[2-6]\d{3}([.\u00a0\u202f])(?:\d{4}\1\d{4}\1\d{1,7}|\d{6}\1\d{4,5})(?!\.\d))(?![\w-])"
        ),
        is_card,
    ),
    Detector(
        "SSN",
        r"[0-9]{3}-[0-9]{2}-[0-9]{4}",
        re.compile(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])"),
        beside=re.compile(r"(?i)ssn|social[ _-]{0,2}security"),
    ),
    Detector(
        "PHONE",
        r"\+[1-9]|\([2-9][0-9]{2}\) ?[2-9]|"
        + _START
        + r"(?:1[ .-]\(?[2-9][0-9]{2}|0[1-9][0-9]{1,3}[ /][0-9]{5})",
        re.compile(
            r"(?<![\w.])(?:\+[1-9]\d{0,2}[ ./-]?(?:\(\d{1,4}\)[ ./-]?)?\d(?:[ ./-]?\d){5,12}"
            r"|(?:1[ .-]?)?\([2-9]\d{2}\)[ ]?[2-9]\d{2}[ .-]?\d{4}|1([ .-])[2-9]\d{2}\1[2-9]\d{2}\1\d{4}"
            # a digit or two after it that end the phrase: a number in groups of another kind
            r"|0[1-9]\d{1,3}[ /]\d{5,9}(?! \d{1,2}(?:$|[^\w ])))(?![\w-]|\.\d)"
        ),
        is_phone,
    ),
    # Order numbers are written like North American telephone numbers: such a one is one where somebody says so.
    Detector(
        "PHONE",
        r"[2-9][0-9]{2}[ .-][2-9][0-9]{2}[ .-][0-9]{4}",
        re.compile(r"(?<![\w.-])[2-9]\d{2}([ .-])[2-9]\d{2}\1\d{4}(?![\w-]|\.\d)"),
        is_phone,
        beside=re.compile(
            r"(?i)phone|mobile|whatsapp|(?<![a-z])(?:tel|cell|call|fax|sms|text|dial|ring|reach)(?![a-z])"
        ),
    ),
)

EMAIL_ESCAPED = r"\\[A-Za-z0-9._%+'\x{C0}-\x{4FF}-]+@|\\u0[0-4][0-9A-Fa-f]{2}[^\s\"@]*@|@[^\s\"@]*\\u0[0-4]"
"""RE2: in a JSON text, an address after a backslash, whose first letter may be part of an escape or be one."""
