"""Why the cost of some tasks is unknown, in the same words on every page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.door import Answers
from dashboard.filters import Scope
from dashboard.format import count


def unpriced_line(reader: Answers, scope: Scope) -> str | None:
    """What is said of the tasks in scope whose cost is not known whole; None when none. Raises `ReaderError`."""
    if "task_costs" not in reader.views():  # a folder of an older version
        return None
    row = reader.row("cost_unknown", **scope)
    return None if row is None or not row["tasks"] else unpriced_words(row)


def unpriced_words(row: Mapping[str, Any]) -> str:
    """The sentence of a row of `cost_unknown`: a price that lacks is one thing, usage that nobody stated another."""
    one = row["tasks"] == 1
    parts = []
    if row["no_usage"]:
        parts.append(f"in {count(row['no_usage'])} a call does not state its usage (tokens)")
    if row["no_price"]:
        parts.append(f"in {count(row['no_price'])} a model has no price")
    return (
        f"{count(row['tasks'])} {'task has' if one else 'tasks have'} a model call whose cost is unknown: "
        f"{', '.join(parts)}."
    )
