"""What the store knows of one incident, read through the collector's reader in batches."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from incidents import conversation
from incidents.queries import query_text
from incidents.replay.world import canonical

Row = dict[str, Any]
BATCH = 100
"""Incidents read at once: few enough for the limits of the door, enough that a thousand take seconds."""
_SPAN_SLACK_NS = 60_000_000_000


class Table(Protocol):
    """What the reader answers with: an Arrow table, as far as it is used here."""

    def to_pylist(self) -> list[Row]: ...


class Source(Protocol):
    """Answers one SELECT over the public views; `collector.reader.Reader` is one."""

    def sql(self, sql: str, params: Any = None) -> Any: ...


@dataclass(frozen=True)
class Call:
    """One tool call of the incident's task, as recorded. `args` is always an object; times are UTC."""

    tool: str
    args: dict[str, Any]
    captured: bool
    result: Any
    outcome: str | None
    disposition: str
    duplicate: str | None
    cause: str | None
    compensated: bool
    effect_class: str
    class_source: str
    key: str | None
    call_id: str | None
    span_id: str
    run_id: str
    started_at: datetime
    ended_at: datetime | None
    error_class: str | None
    message: str | None
    decision: str | None
    approved_args: dict[str, Any] | None
    on_failure: str | None
    evidence: tuple[str, ...] = ()
    """Spans that the derivation judged it by: what it repeats, what undid it."""
    repairs: bool = False
    """Whether it undoes what a fault did, so that nobody asked for it; see `incidents.repairs`."""
    seen: bool = True
    """False for a call that a process asked for before it died, and whose own span never came."""

    @property
    def executed(self) -> bool:
        return self.disposition == "executed"


@dataclass(frozen=True)
class Evidence:
    """One incident with its representative task."""

    incident: Row
    findings: list[Row]
    task: Row
    runs: list[Row]
    calls: list[Call]
    turns: list[Row]
    told: conversation.Told
    spans: list[Row] = field(repr=False)

    @property
    def own_findings(self) -> list[Row]:
        """Findings of this incident in the representative task."""
        return [f for f in self.findings if f["task_id"] == self.task["task_id"]]

    @property
    def evidence_span_ids(self) -> list[str]:
        """Spans the findings point at, without repeats."""
        return list(dict.fromkeys(span for f in self.own_findings for span in f["evidence"] or []))

    @property
    def final(self) -> str | None:
        """What the last run answered."""
        last = self.runs[-1]["run_id"] if self.runs else None
        said = [t["output_text"] for t in self.turns if t["run_id"] == last and t["output_text"]]
        return said[-1] if said else None

    @property
    def root(self) -> Row | None:
        """The outermost step of the first run."""
        return next((turn for turn in self.turns if turn["role"] != "model"), None)


def find(
    source: Source,
    *,
    since: datetime | None = None,
    kinds: Sequence[str] | None = None,
    ids: Sequence[str] | None = None,
) -> list[Row]:
    """Incidents that match, newest first."""
    return _rows(
        source,
        "case_incidents",
        since=since,
        kinds=list(kinds) if kinds is not None else None,
        ids=list(ids) if ids is not None else None,
    )


def gather(source: Source, incidents: Sequence[Row]) -> Iterator[Evidence]:
    """Read the evidence of incidents, a batch at a time."""
    for start in range(0, len(incidents), BATCH):
        yield from _batch(source, incidents[start : start + BATCH])


def _batch(source: Source, incidents: Sequence[Row]) -> Iterator[Evidence]:
    tasks = sorted({row["representative_task_id"] for row in incidents})
    findings = _grouped(
        _rows(source, "case_findings", ids=[row["incident_id"] for row in incidents]), "incident_id"
    )
    task_rows = {row["task_id"]: row for row in _rows(source, "case_tasks", tasks=tasks)}
    runs = _grouped(_rows(source, "case_runs", tasks=tasks), "task_id")
    calls = _grouped(_rows(source, "case_calls", tasks=tasks), "task_id")
    turns = _grouped(_rows(source, "case_turns", tasks=tasks), "task_id")
    spans = _spans(source, [run for rows in runs.values() for run in rows])
    for incident in incidents:
        task_id = incident["representative_task_id"]
        if task_id not in task_rows:
            continue  # the task went with its retention period while we read
        own = runs[task_id]
        traces = dict.fromkeys(run["trace_id"] for run in own)
        raw = sorted(
            (span for trace in traces for span in spans[trace]), key=lambda s: (s["start_ns"], s["span_id"])
        )
        yield Evidence(
            incident=incident,
            findings=findings[incident["incident_id"]],
            task=task_rows[task_id],
            runs=own,
            calls=_with_begun([_call(row) for row in calls[task_id]], own, turns[task_id]),
            turns=turns[task_id],
            told=_told(turns[task_id], raw),
            spans=raw,
        )


def _with_begun(calls: list[Call], runs: Sequence[Row], turns: Sequence[Row]) -> list[Call]:
    """Add what a crashed run asked for last and no tool span answers: a span that never ended is never exported."""
    made = {call.call_id for call in calls} | {i for turn in turns for i in turn["answered_ids"] or []}
    found = list(calls)
    for run in runs:
        if run["verdict"] != "crashed":
            continue
        asked = [turn for turn in turns if turn["run_id"] == run["run_id"] and turn["requested"]]
        found += [
            _begun(item, run["run_id"], asked[-1])
            for item in (asked[-1]["requested"] if asked else [])
            if item["name"] and item["id"] and item["id"] not in made and not _ran(item, asked[-1], calls)
        ]
    return sorted(found, key=lambda call: (call.started_at, call.span_id))


def _ran(item: Mapping[str, Any], turn: Row, calls: Sequence[Call]) -> bool:
    """Whether a tool span answers the request although it carries no call id: same run, tool and arguments, later."""
    wanted = canonical(arguments(item["arguments"]) or {})
    return any(
        call.run_id == turn["run_id"]
        and call.tool == item["name"]
        and call.started_at >= turn["started_at"]
        and canonical(call.args) == wanted
        for call in calls
    )


def _begun(item: Mapping[str, Any], run_id: str, turn: Row) -> Call:
    args = arguments(item["arguments"])
    return Call(
        tool=item["name"], args=args or {}, captured=args is not None, result=None, outcome="unknown",
        disposition="executed", duplicate=None, cause=None, compensated=False, effect_class="unknown",
        class_source="unknown", key=None, call_id=item["id"], span_id=turn["span_id"], run_id=run_id,
        started_at=turn["ended_at"] or turn["started_at"], ended_at=None, error_class=None, message=None,
        decision=None, approved_args=None, on_failure=None, seen=False,
    )  # fmt: skip


def _rows(source: Source, name: str, **params: Any) -> list[Row]:
    found: list[Row] = source.sql(query_text(name), params).to_pylist()
    return found


def _grouped(rows: Sequence[Row], key: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[key]].append(row)
    return found


def _spans(source: Source, runs: Sequence[Row]) -> dict[str, list[Row]]:
    if not runs:
        return defaultdict(list)
    low = min(run["started_at"] for run in runs)
    high = max(run["ended_at"] or run["started_at"] for run in runs)
    day = 86_400 * 1_000_000_000
    return _grouped(
        _rows(
            source,
            "case_spans",
            traces=sorted({run["trace_id"] for run in runs}),
            low=_ns(low) - _SPAN_SLACK_NS,
            # A clock may stand at the last moment there is.
            high=min(_ns(high) + day, 2**63 - 1),
        ),
        "trace_id",
    )


def _ns(moment: datetime) -> int:
    return int((moment - datetime(1970, 1, 1)).total_seconds()) * 1_000_000_000


def _told(turns: Sequence[Row], spans: Sequence[Row]) -> conversation.Told:
    """The conversation of the first model call, else of the first agent step; definitions from wherever they stand."""
    by_id = {(span["trace_id"], span["span_id"]): span for span in spans}
    best = conversation.Told()
    definitions: list[dict[str, Any]] = []
    for role in ("model", "agent", "workflow"):
        for turn in turns:
            span = by_id.get((turn["trace_id"], turn["span_id"]))
            if turn["role"] != role or span is None:
                continue
            told = conversation.read(_object(span["attributes"]), _list(span["events"]))
            definitions = definitions or told.definitions
            if not any(m["role"] == "user" for m in best.messages) and told.messages:
                best = told
            if definitions and best.messages:
                break
    if not any(message["role"] == "user" for message in best.messages):
        text = next((turn["user_text"] for turn in turns if turn["user_text"]), None)
        if text:
            best = conversation.Told([*best.messages, {"role": "user", "content": text}], best.dropped)
    return conversation.Told(best.messages, best.dropped, definitions)


def _call(row: Mapping[str, Any]) -> Call:
    args = arguments(row["arguments"])
    approved = arguments(row["decision_arguments"])
    return Call(
        tool=row["tool"],
        args=args or {},
        captured=args is not None,
        result=conversation.parsed(row["result"]),
        outcome=row["outcome"],
        disposition=row["disposition"],
        duplicate=row["duplicate"],
        cause=row["cause"],
        compensated=bool(row["compensated"]),
        effect_class=row["effect_class"],
        class_source=row["class_source"],
        key=row["idempotency_key"],
        call_id=row["call_id"],
        span_id=row["span_id"],
        run_id=row["run_id"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        error_class=row["error_class"],
        message=row["error_message"],
        decision=row["decision"],
        approved_args=approved,
        on_failure=row["on_failure"],
        evidence=tuple(row["evidence"] or ()),
    )


def arguments(text: str | None) -> dict[str, Any] | None:
    """Recorded arguments as an object; None when they were not captured."""
    if text is None:
        return None
    value = conversation.parsed(text)
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"input": value}


def _object(text: str | None) -> dict[str, Any]:
    value = json.loads(text) if text else {}
    return value if isinstance(value, dict) else {}


def _list(text: str | None) -> list[dict[str, Any]]:
    value = json.loads(text) if text else []
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
