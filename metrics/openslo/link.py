"""OpenSLO objects -> objectives: references resolved, sources understood, impossible things refused."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from metrics.openslo.annotations import (
    CONDITION_ANNOTATIONS,
    SLI_ANNOTATIONS,
    SLO_ANNOTATIONS,
    Annotations,
    parse_annotations,
)
from metrics.openslo.errors import OpenSLOError
from metrics.openslo.model import (
    DURATION_UNITS,
    AlertCondition,
    AlertConditionSpec,
    AlertNotificationTarget,
    AlertPolicy,
    AlertPolicySpec,
    AlertPolicyUse,
    DataSource,
    Metadata,
    Metric,
    Sli,
    SliSpec,
    Slo,
    SloObjective,
    SloSpec,
    TimeWindow,
)
from metrics.openslo.reader import Read
from metrics.slo.arithmetic import composite_target
from metrics.slo.objective import (
    DEFAULT_UNKNOWN,
    OPEN_SLIS,
    RATIO_SLIS,
    THRESHOLD_SLIS,
    AlertPair,
    ConjunctionSource,
    EventSource,
    Objective,
    Part,
    SloWindow,
    Source,
    TaskSource,
    UnknownPolicy,
)
from metrics.slo.pairs import cannot_fire
from metrics.slo.predicate import (
    EVENT_COLUMNS,
    TASK_COLUMNS,
    VALUE_COLUMNS,
    ColumnType,
    Predicate,
    PredicateError,
    parse,
)
from metrics.slo.windows import Duration, parse_duration

SOURCE_TYPE = "AgentSLO"
Path = tuple[str | int, ...]

_ROLLING_DAYS = {"M": 30, "Q": 90, "Y": 365}
_UNITS = {"latency": "s", "active_latency": "s", "cost": "USD", "duplicate_action": "attempts"}
_VALUE_UNITS = {
    "cost_usd": "USD",
    "wall_s": "s",
    "active_s": "s",
    "human_wait_s": "s",
    "input_tokens": "tokens",
    "output_tokens": "tokens",
}


class _Foreign(Exception):
    """The indicator belongs to another tool's data; the SLO is left alone."""


@dataclass
class Linked:
    """What came out of a set of files."""

    objectives: list[Objective] = field(default_factory=list)
    problems: list[OpenSLOError] = field(default_factory=list)
    warnings: list[OpenSLOError] = field(default_factory=list)


@dataclass(frozen=True)
class _Indicator:
    name: str
    source: Source
    is_threshold: bool
    unit: str


class _Linker:
    def __init__(self, reads: list[Read], unknown: UnknownPolicy) -> None:
        self.out = Linked()
        self.unknown = unknown
        self.index: dict[tuple[str, str], Read] = {}
        for read in reads:
            key = (read.object.kind, read.object.metadata.name)
            if key in self.index:
                first = self.index[key]
                where = f"{first.file}:{first.document.line(())}"
                self.out.problems.append(
                    read.problem((), f"is defined twice, first in {where}", "rename one")
                )
            else:
                self.index[key] = read

    def find(self, read: Read, path: Path, kind: str, name: str) -> Read:
        found = self.index.get((kind, name))
        if found is None:
            names = [n for k, n in self.index if k == kind]
            near = difflib.get_close_matches(name, names, n=1)
            remedy = (
                f"did you mean {near[0]}?" if near else f"define a {kind} named {name} in the files given"
            )
            raise read.problem(path, f"there is no {kind} named {name}", remedy)
        return found

    # -- indicators -------------------------------------------------------------------------------

    def indicator(self, read: Read, base: Path, inline: Any, ref: str | None) -> _Indicator:
        if ref is not None:
            found = self.find(read, (*base, "indicatorRef"), "SLI", ref)
            assert isinstance(found.object, Sli)
            return self.sli(found, ("spec",), found.object.metadata, found.object.spec)
        return self.sli(read, (*base, "indicator", "spec"), inline.metadata, inline.spec)

    def sli(self, read: Read, path: Path, metadata: Metadata, spec: SliSpec) -> _Indicator:
        notes = parse_annotations(
            metadata.annotations, SLI_ANNOTATIONS, read, (*path[:-1], "metadata", "annotations")
        )
        unit = notes.get("unit")
        if spec.threshold_metric is not None:
            source = self.threshold(read, (*path, "thresholdMetric"), spec.threshold_metric)
            name = source.sli if isinstance(source, EventSource) else metadata.name
            value = source.value if isinstance(source, TaskSource) else None
            return _Indicator(name, source, True, unit or _VALUE_UNITS.get(value or "", _UNITS.get(name, "")))
        ratio = spec.ratio_metric
        assert ratio is not None
        at: Path = (*path, "ratioMetric")
        if ratio.raw is not None:
            self.spec_of(read, (*at, "raw"), ratio.raw)
            raise read.problem((*at, "raw"), "a raw ratio cannot be counted in events", "give good and total")
        assert ratio.total is not None
        which = "good" if ratio.good is not None else "bad"
        part = ratio.good or ratio.bad
        assert part is not None
        source = self.ratio(read, at, which, part, ratio.total)
        name = source.sli if isinstance(source, EventSource) else metadata.name
        return _Indicator(name, source, False, unit or _UNITS.get(name, "tasks"))

    def spec_of(self, read: Read, path: Path, metric: Metric) -> dict[str, Any]:
        """`metricSource.spec`, once it is known to be ours. Raises _Foreign or OpenSLOError."""
        source = metric.metric_source
        kind = source.type
        if source.metric_source_ref is not None:
            at = (*path, "metricSource", "metricSourceRef")
            found = self.find(read, at, "DataSource", source.metric_source_ref)
            assert isinstance(found.object, DataSource)
            kind = kind or found.object.spec.type
        if kind not in (None, SOURCE_TYPE):
            raise _Foreign(kind)
        spec = source.spec
        if ("builtin" in spec) == ("entity" in spec):
            raise read.problem(
                (*path, "metricSource", "spec"),
                "it is not said what to count",
                f"write builtin: task_completion (or {', '.join(RATIO_SLIS[1:3])}, ...), or entity: task",
            )
        allowed = {"builtin", "where"} if "builtin" in spec else {"entity", "where", "value"}
        for key, value in spec.items():
            at = (*path, "metricSource", "spec", key)
            if key not in allowed:
                raise read.problem(at, f"unknown key {key}", f"known here: {', '.join(sorted(allowed))}")
            if not isinstance(value, str):
                raise read.problem(at, f"{value!r} is not text", "put it in quotes")
        return spec

    def where(
        self, read: Read, path: Path, spec: dict[str, Any], columns: dict[str, ColumnType]
    ) -> Predicate:
        try:
            return parse(spec.get("where", ""), columns)
        except PredicateError as error:
            remedy = error.remedy
            if columns == dict(EVENT_COLUMNS) and error.problem.startswith("unknown column"):
                remedy += "; other columns of a task need entity: task"
            raise read.problem((*path, "metricSource", "spec", "where"), error.problem, remedy) from None

    def builtin(self, read: Read, path: Path, spec: dict[str, Any], threshold: bool) -> EventSource:
        name = spec["builtin"]
        at: Path = (*path, "metricSource", "spec", "builtin")
        wanted, other = (THRESHOLD_SLIS, RATIO_SLIS) if threshold else (RATIO_SLIS, THRESHOLD_SLIS)
        if name in other:
            right = "ratioMetric" if threshold else "thresholdMetric"
            raise read.problem(at, f"{name} is no SLI of this form", f"write it as a {right}")
        if name not in wanted:
            near = difflib.get_close_matches(name, wanted + other, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"known: {', '.join(wanted)}"
            raise read.problem(at, f"unknown built-in SLI {name}", remedy)
        return EventSource(name, self.where(read, path, spec, dict(EVENT_COLUMNS)))

    def entity(self, read: Read, path: Path, spec: dict[str, Any]) -> None:
        if spec["entity"] != "task":
            at: Path = (*path, "metricSource", "spec", "entity")
            raise read.problem(at, f"unknown entity {spec['entity']}", "use entity: task, or a builtin")

    def threshold(self, read: Read, path: Path, metric: Metric) -> Source:
        spec = self.spec_of(read, path, metric)
        if "builtin" in spec:
            return self.builtin(read, path, spec, threshold=True)
        self.entity(read, path, spec)
        value = spec.get("value")
        if value not in VALUE_COLUMNS:
            at: Path = (*path, "metricSource", "spec", "value")
            problem = f"unknown value {value}" if value else "it is not said what to measure"
            raise read.problem(at, problem, f"value is one of {', '.join(VALUE_COLUMNS)}")
        return TaskSource(total=self.where(read, path, spec, dict(TASK_COLUMNS)), value=value)

    def ratio(self, read: Read, at: Path, which: str, part: Metric, total: Metric) -> Source:
        part_path, total_path = (*at, which), (*at, "total")
        some = self.spec_of(read, part_path, part)
        every = self.spec_of(read, total_path, total)
        if ("builtin" in some) != ("builtin" in every):
            raise read.problem(
                total_path, f"{which} and total count different things", "use one form for both"
            )
        if "builtin" in some:
            left = self.builtin(read, part_path, some, threshold=False)
            right = self.builtin(read, total_path, every, threshold=False)
            if left != right:
                raise read.problem(
                    part_path,
                    f"{which} and total differ",
                    "a built-in SLI brings its own verdict: give both the same builtin and where",
                )
            return left
        for path, spec in ((part_path, some), (total_path, every)):
            self.entity(read, path, spec)
            if "value" in spec:
                raise read.problem(
                    (*path, "metricSource", "spec", "value"), "a ratio has no value", "remove it"
                )
        if not some.get("where", "").strip():
            remedy = "add where: outcome = 'completed', for example"
            raise read.problem((*part_path, "metricSource", "spec"), f"{which} needs a condition", remedy)
        condition = self.where(read, part_path, some, dict(TASK_COLUMNS))
        whole = self.where(read, total_path, every, dict(TASK_COLUMNS))
        if which == "good":
            return TaskSource(total=whole, good=condition)
        return TaskSource(total=whole, bad=condition)

    # -- alerts -----------------------------------------------------------------------------------

    def alerts(self, read: Read, target: Decimal, window: SloWindow) -> tuple[AlertPair, ...] | None:
        assert isinstance(read.object, Slo)
        uses = read.object.spec.alert_policies
        if not uses:
            return None
        pairs: list[AlertPair] = []
        for i, use in enumerate(uses):
            pairs.extend(self.policy(read, ("spec", "alertPolicies", i), use, target, window))
        return tuple(pairs)

    def policy(
        self, read: Read, path: Path, use: AlertPolicyUse, target: Decimal, window: SloWindow
    ) -> list[AlertPair]:
        home, at, spec = read, (*path, "spec"), use.spec
        if use.alert_policy_ref is not None:
            home = self.find(read, (*path, "alertPolicyRef"), "AlertPolicy", use.alert_policy_ref)
            assert isinstance(home.object, AlertPolicy)
            at, spec = ("spec",), home.object.spec
        assert spec is not None
        names = self.targets(home, at, spec)
        condition = spec.conditions[0]
        where: Path = (*at, "conditions", 0)
        if condition.condition_ref is not None:
            found = self.find(home, (*where, "conditionRef"), "AlertCondition", condition.condition_ref)
            assert isinstance(found.object, AlertCondition)
            pair = self.pair(found, (), found.object.metadata, found.object.spec, target, window)
        else:
            assert condition.metadata is not None
            assert condition.spec is not None
            pair = self.pair(home, where, condition.metadata, condition.spec, target, window)
        if not spec.alert_when_breaching:
            return []
        return [replace(pair, targets=names, tell_end=spec.alert_when_resolved)]

    def targets(self, home: Read, at: Path, spec: AlertPolicySpec) -> tuple[str, ...]:
        """Names of the receivers: what `target` of each notification target says."""
        names: list[str] = []
        for i, use in enumerate(spec.notification_targets):
            if use.target_ref is not None:
                path = (*at, "notificationTargets", i, "targetRef")
                found = self.find(home, path, "AlertNotificationTarget", use.target_ref)
                assert isinstance(found.object, AlertNotificationTarget)
                names.append(found.object.spec.target)
            elif use.spec is not None:
                names.append(use.spec.target)
        return tuple(dict.fromkeys(names))

    def pair(
        self,
        read: Read,
        base: Path,
        metadata: Metadata,
        spec: AlertConditionSpec,
        target: Decimal,
        window: SloWindow,
    ) -> AlertPair:
        notes = parse_annotations(
            metadata.annotations, CONDITION_ANNOTATIONS, read, (*base, "metadata", "annotations")
        )
        detail, at = spec.condition, (*base, "spec", "condition")
        if detail.op not in ("gt", "gte"):
            problem = f"op: {detail.op} alerts when the budget burns slowly"
            raise read.problem((*at, "op"), problem, "write op: gt")
        long_s = self.fixed(read, (*at, "lookbackWindow"), detail.lookback_window)
        longest = window.duration.seconds if window.anchor is None else 366 * 86400
        if not 0 < long_s <= longest:
            raise read.problem(
                (*at, "lookbackWindow"),
                "is 0 or longer than the SLO's own window",
                "shorten the alert's window",
            )
        short_s = notes.get("short-window", max(60, long_s // 12 // 60 * 60))
        if not 0 < short_s < long_s:
            raise read.problem(
                (*base, "metadata", "annotations", "agent-slo/short-window"),
                "the short window must be shorter than lookbackWindow",
                "a twelfth of it is customary",
            )
        problem_text = cannot_fire(detail.threshold, target)
        if problem_text is not None:
            raise read.problem(
                (*at, "threshold"), f"{detail.threshold} {problem_text}", "change the threshold or the target"
            )
        return AlertPair(
            severity=spec.severity,
            long_s=long_s,
            short_s=short_s,
            factor=detail.threshold,
            min_bad=notes.get("min-bad-events", 3),
            max_p=notes.get("max-p-value", 0.01),
            why=f"asked for by alert condition {metadata.name}",
            name=metadata.name,
            after_s=0
            if detail.alert_after is None
            else self.fixed(read, (*at, "alertAfter"), detail.alert_after),
        )

    def no_data(self, read: Read) -> bool:
        """Whether one of the SLO's policies asks for an alert on silence."""
        assert isinstance(read.object, Slo)
        for use in read.object.spec.alert_policies:
            spec = use.spec
            if use.alert_policy_ref is not None:
                found = self.index.get(("AlertPolicy", use.alert_policy_ref))
                spec = found.object.spec if found and isinstance(found.object, AlertPolicy) else None
            if spec is not None and spec.alert_when_no_data:
                return True
        return False

    def fixed(self, read: Read, path: Path, text: str) -> int:
        duration = parse_duration(text, DURATION_UNITS)
        if duration.is_calendar:
            raise read.problem(
                path, f"{text} has no fixed length (m is a minute, M a month)", "use m, h, d or w"
            )
        return duration.seconds

    # -- SLOs -------------------------------------------------------------------------------------

    def window(self, read: Read, window: TimeWindow) -> SloWindow:
        duration = parse_duration(window.duration, DURATION_UNITS)
        if window.calendar is not None:
            return SloWindow(duration, _anchor(window), ZoneInfo(window.calendar.time_zone))
        if duration.is_calendar:
            days = Duration(duration.count * _ROLLING_DAYS[duration.unit], "d")
            path = ("spec", "timeWindow", 0, "duration")
            remedy = "write the days, or give a calendar"
            self.out.warnings.append(read.problem(path, f"a rolling {duration} is read as {days}", remedy))
            duration = days
        return SloWindow(duration)

    def slo(self, read: Read) -> list[Objective]:
        slo = read.object
        assert isinstance(slo, Slo)
        spec = slo.spec
        if not spec.objectives:
            raise read.problem(("spec", "objectives"), "there is no objective", "add one with a target")
        notes = parse_annotations(slo.metadata.annotations, SLO_ANNOTATIONS, read)
        window = self.window(read, spec.time_window[0])
        found: list[Objective] = []
        for i, objective in enumerate(spec.objectives):
            path: Path = ("spec", "objectives", i)
            if spec.is_composite:
                if objective.indicator is None and objective.indicator_ref is None:
                    remedy = "give every objective of a composite its indicatorRef"
                    raise read.problem(path, "this objective has no indicator", remedy)
                indicator = self.indicator(read, path, objective.indicator, objective.indicator_ref)
            else:
                indicator = self.indicator(read, ("spec",), spec.indicator, spec.indicator_ref)
            found.append(self.objective(read, path, slo, objective, indicator, window, notes))
        found += self.conjunction(read, spec, notes, found)
        found += self.floor(read, notes, found)
        self.check_split(read, spec, notes)
        names = [o.objective for o in found[: len(spec.objectives)]]
        for i, name in enumerate(names):
            if name in names[:i]:
                path = ("spec", "objectives", i, "displayName")
                raise read.problem(path, f"two objectives are called {name}", "give each its own displayName")
        return found

    def conjunction(
        self, read: Read, spec: SloSpec, notes: Annotations, parts: list[Objective]
    ) -> list[Objective]:
        """The objective "all parts good, task by task", where the file asks for it.

        Its budget is the sum of the parts' budgets: when every part keeps its own, the tasks that are bad in
        any way cannot be more than that.
        """
        kind = notes.get("composite")
        path: Path = ("metadata", "annotations", "agent-slo/composite")
        if kind is not None and not spec.is_composite:
            raise read.problem(path, "this SLO is no composite", "give each objective its indicatorRef")
        if kind != "all":
            return []
        if spec.budgeting_method != "Occurrences" or any(o.composite_weight for o in spec.objectives):
            remedy = "use budgetingMethod: Occurrences without compositeWeight"
            raise read.problem(path, "tasks are counted one by one and without weights", remedy)
        fraction = composite_target([p.target for p in parts])
        if fraction <= 0:
            problem = "the budgets of the parts add up to all tasks"
            raise read.problem(path, problem, "choose higher targets")
        target = Decimal(fraction.numerator) / Decimal(fraction.denominator)
        for i, part in enumerate(parts):
            parts[i] = replace(part, composite=False)
        whole = replace(
            parts[0],
            objective="composite",
            sli_name="composite",
            title=notes.get("title") or read.object.metadata.display_name or read.object.metadata.name,
            source=ConjunctionSource(
                tuple(
                    Part(p.source, p.op, p.cut) for p in parts if not isinstance(p.source, ConjunctionSource)
                )
            ),
            target=target,
            op=None,
            cut=None,
            unit="tasks",
            alerts=self.alerts(read, target, parts[0].window),
        )
        return [whole]

    def floor(self, read: Read, notes: Annotations, found: list[Objective]) -> list[Objective]:
        """The lower end of a band: the least share of tasks a human is to see, where the file names one."""
        share = notes.get("intervention-floor")
        if share is None:
            return []
        path: Path = ("metadata", "annotations", "agent-slo/intervention-floor")
        ceiling = found[0]
        source = ceiling.source
        if len(found) != 1 or not isinstance(source, EventSource) or source.sli != "human_intervention":
            remedy = "use it on an SLO with one objective over builtin: human_intervention"
            raise read.problem(path, "only the human-intervention rate has a floor", remedy)
        if ceiling.method != "Occurrences":
            raise read.problem(path, "a floor counts tasks", "use budgetingMethod: Occurrences")
        most = 1 - ceiling.target
        least = Decimal(str(share))
        if not least < most:
            problem = f"a floor of {least} is not below the ceiling of {most} (1 - target)"
            raise read.problem(path, problem, "lower the floor or the target")
        return [
            replace(
                ceiling,
                objective=f"at least {float(least * 100):g}% with a human",
                title=f"{ceiling.title}: at least {float(least * 100):g} % of the tasks see a human",
                target=least,
                unknown=UnknownPolicy("exclude"),
                is_floor=True,
                alerts=(),
            )
        ]

    def check_split(self, read: Read, spec: SloSpec, notes: Annotations) -> None:
        if notes.get("per") and (spec.is_composite or spec.budgeting_method != "Occurrences"):
            remedy = "use it with budgetingMethod: Occurrences and one indicator"
            path: Path = ("metadata", "annotations", "agent-slo/per")
            raise read.problem(path, "only a plain SLO is split by agent or task type", remedy)

    def objective(
        self,
        read: Read,
        path: Path,
        slo: Slo,
        objective: SloObjective,
        indicator: _Indicator,
        window: SloWindow,
        notes: Annotations,
    ) -> Objective:
        spec = slo.spec
        if indicator.is_threshold and (objective.op is None or objective.value is None):
            raise read.problem(path, "a threshold SLI needs a cut", "add op: lte and value")
        if not indicator.is_threshold and (objective.op is not None or objective.value is not None):
            raise read.problem(path, "op and value have no meaning with a ratio SLI", "remove them")
        target = objective.share()
        if target <= 0:
            raise read.problem(path, "a target of 0 allows everything", "choose a target between 0 and 1")
        name = objective.display_name or f"{float(target * 100):g}%"
        title = notes.get("title") or slo.metadata.display_name or slo.metadata.name
        if len(spec.objectives) > 1:
            title = f"{title}: {name}"
        slice_s = None
        if objective.time_slice_window is not None:
            slice_s = self.fixed(read, (*path, "timeSliceWindow"), objective.time_slice_window)
            if slice_s == 0 or (window.anchor is None and slice_s > window.duration.seconds):
                raise read.problem((*path, "timeSliceWindow"), "is 0 or longer than the window", "change it")
        stays_open = isinstance(indicator.source, EventSource) and indicator.source.sli in OPEN_SLIS
        left_out = indicator.is_threshold or stays_open
        default = UnknownPolicy("exclude") if left_out else self.unknown
        return Objective(
            slo=slo.metadata.name,
            objective=name,
            source=indicator.source,
            target=target,
            window=window,
            sli_name=indicator.name,
            title=title,
            service=spec.service,
            description=(spec.description or "").strip(),
            unit=notes.get("unit", indicator.unit),
            op=objective.op,
            cut=objective.value,
            method=spec.budgeting_method,
            slice_target=objective.time_slice_target,
            slice_s=slice_s,
            empty_slices=notes.get("empty-slices", "ignore"),
            weight=objective.composite_weight or Decimal(1),
            composite=spec.is_composite,
            unknown=notes.get("unknown-policy", default),
            exclude=notes.get("exclude", ()),
            min_events=notes.get("min-events", 20),
            settle_s=notes.get("settle-delay", 900),
            deadline_s=notes.get("deadline"),
            verified_only=notes.get("evidence") == "verified",
            runbook=notes.get("runbook"),
            labels={k: v if isinstance(v, str) else ",".join(v) for k, v in slo.metadata.labels.items()},
            alerts=self.alerts(read, target, window),
            per=notes.get("per", ()),
            no_data=self.no_data(read),
        )


def _anchor(window: TimeWindow) -> datetime:
    assert window.calendar is not None
    return window.calendar.anchor()


def link(reads: list[Read], unknown: UnknownPolicy = DEFAULT_UNKNOWN) -> Linked:
    """Objectives of all SLOs among `reads`, with problems and warnings; an SLO with a problem gives none.

    `unknown` holds for objectives that say nothing of unknown outcomes, where those do not stay open by nature.
    SLIs and alert objects nobody refers to are checked as well: a file that is kept for later should not fail on
    the day it is used.
    """
    linker = _Linker(reads, unknown)
    told: set[str] = set()
    for read in reads:
        try:
            if isinstance(read.object, Slo):
                linker.out.objectives.extend(linker.slo(read))
            elif isinstance(read.object, Sli):
                linker.sli(read, ("spec",), read.object.metadata, read.object.spec)
            elif isinstance(read.object, AlertPolicy):
                linker.targets(read, ("spec",), read.object.spec)
        except _Foreign as foreign:
            text = f"its data source is of type {foreign}, which is not ours"
            remedy = f"left alone; type: {SOURCE_TYPE} is read"
            linker.out.warnings.append(read.problem((), text, remedy))
        except OpenSLOError as error:
            # A faulty SLI is met again by every SLO that refers to it: one problem, told once.
            if str(error) not in told:
                told.add(str(error))
                linker.out.problems.append(error)
    return linker.out
