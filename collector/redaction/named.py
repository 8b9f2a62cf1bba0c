"""What a secret is called: names of keys and of what stands beside a name in a text.

Here are the words, what a key of a name may hold, and the patterns (RE2) by which whole columns are searched for names;
`written` finds what stands beside them in a text.
"""

from __future__ import annotations

import re

from collector.redaction.detectors import is_jumbled

PASSWORD_WORDS = (
    *("password", "passwd", "passphrase", "passwort", "kennwort", "contraseña", "contrasena", "motdepasse"),
    *(
        "mot de passe",
        "mot_de_passe",
        "senha",
        "wachtwoord",
        "lösenord",
        "losenord",
        "adgangskode",
        "passord",
    ),
    *("salasana", "hasło", "haslo", "heslo", "jelszó", "jelszo", "şifre", "sifre", "parolă", "пароль"),
    *("κωδικός πρόσβασης", "密码", "密碼", "パスワード", "비밀번호"),
)
"""The word for a password, wherever it stands in a name."""
PASSWORDS = "|".join(PASSWORD_WORDS)


def _as_escaped(word: str) -> str:
    return "".join(c if c.isascii() else rf"\\+u{ord(c):04x}" for c in word)


# For RE2: what is not ASCII costs a pattern much when case does not matter, so both spellings are written out; and in
# JSON texts within a document, whose writers escape what is not ASCII, the first letter says nothing of the rest.
_ASCII_PASSWORDS = "|".join(word for word in PASSWORD_WORDS if word.isascii())
OTHER_PASSWORDS = "|".join(
    dict.fromkeys(
        spelling
        for word in PASSWORD_WORDS
        if not word.isascii()
        for spelling in (word, word.capitalize(), word.upper())
    )
)
_ESCAPED_PASSWORDS = "|".join(
    _as_escaped(word[word[0].lower() != word[0].upper() :]) for word in PASSWORD_WORDS if not word.isascii()
)
KEY_WORDS = "access|private|secret|account|encryption|signing|master|service|license"
KEYS = rf"(?:secret[ _-]?)?(?:api[ _.-]?|(?:{KEY_WORDS})[ _-]?)key"
SUBSCRIPTION = r"subscription[ _-]?key"
_CODES = (
    r"(?:mfa|totp|2fa|two[_-]?factor|one[_-]?time|verification|security|recovery|backup|auth(?:orization)?)"
    r"[ _-]?codes?"
)
# A key whose value is secret by its name. Not among them: `..._tokens` (they are counted), an idempotency key and
# a session id (they say which work belongs together).
_SECRET_KEY = re.compile(
    rf"(?i)(?:(?:^|[_\-. ])(?:pass(?:code|[_-]word)?|pwd?|bearer|secrets?|{KEYS}|client[_-]?secret"
    r"|auth(?:orization)?|credentials?|cookies?|set[_-]cookie"
    rf"|cvv2?|cvc2?|ssn|social[_-]?security(?:[_-]?(?:no|number))?|pin(?:[_-]?code)?|otp|{_CODES}|iban|card[_-]?number"
    r"|account[_-]?number|routing[_-]?number"
    r"|connection[_-]?string|dsn|(?:(?:access|auth|refresh|id|session|bearer|security|csrf|api)[_-]?)?token)"
    rf"|(?:{PASSWORDS})s?)$"
)
# `has_password` tells of one, `stop_token` is a word of a model, `next_page_token` says where to read on.
OTHER_TOKENS = (
    "stop|eos|bos|pad|unk|sep|cls|mask|start|end|special|first|last|prefix|suffix"
    "|next|prev|previous|page|pagination|paging|continuation|continue|cursor|sync|skip|marker|unexpected"
)
_ABOUT_KEY = re.compile(
    r"(?i)(?:^|[_\-. ])(?:(?:has|is|have|needs?|requires?|allow|enable|use|show|num|max|min|count|total)"
    rf"[_-](?:[a-z0-9]{{1,20}}[_-]){{0,3}}[a-z]{{1,20}}|(?:{OTHER_TOKENS})[_-]token)$"
)
_PLURAL_KEY = re.compile(rf"(?i)(?:cookies|(?:{PASSWORDS})s)$")
# Under these names a number is a number: of tokens, of nanoseconds.
_COUNT_KEY = re.compile(
    r"(?i)(?:^|[_\-. ])(?:tokens|count|bytes|size|duration|timestamp|ms|us|ns|nanos|unix_?nano)$"
)
# `PWD` is where a shell stands.
_FOLDER_KEY = re.compile(r"(?i)(?:^|[_\-. ])pwd$")
_FOLDER = re.compile(r"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]")
# A key of any other name may be an issuer's (`openai_key`) when what it holds can be nothing else; not these.
_NO_CREDENTIAL_TEXT = """
    idempotency cache sort primary partition foreign public dedup deduplication routing group row object
    lookup hash range index unique order message event session task job request trace map dict json
    surrogate natural composite shard storage s3 blob file lock state memory thread run prompt content
    document record entity item join merge bucket shared correlation business project issue ticket store
    checkpoint config parent translation i18n locale hot short arrow super turn step node tool dedupe
    external customer conversation tenant invoice chat channel topic mutex throttle limit feature flag
    reference ref operation action call retry workflow execution invocation replay attempt refund shipment
    dataset metric label tag column field option schema type kind category segment cohort experiment
    variant window batch page cursor position series contact lead case
"""
NO_CREDENTIAL = frozenset(_NO_CREDENTIAL_TEXT.split())
_ANY_KEY = re.compile(r"(?i)(?:^|[_\-. ])([a-z0-9]{1,40})[_.-]key$")
# Of these a short word is no secret: `"token": "the"` is how models tell what they were about to say.
_WEAK_KEY = re.compile(r"(?i)(?:token|auth|pass|(?:^|[_\-. ])pw|bearer|dsn|credentials?|secrets?)$")
_PHONE_KEY = re.compile(
    r"(?i)(?:^|[_\-. ])(?:(?:tele|mobile[_-]?|cell[_-]?)?phone|mobile|msisdn|whatsapp|fax|tel)(?:[_-]?(?:no|number))?$"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
FLAGS = (
    rf"pass|pwd|secret|token|auth|credentials?|{KEYS.replace('[ ', '[')}|client[_-]secret"
    "|(?:access|auth|api)[_-]token"
)


def either_case(pattern: str) -> str:
    """An RE2 pattern of ASCII words for both cases: `(?i)` would let the long s and the Kelvin sign in, at a cost."""
    return re.sub(
        r"\\.|\[[^\]]*\]|[a-z]",
        lambda m: f"[{m[0]}{m[0].upper()}]" if len(m[0]) == 1 else m[0],
        pattern,
    )


_COMMAND_CANDIDATE = either_case(
    rf"--(?:[A-Za-z0-9]+[_-])*(?:{FLAGS}|{_ASCII_PASSWORDS})[\s\\\"'=]|(?:^|[\s\"'])(?:-u|--user|-a)[\s\\\"'=]"
    r"|(?:^|[\s\"'])-p[\s\\\"'=]*[^\s\\\"'=-]"
)
# Spaces that do not break count as spaces, also as JSON texts within a document escape them.
_SPACES = "(?:[\\s\u00a0\u202f]|" r"\\+u(?:00[aA]0|202[fF]))*"
# What stands between a name and its value; `,` and `value` where both are named: `{"name": "X", "value": ...}`.
_AFTER_NAME = (
    r"\\*[\"'`]?\]?[*]*" + _SPACES + r"(?:[:=|：]|\\+uff1a|is |%(?:25)?3[adAD]|%22(?:%20|[+])?%3[aA]"
    r"|&(?:quot|#34|#39|apos);|,\s*\\*[\"']|(?:\\+[nrt]\s*)*[vV]alue|\\+[nrt]|\n|\s\\*')"
)
_KEY_OF_TOKEN = r"[kK][eE][yY]\\*[\"'`]?\]?[*]*\s*(?:[:=]|%3[dD])[*]*\s*\\*[\"'`]?[A-Za-z0-9_+/=.~-]{16}"
_SIGNED_BY = r"[iI][dD][eE][nN][tT][iI][fF][iI][eE][dD] [bBwW]"
KEY_CANDIDATE = (
    rf"(?:{OTHER_PASSWORDS}|{_ESCAPED_PASSWORDS}|"
    + either_case(
        rf"(?:(?:{_ASCII_PASSWORDS})s?|pass(?:code|[_-]word)?|pwd?|bearer|secrets?|{KEYS}|token|{_CODES}"
        r"|auth(?:orization)?|credentials?|cookies?|cvv2?|cvc2?|ssn|social[_-]?security(?:[_-]?(?:no|number))?"
        r"|pin(?:[_-]?code)?|otp|iban|(?:card|account|routing)[_-]?number|connection[_-]?string|dsn"
        r"|(?:phone|mobile|msisdn|whatsapp|fax|tel)(?:[_-]?(?:no|number))?)"
    )
    + rf")(?:{_AFTER_NAME}|\\*[\"']\s*[,}}\]]|>)"
    + f"|{_KEY_OF_TOKEN}|{_COMMAND_CANDIDATE}|{_SIGNED_BY}"
)
"""RE2: a key, in JSON or in a text, that may be secret by its name."""
TEXT_CANDIDATE = (
    rf"(?:{OTHER_PASSWORDS}|"
    + either_case(
        rf"(?:(?:{_ASCII_PASSWORDS})s?|pass(?:code)?|pwd?|secret|key|token|cvv|cvc|pin|otp|{_CODES}"
        "|auth(?:orization)?|cookies?)"
    )
    + rf")(?:{_AFTER_NAME}|>)|{_COMMAND_CANDIDATE}|{_SIGNED_BY}"
)
"""RE2: a secret named in running text."""


def is_secret_key(name: str) -> bool:
    """Whether a key of this name holds a secret."""
    words = _CAMEL.sub("_", name)
    return _SECRET_KEY.search(words) is not None and _ABOUT_KEY.search(words) is None


def is_plural_key(name: str) -> bool:
    """Whether a secret key of this name holds many, so that a number under it is a count."""
    return _PLURAL_KEY.search(name) is not None


def is_token_key(name: str) -> bool:
    """Whether a key of this name holds a secret when its value is a token; see `is_token`."""
    found = _ANY_KEY.search(_CAMEL.sub("_", name))
    return found is not None and found[1].lower() not in NO_CREDENTIAL


def is_issued_key(name: str) -> bool:
    """Whether a key that `is_token_key` knows may hold hexadecimal digits: `AZURE_KEY`, `Ocp-Apim-Subscription-Key`."""
    return name.isupper() or _ISSUED_KEY.search(_CAMEL.sub("_", name)) is not None


_ISSUED_KEY = re.compile(r"(?i)subscription[_.-]key$")


def is_weak_key(name: str) -> bool:
    """Whether only what looks like a secret is one under this name; see `is_secret_value`."""
    return _WEAK_KEY.search(name) is not None


def is_folder_key(name: str) -> bool:
    """Whether a secret key of this name may hold a folder as well: `PWD`; see `is_folder`."""
    return _FOLDER_KEY.search(_CAMEL.sub("_", name)) is not None


def is_folder(value: str) -> bool:
    """Whether a value is the path of a folder: `/srv/app`, `~/x`, `C:\\x`."""
    return _FOLDER.match(value) is not None


def is_count_key(name: str) -> bool:
    """Whether a number under this name counts something, so that it is no number of a card."""
    return _COUNT_KEY.search(_CAMEL.sub("_", name)) is not None


_SPACE = re.compile(r"\s")
_NO_WORD = re.compile(r"[\d\W_]|.{20}")


def is_secret_value(text: str) -> bool:
    """Whether a text under a key such as `token` can be a secret: no short word, no sentence."""
    return (
        len(text) >= 4 and not _SPACE.search(text) and (_NO_WORD.search(text) is not None or is_jumbled(text))
    )


def is_phone_key(name: str) -> bool:
    """Whether a key of this name holds a telephone number."""
    return _PHONE_KEY.search(_CAMEL.sub("_", name)) is not None


def is_phone_value(text: str) -> bool:
    """Whether a value under a telephone key is a number: 7 to 15 digits and nothing but separators."""
    return re.fullmatch(r"\+?[\d ()./-]+", text) is not None and 7 <= len(re.sub(r"\D", "", text)) <= 15
