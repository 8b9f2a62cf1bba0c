"""`agent-slo prices`: what models cost, what a task cost and why, and why costs changed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from agent_slo.errors import CommandError
from agent_slo.options import Place, common
from agent_slo.output import answer_console, print_json, print_table
from agent_slo.reading import reading, require_derived
from collector.reader import Reader
from dashboard.format import count, counted, missing, one_line, percent, usd, when
from metrics.costs import CURRENCY, query
from metrics.settings import parse_duration

Row = dict[str, Any]

CAUSES = {
    "tasks": "number of tasks",
    "mix": "mix of task types",
    "steps": "model calls a task",
    "model": "choice of model",
    "prompts": "length of prompts",
    "answers": "length of answers",
    "cache": "cache hit rate",
    "price": "price",
}


@click.command()
@click.option("--task", "task_id", metavar="ID", help="Explain the cost of one task, line by line.")
@click.option(
    "--change",
    metavar="BEFORE..AFTER",
    help="Explain a change of cost: days, months, START/END, or app versions as v:1.4..v:1.5; 7d for the last "
    "seven days against the seven before.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@common
def prices(place: Place, task_id: str | None, change: str | None, form: str) -> None:
    """List model prices, and what has none.

    Prices are USD per million tokens: the packaged list under the `prices` of the configuration, as resolved
    when a model was first seen. Usage without a price is shown as tokens; its cost is unknown, never 0. Costs
    that senders state are compared with the computed ones.
    """
    if task_id is not None and change is not None:
        raise CommandError("--task and --change are two questions; ask one of them")
    sides = None if change is None else read_change(change)
    with reading(place.data) as reader:
        require_derived(reader, place.data)
        if task_id is not None:
            found = of_task(reader, task_id)
            tell: Any = _tell_task
        elif sides is not None:
            found = of_change(reader, *sides)
            tell = _tell_change
        else:
            found = {name: _ask(reader, name) for name in ("prices", "unpriced", "stated")}
            tell = _tell_prices
    if form == "json":
        print_json({"currency": CURRENCY, **found})
    else:
        tell(found)


def _ask(reader: Reader, name: str, **parameters: Any) -> list[Row]:
    found: list[Row] = reader.sql(query(name), parameters or None).to_pylist()
    return found


# ---- one task -------------------------------------------------------------------------------------------------------


def of_task(reader: Reader, task_id: str) -> Row:
    """A task, its lines and what is taken off because other spans tell it too. Raises `CommandError` if unknown."""
    found = _ask(reader, "task_total", id=task_id)
    if not found:
        raise CommandError(f"no task {task_id!r}; `agent-slo tasks` lists them")
    task = found[0]
    lines = _ask(reader, "task", id=task["task_id"])
    told = sum(line["cost_usd"] or 0.0 for line in lines)
    repeated = 0.0 if missing(task["cost_usd"]) else task["cost_usd"] - told
    return {"task": task, "lines": lines, "told_elsewhere_usd": repeated if abs(repeated) > 1e-9 else 0.0}


def _tell_task(found: Row) -> None:
    task = found["task"]
    line = answer_console().out
    whole = "complete" if task["cost_complete"] else "not complete: something below has no price"
    line(f"Task {one_line(task['task_id'])}: {_exact(task['cost_usd'])} {CURRENCY}, {whole}")
    table = [cells for number, step in enumerate(found["lines"], start=1) for cells in _lines(number, step)]
    if found["told_elsewhere_usd"]:
        table.append(["", "", "told by other spans already", "", "", _exact(found["told_elsewhere_usd"]), ""])
    print_table(
        ["call", "model", "what", "tokens", "per million", CURRENCY, "price from"], table, right=(0, 3, 4, 5)
    )


def _lines(number: int, step: Row) -> list[list[str]]:
    """One line per kind of token, and the first names the call."""
    kinds = [
        ("input", step["fresh_tokens"], step["input_cost_usd"]),
        ("cache read", step["cache_read_tokens"], step["cache_read_cost_usd"]),
        ("cache write", step["cache_write_tokens"], step["cache_write_cost_usd"]),
        ("output", step["output_tokens"], step["output_cost_usd"]),
    ]
    what = "sum of calls not told" if step["counts_as"] == "sum" else None
    cells: list[list[str]] = []
    for kind, tokens, cost in kinds:
        if missing(tokens) or tokens == 0:
            continue
        rate = "" if missing(cost) else f"{cost / tokens * 1e6:.6g}"
        cells.append(["", "", kind, count(tokens), rate, "" if missing(cost) else _exact(cost), ""])
    if step["request_cost_usd"]:
        cells.append(["", "", "per request", "", "", _exact(step["request_cost_usd"]), ""])
    if missing(step["computed_cost_usd"]):
        known = not missing(step["cost_usd"])
        cells.append(
            ["", "", "stated" if known else "", "", "", _exact(step["cost_usd"]) if known else "", ""]
        )
    elif not missing(step["stated_cost_usd"]):
        cells.append(["", "", f"(sender states {_exact(step['stated_cost_usd'])})", "", "", "", ""])
    cells[0][:2] = [str(number), one_line(step["model"] or "", 40)]
    if what:
        cells[0][2] += f" ({what})"
    cells[0][6] = one_line(step["source"] or "", 60)
    return cells


def _exact(value: Any) -> str:
    """An amount with every digit that counts, for lines that are to be added up."""
    return "" if missing(value) else f"{value:.10f}".rstrip("0").rstrip(".")


# ---- a change -------------------------------------------------------------------------------------------------------

Side = tuple[datetime | None, datetime | None, str | None]
"""Start, end (naive UTC) and app version; None is no bound."""


def read_change(text: str, now: datetime | None = None) -> tuple[Side, Side]:
    """Read `BEFORE..AFTER`. Raises `CommandError` with the forms there are."""
    moment = now or datetime.now(UTC).replace(tzinfo=None)
    before, dots, after = text.partition("..")
    if not dots:
        try:
            length: timedelta = parse_duration(text)
        except ValueError:
            raise CommandError(f"--change {text}: write BEFORE..AFTER, or a length such as 7d") from None
        return (moment - 2 * length, moment - length, None), (moment - length, moment, None)
    return _side(before), _side(after)


def _side(text: str) -> Side:
    if text.startswith("v:") and len(text) > 2:
        return None, None, text[2:]
    if re.fullmatch(r"\d{4}-\d{2}", text):
        start = _moment(f"{text}-01")
        return start, (start + timedelta(days=32)).replace(day=1), None
    if "/" in text:
        first, _, last = text.partition("/")
        start, end = _moment(first), _moment(last)
        if start >= end:
            raise CommandError(f"--change: {text} ends before it begins; write START/END")
        return start, end, None
    start = _moment(text)
    return start, start + timedelta(days=1), None


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
            f"--change: {text!r} is no period; write a day (2026-11-28), a month (2026-11), START/END, or v:VERSION"
        ) from None
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def of_change(reader: Reader, before: Side, after: Side) -> Row:
    """Causes of the change between two sets of decided tasks. Raises `CommandError` when one has no priced task."""
    names = ("start", "end", "version")
    parameters = {
        f"{side}_{name}": value if isinstance(value, (str, type(None))) else value.isoformat(sep=" ")
        for side, values in (("before", before), ("after", after))
        for name, value in zip(names, values, strict=True)
    }
    rows = _ask(reader, "change", **parameters)
    first = rows[0]
    for side in ("before", "after"):
        if not first[f"{side}_tasks"]:
            left_out = first[f"{side}_left_out"]
            why = (
                f"{counted(left_out, 'task')} had no complete cost"
                if left_out
                else "no task was decided then"
            )
            raise CommandError(f"--change: nothing to compare on the side {side.upper()}: {why}")
    kept = ("position", "cause", "per_task_usd", "usd", "per_task_share")
    return {
        **{key: value for key, value in first.items() if key not in kept},
        "causes": [{key: row[key] for key in kept} for row in rows],
    }


def _tell_change(found: Row) -> None:
    line = answer_console().out
    for side in ("before", "after"):
        tasks, total, left = (found[f"{side}_{name}"] for name in ("tasks", "usd", "left_out"))
        note = f"; {counted(left, 'task')} without a complete cost left out" if left else ""
        line(
            f"{side.capitalize()}: {counted(tasks, 'task')}, {usd(total)}, {usd(total / tasks)} a task{note}"
        )
    each = found["after_usd"] / found["after_tasks"] - found["before_usd"] / found["before_tasks"]
    table = [
        [
            CAUSES[row["cause"]],
            _signed(row["per_task_usd"]),
            percent(row["per_task_share"]),
            _signed(row["usd"]),
        ]
        for row in found["causes"]
    ]
    table.append(["all", _signed(each), "", _signed(found["after_usd"] - found["before_usd"])])
    print_table(
        ["cause", f"{CURRENCY} a task", "of the change", f"{CURRENCY} in all"], table, right=(1, 2, 3)
    )


def _signed(value: float) -> str:
    return f"{value:+.6g}" if abs(value) > 1e-12 else "0"


# ---- the list -------------------------------------------------------------------------------------------------------


def _tell_prices(found: Row) -> None:
    line = answer_console().out
    line(f"Prices, {CURRENCY} per million tokens")
    print_table(
        [
            "model",
            "provider",
            "service",
            "from",
            "to",
            "input",
            "output",
            "cache read",
            "cache write",
            "",
            "source",
        ],
        [
            [
                row["model"],
                row["provider"],
                row["service"] or "",
                _day(row["valid_from"]),
                _day(row["valid_to"]),
                *(_rate(row[name]) for name in ("input", "output", "cache_read", "cache_write")),
                "" if missing(row["tiers"]) else "more by length, hour or request",
                row["source"],
            ]
            for row in found["prices"]
        ],
        right=(5, 6, 7, 8),
    )
    if found["unpriced"]:
        line(
            "\nUsage without a price: in no cost, and never 0. Add `prices` to the configuration, then `rederive`."
        )
        print_table(
            ["model", "provider", "service", "calls", "tasks", "input tokens", "output tokens", "last seen"],
            [
                [
                    row["model"] or "(not stated)",
                    row["provider"] or "",
                    row["service"] or "",
                    count(row["calls"]),
                    count(row["tasks"]),
                    count(row["input_tokens"]),
                    count(row["output_tokens"]),
                    when(row["last_seen"]),
                ]
                for row in found["unpriced"]
            ],
            right=(3, 4, 5, 6),
        )
    if found["stated"]:
        line("\nCosts that senders state, beside ours for the same calls")
        print_table(
            ["model", "service", "calls", "ours", "stated", "difference", "calls known only as stated"],
            [
                [
                    row["model"] or "(not stated)",
                    row["service"] or "",
                    count(row["calls"]),
                    usd(row["computed_usd"]),
                    usd(row["stated_usd"]),
                    "" if missing(row["difference_usd"]) else _signed(row["difference_usd"]),
                    count(row["stated_only_calls"]),
                ]
                for row in found["stated"]
            ],
            right=(2, 3, 4, 5, 6),
        )


def _rate(value: Any) -> str:
    return "" if missing(value) else f"{value:.6g}"


def _day(value: Any) -> str:
    return "" if missing(value) else when(value)
