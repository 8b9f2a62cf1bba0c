"""The one way a command ends badly on purpose: a line that says what, where and how to mend."""

from __future__ import annotations

EXIT_OK = 0
EXIT_FINDING = 1
EXIT_USAGE = 2


class CommandError(Exception):
    """An expected failure; `str()` is the line shown to the user, without a traceback.

    `exit_code` is 2 for usage or environment, 1 for a finding or a failed gate.
    """

    def __init__(self, message: str, exit_code: int = EXIT_USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code
