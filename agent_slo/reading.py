"""Reading a data folder for a command, whether the collector runs or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_slo.errors import CommandError
from agent_slo.output import say
from collector.reader import Reader, open_reader
from dashboard.lag import lag_line
from dashboard.queries import query_text

Row = dict[str, Any]


@contextmanager
def reading(data: Path) -> Iterator[Reader]:
    """Open the folder's public views; files left out because of damage are named on stderr."""
    with open_reader(data) as reader:
        for skipped in reader.skipped:
            say(f"left out {skipped}")
        yield reader


def rows(reader: Reader, name: str, **parameters: Any) -> list[Row]:
    """Answer of `dashboard/sql/<name>.sql` as dicts."""
    found: list[Row] = reader.sql(query_text(name), parameters or None).to_pylist()
    return found


def has_view(reader: Reader, name: str) -> bool:
    """Whether a public view exists yet."""
    return name in reader.sql(query_text("views")).column("view_name").to_pylist()


def lag(reader: Reader) -> str | None:
    """What the numbers leave out, as one line; None when nothing does, or in a folder that was never derived."""
    if not (has_view(reader, "pipeline") and has_view(reader, "parked_traces")):
        return None
    (row,) = rows(reader, "lag")
    return lag_line(row, datetime.now(UTC).replace(tzinfo=None))


def warn_of_lag(reader: Reader) -> None:
    """Say on stderr what the numbers leave out."""
    line = lag(reader)
    if line is not None:
        say(f"warning: {line}")


def require_derived(reader: Reader, data: Path) -> None:
    """Raise `CommandError` when nothing was ever derived in this folder."""
    if not has_view(reader, "tasks"):
        raise CommandError(
            f"{data}: nothing is derived yet; import traces with `agent-slo import FILE --data {data}` "
            f"or send some to `agent-slo up --data {data}`"
        )
