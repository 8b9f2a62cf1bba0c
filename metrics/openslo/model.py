"""The objects of OpenSLO v1 as pydantic models, with the rules of the official validator (go-sdk).

What a single object can show is checked here; references and what only we ask for are checked in `link`.
Unknown fields are refused, as the official decoder does: extensions live in `metadata.annotations` and in
`metricSource.spec`.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    model_validator,
)
from pydantic.alias_generators import to_camel

from metrics.slo.windows import parse_duration

API_VERSION = "openslo/v1"
DURATION_UNITS = "mhdwMQY"
CALENDAR_FORMAT = "%Y-%m-%d %H:%M:%S"

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def _name(value: str) -> str:
    if len(value) > 63 or not _NAME.fullmatch(value):
        raise ValueError(
            f"{value!r} is no name; use at most 63 lower-case letters and digits, with '-' in between"
        )
    return value


def _duration(value: str) -> str:
    parse_duration(value, DURATION_UNITS)
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise ValueError(f"{value!r} is no number; write it without quotes")
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


Name = Annotated[str, AfterValidator(_name)]
DurationText = Annotated[str, AfterValidator(_duration)]
Number = Annotated[Decimal, BeforeValidator(_number)]
Operator = Literal["lt", "lte", "gt", "gte"]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class Metadata(Model):
    name: Name
    display_name: Annotated[str, Field(max_length=63)] | None = None
    labels: dict[str, str | list[str]] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class MetricSource(Model):
    metric_source_ref: str | None = None
    type: str | None = None
    spec: dict[str, Any] = Field(default_factory=dict)


class Metric(Model):
    metric_source: MetricSource


class RatioMetric(Model):
    counter: StrictBool | None = None
    good: Metric | None = None
    bad: Metric | None = None
    total: Metric | None = None
    raw: Metric | None = None
    raw_type: Literal["success", "failure"] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.raw is not None:
            if self.good or self.bad or self.total:
                raise ValueError("raw stands alone; remove good, bad and total, or remove raw")
            if self.raw_type is None:
                raise ValueError("raw needs rawType; add rawType: success or failure")
            return self
        if self.total is None or (self.good is None) == (self.bad is None):
            raise ValueError("a ratio needs total and exactly one of good and bad; add or remove one")
        return self


class SliSpec(Model):
    description: Annotated[str, Field(max_length=1050)] | None = None
    threshold_metric: Metric | None = None
    ratio_metric: RatioMetric | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.threshold_metric is None) == (self.ratio_metric is None):
            raise ValueError("exactly one of thresholdMetric and ratioMetric must be set; keep one")
        return self


class InlineSli(Model):
    metadata: Metadata
    spec: SliSpec


class Calendar(Model):
    start_time: str
    time_zone: str

    @model_validator(mode="after")
    def _real(self) -> Self:
        self.anchor()
        self.zone()
        return self

    def anchor(self) -> datetime:
        try:
            return datetime.strptime(self.start_time, CALENDAR_FORMAT)
        except ValueError:
            raise ValueError(
                f"startTime {self.start_time!r} is no local time; write it as 2026-01-01 00:00:00"
            ) from None

    def zone(self) -> ZoneInfo:
        try:
            return ZoneInfo(self.time_zone)
        except (KeyError, ValueError, OSError):
            raise ValueError(
                f"timeZone {self.time_zone!r} is not known; use an IANA name such as Europe/Berlin"
            ) from None


class TimeWindow(Model):
    duration: DurationText
    is_rolling: StrictBool = False
    calendar: Calendar | None = None

    @model_validator(mode="after")
    def _kind(self) -> Self:
        if parse_duration(self.duration, DURATION_UNITS).count == 0:
            raise ValueError("duration must be longer than 0; write it as 28d")
        if not self.is_rolling and self.calendar is None:
            raise ValueError("'calendar' must be set when 'isRolling' is false; add it, or isRolling: true")
        if self.is_rolling and self.calendar is not None:
            raise ValueError("'calendar' cannot be set when 'isRolling' is true; remove one of them")
        return self


class SloObjective(Model):
    display_name: Annotated[str, Field(max_length=63)] | None = None
    op: Operator | None = None
    value: Number | None = None
    target: Annotated[Number, Field(ge=0, lt=1)] | None = None
    target_percent: Annotated[Number, Field(ge=0, lt=100)] | None = None
    time_slice_target: Annotated[Number, Field(gt=0, le=1)] | None = None
    time_slice_window: DurationText | None = None
    indicator: InlineSli | None = None
    indicator_ref: Name | None = None
    composite_weight: Annotated[Number, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if self.target is not None and self.target_percent is not None:
            raise ValueError("target and targetPercent are mutually exclusive; keep one of them")
        if self.target is None and self.target_percent is None:
            raise ValueError("one of target and targetPercent must be set; add target: 0.95, for example")
        if self.indicator is not None and self.indicator_ref is not None:
            raise ValueError("indicator and indicatorRef are mutually exclusive; keep one of them")
        return self

    def share(self) -> Decimal:
        """The target as a share of events."""
        return self.target if self.target is not None else (self.target_percent or Decimal(0)) / 100


class AlertConditionDetail(Model):
    kind: Literal["burnrate"]
    op: Operator
    threshold: Number
    lookback_window: DurationText
    alert_after: DurationText | None = None


class AlertConditionSpec(Model):
    description: Annotated[str, Field(max_length=1050)] | None = None
    severity: Annotated[str, Field(min_length=1)]
    condition: AlertConditionDetail


class AlertConditionUse(Model):
    """A condition by reference, or written in place."""

    condition_ref: Name | None = None
    kind: Literal["AlertCondition"] | None = None
    metadata: Metadata | None = None
    spec: AlertConditionSpec | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        _reference_or_inline("conditionRef", self.condition_ref, self.metadata, self.spec)
        return self


class AlertNotificationTargetSpec(Model):
    description: Annotated[str, Field(max_length=1050)] | None = None
    target: Annotated[str, Field(min_length=1)]


class AlertTargetUse(Model):
    target_ref: Name | None = None
    kind: Literal["AlertNotificationTarget"] | None = None
    metadata: Metadata | None = None
    spec: AlertNotificationTargetSpec | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        _reference_or_inline("targetRef", self.target_ref, self.metadata, self.spec)
        return self


class AlertPolicySpec(Model):
    description: Annotated[str, Field(max_length=1050)] | None = None
    alert_when_no_data: StrictBool = False
    alert_when_resolved: StrictBool = False
    alert_when_breaching: StrictBool = False
    conditions: Annotated[list[AlertConditionUse], Field(min_length=1, max_length=1)]
    notification_targets: Annotated[list[AlertTargetUse], Field(min_length=1)]


class AlertPolicyUse(Model):
    alert_policy_ref: Name | None = None
    kind: Literal["AlertPolicy"] | None = None
    metadata: Metadata | None = None
    spec: AlertPolicySpec | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        _reference_or_inline("alertPolicyRef", self.alert_policy_ref, self.metadata, self.spec)
        return self


def _reference_or_inline(field: str, ref: str | None, metadata: Metadata | None, spec: Model | None) -> None:
    if (ref is None) == (spec is None):
        raise ValueError(f"exactly one of {field} and spec must be set; keep one")
    if spec is not None and metadata is None:
        raise ValueError("an object written in place needs a name; add metadata: {name: ...}")


class SloSpec(Model):
    description: Annotated[str, Field(max_length=1050)] | None = None
    service: Name
    indicator: InlineSli | None = None
    indicator_ref: Name | None = None
    budgeting_method: Literal["Occurrences", "Timeslices", "RatioTimeslices"]
    time_window: Annotated[list[TimeWindow], Field(min_length=1, max_length=1)]
    objectives: list[SloObjective]
    alert_policies: list[AlertPolicyUse] = Field(default_factory=list)

    @property
    def is_composite(self) -> bool:
        return any(o.indicator is not None or o.indicator_ref is not None for o in self.objectives)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.is_composite:
            if self.indicator is not None or self.indicator_ref is not None:
                raise ValueError(
                    "a composite SLO has indicators in its objectives; remove the one of the spec"
                )
        elif (self.indicator is None) == (self.indicator_ref is None):
            raise ValueError("exactly one of indicator and indicatorRef must be set; keep one")
        for i, objective in enumerate(self.objectives):
            self._check(i, objective)
        return self

    def _check(self, i: int, objective: SloObjective) -> None:
        at = f"objectives[{i}]"
        inline = objective.indicator or self.indicator
        if inline is not None:
            if inline.spec.threshold_metric is not None and (objective.op is None or objective.value is None):
                raise ValueError(f"{at}: op and value are required with a threshold metric; add them")
            if inline.spec.ratio_metric is not None and (objective.op or objective.value is not None):
                raise ValueError(f"{at}: op and value are forbidden with a ratio metric; remove them")
        if self.budgeting_method == "Timeslices" and objective.time_slice_target is None:
            raise ValueError(f"{at}: timeSliceTarget is required with Timeslices; add it")
        if self.budgeting_method != "Occurrences" and objective.time_slice_window is None:
            raise ValueError(
                f"{at}: timeSliceWindow is required with {self.budgeting_method}; add it, as in 1h"
            )


class ServiceSpec(Model):
    description: Annotated[str, Field(max_length=1050)] | None = None


class DataSourceSpec(Model):
    description: Annotated[str, Field(max_length=1050)] | None = None
    type: Annotated[str, Field(min_length=1)]
    connection_details: dict[str, Any]


class Object(Model):
    """What every OpenSLO object has around its spec."""

    api_version: Literal["openslo/v1"] = "openslo/v1"
    metadata: Metadata


class Service(Object):
    kind: Literal["Service"] = "Service"
    spec: ServiceSpec = Field(default_factory=ServiceSpec)


class DataSource(Object):
    kind: Literal["DataSource"] = "DataSource"
    spec: DataSourceSpec


class Sli(Object):
    kind: Literal["SLI"] = "SLI"
    spec: SliSpec


class Slo(Object):
    kind: Literal["SLO"] = "SLO"
    spec: SloSpec


class AlertPolicy(Object):
    kind: Literal["AlertPolicy"] = "AlertPolicy"
    spec: AlertPolicySpec


class AlertCondition(Object):
    kind: Literal["AlertCondition"] = "AlertCondition"
    spec: AlertConditionSpec


class AlertNotificationTarget(Object):
    kind: Literal["AlertNotificationTarget"] = "AlertNotificationTarget"
    spec: AlertNotificationTargetSpec


AnyObject = Service | DataSource | Sli | Slo | AlertPolicy | AlertCondition | AlertNotificationTarget

KINDS: dict[str, type[AnyObject]] = {
    "Service": Service,
    "DataSource": DataSource,
    "SLI": Sli,
    "SLO": Slo,
    "AlertPolicy": AlertPolicy,
    "AlertCondition": AlertCondition,
    "AlertNotificationTarget": AlertNotificationTarget,
}
