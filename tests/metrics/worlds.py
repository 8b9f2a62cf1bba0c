"""Small worlds for tests: a few tasks of every story of the sample company, as single spans that can be dealt anew."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from metrics.settings import MetricsSettings
from sample_traces import replay

Span = dict[str, Any]


@cache
def truth(name: str = "company") -> dict[str, Any]:
    """The ground truth that the generator wrote."""
    return dict(json.loads((files("sample_traces") / replay.TRUTHS[name]).read_text()))


def end(name: str = "company") -> datetime:
    """The moment the truth is told for (UTC, naive)."""
    return datetime.fromtimestamp(truth(name)["end_ns"] / 1e9, tz=UTC).replace(tzinfo=None)


@cache
def settings() -> MetricsSettings:
    """What the sample company says of its tools and tasks."""
    stated = yaml.safe_load((files("sample_traces") / "agent-slo.yaml").read_text())
    return MetricsSettings.model_validate(
        {k: v for k, v in stated.items() if k in MetricsSettings.model_fields}
    )


@cache
def tasks_by_story(each: int = 2) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Story -> the trace ids of its first tasks."""
    found: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for task in truth()["tasks"].values():
        if len(found[task["story"]]) < each:
            found[task["story"]].append(tuple(task["traces"]))
    return {story: tuple(traces) for story, traces in sorted(found.items())}


@cache
def spans_by_trace() -> dict[str, tuple[Span, ...]]:
    """Trace id -> requests of one span each, in the order of delivery, re-deliveries included."""
    wanted = {trace for tasks in tasks_by_story().values() for traces in tasks for trace in traces}
    found: dict[str, list[Span]] = defaultdict(list)
    for request in replay.load("company"):
        for resource in request["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    if span["traceId"] in wanted:
                        one = {**resource, "scopeSpans": [{**scope, "spans": [span]}]}
                        found[span["traceId"]].append({"resourceSpans": [one]})
    return {trace: tuple(spans) for trace, spans in found.items()}
