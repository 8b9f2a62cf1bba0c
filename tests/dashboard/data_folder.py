"""A data folder written by hand with the columns of the public contract, so that pages can be tested without
deriving anything: an empty one, one task, or many; with plain or hostile text."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from collector.views import create_tables
from metrics.alerts import tables as alerts
from metrics.slo.tables import create

START = datetime(2026, 11, 20, 9, 0, 0)

TASKS = """CREATE TABLE core.tasks (task_id VARCHAR, task_type VARCHAR, agent VARCHAR,
    conversation_id VARCHAR,
    service VARCHAR, environment VARCHAR, outcome VARCHAR, outcome_evidence VARCHAR, claimed VARCHAR,
    interventions BIGINT, autonomous BOOLEAN, eligible BOOLEAN, excluded_reason VARCHAR, decided_at TIMESTAMP,
    next_due_at TIMESTAMP, frozen BOOLEAN, telemetry_duplicates BIGINT, app_version VARCHAR, runs BIGINT,
    traces BIGINT, model_calls BIGINT, tool_calls BIGINT, input_tokens BIGINT, output_tokens BIGINT,
    cost_usd DOUBLE, cost_complete BOOLEAN, started_at TIMESTAMP, ended_at TIMESTAMP, wall_s DOUBLE,
    active_s DOUBLE, human_wait_s DOUBLE, revision BIGINT, rule VARCHAR, evidence VARCHAR[])"""
RUNS = """CREATE TABLE core.runs (run_id VARCHAR, task_id VARCHAR, trace_id VARCHAR, agent VARCHAR,
    verdict VARCHAR,
    trigger VARCHAR, started_at TIMESTAMP, ended_at TIMESTAMP, rule VARCHAR, evidence VARCHAR[],
    joined_by VARCHAR[])"""
STEPS = """CREATE TABLE work.steps (trace_id VARCHAR, span_id VARCHAR, parent_step_id VARCHAR, run_id VARCHAR,
    task_id VARCHAR, role VARCHAR, emitter VARCHAR, agent VARCHAR, tool VARCHAR, call_id VARCHAR,
    arguments VARCHAR,
    result VARCHAR, provider VARCHAR, model VARCHAR, input_tokens BIGINT, output_tokens BIGINT,
    cache_read_tokens BIGINT, cache_write_tokens BIGINT, reasoning_tokens BIGINT, cost_usd DOUBLE,
    error_class VARCHAR, finish_reason VARCHAR, conversation_id VARCHAR, user_id VARCHAR, attempt_no BIGINT,
    started_at TIMESTAMP, ended_at TIMESTAMP,
    start_ns BIGINT, end_ns BIGINT)"""
ATTEMPTS = """CREATE TABLE work.attempts (attempt_id VARCHAR, span_id VARCHAR, trace_id VARCHAR,
    run_id VARCHAR,
    task_id VARCHAR, action_id VARCHAR, tool VARCHAR, effect_class VARCHAR, class_source VARCHAR,
    arguments VARCHAR,
    idempotency_key VARCHAR, call_id VARCHAR, outcome VARCHAR, disposition VARCHAR, attempt_no BIGINT,
    duplicate VARCHAR, cause VARCHAR, effect VARCHAR, compensated BOOLEAN, suspected BOOLEAN, rule VARCHAR,
    evidence VARCHAR[], started_at TIMESTAMP, ended_at TIMESTAMP,
    agent VARCHAR, task_type VARCHAR, service VARCHAR, environment VARCHAR,
    app_version VARCHAR, task_started_at TIMESTAMP,
    seen_by VARCHAR, result VARCHAR, error_class VARCHAR)"""
ACTIONS = """CREATE TABLE core.actions (action_id VARCHAR, task_id VARCHAR, tool VARCHAR, arguments VARCHAR,
    attempts BIGINT, duplicates_unprotected BIGINT, duplicates_protected BIGINT, no_op_repeats BIGINT,
    cause VARCHAR, effect VARCHAR, compensated BOOLEAN, settled BOOLEAN, story VARCHAR, started_at TIMESTAMP)"""
INTERVENTIONS = """CREATE TABLE core.interventions (intervention_id VARCHAR, task_id VARCHAR, kind VARCHAR,
    decision VARCHAR, level VARCHAR, required_level VARCHAR, tool VARCHAR, requested_at TIMESTAMP,
    decided_at TIMESTAMP, wait_s DOUBLE, evidence VARCHAR[],
    agent VARCHAR, task_type VARCHAR, service VARCHAR, environment VARCHAR,
    app_version VARCHAR, task_started_at TIMESTAMP)"""
FINDINGS = """CREATE TABLE core.findings (finding_id VARCHAR, task_id VARCHAR, kind VARCHAR, detail VARCHAR,
    severity VARCHAR, rule VARCHAR, evidence VARCHAR[], found_at TIMESTAMP)"""
REST = [
    "CREATE TABLE core.task_aliases (alias VARCHAR, task_id VARCHAR)",
    """CREATE TABLE core.revisions (task_id VARCHAR, sli VARCHAR, from_verdict VARCHAR, to_verdict VARCHAR,
        changed_at TIMESTAMP, cause VARCHAR)""",
    "CREATE TABLE core.pipeline (derived_seq BIGINT, as_of TIMESTAMP, last_pass_at TIMESTAMP)",
    """CREATE TABLE core.incidents (incident_id VARCHAR, fingerprint VARCHAR, kind VARCHAR, severity VARCHAR,
        state VARCHAR, agent VARCHAR, tool VARCHAR, seen_count BIGINT, first_seen TIMESTAMP,
        last_seen TIMESTAMP, representative_task_id VARCHAR, mode VARCHAR, fault VARCHAR, error VARCHAR,
        shape VARCHAR, findings BIGINT, note VARCHAR, verdict VARCHAR)""",
    """CREATE TABLE core.incident_findings (finding_id VARCHAR, task_id VARCHAR, kind VARCHAR, mode VARCHAR,
        severity VARCHAR, rule VARCHAR, agent VARCHAR, tool VARCHAR, fault VARCHAR, error VARCHAR,
        shape VARCHAR, happened_at TIMESTAMP, complete BOOLEAN, fingerprint VARCHAR)""",
    """CREATE TABLE core.incident_log (incident_id VARCHAR, said_at TIMESTAMP, state VARCHAR, note VARCHAR,
        verdict VARCHAR)""",
    "CREATE TABLE core.parked_traces (trace_id VARCHAR, error VARCHAR, parked_at TIMESTAMP)",
    """CREATE TABLE core.human_labels (task_id VARCHAR, task_type VARCHAR, agent VARCHAR, service VARCHAR,
        environment VARCHAR, app_version VARCHAR, outcome VARCHAR, eligible BOOLEAN, started_at TIMESTAMP,
        decided_at TIMESTAMP, asked BOOLEAN,
        asks BIGINT, asked_at TIMESTAMP, right_level BOOLEAN, needed BOOLEAN, source VARCHAR, note VARCHAR,
        said_by VARCHAR, said_at TIMESTAMP, evidence VARCHAR[], verdict VARCHAR)""",
    """CREATE TABLE core.escalation_quality (agent VARCHAR, task_type VARCHAR, days INTEGER, tasks BIGINT,
        asked BIGINT, labelled BIGINT, labelled_asked BIGINT, label_coverage DOUBLE, asked_coverage DOUBLE,
        needed BIGINT, needed_asked BIGINT, missed BIGINT, suspected_missed BIGINT, precision DOUBLE,
        precision_lower DOUBLE, precision_upper DOUBLE, recall DOUBLE, recall_lower DOUBLE, recall_upper DOUBLE,
        level_known BIGINT, right_level BIGINT)""",
    """CREATE TABLE core.model_prices (provider VARCHAR, model VARCHAR, valid_from TIMESTAMP,
        valid_to TIMESTAMP, input DOUBLE, output DOUBLE, cache_read DOUBLE, cache_write DOUBLE,
        tiers VARCHAR, source VARCHAR)""",
    """CREATE TABLE core.sli_events (sli VARCHAR, task_id VARCHAR, subject_id VARCHAR, event_time TIMESTAMP,
        verdict VARCHAR, value DOUBLE, agent VARCHAR, task_type VARCHAR, service VARCHAR,
        environment VARCHAR, app_version VARCHAR, excluded_reason VARCHAR, settled BOOLEAN,
        evidence VARCHAR)""",
]

RULES = {
    "completed": "task.completed.clean_end",
    "failed": "task.run.failed.root_error",
    "waiting_human": "task.waiting.run.paused.call_left_open",
    "lost": "task.lost.no_terminal_run",
    "unknown": "task.unknown.no_answer",
}


@dataclass(frozen=True)
class Words:
    """The texts a trace brings along; hostile ones prove that pages only ever show them."""

    agent: str = "refund_agent"
    tool: str = "issue_refund"
    arguments: str = '{"amount": 120, "order_id": "A-17"}'
    result: str = '{"refund_id": "R-1"}'
    span: str = "execute_tool issue_refund"
    detail: str = "issue_refund ran twice with equal arguments"


def write_folder(data: Path, *, tasks: int = 1, words: Words | None = None, derived: bool = True) -> Path:
    """Write the folder and return it. `tasks=0`: tables without rows; `derived=False`: no tables either."""
    return shutil.copytree(_written(tasks, words or Words(), derived), data)


@cache
def _written(tasks: int, text: Words, derived: bool) -> Path:
    """Such a folder, written once in this process: writing takes longer than most tests that read it."""
    data = Path(tempfile.mkdtemp(prefix="agent-slo-written-"))
    atexit.register(shutil.rmtree, data, ignore_errors=True)
    (data / "spans").mkdir()
    (data / "tmp").mkdir()
    (data / "format.json").write_text(json.dumps({"version": 1, "created_by": "test"}))
    con = duckdb.connect(":memory:")
    for name, file in (("hot", "spans/000001"), ("core", "core"), ("work", "work")):
        path = data / f"{file}.duckdb"
        con.execute(f"ATTACH '{path}' AS {name} (STORAGE_VERSION 'v1.5.0')")
    create_tables(con, "hot")
    if derived:
        for table in (TASKS, RUNS, STEPS, ATTEMPTS, ACTIONS, INTERVENTIONS, FINDINGS, *REST):
            con.execute(table)
        create(con, "slo_status", "core.slo_status")
        create(con, "slo_history", "core.slo_history")
        con.execute("INSERT INTO core.pipeline VALUES (?, ?, ?)", [tasks, START + timedelta(days=9), START])
        for number in range(tasks):
            _task(con, number, text)
        for table in alerts.TABLES:
            con.execute(alerts.ddl(table))
        _labels(con, tasks, text)
        _alerts(con, tasks, text)
        _incident(con, tasks, text)
        _status(con, tasks, text)
    con.close()
    return data


def nanoseconds(moment: datetime) -> int:
    """Nanoseconds since 1970 of a naive UTC moment."""
    return (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1) * 1000


def _insert(con: duckdb.DuckDBPyConnection, table: str, row: dict[str, Any]) -> None:
    names = ", ".join(row)
    con.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))


def _outcome(number: int) -> str:
    outcomes = (
        "completed",
        "completed",
        "failed",
        "completed",
        "waiting_human",
        "lost",
        "completed",
        "unknown",
    )
    return "completed" if number == 0 else outcomes[number % len(outcomes)]


def _task(con: duckdb.DuckDBPyConnection, number: int, text: Words) -> None:
    outcome = _outcome(number)
    began = START + timedelta(hours=3 * number)
    task_id, trace = f"task-{number:04d}", f"{number + 1:032x}"
    duplicate = number % 5 == 0
    of_task = {
        "agent": text.agent,
        "task_type": "refund",
        "service": "shop",
        "environment": "production",
        "app_version": f"1.{number // 6}",
        "task_started_at": began,
    }
    _insert(
        con,
        "core.tasks",
        {
            "task_id": task_id,
            "task_type": "refund",
            "agent": text.agent,
            "conversation_id": f"conv-{number}",
            "service": "shop",
            "environment": "production",
            "app_version": f"1.{number // 6}",
            "outcome": outcome,
            "outcome_evidence": "stated" if number % 2 == 0 else "inferred",
            "interventions": int(duplicate),
            "autonomous": not duplicate,
            "eligible": outcome != "waiting_human",
            "decided_at": began + timedelta(minutes=12),
            "frozen": False,
            "telemetry_duplicates": 0,
            "runs": 2 if duplicate else 1,
            "traces": 2 if duplicate else 1,
            "model_calls": 2,
            "tool_calls": 2 if duplicate else 1,
            "input_tokens": 1843,
            "output_tokens": 212,
            "cost_usd": None if number % 7 == 3 else 0.0123 + number / 1000,
            "cost_complete": number % 7 != 3,
            "started_at": began,
            "ended_at": began + timedelta(minutes=12),
            "wall_s": 720.0,
            "active_s": 14.2,
            "human_wait_s": 700.0 if duplicate else 0.0,
            "revision": "1",
            "rule": RULES[outcome],
            "evidence": [f"{number * 100 + 1:016x}"],
        },
    )
    runs = [(f"{task_id}-r1", trace, began, began + timedelta(seconds=8), "paused", "start")]
    if duplicate:
        resumed = began + timedelta(minutes=11, seconds=54)
        runs.append(
            (
                f"{task_id}-r2",
                f"{number + 9001:032x}",
                resumed,
                resumed + timedelta(seconds=6),
                "ended",
                "resume",
            )
        )
        _insert(
            con,
            "core.interventions",
            {
                **of_task,
                "intervention_id": f"{task_id}-i1",
                "task_id": task_id,
                "kind": "approval",
                "decision": "approved",
                "tool": text.tool,
                "requested_at": began + timedelta(seconds=8),
                "decided_at": resumed,
                "wait_s": 706.0,
                "evidence": ["00000000000000a1"],
            },
        )
        _insert(
            con,
            "core.findings",
            {
                "finding_id": f"{task_id}-f1",
                "task_id": task_id,
                "kind": "duplicate_action",
                "detail": text.detail,
                "severity": "high",
                "rule": "duplicate.same_arguments",
                "evidence": [f"{number + 1:016x}"],
                "found_at": began,
            },
        )
    for index, (run_id, trace_id, start, end, verdict, trigger) in enumerate(runs):
        _insert(
            con,
            "core.runs",
            {
                "run_id": run_id,
                "task_id": task_id,
                "trace_id": trace_id,
                "agent": text.agent,
                "verdict": verdict,
                "trigger": trigger,
                "started_at": start,
                "ended_at": end,
                "rule": "run.paused.call_left_open" if verdict == "paused" else "run.ended",
                "evidence": [f"{number + 1:016x}"],
            },
        )
        for offset, (role, low, high) in enumerate(
            (("agent", 0, 6), ("model", 0.1, 2.4), ("tool", 2.5, 4.0), ("model", 4.1, 5.9))
        ):
            span_id = f"{number * 100 + index * 10 + offset + 1:016x}"
            common = {"trace_id": trace_id, "span_id": span_id, "run_id": run_id, "task_id": task_id}
            times = {
                "started_at": start + timedelta(seconds=low),
                "ended_at": start + timedelta(seconds=high),
            }
            tool = role == "tool"
            _insert(
                con,
                "work.steps",
                {
                    **common,
                    **times,
                    "start_ns": nanoseconds(times["started_at"]),
                    "end_ns": nanoseconds(times["ended_at"]),
                    "role": role,
                    "agent": text.agent,
                    "tool": text.tool if tool else None,
                    "model": "model-large" if role == "model" else None,
                    "arguments": text.arguments if tool else None,
                    "result": text.result if tool else None,
                    "error_class": "timeout" if tool and index == 0 and duplicate else None,
                },
            )
            if tool:
                second = index == 1
                _insert(
                    con,
                    "work.attempts",
                    {
                        **common,
                        **times,
                        **of_task,
                        "attempt_id": f"{task_id}-a{index}",
                        "action_id": f"{task_id}-x",
                        "tool": text.tool,
                        "effect_class": "write",
                        "class_source": "configured",
                        "arguments": text.arguments,
                        "outcome": "ok" if second or not duplicate else "unknown",
                        "disposition": "executed",
                        "attempt_no": index + 1,
                        "duplicate": "unprotected" if second else None,
                        "cause": "resume_reexecution" if second else None,
                        "effect": "possible" if second else None,
                        "compensated": False if second else None,
                        "suspected": False,
                        "rule": "duplicate.same_arguments" if second else None,
                        "evidence": [span_id],
                        "seen_by": "span",
                        "result": text.result,
                    },
                )
            con.execute(
                """INSERT INTO hot.spans (seq, received_at, trace_id, span_id, name, kind, start_ns, end_ns,
                status,
                   service, attributes, resource) VALUES (?, ?, ?, ?, ?, 'internal', epoch_ns(?::TIMESTAMP),
                   epoch_ns(?::TIMESTAMP), 'ok', 'shop', ?, '{}')""",
                [number, START, trace_id, span_id, text.span, times["started_at"], times["ended_at"],
                 json.dumps({"gen_ai.agent.name": text.agent})],
            )  # fmt: skip
    _insert(
        con,
        "core.actions",
        {
            "action_id": f"{task_id}-x",
            "task_id": task_id,
            "tool": text.tool,
            "arguments": text.arguments,
            "attempts": len(runs),
            "duplicates_unprotected": int(duplicate),
            "duplicates_protected": 0,
            "no_op_repeats": 0,
            "settled": True,
        },
    )


def _labels(con: duckdb.DuckDBPyConnection, tasks: int, text: Words) -> None:
    """Tasks that asked are unlabelled but the first, which a person labelled."""
    for number in range(0, tasks, 5):
        began = START + timedelta(hours=3 * number)
        said = {
            "needed": True,
            "source": "person",
            "note": text.detail,
            "said_by": text.agent,
            "said_at": began,
        }
        _insert(
            con,
            "core.human_labels",
            {
                "task_id": f"task-{number:04d}",
                "task_type": "refund",
                "agent": text.agent,
                "service": "shop",
                "environment": "production",
                "app_version": f"1.{number // 6}",
                "outcome": _outcome(number),
                "eligible": True,
                "started_at": began,
                "decided_at": began + timedelta(minutes=12),
                "asked": True,
                "asks": 1,
                "asked_at": began + timedelta(seconds=8),
                "verdict": "needed" if number == 0 else "unknown",
                **(said if number == 0 else {}),
            },
        )
    if tasks:
        _insert(
            con,
            "core.escalation_quality",
            {
                "agent": text.agent,
                "task_type": "refund",
                "days": 28,
                "tasks": tasks,
                "asked": 3,
                "labelled": 4,
                "labelled_asked": 2,
                "label_coverage": 4 / tasks,
                "needed": 3,
                "needed_asked": 1,
                "missed": 2,
                "suspected_missed": 1,
                "precision": 0.5,
                "precision_lower": 0.095,
                "precision_upper": 0.905,
                "recall": 1 / 3,
                "recall_lower": 0.061,
                "recall_upper": 0.792,
                "level_known": 2,
                "right_level": 1,
            },
        )


def _alerts(con: duckdb.DuckDBPyConnection, tasks: int, text: Words) -> None:
    """One alert of each state, a silence, and messages of which one was given up."""
    if not tasks:
        return
    said = {
        "window": "9 bad of 440 in 28 d",
        "burn_long": "22.9 (7 of 306 bad)",
        "why": text.detail,
        "runbook": text.span,
    }
    for place, state in enumerate(("firing", "frozen", "pending", "resolved")):
        at = START + timedelta(hours=place)
        _insert(
            con,
            "core.alerts",
            {
                "alert_id": f"alert-{state}",
                "kind": "burn",
                "slo": "duplicate-action",
                "objective": "default",
                "severity": "page" if place % 2 == 0 else "ticket",
                "service": "shop",
                "agent": text.agent,
                "task_type": "",
                "tool": "",
                "state": state,
                "pending_since": at,
                "fired_at": None if state == "pending" else at,
                "resolved_at": at + timedelta(hours=1) if state == "resolved" else None,
                "summary": f"{text.agent}: 7 of 306 bad",
                "annotations": json.dumps(said),
                "tasks": json.dumps([{"task_id": "task-0000", "words": text.detail, "url": ""}]),
                "silenced_by": "silence-1" if state == "frozen" else None,
                "reason": "",
            },
        )
    _insert(
        con,
        "core.alert_silences",
        {
            "silence_id": "silence-1",
            "starts_at": START,
            "ends_at": START + timedelta(days=60),
            "slo": "duplicate-*",
            "agent": "*",
            "severity": "ticket",
            "reason": text.detail,
        },
    )
    for place, event in enumerate(("fired", "resolved")):
        _insert(
            con,
            "core.alert_outbox",
            {
                "message_id": f"message-{place}",
                "alert_id": "alert-firing",
                "target": "on-call",
                "event": event,
                "created_at": START,
                "attempts": 1 + place,
                "delivered_at": START if place == 0 else None,
                "dead_at": START if place else None,
                "error": text.detail if place else None,
            },
        )


def _incident(con: duckdb.DuckDBPyConnection, tasks: int, text: Words) -> None:
    """One incident of the duplicates, and the price of the model."""
    seen = list(range(0, tasks, 5))
    if not seen:
        return
    last = START + timedelta(hours=3 * seen[-1])
    common = {"kind": "duplicate_action", "mode": "duplicate_action.resume_reexecution", "severity": "high"}
    common |= {"agent": text.agent, "tool": text.tool, "fault": "timeout", "fingerprint": "feed"}
    _insert(
        con,
        "core.incidents",
        {
            **common,
            "incident_id": "inc-feed",
            "state": "open",
            "seen_count": len(seen),
            "first_seen": START,
            "last_seen": last,
            "representative_task_id": f"task-{seen[-1]:04d}",
            "shape": json.dumps([text.tool]),
            "findings": len(seen),
        },
    )
    for number in seen:
        _insert(
            con,
            "core.incident_findings",
            {
                **common,
                "finding_id": f"task-{number:04d}-f1",
                "task_id": f"task-{number:04d}",
                "happened_at": START + timedelta(hours=3 * number),
                "complete": True,
            },
        )
    con.execute(
        "INSERT INTO core.model_prices (provider, model, source) VALUES ('', 'model-large', 'unpriced')"
    )


def _status(con: duckdb.DuckDBPyConnection, tasks: int, text: Words) -> None:
    end = START + timedelta(days=9)
    shapes = [
        ("task-completion", "Task completion", "tasks", 0.95, 291, 300, "ok"),
        ("duplicate-action", "No unprotected duplicates", "actions", 0.99, 431, 440, "exhausted"),
        ("autonomous", "Autonomous completion", "tasks", 0.8, 250, 300, "ok"),
        ("latency", "Finished within 2 minutes", "tasks", 0.9, 272, 300, "at_risk"),
        ("cost", "Cost within $0.50", "tasks", 0.95, 12, 12, "insufficient_data"),
        ("lost-task", "No task lost", "tasks", 0.999, 300, 300, "ok"),
    ]
    for slo, title, unit, target, good, n, state in shapes if tasks > 1 else shapes[:2]:
        if tasks <= 1:
            good, n, state = tasks, tasks, "insufficient_data" if tasks else "no_data"
        bad = n - good
        budget = (1 - target) * n
        remaining = 1 - bad / budget if n else None
        _insert(
            con,
            "core.slo_status",
            {
                "slo": slo,
                "objective": "default",
                "revision": "1",
                "window_start": end - timedelta(days=28),
                "window_end": end,
                "settled_until": end,
                "evaluated_at": end,
                "n": n,
                "good": good,
                "bad": bad,
                "unknown": 3 if tasks > 1 else 0,
                "excluded": 2 if tasks > 1 else 0,
                "sli": good / n if n else None,
                "lower": good / n - 0.02 if n else None,
                "upper": min(1.0, good / n + 0.012) if n else None,
                "sli_unknown_bad": good / (n + 3) if n else None,
                "sli_unknown_good": (good + 3) / (n + 3) if n else None,
                "p_met": 0.9,
                "target": target,
                "budget_events": budget if n else None,
                "remaining": remaining,
                "burn": json.dumps(
                    {w: {"value": b, "n": 10, "bad": 1} for w, b in (("1h", None), ("6h", 0.4), ("3d", 1.23))}
                ),
                "exhaustion": json.dumps(
                    {"naive_s": 1e6, "from_now_s": 5e5, "rolling_s": 312000 if n else None}
                ),
                "state": state,
                "firing": json.dumps(
                    [
                        {
                            "severity": "page",
                            "long": "1h",
                            "short": "5m",
                            "factor": 14.4,
                            "why": "burn 16.2× over 1h and 18× over 5m is above 14.4×",
                        }
                    ]
                    if state == "exhausted"
                    else []
                ),
                "pairs": json.dumps(
                    [
                        {
                            "severity": "page",
                            "long": "6h",
                            "short": "1h",
                            "factor": 5.6,
                            "min_bad": 3,
                            "max_p": 0.001,
                            "frozen": False,
                            "key": "page:6h",
                            "after_s": 0,
                            "firing": False,
                            "why": "burn 0.4 over 6h (1 bad of 10)",
                            "chosen": "spends 5 % of the budget in 6h",
                        }
                    ]
                ),
                "notes": json.dumps(["no alert pair page 13.44x over 1h: can never fire"]),
                "excluded_by": json.dumps({"environment:test": 2} if tasks > 1 else {}),
                "service": "agents",
                "split": False,
                "is_floor": False,
                "sli_name": slo,
                "title": title if tasks > 1 else f"{title} {text.agent}",
                "unit": unit,
                "description": "Share of tasks that were really completed",
                "inferred_share": 0.34 if tasks > 1 else None,
            },
        )
        for step in range(40 if tasks > 1 else 0):
            share = good / n + 0.01 * ((step * 7) % 5 - 2) / 2
            con.execute(
                """INSERT INTO core.slo_history (slo, objective, "at", n, good, bad, sli, remaining, burn, step_n,
                   step_bad, revision) VALUES (?, 'default', ?, ?, ?, ?, ?, ?, ?, 10, 1, '1')""",
                [slo, end - timedelta(hours=6 * (40 - step)), n, good, bad, min(share, 1), remaining, 0.4],
            )
