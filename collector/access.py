"""Who may do what: bearer tokens with roles, on both transports and at the door."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

Role = Literal["ingest", "read", "admin"]
"""ingest: send telemetry. read: ask the door and /metrics. admin: both, and `POST /actions`."""
ROLES: tuple[Role, ...] = get_args(Role)


LEAST_LENGTH = 8
"""Characters that a token needs where other machines can reach the address that it guards."""
_COMMENT = re.compile(r"(?:^|\s)#.*")


class TokenError(ValueError):
    """A token that cannot be used; the message never holds the token."""


@dataclass(frozen=True)
class Token:
    """One token; its secret is in no repr, so it is in no log."""

    role: Role
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        if not self.secret or not self.secret.isascii() or any(c.isspace() for c in self.secret):
            raise TokenError(
                f"a token of the role {self.role}: a token is ASCII without spaces; "
                "`openssl rand -hex 32` prints a good one"
            )
        if self.secret in ROLES:
            raise TokenError(
                f"a token of the role {self.role}: {self.secret!r} is the name of a role, which anybody would guess; "
                "`openssl rand -hex 32` prints a good one"
            )


def read_tokens(file: Path) -> tuple[Token, ...]:
    """Tokens of a file: a line `ROLE TOKEN` each, or a single bare token, which is for senders. `#` at the beginning of
    a word begins a comment.

    Raises TokenError naming the file and the line, OSError when it cannot be read.
    """
    lines = [(n, text) for n, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
             if (text := _COMMENT.sub("", line).strip())]  # fmt: skip
    if not lines:
        raise TokenError(f"{file}: the token file is empty; write a line such as `ingest TOKEN` into it")
    found = []
    for number, text in lines:
        words = text.split()
        role = next((r for r in ROLES if r == words[0]), None)
        try:
            if len(words) == 2 and role is not None:
                found.append(Token(role, words[1]))
            elif len(words) == 1 and role is not None:
                raise TokenError(
                    f"the role {role} without a token (an empty variable, perhaps); write {role} TOKEN"
                )
            elif len(words) == 1 and len(lines) == 1:
                found.append(Token("ingest", words[0]))
            else:
                raise TokenError(f"write ROLE TOKEN, with one of the roles {', '.join(ROLES)}")
        except TokenError as e:
            raise TokenError(f"{file}:{number}: {e}") from e
    return tuple(found)


def checked_origin(origin: str) -> str:
    """An origin as browsers write it. Raises ValueError for one that no browser sends, `*` among them."""
    parts = urlsplit(origin)
    if (
        parts.scheme not in ("http", "https")
        or not parts.netloc
        or "*" in origin
        or origin != f"{parts.scheme}://{parts.netloc}"
    ):
        every = "; there is none for all, since any page could send then" if "*" in origin else ""
        raise ValueError(f"origin {origin!r}: write each like https://app.example.com, without a path{every}")
    return origin


class Access:
    """Decides over the value of an `authorization` header. The time it takes tells nothing about the tokens."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        tokens = tuple(tokens)
        self.short: frozenset[Role] = frozenset(t.role for t in tokens if len(t.secret) < LEAST_LENGTH)
        """Roles of which a token can be guessed by trying."""
        self._digests: Sequence[tuple[bytes, Role]] = [
            (hashlib.sha256(b"Bearer " + t.secret.encode()).digest(), t.role) for t in tokens
        ]

    def needed(self, role: Role) -> bool:
        """Whether any token gives this role; without one, the thing is open to whoever reaches the address."""
        return any(r in (role, "admin") for _, r in self._digests)

    def role(self, header: bytes | str) -> Role | None:
        """The role of the token shown, None when it is none of ours. Every token is compared, whichever fits."""
        raw = header if isinstance(header, bytes) else header.encode("latin-1", "replace")
        scheme, _, shown_token = raw.partition(b" ")
        if scheme.lower() == b"bearer":  # of any case, before one space or more (RFC 7235)
            raw = b"Bearer " + shown_token.lstrip(b" ")
        shown = hashlib.sha256(raw).digest()
        found: Role | None = None
        for digest, role in self._digests:
            if hmac.compare_digest(shown, digest):
                found = role
        return found

    def allows(self, header: bytes | str, role: Role) -> Literal["yes", "unknown", "denied"]:
        """Whether the token shown may act in `role`: an admin may do everything."""
        found = self.role(header)
        if found is None:
            return "unknown"
        return "yes" if found in (role, "admin") else "denied"
