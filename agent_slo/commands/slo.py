"""`agent-slo slo`: objective files checked, shown, brought in and written out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from agent_slo.actions import act
from agent_slo.errors import EXIT_FINDING, CommandError
from agent_slo.objective_actions import objective_actions
from agent_slo.options import Moment, Place, as_of_option, common
from agent_slo.output import print_json, print_table, say
from agent_slo.reading import has_view, reading, warn_of_lag
from dashboard.format import (
    STATE_WORDS,
    burn_line,
    count,
    counted,
    interval,
    json_list,
    json_object,
    percent,
    target_percent,
    words,
)
from metrics.openslo import Loaded, OpenSLOError, default_text, dump, load_all
from metrics.slo.objective import Objective
from metrics.slo.rules import rule_file

FILES = click.argument("files", nargs=-1, type=click.Path(path_type=Path))
FORMAT = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
OUT = click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write there, not to stdout."
)
LENIENT = click.option(
    "--lenient", is_flag=True, help="Mend what other tools accept, and say what was mended."
)


@click.group()
def slo() -> None:
    """Objectives: OpenSLO v1 files in and out, and how they are met."""


@slo.command()
@FILES
@LENIENT
@FORMAT
@common
def validate(place: Place, files: Sequence[Path], lenient: bool, form: str) -> None:
    """Check objective files, folders or globs; without any, those of the configuration.

    Exit code 1 when a file is refused. Every problem is told with file, line, object, path and remedy.
    """
    loaded = _load(place, files, strict=not lenient)
    if form == "json":
        print_json(
            {
                "valid": not loaded.problems,
                "objectives": len(loaded.objectives),
                "problems": [_problem(p) for p in loaded.problems],
                "warnings": [_problem(w) for w in loaded.warnings],
            }
        )
    else:
        for problem in loaded.problems:
            click.echo(str(problem))
        _warn(loaded)
        say(f"{counted(len(loaded.objectives), 'objective')}, {counted(len(loaded.problems), 'problem')}")
    if loaded.problems:
        sys.exit(EXIT_FINDING)


@slo.command("list")
@FORMAT
@common
def list_objectives(place: Place, form: str) -> None:
    """Show the objectives that hold: the configured files, else the default pack."""
    found = [_described(o) for o in place.objectives()]
    if form == "json":
        print_json(found)
        return
    print_table(
        ["slo", "objective", "counts", "target", "window", "per", "service"],
        [
            [
                o["slo"],
                o["objective"],
                o["sli"] + (f" {o['op']} {o['cut']:g} {o['unit']}" if o["cut"] is not None else ""),
                target_percent(o["target"]),
                o["window"],
                ", ".join(o["per"]),
                o["service"],
            ]
            for o in found
        ],
        right=(3,),
    )


@slo.command()
@FORMAT
@click.option("--split", is_flag=True, help="Also the rows of single agents and task types.")
@click.option("--state", "states", multiple=True, type=click.Choice(list(STATE_WORDS)), help="Repeatable.")
@as_of_option
@common
def status(place: Place, form: str, split: bool, states: Sequence[str], as_of: datetime | None) -> None:
    """Show the numbers of every objective as of the last evaluation, or as of a moment."""
    if as_of is not None:
        from agent_slo.as_of import reading_as_of

        reader_of = reading_as_of(place, as_of)
    else:
        reader_of = reading(place.data)
    with reader_of as reader:
        if not has_view(reader, "slo_status"):
            raise CommandError(
                f"{place.data}: nothing is evaluated yet; import traces with `agent-slo import FILE --data "
                f"{place.data}` or send some to `agent-slo up --data {place.data}`"
            )
        found = reader.sql("SELECT * FROM slo_status").to_pylist()
        warn_of_lag(reader)
    rows = [r for r in found if (split or not r["split"]) and (not states or r["state"] in states)]
    if form == "json":
        print_json([row | _parsed(row) for row in rows])
        return
    print_table(
        ["slo", "objective", "SLI", "k of n", "95% interval", "target", "budget left", "burn", "state"],
        [
            [
                row["slo"],
                row["objective"],
                percent(row["sli"]),
                f"{count(row['good'])} of {count(row['n'])}",
                interval(row["lower"], row["upper"]),
                target_percent(row["target"]),
                percent(row["remaining"], 0),
                burn_line(row["burn"]),
                words(STATE_WORDS, row["state"]) + (", alert firing" if json_list(row["firing"]) else ""),
            ]
            for row in rows
        ],
        right=(2, 3, 4, 5, 6),
    )


@slo.command()
@click.argument("name", metavar="SLO")
@click.option("--objective", help="Only this objective of it.")
@click.option("--since", type=Moment(), required=True, help="The moment from which the definition holds.")
@click.option("--reason", required=True, help="Why, for those who wonder later.")
@common
def revise(place: Place, name: str, objective: str | None, since: datetime, reason: str) -> None:
    """Say since when the present definition of an objective holds.

    A changed target holds from the moment it was first evaluated; points of the history before keep the target they
    had. --since moves that moment, as for a target that was agreed on last Monday.
    """
    said = {"slo": name, "objective": objective, "since": since, "reason": reason}
    answer = act(place.data, objective_actions(), "objectives.revise", said)
    say(f"{name} ({', '.join(answer['objectives'])}) holds since {answer['since']}")


@slo.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@OUT
@common
def import_files(place: Place, files: Sequence[Path], out: Path | None) -> None:
    """Read OpenSLO files of other tools and write them so that every OpenSLO reader accepts them.

    What had to be mended is told; indicators of foreign data sources are kept word for word and left alone.
    Exit code 1 when an object cannot be mended; nothing is written then.
    """
    del place
    loaded = load_all(files, strict=False)
    _warn(loaded)
    if loaded.problems:
        for problem in loaded.problems:
            click.echo(str(problem), err=True)
        raise CommandError("nothing written; mend the files first", EXIT_FINDING)
    _write(dump(loaded.objects), out)
    say(
        f"{counted(len(loaded.objects), 'object')}, {counted(len(loaded.objectives), 'objective')} for this tool"
    )


@slo.command("export")
@OUT
@click.option("--kind", "kinds", multiple=True, help="Only objects of this kind, such as SLO (repeatable).")
@common
def export_files(place: Place, out: Path | None, kinds: Sequence[str]) -> None:
    """Write the objectives that hold as one OpenSLO file; without files of yours, the default pack."""
    objects = _own(place).objects
    known = sorted({o.kind for o in objects})
    for kind in kinds:
        if kind not in known:
            raise CommandError(f"--kind {kind}: there is no such object here; there are {', '.join(known)}")
    _write(dump([o for o in objects if not kinds or o.kind in kinds]), out)


@slo.command()
@OUT
@common
def rules(place: Place, out: Path | None) -> None:
    """Write a Prometheus rule file that maps our metrics to the slo:* names of Sloth's dashboards.

    Scrape /metrics of the collector, load this file, and dashboards made for Sloth work. They show the
    objectives' own rows, not those of single agents.
    """
    objectives = place.objectives()
    _write(rule_file(objectives), out)


def _own(place: Place) -> Loaded:
    files = place.config().objective_files()
    loaded = load_all(files) if files else load_all(default_text())
    if loaded.problems:
        raise loaded.problems[0]
    return loaded


def _load(place: Place, files: Sequence[Path], *, strict: bool) -> Loaded:
    chosen: Sequence[Path] = files or place.config().objective_files()
    return load_all(chosen, strict=strict) if chosen else load_all(default_text(), strict=strict)


def _warn(loaded: Loaded) -> None:
    for warning in loaded.warnings:
        say(f"warning: {warning}")


def _write(text: str, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    say(f"written to {out}")


def _problem(problem: OpenSLOError) -> dict[str, Any]:
    names = ("file", "line", "object", "path", "problem", "remedy")
    return {name: getattr(problem, name) for name in names}


def _described(objective: Objective) -> dict[str, Any]:
    window = objective.window
    return {
        "slo": objective.slo,
        "objective": objective.objective,
        "title": objective.title,
        "sli": objective.sli_name,
        "op": objective.op,
        "cut": None if objective.cut is None else float(objective.cut),
        "unit": objective.unit,
        "target": float(objective.target),
        "window": f"{window.duration} " + ("rolling" if window.anchor is None else f"calendar {window.zone}"),
        "method": objective.method,
        "per": list(objective.per),
        "service": objective.service,
        "revision": objective.revision,
    }


def _parsed(row: dict[str, Any]) -> dict[str, Any]:
    lists = ("firing", "pairs", "notes")
    found: dict[str, Any] = {name: json_list(row[name]) for name in lists}
    return found | {name: json_object(row[name]) for name in ("burn", "exhaustion", "excluded_by")}
