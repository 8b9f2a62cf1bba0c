"""What really happened: written by the generator from its own decisions, never from a query over the spans.

The words are those of the definitions (states, causes, dispositions). Where a definition leaves room, a
finding is listed in `findings_possible`: it may be raised without being wrong, and may be missed as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal[
    "running", "waiting_human", "completed", "failed", "cancelled_user", "cancelled_system",
    "handed_over", "lost", "dead_letter", "unknown",
]  # fmt: skip
Evidence = Literal["stated", "evaluated", "inferred", "none"]
Cause = Literal[
    "model_repeat", "retry_after_timeout", "resume_reexecution", "crash_replay", "redelivery",
    "orchestrator_retry", "unknown",
]  # fmt: skip
Protection = Literal["unprotected", "protected", "no_op"]
Effect = Literal["proven", "possible", "none"]
TERMINAL = ("completed", "failed", "cancelled_user", "cancelled_system", "handed_over", "lost", "dead_letter")
OPEN = ("running", "waiting_human")


@dataclass
class TaskTruth:
    """The truth about one task. Times are integer nanoseconds since 1970 (UTC)."""

    story: str
    agent: str
    task_type: str
    service: str
    environment: str
    app_version: str
    conversation: str
    started_ns: int
    ended_ns: int = 0
    traces: list[str] = field(default_factory=list)
    outcome: Outcome = "completed"
    evidence: Evidence = "inferred"
    really_done: bool = True
    claimed: str | None = None
    interventions: list[dict[str, Any]] = field(default_factory=list)
    escalation_needed: bool | None = None
    attempts: int = 0
    effects: list[dict[str, Any]] = field(default_factory=list)
    duplicates: list[dict[str, Any]] = field(default_factory=list)
    suspected: int = 0
    compensations: int = 0
    uncompensated: int = 0
    findings: list[str] = field(default_factory=list)
    findings_possible: list[str] = field(default_factory=list)
    tokens: dict[str, dict[str, int]] = field(default_factory=dict)
    model_calls: int = 0
    tool_calls: int = 0
    human_wait_ns: int = 0
    crashed_runs: int = 0
    late_spans: int = 0
    redelivered_spans: int = 0
    redelivered_tool_spans: int = 0
    double_instrumented: int = 0

    @property
    def key(self) -> str:
        """The stable id of a task: its first trace id."""
        return self.traces[0]

    @property
    def excluded_reason(self) -> str | None:
        if self.environment in ("test", "eval", "replay"):
            return "environment"
        return "open" if self.outcome in OPEN else None

    def duplicate(self, tool: str, protection: Protection, cause: Cause, effect: Effect) -> None:
        """One executed attempt that repeats an action of the same intent."""
        self.duplicates.append(
            {"tool": tool, "protection": protection, "cause": cause, "effect": effect, "compensated": False}
        )
        if protection == "unprotected":
            self.finding("duplicate_action")

    def finding(self, *kinds: str) -> None:
        self.findings += [k for k in kinds if k not in self.findings]

    def may_find(self, *kinds: str) -> None:
        self.findings_possible += [k for k in kinds if k not in self.findings_possible]

    def human(self, kind: str, decision: str | None, tool: str | None = None) -> None:
        self.interventions.append({"kind": kind, "decision": decision, "tool": tool})

    def add_tokens(self, model: str, **counts: int) -> None:
        row = self.tokens.setdefault(model, {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0})
        for name, value in counts.items():
            row[name] += value

    def count(self, protection: Protection) -> int:
        return sum(d["protection"] == protection for d in self.duplicates)

    def as_dict(self) -> dict[str, Any]:
        """The JSON row; fields at their resting value (empty, zero, None) are left out to keep it small."""
        row: dict[str, Any] = {
            "story": self.story,
            "agent": self.agent,
            "task_type": self.task_type,
            "service": self.service,
            "environment": self.environment,
            "app_version": self.app_version,
            "conversation": self.conversation,
            "traces": self.traces,
            "started_ns": self.started_ns,
            "ended_ns": self.ended_ns,
            "outcome": self.outcome,
            "outcome_evidence": self.evidence,
            "really_done": self.really_done,
            "eligible": self.excluded_reason is None,
            "autonomous": self.outcome == "completed" and not self.interventions,
        }
        optional: dict[str, Any] = {
            "excluded_reason": self.excluded_reason,
            "claimed": self.claimed,
            "interventions": self.interventions,
            "side_effect_attempts": self.attempts,
            "side_effects": self.effects,
            "duplicates": self.duplicates,
            "suspected_duplicates": self.suspected,
            "compensations": self.compensations,
            "uncompensated_effects": self.uncompensated,
            "findings": sorted(self.findings),
            "findings_possible": sorted(k for k in self.findings_possible if k not in self.findings),
            "tokens": self.tokens,
            "model_calls": self.model_calls,
            "tool_calls": self.tool_calls,
            "human_wait_s": round(self.human_wait_ns / 1e9, 3),
            "crashed_runs": self.crashed_runs,
            "late_spans": self.late_spans,
            "redelivered_spans": self.redelivered_spans,
            "redelivered_tool_spans": self.redelivered_tool_spans,
            "double_instrumented": self.double_instrumented,
        }
        row |= {k: v for k, v in optional.items() if v}
        if self.escalation_needed is not None:
            row["escalation_needed"] = self.escalation_needed
        return row


@dataclass
class Totals:
    """Sums over the tasks of a set, and for each kind of finding the keys of its tasks."""

    tasks: int = 0
    traces: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    stories: Counter[str] = field(default_factory=Counter)
    agents: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    by_finding: dict[str, list[str]] = field(default_factory=dict)

    def add(self, truth: TaskTruth) -> None:
        self.tasks += 1
        self.traces += len(truth.traces)
        self.outcomes[truth.outcome] += 1
        self.stories[truth.story] += 1
        self.agents[truth.agent] += 1
        self.causes.update(f"{d['protection']}/{d['cause']}" for d in truth.duplicates)
        self.counts.update(
            {
                "eligible": int(truth.excluded_reason is None),
                "with_intervention": int(bool(truth.interventions)),
                "side_effect_attempts": truth.attempts,
                "side_effects": len(truth.effects),
                "duplicates_unprotected": truth.count("unprotected"),
                "duplicates_protected": truth.count("protected"),
                "no_op_repeats": truth.count("no_op"),
                "suspected_duplicates": truth.suspected,
                "model_calls": truth.model_calls,
                "tool_calls": truth.tool_calls,
                "late_spans": truth.late_spans,
                "redelivered_spans": truth.redelivered_spans,
                "redelivered_tool_spans": truth.redelivered_tool_spans,
                "double_instrumented": truth.double_instrumented,
                "crashed_runs": truth.crashed_runs,
            }
        )
        for kind in truth.findings:
            self.by_finding.setdefault(kind, []).append(truth.key)

    def as_dict(self) -> dict[str, Any]:
        def ordered(counter: Counter[str]) -> dict[str, int]:
            return dict(sorted(counter.items()))

        return {
            "tasks": self.tasks,
            "traces": self.traces,
            **ordered(self.counts),
            "outcomes": ordered(self.outcomes),
            "stories": ordered(self.stories),
            "agents": ordered(self.agents),
            "duplicate_causes": ordered(self.causes),
            "findings": {k: len(v) for k, v in sorted(self.by_finding.items())},
        }


def document(
    name: str, seed: int, end_ns: int, truths: Iterable[TaskTruth], spans: int, requests: int
) -> dict[str, Any]:
    """The whole ground-truth file of a set, true as of ``end_ns`` (the end of its last span)."""
    totals = Totals()
    tasks: dict[str, Any] = {}
    for truth in truths:
        totals.add(truth)
        tasks[truth.key] = truth.as_dict()
    return {
        "set": name,
        "seed": seed,
        "end_ns": end_ns,
        "spans": spans,
        "requests": requests,
        "totals": totals.as_dict(),
        "by_finding": dict(sorted(totals.by_finding.items())),
        "tasks": tasks,
    }
