"""Secrets beside their names in running texts: `password: X`, `{"password": "X"}`, `--password X` and the like.

`secrets_named_in` goes from name to name in one pass (`_PLACES`): what follows a name is looked at there and nowhere
else, so a text without names costs next to nothing. As in `detectors`, the time for a text grows with its length and
no faster.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from collector.redaction.detectors import is_jumbled, is_mixed, is_token
from collector.redaction.named import (
    FLAGS,
    KEY_WORDS,
    KEYS,
    NO_CREDENTIAL,
    OTHER_PASSWORDS,
    OTHER_TOKENS,
    PASSWORD_WORDS,
    PASSWORDS,
    SUBSCRIPTION,
    either_case,
    is_folder,
    is_secret_value,
    is_weak_key,
)


def _places() -> re.Pattern[str]:
    """Where names stand, each read to its end.

    Begins with plain letters, both cases apart, so that Python's engine skips from one possible beginning to the next;
    what lies before a name is looked at after its first letter for the same reason.
    """
    within = [*(word for word in PASSWORD_WORDS if word.isascii())]
    alone = [
        *(f"secret[ _-]?(?:api[ _.-]?|(?:{KEY_WORDS})[ _-]?)key", "api[ _.-]?key", SUBSCRIPTION),
        *(f"{word}[ _-]?key" for word in KEY_WORDS.split("|")),
        *(f"{word}[ _-]?token" for word in ("access", "auth", "refresh", "session", "api", "bot")),
        *(f"{word}[ _-]?codes?" for word in ("mfa", "totp", "2fa", "two[ _-]?factor", "one[ _-]?time")),
        *(f"{word}[ _-]?codes?" for word in ("verification", "security", "recovery", "backup")),
        "auth(?:orization)?[ _-]?codes?",
        *("client[ _-]?secret", "secret", "token", "cvv", "cvc", "pin", "otp", "pwd", "pass(?:code)?", "pw"),
        *("cookies?", "cookie2", "authorization", "auth"),
        r"arn:aws[a-z-]{0,10}:secretsmanager:[a-z0-9-]{0,20}:[0-9]{0,12}:secret",
        "identified (?:with [a-z0-9_]{1,40} )?by(?: password)?",
    ]
    groups: defaultdict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    seconds: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for place, words in enumerate((within, alone)):
        for word in words:
            rest = either_case(word[1:]) + ("s?" if words is within else "")
            for first in dict.fromkeys((word[0], word[0].upper())):
                groups[first][place].append(rest)
                seconds[first].update(dict.fromkeys((word[1], word[1].upper())))
    for spelling in OTHER_PASSWORDS.split("|"):
        groups[spelling[0]][0].append(spelling[1:] + "s?")
        seconds[spelling[0]][spelling[1]] = None
    groups["K"][0].append("(?<=[a-z0-9].)ey")
    seconds["K"]["e"] = None
    # after neither letter nor digit, where a word begins within a word (`dbPwd`), after an escaped quote
    begin, ends = "(?:(?<![A-Za-z0-9].)|(?<=[a-z0-9][A-Z])|(?<=%22.))", "(?![A-Za-z0-9_])"
    # what was replaced already is no name
    branches = ["<[A-Z_]{2,24}:[0-9a-f]{10}>"]
    for first, (free, bound) in groups.items():
        rests = [*free, f"{begin}(?:{'|'.join(bound)})"] if bound else free
        branches.append(f"{first}(?=[{''.join(seconds[first])}])(?:{'|'.join(rests)}){ends}")
    branches += [rf"\{mark}(?<=[A-Za-z0-9].)[kK][eE][yY]{ends}" for mark in "_.-"]
    return re.compile("|".join(branches))


_PLACES = _places()
_Q = r"\\{0,4}[\"'`]"
_TO_VALUE = r"\\{0,4}[\"'`]?"
_VALUE = r"[^\s\"'\\,;<>(){}\[\]]{4,}"
_LINE = r"(?:\r?\n|(?:\\{1,4}r)?\\{1,4}n)"
_ENTITY = "&(?:quot|apos|#34|#39);"
# What may stand after a name: how it is written, what lies between, and the value.
_WAYS = (
    (
        "text",
        rf"(?:\\{{0,4}}[\"'`]?\]?[*]{{0,3}}\s*(?:=>|:=|[:=：]|\bis\b)[*]{{0,3}}\s*|%(?:25)?3[ad]){_TO_VALUE}",
        _VALUE,
    ),
    # `("x-api-key", "X")`, `{"name": "DB_PASSWORD", "value": "X"}`, and the same in YAML
    (
        "pair",
        rf"{_Q}\s{{0,20}},\s{{0,20}}{_Q}(?:value{_Q}\s{{0,8}}:\s{{0,8}}(?:{_Q})?)?"
        rf"|{_TO_VALUE}\s{{1,20}}value\s{{0,8}}[:=]\s{{0,8}}[\"']?",
        _VALUE,
    ),
    # `"passwords": ["X", "Y"]`, `"password": {"value": "X"}`: what lies in brackets is read once
    ("brackets", rf"{_TO_VALUE}\s*[:=]\s*", r"\[[^\[\]{}]{1,4000}\]|\{[^\[\]{}]{1,4000}\}"),
    # SQL: `PASSWORD 'X'`
    ("sql", r"\s{1,8}\\{0,4}'", r"[^\s\"'\\]{4,200}(?=\\{0,4}')"),
    ("form", rf"\\{{0,4}}\"{_LINE}{_LINE}", r"[^\s\\]{2,}"),
    ("percent", r"%22(?:%20|[+])?%3a(?:%20|[+])?%22", r"(?:(?!%22)[^\s\"'\\,;<>(){}\[\]]){2,}"),
    ("entity", rf"{_ENTITY}\s{{0,8}}:\s{{0,8}}{_ENTITY}", r"[^\s\"'\\<>&;]{2,}"),
    ("table", r"[*`]{0,3}[ \t]{0,40}\|[ \t]{0,40}[*`]{0,3}", r"[^\s\"'\\,;<>(){}\[\]|]{4,}"),
)
_AFTER, _AFTER_OTHERWISE = (
    re.compile("(?i)" + "|".join(f"(?:{gap})(?P<{how}>{value})" for how, gap, value in ways))
    for ways in (_WAYS, _WAYS[1:])
)
_XML = re.compile(r"(?:\s[^<>]{0,100})?>(?P<xml>[^<>\s][^<>]{2,1000})(?=</)")
_FORM_BEFORE = re.compile(r"name=\\{0,4}\"[A-Za-z0-9_.\[-]{0,40}$")
_QUOTED = re.compile(r"(?P<opening>\\{0,4}[\"'])(?P<value>[^\s\"'\\<>]{4,1000})(?=\\{0,4}[\"'](?!\s{0,8}:))")
_STORED = "<[A-Z_]{2,24}:[0-9a-f]{10}>"
_REPLACED = re.compile("[ ]{1,4}" + _STORED)
_PARAMETER = rf"[a-z_-]{{1,30}}=(?:[^\s,\"'\\<>]|{_STORED}){{1,1000}}"
# Not possessive: Python before 3.11.5 loses its place in a possessive group, and nothing after this one can fail.
_HEADER = re.compile(
    r"(?i)(?P<before>(?<![a-z0-9])authorization"
    r"(?:\\{0,4}[\"']?\]?[*]{0,3}\s{0,8}[:=][*]{0,3}\s{0,8}|%3[ad](?:%20|[+])?)\\{0,4}[\"'`]?"
    r"(?:(?P<scheme>[a-z][a-z0-9_-]{0,30})(?:[ ]{1,4}|%20|[+]))?)"
    rf"(?P<value>(?:[a-z_-]{{1,30}}=\\{{0,4}}\"[^\"\r\n]{{0,1000}}\"(?:,[ ]{{0,4}})?|{_PARAMETER},[ ]{{0,4}}){{1,30}}"
    rf"(?:{_PARAMETER})?"
    r"|[^\s\"'\\,;<>(){}\[\]]{4,})"
)
_COOKIES = re.compile(
    r"(?i)(?P<before>(?<![a-z0-9])cookie2?\\{0,4}[\"']?\]?\s{0,8}[:=]\s{0,8}\\{0,4}[\"']?)"
    r"(?P<value>[^\s=;,\"'\\<>]{1,200}=\"?[^\s;\"'\\<>]{1,4096}"
    r"(?:;[ ]{0,2}[^\s=;,\"'\\<>]{1,200}=[^\s;\"'\\<>]{0,4096}){0,200})"
)
_SCHEMES = frozenset(
    {
        *(
            "bearer",
            "basic",
            "digest",
            "token",
            "apikey",
            "api-key",
            "key",
            "jwt",
            "oauth",
            "ntlm",
            "negotiate",
        ),
        *(
            "ssws",
            "hmac",
            "hawk",
            "dpop",
            "sharedkey",
            "sharedkeylite",
            "geniekey",
            "splunk",
            "bot",
            "aws",
            "pat",
        ),
    }
)
_BEFORE_VALUE = re.compile(r"([A-Z]?[a-z0-9]{1,40}|[A-Z0-9]{1,40})$")
_OTHER_TOKEN_WORDS = frozenset(OTHER_TOKENS.split("|"))
_XML_BEFORE = re.compile("<[A-Za-z0-9:_.-]{0,60}$")
_GAP = r"""(?P<gap>=|[ \t]{1,8}\\{0,4}["']?|\\{0,4}["'],\s{0,8}\\{0,4}["'])"""
_IN_COMMAND = re.compile(
    rf"(?i)(?P<name>(?<![\w-])--(?:[a-z0-9]{{1,20}}[_-]){{0,4}}(?:{PASSWORDS}|{FLAGS})){_GAP}"
    r"(?P<value>[^\s\"'\\,;<>()\[\]-][^\s\"'\\]{3,})"
)
_LONG_OPTION = re.compile("--(?=[A-Za-z0-9])")
_OPTION = re.compile("-(?=-user|[upa])")
_FLAG = re.compile(rf"(?i)--(?:[a-z0-9]{{1,20}}[_-]){{0,4}}(?:{PASSWORDS}|{FLAGS})")
# Programs whose short options carry a password: what each option looks like, and who reads it so.
_PROGRAM_OPTIONS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (
        re.compile(
            rf"(?P<name>(?<![\w-])(?:-u|--user)){_GAP}(?P<value>[^\s\"':\\,]{{1,100}}:[^\s\"'\\,]{{1,200}})"
        ),
        ("curl", "http"),
    ),
    (
        re.compile(r"(?P<name>(?<![\w-])-p)(?P<gap>[\"']?)(?P<value>[^\s\"'\\,-][^\s\"'\\,]{2,200})"),
        ("mysql", "mariadb", "sshpass", "mongo"),
    ),
    (
        re.compile(rf"(?P<name>(?<![\w-])-p){_GAP}(?P<value>[^\s\"'\\,-][^\s\"'\\,]{{2,200}})"),
        ("sshpass", "docker login"),
    ),
    (
        re.compile(rf"(?P<name>(?<![\w-])-a){_GAP}(?P<value>[^\s\"'\\,-][^\s\"'\\,]{{2,200}})"),
        ("redis-cli",),
    ),
)
_COMMAND_LENGTH = 400
_SHORT = 64
_ARROW = re.compile("=>|:=")
_PATH_OF_NAMES = re.compile("[._]")
_QUOTES = ("'", '"', "`")
_DIGIT = re.compile(r"\d")
_TELLING = re.compile(r"\d|[^A-Za-z.:/-]")
_FLAG_TELLING = re.compile(r"\d|[^A-Za-z.:/-]|.[A-Z]")
_UNLIKE_A_NAME = re.compile(r"[^\w.:-]")
_NUMBER = re.compile(r"[\d.,:/%-]+")
_CODE = re.compile(r"\d{4,10}")
# `$DB_PASSWORD`, `%DB_PASSWORD%`, `****`: where a secret is told of and not told.
_STANDS_FOR = re.compile(r"\$(?:[A-Z_][A-Z0-9_]*|[a-z_]+|(?i:env):\w+)|%[A-Z_][A-Z0-9_]*%|([*•#._xX-])\1{2,}")
_CALLED = re.compile(r"[A-Za-z_][\w.]*")
_ARGUMENTS = re.compile(r"\([^()\r\n]{0,200}\)")
_CLASS_WORD = re.compile("[A-Z][A-Za-z]*")
# What stands after `password=` and in `{"password": "..."}` and is none.
_WORDS_TEXT = """
    password passwd passphrase passcode passwort kennwort senha pwd pass secret token key apikey
    credential credentials required optional missing invalid incorrect correct wrong expired changed
    unchanged updated reset forgotten unknown none null nil void true false yes no on off empty blank
    unset undefined default disabled enabled hidden masked redacted removed omitted filtered sanitized
    encrypted hashed plain plaintext protected example placeholder string text str char varchar integer
    number int bool boolean object array list dict map type value values any bytes field fields input
    output param params parameter argument args kwargs option options config settings env environ
    environment self this request response payload form data user username login email name hash prompt
    stdin file read write ask asks getpass generate generated random new old current confirm confirmation
    and are flag for from given has here if instead into its like may must needed needs never not now only
    or over set should than that the then they to use used uses using was when where which will with also
    can cannot does exists switch works because without would your lambda cookies deleted auto basic bearer test tests
    testing
"""
_WORDS = frozenset(_WORDS_TEXT.split())


def _is_letters(value: str) -> bool:
    return value.isascii() and value.isalpha() and value.lower() not in _WORDS


_SPELLED_OUT = re.compile(rf"(?i)(?:{PASSWORDS}|pwd|passcode|{KEYS}|client[_-]?secret)s?$|(?-i:SECRET$)")


def _is_spelled_out(name: str, gap: str, value: str) -> bool:
    """Whether letters alone are a password: in an object, or after a bare `=`; after `password: ` they are a word."""
    if not _is_letters(value) or _SPELLED_OUT.search(name) is None:
        return False
    opening, closing = gap.lstrip("\\")[:1], gap[-1:]
    if opening in ("'", '"') and closing in ("'", '"'):
        return len(gap.strip("\\")) > 1 and _CLASS_WORD.fullmatch(value) is None
    if gap.strip("\"'\\") != "=":
        return False
    return name.isupper() or (len(value) >= 6 and value.islower() and name[-3:].lower() != "key")


class Beside(NamedTuple):
    """A value beside a name."""

    name: str
    gap: str
    """What lies between the two."""
    value: str
    text: str
    start: int
    """Where the name begins in the text."""
    end: int
    """Where the value ends."""


def _is_named(beside: Beside, value: str) -> bool:
    """Whether a value, `beside`'s without the marks after it, is a secret in a running text.

    Names that mean other things as well need the value of a secret: `PASS: test_login_2` is a test's report,
    `first_pass: 1200` a count, `sort_key=created_at` a column.
    """
    name, gap, _, text, start, end = beside
    if len(value) < 4 or _STANDS_FOR.fullmatch(value):
        return False
    if text[end : end + 1] == "(" and _CALLED.fullmatch(value) and _ARGUMENTS.match(text, end):
        return gap[-1:] in _QUOTES  # `password = get_password(1)`
    led = text[max(0, start - 1) : start]
    low = name.lower()
    if not _TELLING.search(value) and not is_jumbled(value):
        spelled = text[max(0, start - 40) : start]
        before = _BEFORE_NAME.search(spelled)
        return _is_spelled_out((before[0] if before else "") + name, gap, value)
    if gap[-1:] not in _QUOTES and (
        "]" in gap
        or (_ARROW.search(gap) is not None and (not is_mixed(value) or _PATH_OF_NAMES.search(value)))
    ):
        return False  # code: `results["token"] = access_token`, `token := self.token`
    if low[-3:] == "key":
        if len(low) == 4 or low == "key":
            before = _BEFORE_VALUE.search(text, max(0, start - 40), start)
            return (
                before is not None
                and before[1].lower() not in NO_CREDENTIAL
                and is_token(value, before[1].isupper())
            )
        if low[:12] == "subscription":
            return is_token(value, digests=True)
    if " " in low and low[-3:] in _SPACED:
        return len(value) >= 8 and is_mixed(value)
    if low == "otp" or (low.rstrip("s")[-4:] == "code" and low != "passcode"):
        return _CODE.fullmatch(value) is not None or (is_mixed(value) and low != "otp")
    if low == "auth":
        return is_token(value, digests=True)
    if low == "pwd":
        return not is_folder(value)
    if low not in ("pass", "pw", "cookie", "cookies", "cookie2"):
        return True
    tied = led in ("_", "-", ".") or (name[0].isupper() and led.isalnum())
    if "is" in gap or (name == "PASS" and ":" in gap and not tied) or ("/" in value and not tied):
        return False
    return (
        is_mixed(value)
        or (tied and name.isupper())
        or (_UNLIKE_A_NAME.search(value) is not None and _NUMBER.fullmatch(value) is None)
    )


_BEFORE_NAME = re.compile(r"[A-Za-z0-9_.-]{0,40}$")
_SPACED = frozenset({"key", "ken", "ret"})
_LONE = frozenset(PASSWORD_WORDS)
_WEAK_FLAG = re.compile("(?i)(?:token|auth|credentials?|secret|key)$")
_NO_TAGS = frozenset({"pass", "passcode", "pw", "cookie", "cookie2", "auth", "authorization", "otp"})


def _is_told(header: re.Match[str]) -> bool:
    """Whether a header's value is written out: neither code (`headers["Authorization"] = build()`) nor replaced."""
    if header["scheme"]:
        return True
    before = header["before"]
    return ("]" not in before or before[-1] in _QUOTES) and not _REPLACED.match(header.string, header.end())


def _is_credential(scheme: str | None, value: str) -> bool:
    """Whether this is what follows `Authorization:`, and not a sentence about it."""
    if scheme is None or scheme.lower() in _SCHEMES:
        return (len(value) >= 8 and _DIGIT.search(value) is not None) or len(value) >= 20 or is_jumbled(value)
    if "=" in value.rstrip("="):  # parameters of a scheme, or the next word of a log line
        return '"' in value or "," in value
    return is_token(value, digests=True) or (scheme[0].isupper() and len(value) >= 8 and is_mixed(value))


def secrets_named_in(text: str, replace: Callable[[str, str], str]) -> str:
    """A text with `password: X`, `--password X`, `<password>X</password>`, `curl -u me:X` and the like replaced.

    `password: required` is a word and stays.
    """
    text = _beside_names(text, replace)
    if "--" in text:
        text = _with_options(text, _LONG_OPTION, _IN_COMMAND, _is_flagged, replace)
    for option, programs in _PROGRAM_OPTIONS:
        if any(program in text for program in programs):
            text = _with_options(text, _OPTION, option, partial(_is_of_program, programs), replace)
    return text


def _beside_names(text: str, replace: Callable[[str, str], str]) -> str:
    """The text without what stands beside names: one way of writing after the other at each name, the first counts."""
    parts: list[str] = []
    # how far the text is written anew, and how far a header's value, or a value in running text, turned out harmless
    kept = header_read = text_read = 0
    in_tags = "</" in text
    for place in _PLACES.finditer(text):
        start, end = place.span()
        if start < kept:
            continue
        name = place[0]
        first = name[0]
        if first == "<" or name[:4] == "arn:":
            continue
        is_header = len(name) == 13 and first in "aA"
        if is_header:
            if start >= header_read and (found := _HEADER.match(text, start)):
                header_read, value = found.end(), found["value"]
                if _is_told(found) and _is_credential(found["scheme"], value):
                    parts += (text[kept : found.start("value")], replace("SECRET", value))
                    kept = header_read
                    continue
        elif name[1:3] in ("oo", "OO") and (found := _COOKIES.match(text, start)):
            parts += (text[kept : found.start("value")], replace("SECRET", found["value"]))
            kept = found.end()
            continue
        found = (_AFTER if start >= text_read and not is_header else _AFTER_OTHERWISE).match(text, end)
        if found is None:
            if in_tags and (found := _XML.match(text, end)) and _is_tag(name, text, start):
                parts += (text[kept : found.start("xml")], replace("SECRET", found["xml"]))
                kept = found.end()
            continue
        how = found.lastgroup or ""
        at, value = found.start(how), found[how]
        if how == "text":
            # a short value that is none is read again for names in it: `token: password: X`
            text_read = found.end() if len(value) > _SHORT else at
        beside = Beside(name, text[end:at], value, text, start, found.end())
        if how == "brackets":
            clean = _bracketed(beside, replace)
        else:
            secret = _secret(how, beside)
            clean = replace("SECRET", secret) + value[len(secret) :] if secret else value
        if clean != value:
            parts += (text[kept:at], clean)
            kept = found.end()
    return "".join((*parts, text[kept:])) if parts else text


def _secret(how: str, beside: Beside) -> str:
    """How much of a value, from its beginning, is a secret; how it is written (`_AFTER`) says what that takes."""
    name, gap, value, text, start, _ = beside
    low = name.lower()
    if low == "token" and _is_other_token(text, start):
        return ""
    if low[:10] == "identified":
        return value if how == "sql" else ""
    if how in ("text", "pair"):
        value = value.rstrip(".!?`*" if "`" in gap or "*" in gap else ".!?")
        if low == "authorization":
            return value if how == "pair" and is_mixed(value) else ""
        # names stand in lists beside other names: `["password", "user_id"]`
        return value if (how == "text" or is_mixed(value)) and _is_named(beside, value) else ""
    if how == "sql":
        is_one = low.removesuffix("s") in _LONE and (
            is_mixed(value) or (name.isupper() and _is_letters(value))
        )
    elif how == "form":
        field = _FORM_BEFORE.search(text[max(0, start - 60) : start])
        is_one = field is not None and _is_entered(beside)
    elif how == "table":
        value = value.rstrip("`*")
        cell = text[max(0, start - 8) : start].rstrip(" \t`*")[-1:] == "|"
        is_one = cell and len(value) >= 6 and is_mixed(value) and len(low) > 5 and not is_weak_key(low)
    else:
        is_one = _is_entered(beside)
    return value if is_one else ""


def _is_other_token(text: str, start: int) -> bool:
    """Whether the word before `token` says that it is no credential: `next_token`, `nextToken`, `next token`."""
    end = start - (text[max(0, start - 1) : start] in ("_", "-", " "))
    before = _BEFORE_VALUE.search(text, max(0, end - 20), end)
    return before is not None and before[1].lower() in _OTHER_TOKEN_WORDS


def _bracketed(beside: Beside, replace: Callable[[str, str], str]) -> str:
    """What stands in brackets after a name, with the quoted secrets in it replaced."""
    if beside.name[-3:].lower() == "key":
        return beside.value

    def quoted(match: re.Match[str]) -> str:
        value = match["value"]
        return match["opening"] + replace("SECRET", value) if is_mixed(value) else match[0]

    return _QUOTED.sub(quoted, beside.value)


def _is_entered(beside: Beside) -> bool:
    """Whether the value of a form's field or of an object is a secret."""
    low, value = beside.name.lower(), beside.value
    if low[-3:] == "key":
        return _is_named(beside, value)
    if is_weak_key(low):
        return is_secret_value(value)
    return value.lower() not in _WORDS and _STANDS_FOR.fullmatch(value) is None


def _is_tag(name: str, text: str, start: int) -> bool:
    """Whether this name ends the name of a tag whose content is secret."""
    low = name.lower()
    if low in _NO_TAGS or (low[-3:] == "key" and len(low) <= 4) or low.endswith("s"):
        return False
    return _XML_BEFORE.search(text[max(0, start - 61) : start]) is not None


def _with_options(
    text: str,
    places: re.Pattern[str],
    shape: re.Pattern[str],
    is_secret: Callable[[re.Match[str]], bool],
    replace: Callable[[str, str], str],
) -> str:
    """The text without the values of a command's options."""
    parts: list[str] = []
    kept = read = 0
    for place in places.finditer(text):
        start = place.start()
        found = shape.match(text, start) if start >= read else None
        if found is None:
            continue
        read = found.end()
        if is_secret(found):
            parts += (text[kept : found.start("value")], replace("SECRET", found["value"]))
            kept = read
    return "".join((*parts, text[kept:])) if parts else text


def _is_flagged(found: re.Match[str]) -> bool:
    """Whether the word after `--password` or the like is a secret, not a word about it."""
    value = found["value"]
    if _STANDS_FOR.fullmatch(value) or value.lower() in _WORDS:
        return False
    if _FLAG_TELLING.search(value):
        return True
    if not _is_letters(value) or _WEAK_FLAG.search(found["name"]):
        return False
    return found["gap"] == "=" or (len(value) >= 6 and value.islower())


def _is_of_program(programs: tuple[str, ...], found: re.Match[str]) -> bool:
    """Whether one of the programs that read an option so stands before it on the line."""
    text, start = found.string, found.start()
    line = max(text.rfind("\n", max(0, start - _COMMAND_LENGTH), start), start - _COMMAND_LENGTH, 0)
    command = text[line:start]
    return any(program in command for program in programs)


def is_secret_flag(text: str) -> bool:
    """Whether this word of a command says that the next one is a secret: `--password`."""
    return text.startswith("--") and len(text) < _COMMAND_LENGTH and _FLAG.fullmatch(text) is not None
