"""Log lines: one each, nothing forged, machines can read them."""

from __future__ import annotations

import json
import logging
import sys

from agent_slo.logs import JsonLine, OneLine


def record(message: str, *args: object, error: BaseException | None = None) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord("agent_slo.store", logging.ERROR, "x.py", 1, message, args, info)


def test_a_value_cannot_forge_a_line() -> None:
    for form in (OneLine(), JsonLine()):
        line = form.format(record("file %s", "a\r\n2026 ERROR forged\x1b[2J"))
        assert len(line.splitlines()) == 1
        assert "\x1b" not in line


def test_json_lines_hold_time_level_and_exception() -> None:
    try:
        raise ValueError("why")
    except ValueError as error:
        entry = json.loads(JsonLine().format(record("it failed", error=error)))
    assert (entry["level"], entry["logger"], entry["message"]) == ("error", "agent_slo.store", "it failed")
    assert entry["time"].endswith("Z")
    assert "ValueError: why" in entry["exception"]
    assert sys.exc_info() == (None, None, None)
