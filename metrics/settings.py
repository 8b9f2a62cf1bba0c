"""What a user may say about tools, tasks and prices in `agent-slo.yaml`.

Every section is optional and has a safe default. The models only validate and carry values; the SQL files read
them from the `settings_*` tables that `metrics.deriver` fills.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal, Self, get_args
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    field_validator,
    model_validator,
)

from metrics.conventions import Role

ToolEffect = Literal["read", "write", "idempotent_write", "escalate", "control"]

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)(ms|s|m|h|d|w))")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
_MOST_SECONDS = 36_500 * 86_400.0
"""Above it, sums of times leave what a timestamp can hold."""
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def parse_duration(value: Any) -> timedelta:
    """Turn `90`, `"90s"`, `"10m"` or `"1h30m"` into a duration.

    Bare numbers are seconds. Raises `ValueError` that names the accepted forms.
    """
    if isinstance(value, timedelta):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value)
    else:
        text = str(value).strip().lower()
        parts = _DURATION.findall(text)
        if not parts or "".join(n + u for n, u in parts) != text:
            raise ValueError(f"{_shown(value)} is no duration; write for example 30s, 10m, 1h30m or 7d")
        seconds = sum(float(n) * _UNIT_SECONDS[u] for n, u in parts)
    if not seconds > 0:
        raise ValueError(f"{_shown(value)} is no duration: it must be longer than zero")
    if seconds > _MOST_SECONDS:
        raise ValueError(f"{_shown(value)} is too long: write at most 100 years (36500d)")
    return timedelta(seconds=seconds)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(lambda d: f"{d.total_seconds():g}s", return_type=str),
]


MOST_COUNT = 1_000_000_000
"""Largest number that counts something; the tables that SQL reads hold 32 bits."""


def _utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    except OverflowError:
        raise ValueError(f"{value} is no time in UTC") from None


Moment = Annotated[datetime, AfterValidator(_utc)]
"""A time with a zone (UTC when it says none); the model holds naive UTC."""


class Section(BaseModel):
    """A section of the configuration file: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RetryPolicy(Section):
    """What a tool's callers may do after a failed call."""

    max_attempts: int | None = Field(default=None, ge=1, le=MOST_COUNT)


class ToolRule(Section):
    """What is known of one tool, or of all tools that match a glob."""

    effect: ToolEffect | None = None
    key_fields: list[str] = Field(default_factory=list)
    compensated_by: list[str] = Field(default_factory=list)
    window: Duration = timedelta(hours=24)
    key_ttl: Duration | None = None
    timeout: Duration | None = None
    on_failure: Literal["retry", "escalate", "dead_letter"] | None = None
    retry: RetryPolicy = RetryPolicy()


DEFAULT_REFUSED = "^Error"
"""Many frameworks answer a failed call so; whatever the words after it say of a timeout stands before it."""


class ResultPatterns(Section):
    """Result texts that decide how an attempt ended."""

    refused: list[str] = Field(default_factory=lambda: [DEFAULT_REFUSED])

    @field_validator("refused")
    @classmethod
    def _compiles(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return patterns


class TaskMatch(Section):
    """Which tasks a rule is for."""

    agent: str | None = None
    service: str | None = None


class TaskRule(Section):
    """When a task counts as crashed, lost or late."""

    match: TaskMatch | None = None
    quiet: Duration | None = None
    deadline: Duration | None = None
    human_deadline: Duration | None = None
    unknown: str | None = None
    gate_is_intervention: bool | None = None

    @field_validator("unknown")
    @classmethod
    def _policy(cls, value: str | None) -> str | None:
        if value is None or value in ("exclude", "bad"):
            return value
        if value.startswith("bad-after-"):
            parse_duration(value.removeprefix("bad-after-"))
            return value
        raise ValueError(f"{value!r} is no policy for unknown outcomes; write exclude, bad or bad-after-24h")


class Exclusions(Section):
    """Traffic that no objective counts."""

    environments: list[str] = Field(default_factory=lambda: ["test", "eval", "replay"])


class MaintenanceWindow(Section):
    """A window whose tasks are excluded from rates (never from duplicates, lost tasks and uncertain outcomes)."""

    start: Moment
    end: Moment
    agent: str = "*"
    reason: str = "maintenance"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end <= self.start:
            raise ValueError("it ends before it starts; mend start or end")
        return self


class ApprovalPolicy(Section):
    """Arguments above which a tool needs a human's approval."""

    tool: str
    above: dict[str, float] = Field(default_factory=dict)


class EscalationPolicy(Section):
    """Tasks that need a human, or do not: by type, by agent, or by a call with arguments above a threshold."""

    task_type: str | None = None
    agent: str | None = None
    tool: str | None = None
    above: dict[str, float] = Field(default_factory=dict)
    needed: bool = True

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.task_type is None and self.agent is None and self.tool is None:
            raise ValueError("says of no task whether it needs a human; give task_type, agent or tool")
        if self.above and self.tool is None:
            raise ValueError("above: thresholds are for the arguments of a tool; name it with tool")
        return self


class Policies(Section):
    """Rules of the business that traces do not state."""

    approvals: list[ApprovalPolicy] = Field(default_factory=list)
    escalations: list[EscalationPolicy] = Field(default_factory=list)


class RetryLimits(Section):
    """What a chain of retries may look like."""

    max_attempts: int = Field(default=10, ge=1, le=MOST_COUNT)
    backoff_factor: float = Field(default=0.8, gt=0)
    synchronised_tasks: int = Field(default=5, ge=2, le=MOST_COUNT)


class LoopLimits(Section):
    """How often a task may go round without a new result.

    `equal_calls`: of 1,123 real runs three equal calls flag 31, of which ten were completed; five flag 14.
    """

    equal_calls: int = Field(default=5, ge=2, le=MOST_COUNT)
    rounds: int = Field(default=3, ge=2, le=MOST_COUNT)
    longest_period: int = Field(default=4, ge=2, le=16)


class BaselineRule(Section):
    """What the usual time of a call and the usual cost of a task are measured on.

    `days`: how many days before the day of the call or task; `calls`, `tasks`: fewer than that give no baseline.
    """

    days: int = Field(default=14, ge=1, le=90)
    calls: int = Field(default=100, ge=2, le=MOST_COUNT)
    tasks: int = Field(default=20, ge=2, le=MOST_COUNT)


class Detectors(Section):
    """Thresholds of the detectors.

    `settle_within`: how long a side effect may stay uncertain; `dead_letter_after`: failures alike in a row that mean
    that nobody will try again; `hung_multiple`: times the usual p99 of the tool, and never less than `hung_floor`;
    `runaway_multiple`: times the usual
    median cost of the task type.
    """

    retry: RetryLimits = RetryLimits()
    loop: LoopLimits = LoopLimits()
    settle_within: Duration = timedelta(hours=24)
    dead_letter_after: int = Field(default=3, ge=2, le=MOST_COUNT)
    hung_multiple: float = Field(default=10, gt=1)
    hung_floor: Duration = timedelta(seconds=10)
    runaway_multiple: float = Field(default=10, gt=1)
    baseline: BaselineRule = BaselineRule()


class Conventions(Section):
    """Keys of your own: `their key: the key or field it stands for`, and what their values say of a span's role."""

    aliases: dict[str, str] = Field(default_factory=dict)
    roles: dict[str, dict[str, Role]] = Field(default_factory=dict)


def _clock(value: Any) -> int:
    """`08:30` as minutes after midnight; YAML reads an unquoted 18:00 as 1080, which is the same."""
    text = str(value).strip()
    found = _CLOCK.fullmatch(text)
    if isinstance(value, int) and not isinstance(value, bool):
        minute = value
    elif found is not None and int(found[2]) < 60:
        minute = int(found[1]) * 60 + int(found[2])
    else:
        minute = -1
    if not 0 <= minute <= 1440:
        raise ValueError(f"{_shown(value)} is no time of day; write 08:00, or 24:00 for the end of the day")
    return minute


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{_shown(value)} is no time zone; use an IANA name such as Europe/Berlin") from None
    return value


Clock = Annotated[
    int, BeforeValidator(_clock), PlainSerializer(lambda m: f"{m // 60:02}:{m % 60:02}", return_type=str)
]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


class ServiceHours(Section):
    """When an agent has to be available, on the local clock of a zone, cut into slices.

    `end` at or before `start`: until that time of the next day; the hours belong to the day they begin on.
    """

    days: list[Day] = Field(default_factory=lambda: list(get_args(Day)), min_length=1)
    start: Clock = 0
    end: Clock = 1440
    zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    slice: Duration = timedelta(hours=1)
    quiet: Literal["unknown", "bad"] = "unknown"

    @field_validator("slice")
    @classmethod
    def _long_enough(cls, value: timedelta) -> timedelta:
        if not timedelta(minutes=5) <= value <= timedelta(days=1):
            raise ValueError("a slice is 5m to 1d long; write for example 1h")
        return value

    @property
    def start_minute(self) -> int:
        """Minutes after midnight at which the hours begin."""
        return self.start

    @property
    def end_minute(self) -> int:
        """Minutes after that midnight at which they end; above 1440 on the next day."""
        return self.end if self.end > self.start else self.end + 1440

    def covers(self, day: date) -> bool:
        """Whether hours begin on this day."""
        return get_args(Day)[day.weekday()] in self.days


class MetricsSettings(Section):
    """The sections of `agent-slo.yaml` that change what is derived."""

    conventions: Conventions = Conventions()
    tools: dict[str, ToolRule] = Field(default_factory=dict)
    results: ResultPatterns = ResultPatterns()
    tasks: dict[str, TaskRule] = Field(default_factory=dict)
    policies: Policies = Policies()
    detectors: Detectors = Detectors()
    prices: list[dict[str, Any]] = Field(default_factory=list)
    maintenance: list[MaintenanceWindow] = Field(default_factory=list)
    exclude: Exclusions = Exclusions()
    service_hours: dict[str, ServiceHours] = Field(default_factory=dict)
