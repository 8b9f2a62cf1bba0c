"""`agent-slo.yaml`: where it is found, what it may say, and errors that point at the line.

Every key is optional. An unknown key is refused and the nearest known one named, because a misspelt deadline
that is silently ignored changes every verdict.
"""

from __future__ import annotations

import difflib
import re
import typing
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from agent_slo.errors import CommandError
from collector.access import checked_origin
from collector.redaction.policy import Policy
from metrics.alerts.settings import AlertSettings
from metrics.bounded_yaml import TooMuch, check_node, check_size, too_deep
from metrics.prices import PriceOverride
from metrics.settings import MOST_COUNT, MetricsSettings, Section, TaskRule, parse_duration
from metrics.slo.objective import DEFAULT_UNKNOWN, UnknownPolicy

CONFIG_NAME = "agent-slo.yaml"

_SIZE = re.compile(r"^(\d+)\s*(B|KiB|MiB|GiB|KB|MB|GB)?$", re.IGNORECASE)
_SIZE_BYTES = {
    "": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 10**3, "mb": 10**6, "gb": 10**9,
}  # fmt: skip


def parse_size(value: Any) -> int:
    """Turn `67108864`, `"64MiB"` or `"64 MB"` into bytes; `ValueError` names the accepted forms."""
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    else:
        found = _SIZE.match(str(value).strip())
        if found is None:
            raise ValueError(f"{value!r} is no size; write for example 64MiB, 512KB or a number of bytes")
        size = int(found.group(1)) * _SIZE_BYTES[(found.group(2) or "").lower()]
    if size <= 0:
        raise ValueError(f"{value!r} is no size: it must be larger than zero")
    return size


def parse_address(value: Any) -> str:
    """Check `host:port` (`[::1]:4318` for IPv6); a bare port is taken on 127.0.0.1."""
    text = str(value).strip()
    if text.isdigit():
        text = f"127.0.0.1:{text}"
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{value!r} is no address; write host:port, for example 127.0.0.1:4318")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(f"{value!r} is no address; write an IPv6 host in brackets, for example [::1]:4318")
    return text


def parse_redaction(value: Any) -> dict[str, Policy]:
    """One policy for everybody, or a policy by glob over service.name; the first glob that matches decides."""
    known = typing.get_args(Policy)
    policies = value if isinstance(value, dict) else {"*": value}
    for glob, policy in policies.items():
        if policy not in known:
            where = f"{glob}: " if isinstance(value, dict) else ""
            raise ValueError(f"{where}{policy!r} is no policy; write one of {', '.join(known)}")
    return {str(glob): policy for glob, policy in policies.items()}


def parse_names(value: Any) -> Any:
    """`true` looks for names with the default model, `false` does not."""
    if isinstance(value, bool):
        return {} if value else None
    return value


Redaction = Annotated[dict[str, Policy], BeforeValidator(parse_redaction)]
Origin = Annotated[str, AfterValidator(checked_origin)]
Size = Annotated[int, BeforeValidator(parse_size)]
Address = Annotated[str, BeforeValidator(parse_address)]


class NamesConfig(Section):
    """The language model that finds names of persons; needs the extra `pii`."""

    language: str = "en"
    model: str = "en_core_web_sm"
    """A spaCy pipeline that is installed as a package."""
    least_score: float = Field(default=0.6, ge=0, le=1)


class CollectorConfig(Section):
    """Where the collector listens and how much it may hold in memory."""

    http: Address = "127.0.0.1:4318"
    grpc: Address = "127.0.0.1:4317"
    cors_origins: list[Origin] = Field(default_factory=list)
    """Origins of web pages that may send from a browser."""
    redaction: Redaction = Field(default_factory=lambda: parse_redaction("redact"))
    """What is done to secrets and content before anything is stored: policy by glob over service.name."""
    redaction_key_file: Path | None = None
    redaction_names: Annotated[NamesConfig | None, BeforeValidator(parse_names)] = None
    """Whether names of persons are replaced as well."""
    max_request_bytes: Size | None = None
    max_request_items: int | None = Field(default=None, ge=1, le=MOST_COUNT)
    queue_bytes: Size | None = None
    queue_requests: int | None = Field(default=None, ge=1, le=MOST_COUNT)
    rotate_spans: int | None = Field(default=None, ge=1, le=MOST_COUNT)
    memory_limit: str | None = None
    threads: int | None = Field(default=None, ge=1, le=1024)


class StorageConfig(Section):
    """How long things are kept. Without any of these, for ever."""

    keep_days: int | None = Field(default=None, ge=1, le=36_500)
    """Days after which raw spans go, with the steps and attempts made of them."""
    keep_gb: float | None = Field(default=None, gt=0)
    """Size of all span files, in 10^9 bytes, above which the oldest go."""
    tasks_days: int | None = Field(default=None, ge=1, le=36_500)
    """Days after which tasks, verdicts and SLI events go too; only of tasks whose spans are gone."""


class DashboardConfig(Section):
    """Where the dashboard listens. It has no accounts of its own, so keep it on loopback."""

    port: int = Field(default=8501, ge=1, le=65535)


class Config(MetricsSettings):
    """The whole of `agent-slo.yaml`."""

    collector: CollectorConfig = CollectorConfig()
    storage: StorageConfig = StorageConfig()
    dashboard: DashboardConfig = DashboardConfig()
    objectives: list[str] = Field(default_factory=list)
    alerts: AlertSettings = AlertSettings()

    @field_validator("prices")
    @classmethod
    def _priced(cls, prices: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for number, price in enumerate(prices):
            try:
                PriceOverride.model_validate(price)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                key = ".".join(str(part) for part in first["loc"])
                raise ValueError(f"entry {number + 1}, {key or 'the whole'}: {first['msg']}") from error
        return prices

    @field_validator("alerts")
    @classmethod
    def _known_findings(cls, alerts: AlertSettings) -> AlertSettings:
        # The taxonomy is read only where a rule needs it: most commands start without.
        if alerts.events:
            from agent_slo.finding_kinds import check_kind

            for rule in alerts.events:
                try:
                    check_kind(rule.finding)
                except ValueError as error:
                    raise ValueError(f"events, {rule.name}, finding: {error}") from error
        return alerts

    @field_validator("tasks")
    @classmethod
    def _one_policy(cls, tasks: dict[str, TaskRule]) -> dict[str, TaskRule]:
        for name, rule in tasks.items():
            if name != "default" and rule.unknown is not None:
                raise ValueError(
                    f"{name}: unknown: stands under default only; an objective over one type says it for itself, "
                    "with the annotation agent-slo/unknown-policy"
                )
        return tasks

    def unknown_policy(self) -> UnknownPolicy:
        """What unknown outcomes count as in objectives that do not say it themselves."""
        stated = self.tasks["default"].unknown if "default" in self.tasks else None
        if stated is None:
            return DEFAULT_UNKNOWN
        if stated in ("exclude", "bad"):
            return UnknownPolicy("exclude" if stated == "exclude" else "bad")
        return UnknownPolicy(
            "bad-after", int(parse_duration(stated.removeprefix("bad-after-")).total_seconds())
        )

    def price_overrides(self) -> list[PriceOverride]:
        """The `prices` section as the price book takes it."""
        return [PriceOverride.model_validate(price) for price in self.prices]


class LoadedConfig(typing.NamedTuple):
    """A configuration and the file it came from (`None`: defaults)."""

    config: Config
    path: Path | None

    def objective_files(self) -> list[Path]:
        """The objective files the globs name, relative to the configuration file.

        Raises `CommandError` for a pattern that matches nothing: an objective that silently does not exist is
        worse than one that fails.
        """
        base = self.path.parent if self.path is not None else Path.cwd()
        files: list[Path] = []
        for pattern in self.config.objectives:
            # Path.glob refuses absolute patterns, so those are split at their anchor.
            anchor = Path(pattern).anchor
            root = Path(anchor) if anchor else base
            found = sorted(root.glob(pattern[len(anchor) :]))
            if not found:
                raise CommandError(
                    f"{self.path}: objectives: no file matches {pattern!r} below {root}; "
                    "mend the pattern or remove it"
                )
            files += [file for file in found if file not in files]
        return files


def find_config(explicit: Path | None, data: Path) -> Path | None:
    """The file named, else `agent-slo.yaml` in the data folder, else in the working directory, else None."""
    if explicit is not None:
        if not explicit.is_file():
            raise CommandError(f"{explicit}: no such configuration file; mend --config or leave it out")
        return explicit
    for folder in (data, Path.cwd()):
        candidate = folder / CONFIG_NAME
        if candidate.is_file():
            return candidate
    return None


def load_config(explicit: Path | None, data: Path) -> LoadedConfig:
    """Find, read and validate the configuration. Raises `CommandError` with the line of each fault."""
    path = find_config(explicit, data)
    if path is None:
        return LoadedConfig(Config(), None)
    try:
        check_size(path.stat().st_size)
        text = path.read_text(encoding="utf-8")
    except TooMuch as error:
        raise CommandError(f"{path}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: cannot be read: {error}") from error
    return LoadedConfig(parse_config(text, path), path)


def parse_config(text: str, path: Path) -> Config:
    """Validate the text of a configuration file; `path` only names it in errors."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        check_node(root)
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        said = str(getattr(error, "problem", None) or error).splitlines()[0]
        raise CommandError(f"{where}: not valid YAML: {said}") from error
    except (TooMuch, RecursionError) as error:
        refused = error if isinstance(error, TooMuch) else too_deep()
        where = f"{path}:{refused.line}" if refused.line else str(path)
        raise CommandError(f"{where}: {refused}") from error
    except ValueError as error:  # a number or a date that is none, as 2026-13-01
        raise CommandError(f"{path}: not valid YAML: {error}") from error
    if values is None:
        return Config()
    if not isinstance(values, dict):
        raise CommandError(f"{path}:1: expected `key: value` sections such as `tools:` or `tasks:`")
    duplicate = _duplicate_key(root)
    if duplicate is not None:
        raise CommandError(f"{path}:{duplicate[1]}: {duplicate[0]!r} is written twice; keep one of them")
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        lines = [_describe(detail, root, path) for detail in error.errors(include_url=False)]
        raise CommandError("\n".join(lines)) from error


def _describe(detail: ErrorDetails, root: yaml.Node | None, path: Path) -> str:
    loc = detail["loc"]
    where = f"{path}:{_line_of(root, loc)}"
    name = ".".join(str(part) for part in loc)
    if detail["type"] == "extra_forbidden":
        known = _known_keys(Config, loc[:-1])
        near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
        return f"{where}: unknown key {name!r}; {hint}"
    if detail["type"] in ("union_tag_invalid", "union_tag_not_found"):
        known = re.findall(r"'([^']+)'", str(detail.get("ctx", {}).get("expected_tags", "")))
        wrong = f"{detail['ctx']['tag']!r} is none" if "tag" in detail.get("ctx", {}) else "it is missing"
        return (
            f"{where}: {name}.type: {wrong}; write one of {', '.join(known) or 'those in docs/configure.md'}"
        )
    message = _EXPECTED.get(detail["type"]) or detail["msg"].removeprefix("Value error, ")
    return f"{where}: {name}: {message[:1].lower() + message[1:] if message[:2].istitle() else message}"


_EXPECTED = {
    "model_type": "expected `key: value` lines below it",
    "model_attributes_type": "expected `key: value` lines below it",
    "dict_type": "expected `name: value` lines below it",
    "list_type": "expected a list, as [one, two]",
    "string_type": "expected a text; put it in quotes",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
}
"""Errors whose own words name what is inside this program."""


def _known_keys(model: Any, loc: tuple[int | str, ...]) -> list[str]:
    """The keys a section knows, found by walking the models along `loc`."""
    current: Any = model
    for part in loc:
        current = _section_of(current)
        if isinstance(current, type) and issubclass(current, BaseModel):
            field = current.model_fields.get(str(part))
            if field is None:
                return []
            current = field.annotation
        else:  # list[...] or dict[..., ...]: the item is the last type argument
            arguments = typing.get_args(current)
            current = arguments[-1] if arguments else None
    current = _section_of(current)
    if isinstance(current, type) and issubclass(current, BaseModel):
        return list(current.model_fields)
    return []


def _section_of(annotation: Any) -> Any:
    """Strip `| None` and `Annotated` from a type."""
    while True:
        arguments = [a for a in typing.get_args(annotation) if a is not type(None)]
        origin = typing.get_origin(annotation)
        if origin is Annotated or (origin not in (list, dict) and len(arguments) == 1):
            annotation = arguments[0]
        else:
            return annotation


def _line_of(root: yaml.Node | None, loc: tuple[int | str, ...]) -> int:
    """The line (from 1) of the deepest node on the way to `loc`."""
    line = 1
    node = root
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == str(part):
                    line, node = key.start_mark.line + 1, value
                    break
            else:
                return line
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            return line
    return line


def _duplicate_key(node: yaml.Node | None) -> tuple[str, int] | None:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                return key.value, key.start_mark.line + 1
            seen.add(str(key.value))
            found = _duplicate_key(value)
            if found is not None:
                return found
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            found = _duplicate_key(item)
            if found is not None:
                return found
    return None
