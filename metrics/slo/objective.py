"""One objective, ready to be counted: what an OpenSLO file says once its references are resolved."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal
from zoneinfo import ZoneInfo

from metrics.slo.arithmetic import Op, exact
from metrics.slo.predicate import TRUE, Predicate
from metrics.slo.slices import EmptySlices
from metrics.slo.windows import Duration, calendar_window

Method = Literal["Occurrences", "Timeslices", "RatioTimeslices"]
Dimension = Literal["agent", "task_type"]
Scope = tuple[tuple[Dimension, str | None], ...]
"""Values of dimensions an objective is narrowed to; empty: all events."""

RATIO_SLIS = (
    "task_completion",
    "autonomous_completion",
    "human_intervention",
    "duplicate_action",
    "lost_task",
    "retry_discipline",
    "false_success",
    "uncertain_outcome",
    "dead_letter",
    "compensation",
    "recovery",
    "time_limit",
    "failure_plan",
    "availability",
    "escalation_precision",
    "escalation_recall",
)
"""Built-in SLIs whose verdict is in `sli_events`."""

OPEN_SLIS = ("escalation_precision", "escalation_recall", "availability")
"""Of these an event may stay unknown for ever: nobody labelled it, or nothing happened that could tell."""

THRESHOLD_SLIS = ("latency", "active_latency", "cost")
"""Built-in SLIs whose value is in `sli_events`; the objective brings the cut."""


@dataclass(frozen=True)
class EventSource:
    """Rows of `sli_events` of one built-in SLI."""

    sli: str
    where: Predicate = TRUE


@dataclass(frozen=True)
class TaskSource:
    """Rows of `tasks`, judged by the objective's own conditions.

    Exactly one of `good`, `bad` and `value` is set.
    """

    total: Predicate
    good: Predicate | None = None
    bad: Predicate | None = None
    value: str | None = None


@dataclass(frozen=True)
class Part:
    """One SLI of a conjunction with its cut."""

    source: EventSource | TaskSource
    op: Op | None = None
    cut: Decimal | None = None


@dataclass(frozen=True)
class ConjunctionSource:
    """Tasks judged by several SLIs at once: good when all of them are."""

    parts: tuple[Part, ...]


OwnSource = TaskSource | ConjunctionSource
Source = EventSource | TaskSource | ConjunctionSource


@dataclass(frozen=True)
class SloWindow:
    """Rolling when `anchor` is None, else calendar windows from `anchor`, a wall-clock time in `zone`."""

    duration: Duration
    anchor: datetime | None = None
    zone: ZoneInfo | None = None

    def bounds(self, as_of: datetime) -> tuple[datetime, datetime]:
        """(start, end) in naive UTC; a rolling window ends at `as_of`, a calendar one may end later."""
        if self.anchor is None or self.zone is None:
            return as_of - timedelta(seconds=self.duration.seconds), as_of
        return calendar_window(self.duration, self.anchor, self.zone, as_of)

    def seconds(self, as_of: datetime) -> int:
        start, end = self.bounds(as_of)
        return int((end - start).total_seconds())


@dataclass(frozen=True)
class UnknownPolicy:
    """What an unknown outcome counts as: `exclude`, `bad` at once, or `bad` after `after_s` seconds."""

    kind: Literal["exclude", "bad", "bad-after"]
    after_s: int = 0

    @property
    def due_s(self) -> int | None:
        """Seconds until an unknown event turns bad; None when it never does."""
        return None if self.kind == "exclude" else self.after_s


DEFAULT_UNKNOWN = UnknownPolicy("bad-after", 86400)


@dataclass(frozen=True)
class AlertPair:
    """Alert when the burn rate is above `factor` in the long *and* the short window, and the gates agree."""

    severity: str
    long_s: int
    short_s: int
    factor: Decimal
    min_bad: int = 3
    max_p: float = 0.01
    why: str = ""
    name: str = ""
    after_s: int = 0
    """Seconds the condition must hold before the alert fires."""
    targets: tuple[str, ...] = ()
    """Names of receivers the policy asks for; empty: whoever takes the severity."""
    tell_end: bool = True
    """Whether the end of the alert is told."""


@dataclass(frozen=True)
class Objective:
    """Everything `evaluate` needs for one row of `slo_status`."""

    slo: str
    objective: str
    source: Source
    target: Decimal
    window: SloWindow
    sli_name: str
    title: str
    service: str
    description: str = ""
    unit: str = "events"
    op: Op | None = None
    cut: Decimal | None = None
    method: Method = "Occurrences"
    slice_target: Decimal | None = None
    slice_s: int | None = None
    empty_slices: EmptySlices = "ignore"
    weight: Decimal = Decimal(1)
    composite: bool = False
    unknown: UnknownPolicy = DEFAULT_UNKNOWN
    exclude: tuple[str, ...] = ()
    min_events: int = 20
    settle_s: int = 900
    deadline_s: int | None = None
    verified_only: bool = False
    runbook: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    per: tuple[Dimension, ...] = ()
    """Dimensions the objective is also held against one by one, each value with a row of its own."""
    scope: Scope = ()
    is_floor: bool = False
    """Lower end of a band: good and bad change places, and `target` is the least share of bad events."""
    no_data: bool = False
    """Whether silence is worth an alert of its own."""
    alerts: tuple[AlertPair, ...] | None = None
    """Pairs the file asks for; None: chosen by traffic (`metrics.slo.pairs`)."""

    @property
    def key(self) -> tuple[str, str]:
        return self.slo, self.objective

    @property
    def revision(self) -> str:
        """Twelve hex digits that change when anything that decides the numbers changes (not words)."""
        return self._digest(exact(self.target))

    @property
    def basis(self) -> str:
        """The same of everything but the target: what is counted, over which window, and how."""
        return self._digest(None)

    @property
    def base_key(self) -> tuple[str, str]:
        """The key of the objective this is a part of; its own when it is none."""
        return self.slo, self.objective.removesuffix(
            f" [{_scope_words(self.scope)}]"
        ) if self.scope else self.objective

    def unscoped(self) -> Objective:
        """The objective this is a part of, as far as numbers go."""
        return replace(self, scope=())

    def _digest(self, target: object) -> str:
        parts = (
            self.source,
            target,
            str(self.window.duration),
            self.window.anchor,
            str(self.window.zone),
            self.op,
            None if self.cut is None else exact(self.cut),
            self.method,
            None if self.slice_target is None else exact(self.slice_target),
            self.slice_s,
            self.empty_slices,
            exact(self.weight),
            self.unknown,
            self.exclude,
            self.verified_only,
            self.scope,
            self.is_floor,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]

    def narrowed(self, scope: Scope) -> Objective:
        """The same objective over one value of each of its dimensions, named after them."""
        words = _scope_words(scope)
        return replace(
            self,
            objective=f"{self.objective} [{words}]",
            title=f"{self.title}: {words}",
            per=(),
            scope=scope,
        )


def _scope_words(scope: Scope) -> str:
    return " / ".join(value or "unnamed" for _, value in scope)
