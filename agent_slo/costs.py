"""What unreliability cost, for the commands that say it in one line."""

from __future__ import annotations

from typing import Any

from agent_slo.reading import has_view
from collector.reader import Reader
from dashboard.format import counted, percent, usd
from metrics.costs import query

PARTS = {
    "failed_tasks_usd": "failed tasks",
    "abandoned_tasks_usd": "abandoned tasks",
    "duplicates_usd": "duplicates",
    "retries_usd": "retries",
    "loops_usd": "loops",
}


def week(reader: Reader) -> dict[str, Any] | None:
    """The row of `waste_weekly` for the last seven days; None when nothing was decided in them."""
    if not has_view(reader, "waste_weekly"):
        return None
    found = reader.sql(query("week")).to_pylist()
    return dict(found[0]) if found else None


def waste_line(found: dict[str, Any]) -> str:
    """What unreliability cost in the last seven days, with its parts, the largest first."""
    cost, waste = found["cost_usd"], found["waste_usd"]
    if cost is None:
        return "What unreliability cost is unknown: no model call of the last 7 days has a price (agent-slo prices)"
    of = f" ({percent(waste / cost)} of {usd(cost)})" if cost > 0 else ""
    parts = sorted(((found[key], name) for key, name in PARTS.items() if found[key] > 0), reverse=True)
    told = f": {', '.join(f'{name} {usd(value)}' for value, name in parts)}" if parts else ""
    unpriced = found["unpriced_tasks"]
    note = f"; {counted(unpriced, 'task')} without a complete cost" if unpriced else ""
    return f"Unreliability cost {usd(waste)}{of} in model calls in the last 7 days{told}{note}"
