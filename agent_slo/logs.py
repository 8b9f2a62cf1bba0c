"""The collector's log lines: on stderr, one line each, never with content of spans."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime


class OneLine(logging.Formatter):
    """Text for people. Control characters are escaped, so that no value can forge a further line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback stays on lines of its own."""
        when = (
            datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z")
        )
        line = f"{when} {record.levelname} {record.name}: {_escaped(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLine(logging.Formatter):
    """JSON lines for machines: time, level, logger, message, and the kind and place of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        """One JSON object."""
        entry = {
            "time": _when(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=True)


def set_up_logs(form: str, *, verbose: bool) -> None:
    """Log to stderr as `text` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLine() if form == "json" else OneLine())
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])


def _when(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
