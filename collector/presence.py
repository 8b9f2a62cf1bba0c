"""Whether the files that are open are still the files in the folder.

Who removes or replaces the data folder while the collector runs takes the names away and leaves the open files: every
commit goes on to succeed, into files that nobody will ever find again.
"""

from __future__ import annotations

import os
from pathlib import Path

from collector.span_files import SpanFile

REPLACED = (
    "the data folder was removed or replaced while the collector runs ({path} is not the file that is written to); "
    "start it again"
)
_Identity = tuple[int, int]


class Presence:
    """The hot file and its log as they were first seen. Each look costs two `stat`, some microseconds."""

    def __init__(self) -> None:
        self._file: Path | None = None
        self._log: Path | None = None
        self._file_identity: _Identity | None = None
        self._log_identity: _Identity | None = None

    def hold(self, file: SpanFile) -> None:
        """Remember a hot file that was just opened, and its log if it has one."""
        self._file = file.path
        self._log = file.path.with_name(file.path.name + ".wal")
        self._file_identity = _identity(self._file)
        self._log_identity = _identity(self._log)

    def committed(self) -> str | None:
        """What is wrong after a commit, None when all is well. A commit leaves a log behind."""
        if self._log is None:
            return None
        if self._log_identity is None:
            self._log_identity = _identity(self._log)
            if self._log_identity is None:
                return REPLACED.format(path=self._log)
        return self.missing()

    def missing(self) -> str | None:
        """What is wrong, None when file and log are where they were. An open file's number is not given out again."""
        if self._file is None or self._log is None:
            return None
        if _identity(self._file) != self._file_identity:
            return REPLACED.format(path=self._file)
        if self._log_identity is not None and _identity(self._log) != self._log_identity:
            return REPLACED.format(path=self._log)
        return None


def _identity(path: Path) -> _Identity | None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
