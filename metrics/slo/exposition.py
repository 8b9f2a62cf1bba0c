"""Objectives as Prometheus metrics: text for the collector's /metrics.

What is unknown has no sample: neither 0 nor NaN, which poisons every sum it enters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from collector.counters import label_value
from metrics.slo.counters import CounterRow
from metrics.slo.status import StatusRow
from metrics.slo.windows import format_seconds

Labels = dict[str, str]

FAMILIES = {
    "agent_slo_events_total": ("counter", "Events counted so far as of the settled watermark, by outcome."),
    "agent_slo_sli_ratio": ("gauge", "Good events of all valid ones in the objective's window."),
    "agent_slo_sli_ratio_lower": ("gauge", "Lower end of the 95 % interval of the SLI (Wilson)."),
    "agent_slo_sli_ratio_upper": ("gauge", "Upper end of the 95 % interval of the SLI (Wilson)."),
    "agent_slo_met_probability": ("gauge", "Chance that the true SLI reaches the target."),
    "agent_slo_objective_ratio": ("gauge", "Target of the objective."),
    "agent_slo_error_budget_remaining_ratio": ("gauge", "Error budget left; below 0 when overspent."),
    "agent_slo_burn_rate": ("gauge", "Burn rate by window; `period` is the objective's own window."),
    "agent_slo_state": ("gauge", "1 for the state the objective is in."),
    "agent_slo_slo_info": ("gauge", "1, with what the objective is about."),
    "agent_slo_last_event_timestamp_seconds": ("gauge", "When the last valid event happened."),
    "agent_slo_evaluation_timestamp_seconds": ("gauge", "When objectives were last evaluated."),
}
"""Metric name -> (type, help)."""

PERIOD = "period"


def labels_text(labels: Labels) -> str:
    """`{a="b",...}` with the values escaped."""
    return "{" + ",".join(f'{k}="{label_value(v)}"' for k, v in labels.items()) + "}"


def _identity(row: StatusRow | CounterRow) -> Labels:
    return {
        "slo": row.slo,
        "objective": row.objective,
        "agent": row.agent or "",
        "task_type": row.task_type or "",
    }


def exposition(rows: Sequence[StatusRow], counters: Iterable[CounterRow], as_of: datetime | None) -> str:
    """Prometheus text (0.0.4) of the last evaluation; `as_of` is naive UTC, None before the first one."""
    samples: dict[str, list[str]] = {name: [] for name in FAMILIES}

    def add(name: str, labels: Labels, value: float | None) -> None:
        if value is not None:
            samples[name].append(f"{name}{labels_text(labels) if labels else ''} {value:.12g}")

    for counter in counters:
        for outcome in ("good", "bad", "unknown", "excluded"):
            number: int = getattr(counter, outcome)
            add("agent_slo_events_total", {**_identity(counter), "outcome": outcome}, number)
    for row in rows:
        labels = _identity(row)
        add("agent_slo_sli_ratio", labels, row.sli)
        add("agent_slo_sli_ratio_lower", labels, row.lower)
        add("agent_slo_sli_ratio_upper", labels, row.upper)
        add("agent_slo_met_probability", labels, row.p_met)
        add("agent_slo_objective_ratio", labels, row.target)
        add("agent_slo_error_budget_remaining_ratio", labels, row.remaining)
        whole = format_seconds(int((row.window_end - row.window_start).total_seconds()))
        for window, burn in json.loads(row.burn).items():
            name = PERIOD if window == whole else window
            add("agent_slo_burn_rate", {**labels, "window": name}, burn["value"])
        add("agent_slo_state", {**labels, "state": row.state}, 1)
        info = {"service": row.service, "sli": row.sli_name, "title": row.title, "revision": row.revision}
        add("agent_slo_slo_info", {**labels, **info}, 1)
        if row.last_event_at is not None:
            add("agent_slo_last_event_timestamp_seconds", labels, _epoch(row.last_event_at))
    if as_of is not None:
        add("agent_slo_evaluation_timestamp_seconds", {}, _epoch(as_of))
    lines: list[str] = []
    for name, (kind, words) in FAMILIES.items():
        if samples[name]:
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}", *samples[name]]
    return "\n".join(lines) + "\n" if lines else ""


def _epoch(moment: datetime) -> float:
    return moment.replace(tzinfo=UTC).timestamp()
