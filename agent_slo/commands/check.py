"""`agent-slo check`: a gate for continuous integration."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import click

from agent_slo.as_of import reading_as_of
from agent_slo.derivation import derive_once
from agent_slo.errors import EXIT_FINDING, CommandError
from agent_slo.finding_kinds import SEVERITIES, check_kind
from agent_slo.importing import StoreSink, bring_in
from agent_slo.options import Place, as_of_option, common
from agent_slo.output import answer_console, print_json, say, words_console
from agent_slo.reading import has_view, reading, require_derived
from collector.reader import Reader, open_reader
from collector.serve import program_version
from collector.store import Store
from dashboard.format import count, counted
from metrics.gate.baseline import Baseline, Before, read_baseline
from metrics.gate.judge import (
    Case,
    FailOn,
    Rules,
    finding_key,
    is_forbidden,
    judge_findings,
    judge_objective,
    objective_key,
)
from metrics.gate.reports import junit, sarif
from metrics.openslo import load
from metrics.slo.objective import Objective

AFTER_LAST_SPAN = timedelta(hours=25)
"""How long after the last span files are decided: nothing more will come, and deadlines of an hour and the
usual policy for unknown outcomes (bad after 24 h) have passed by then."""

FINDINGS = """
SELECT f.kind, f.detail, f.severity, f.task_id, t.agent
FROM findings f LEFT JOIN tasks t USING (task_id)
ORDER BY f.kind, f.task_id, f.finding_id
"""


@click.command()
@click.argument("traces", nargs=-1, type=click.Path(path_type=Path, exists=True, allow_dash=True))
@click.option(
    "--objectives", "files", multiple=True, type=click.Path(path_type=Path), help="OpenSLO file (repeatable)."
)
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice(get_args(FailOn)),
    default=("missed",),
    show_default=True,
    help="Mildest state an objective fails on; worse ones fail too (at_risk, firing, missed; repeatable).",
)
@click.option(
    "--min-events",
    type=click.IntRange(min=1),
    help="Judge an objective from so many events (default: what its file says, usually 20).",
)
@click.option("--require-data", is_flag=True, help="An objective that cannot be judged fails.")
@click.option(
    "--forbid",
    multiple=True,
    metavar="KIND|severity:WORD|none",
    default=("severity:high",),
    show_default=True,
    help="Findings that fail the gate (repeatable).",
)
@click.option("--split", is_flag=True, help="Also judge the rows of single agents and task types.")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What failed there and is no worse passes.",
)
@click.option(
    "--write-baseline", type=click.Path(path_type=Path, dir_okay=False), help="Write what this run shows."
)
@click.option(
    "--junit", "junit_file", type=click.Path(path_type=Path, dir_okay=False), help="Write JUnit XML."
)
@click.option(
    "--sarif", "sarif_file", type=click.Path(path_type=Path, dir_okay=False), help="Write SARIF 2.1.0."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@as_of_option
@common
def check(
    place: Place,
    traces: Sequence[Path],
    files: Sequence[Path],
    fail_on: Sequence[FailOn],
    min_events: int | None,
    require_data: bool,
    forbid: Sequence[str],
    split: bool,
    baseline: Path | None,
    write_baseline: Path | None,
    junit_file: Path | None,
    sarif_file: Path | None,
    form: str,
    as_of: datetime | None,
) -> None:
    """Fail when an objective is missed or a forbidden finding exists.

    Checks TRACES (OTLP files, folders or - for stdin) decided 25 hours after their last span, or without any
    the data folder as it is. Exit code 1 when the gate fails.
    """
    forbidden = _forbidden(forbid)
    rules = Rules(frozenset(fail_on), min_events, require_data, forbidden)
    before = read_baseline(baseline) if baseline else None
    objectives = place.objectives()
    if files:
        objectives = load(list(files), unknown=place.config().config.unknown_policy())
    with _reader(place, traces, objectives, as_of, own=bool(files)) as reader:
        status, findings, tasks = _read(reader)
    rows = [row for row in status if split or not row["split"]]
    cases = [judge_objective(row, rules, before) for row in rows]
    cases += judge_findings(findings, tasks, rules, before)
    if not cases:
        raise CommandError("there is nothing to judge: no objective and no finding")
    if write_baseline:
        write_baseline.write_text(_baseline(rows, cases, findings, tasks, rules).text(), encoding="utf-8")
    if junit_file:
        junit_file.write_text(junit(cases), encoding="utf-8")
    if sarif_file:
        checked = traces[0] if traces else place.data
        text = sarif(cases, checked.as_posix(), program_version(), compared=before is not None)
        sarif_file.write_text(text, encoding="utf-8")
    failed = [c for c in cases if c.failed]
    if form == "json":
        print_json({"passed": not failed, "tasks": tasks, "cases": [_plain(c) for c in cases]})
    else:
        _tell(cases, tasks)
    if failed:
        sys.exit(EXIT_FINDING)


def _forbidden(given: Sequence[str]) -> frozenset[str]:
    """What --forbid names. Raises CommandError for a word that no finding has: it would forbid nothing."""
    if "none" in given:
        if len(given) > 1:
            raise CommandError("--forbid none: stands alone; remove it or the others")
        return frozenset()
    for word in given:
        kind, is_severity, severity = word.partition("severity:")
        if is_severity and not kind and severity not in SEVERITIES:
            raise CommandError(
                f"--forbid {word}: {severity!r} is no severity; there are {', '.join(SEVERITIES)}"
            )
        try:
            if not is_severity:
                check_kind(word)
        except ValueError as error:
            raise CommandError(f"--forbid: {error}") from error
    return frozenset(given)


@contextmanager
def _reader(
    place: Place,
    traces: Sequence[Path],
    objectives: Sequence[Objective],
    as_of: datetime | None,
    *,
    own: bool,
) -> Iterator[Reader]:
    if traces:
        with _imported(place, traces, objectives, as_of) as reader:
            yield reader
    elif as_of is not None or own:
        # Other objectives than the collector's are evaluated on a copy.
        with reading_as_of(place, as_of or _now(), objectives) as reader:
            yield reader
    else:
        with reading(place.data) as reader:
            require_derived(reader, place.data)
            yield reader


def _now() -> datetime:
    from agent_slo.derivation import now

    return now()


@contextmanager
def _imported(
    place: Place, traces: Sequence[Path], objectives: Sequence[Objective], as_of: datetime | None
) -> Iterator[Reader]:
    config = place.config().config
    with tempfile.TemporaryDirectory(prefix="agent-slo-") as scratch:
        data = Path(scratch) / "data"
        store = Store.open(data)
        try:
            with words_console().status("reading traces"):
                state = bring_in(traces, StoreSink(store), told=say, progress=lambda *_: None)
            if state.rejected:
                raise CommandError(
                    f"{count(state.rejected)} rejected, named above: a gate over a part of the traces says "
                    "nothing; mend the files"
                )
            with store.reader() as con:
                last = con.execute(
                    "SELECT make_timestamp(max(greatest(start_ns, end_ns)) // 1000) FROM spans"
                )
                (end,) = last.fetchone() or (None,)
            if end is None:
                raise CommandError(f"{traces[0]}: there are no spans in it; name a file with OTLP traces")
            with words_console().status("deciding"):
                derive_once(store, config, objectives, as_of or end + AFTER_LAST_SPAN)
        finally:
            store.close()
        with open_reader(data) as reader:
            yield reader


def _read(reader: Reader) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """Status rows, findings, number of tasks."""
    status = reader.sql("SELECT * FROM slo_status").to_pylist() if has_view(reader, "slo_status") else []
    tasks = reader.sql("SELECT count(*) AS n FROM tasks").column("n")[0].as_py()
    return status, reader.sql(FINDINGS).to_pylist(), int(tasks)


def _baseline(
    rows: Sequence[dict[str, Any]],
    cases: Sequence[Case],
    findings: Sequence[dict[str, Any]],
    tasks: int,
    rules: Rules,
) -> Baseline:
    failing = {c.name for c in cases if c.group == "objective" and c.result in ("failed", "known")}
    counts: dict[str, int] = {}
    for row in findings:
        if is_forbidden(row, rules):
            counts[finding_key(row)] = counts.get(finding_key(row), 0) + 1
    return Baseline(
        objectives={
            objective_key(r): Before(r["good"], r["n"], objective_key(r) in failing) for r in rows if r["n"]
        },
        findings=counts,
        tasks=tasks,
    )


def _plain(case: Case) -> dict[str, Any]:
    return {name: getattr(case, name) for name in ("group", "name", "result", "why", "severity", "tasks")}


def _tell(cases: Sequence[Case], tasks: int) -> None:
    line = answer_console().out
    for case in cases:
        if case.group == "objective" or case.result != "passed":
            line(f"{case.result:8}{case.name}: {case.why}")
            for task in case.tasks if case.failed else ():
                line(f"        task {task}")
    tally = {r: sum(c.result == r for c in cases) for r in ("passed", "failed", "known", "skipped")}
    words = ", ".join(f"{n} {r}" for r, n in tally.items() if n)
    say(f"{counted(len(cases), 'check')} over {counted(tasks, 'task')}: {words}")
