"""Writes a set of sample traces and its ground truth: `python -m sample_traces.generate --set company`."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sample_traces import company, first_light
from sample_traces.messages import compact
from sample_traces.replay import NAMES, TRUTHS
from sample_traces.spans import spans_of, to_json
from sample_traces.truth import TaskTruth, document


def write(
    name: str, out: Path, items: Iterator[tuple[ExportTraceServiceRequest, tuple[TaskTruth, ...]]],
    seed: int, end_ns: int, progress: Progress | None = None,
) -> tuple[Path, Path]:  # fmt: skip
    """Write ``<out>/<name>.jsonl.gz`` (one OTLP/JSON request a line) and the truth; returns both paths.

    The same items give the same bytes: no clock, no file name and no platform word enters them. Both files
    appear whole or not at all (written beside, then renamed).
    """
    traces, facts = out / f"{name}.jsonl.gz", out / TRUTHS[name]
    truths: list[TaskTruth] = []
    spans = requests = 0
    bar = progress.tasks[0].id if progress is not None and progress.tasks else None
    part = traces.with_name(traces.name + ".part")
    with (
        part.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=9, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as lines,
    ):
        for request, more in items:
            body = to_json(request)
            truths += more
            requests += 1
            spans += len(spans_of(body))
            json.dump(body, lines, separators=(",", ":"), ensure_ascii=False)
            lines.write("\n")
            if progress is not None and bar is not None:
                progress.update(bar, completed=len(truths))
    os.replace(part, traces)
    beside = facts.with_name(facts.name + ".part")
    beside.write_text(_readable(document(name, seed, end_ns, truths, spans, requests)), encoding="utf-8")
    os.replace(beside, facts)
    return traces, facts


def _readable(truth: dict[str, Any]) -> str:
    """JSON with one line for each task and each list of findings: small, and a diff shows what changed."""
    lines = []
    for key, value in truth.items():
        if key in ("tasks", "by_finding"):
            rows = (f'  "{k}":{compact(v)}' for k, v in value.items())
            text = "{\n" + ",\n".join(rows) + "\n}"
        else:
            text = compact(value)
        lines.append(f'"{key}":{text}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--set", "name", type=click.Choice(NAMES), required=True, help="Which set to write.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder for the two files."
)
@click.option(
    "--tasks",
    type=click.IntRange(min=100),
    default=company.TASKS,
    show_default=True,
    help="Tasks of the company.",
)
@click.option(
    "--days", type=click.IntRange(min=2), default=company.DAYS, show_default=True, help="Days of the company."
)
@click.option("--seed", type=int, default=None, help="Another seed gives another set of the same kind.")
@click.option("--end", type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ"]), default=None,
              help="End of the company's last span, UTC (2026-11-27T15:00:00Z).")  # fmt: skip
def main(name: str, out: Path, tasks: int, days: int, seed: int | None, end: Any) -> None:
    """Write a set of sample traces and the truth about it."""
    out.mkdir(parents=True, exist_ok=True)
    if name == "company":
        used = company.SEED if seed is None else seed
        until = company.END if end is None else end.replace(tzinfo=company.END.tzinfo)
        items: Iterator[tuple[ExportTraceServiceRequest, tuple[TaskTruth, ...]]] = company.generate(
            used, days, tasks, until
        )
        expected = tasks
    else:
        used, until = first_light.SEED if seed is None else seed, first_light.END
        items, expected = first_light.generate(used), len(first_light.TASKS) + 1
    words = Console(stderr=True)
    columns = (TextColumn("tasks"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=words) as progress, closing(items):  # type: ignore[type-var]
        progress.add_task("tasks", total=expected)
        traces, facts = write(name, out, items, used, int(until.timestamp()) * 10**9, progress)
    for path in (traces, facts):
        words.print(f"{path}  {path.stat().st_size / 1e6:.2f} MB", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
