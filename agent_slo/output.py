"""How answers leave the command line: tables for people, JSON, CSV and Arrow for machines.

Answers go to stdout, words to stderr. Colour only on a terminal, and never with NO_COLOR.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent_slo.errors import CommandError
from dashboard.format import UNKNOWN, one_line, safe_cell

# In a pipe or a file a line may be as long as it must; a terminal uses its own width.
PIPE_WIDTH = 10_000
# Above this many columns a table that does not fit is written one value a line instead of folded.
MOST_FOLDED_COLUMNS = 8


def words_console() -> Console:
    """For progress and explanations."""
    return Console(stderr=True, highlight=False)


def answer_console() -> Console:
    """For answers people read."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def say(text: str) -> None:
    """One line of words on stderr."""
    words_console().print(Text(text), soft_wrap=True)


def plain(value: Any) -> Any:
    """A value from SQL as JSON knows it: times in ISO 8601 with Z, NaN and infinities as null."""
    if isinstance(value, datetime):
        text = value.isoformat(timespec="microseconds" if value.microsecond else "seconds")
        return text.replace("+00:00", "") + "Z" if value.utcoffset() in (None, timedelta(0)) else text
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(
        json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False, default=str) + "\n"
    )


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Any]], *, right: Sequence[int] = ()) -> None:
    """A table of plain text; columns in `right` are aligned right. Nothing in a cell is read as markup."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for position, heading in enumerate(headings):
        table.add_column(Text(heading), justify="right" if position in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(value if isinstance(value, Text) else Text(one_line(value)) for value in row))
    answer_console().print(table)


def print_arrow_table(table: pa.Table, form: str) -> None:
    """The answer of a query in the form asked for: table, json, csv or arrow."""
    if form == "arrow":
        if sys.stdout.isatty():
            raise CommandError(
                "--format arrow writes binary data; redirect it: ... --format arrow > answer.arrow"
            )
        with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as stream:
            stream.write_table(table)
        sys.stdout.buffer.flush()
        return
    # Not `to_pylist`, which keeps only the last of two columns of the same name.
    columns = [column.to_pylist() for column in table.columns]
    rows = list(zip(*columns, strict=True)) if columns else []
    if form == "json":
        print_json([dict(zip(table.column_names, row, strict=True)) for row in rows])
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(table.column_names)
        for row in rows:
            writer.writerow([_csv_cell(value) for value in row])
    else:
        numeric = [
            position
            for position, field in enumerate(table.schema)
            if pa.types.is_integer(field.type)
            or pa.types.is_floating(field.type)
            or pa.types.is_decimal(field.type)
        ]
        cells = [[one_line(_text_cell(value)) for value in row] for row in rows]
        if (
            len(table.column_names) > MOST_FOLDED_COLUMNS
            and _width(table.column_names, cells) > answer_console().width
        ):
            _print_records(table.column_names, cells)
        else:
            print_table(table.column_names, cells, right=numeric)


def _width(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    """Characters a table takes when nothing is folded."""
    columns = zip(headings, *cells, strict=True) if cells else ((heading,) for heading in headings)
    return sum(max(len(value) for value in column) + 2 for column in columns)


def _print_records(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """One row after another, one value a line."""
    line = answer_console().out
    longest = max(len(heading) for heading in headings)
    for number, row in enumerate(cells, start=1):
        line(f"-- row {number}")
        for heading, value in zip(headings, row, strict=True):
            line(f"{heading.ljust(longest)}  {value}")


def _csv_cell(value: Any) -> Any:
    value = plain(value)
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False)
    return "" if value is None else safe_cell(value)


def _text_cell(value: Any) -> str:
    value = plain(value)
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return UNKNOWN if value is None else str(value)
