"""The installation's key: what makes equal values equal placeholders, over traces and restarts.

It lies outside the data folder, so that a copy of the folder alone does not let anybody try values against the
placeholders.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from collector.settings import CollectorError

KEY_VARIABLE = "AGENT_SLO_REDACTION_KEY"
_SMALLEST = 16


def default_key_file() -> Path:
    """`agent-slo/redaction.key` in the user's state folder (XDG_STATE_HOME, else ~/.local/state)."""
    base = os.environ.get("XDG_STATE_HOME") or ""
    state = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return state / "agent-slo" / "redaction.key"


def load_key(data: Path, file: Path | None = None) -> bytes:
    """The key: of the variable AGENT_SLO_REDACTION_KEY, else of `file` (default: the user's state folder).

    A file that is missing is made, readable by its owner only. Raises CollectorError: a key that is too short, a file
    that cannot be read or made, or one that lies inside the data folder.
    """
    given = os.environ.get(KEY_VARIABLE)
    if given:
        return _checked(given, f"the variable {KEY_VARIABLE}")
    path = (file or default_key_file()).expanduser().resolve()
    if path.is_relative_to(data.expanduser().resolve()):
        raise CollectorError(
            f"redaction key {path}: inside the data folder, where whoever gets the placeholders gets the key too; "
            "name another with collector.redaction_key_file"
        )
    try:
        if not path.exists():
            _make(path)
        return _checked(path.read_text(encoding="utf-8").strip(), str(path))
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "no text"
        raise CollectorError(
            f"redaction key {path}: {reason}; mend its permissions, name another with collector.redaction_key_file, "
            f"or set the variable {KEY_VARIABLE}"
        ) from e


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as f:
            f.write(secrets.token_hex(32) + "\n")
            f.flush()
            os.fsync(f.fileno())
        with contextlib.suppress(
            FileExistsError
        ):  # another process made one at the same moment: that one counts
            os.link(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def _checked(text: str, where: str) -> bytes:
    if len(text) < _SMALLEST:
        raise CollectorError(
            f"redaction key of {where}: shorter than {_SMALLEST} characters; "
            "use a long random one, such as `openssl rand -hex 32` prints"
        )
    return text.encode()
