"""The `agent-slo/...` annotations: what OpenSLO has no field for."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from metrics.openslo.reader import Read
from metrics.slo.objective import UnknownPolicy
from metrics.slo.windows import parse_duration

PREFIX = "agent-slo/"


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.strip().isdigit() or int(text) < least:
            raise ValueError(f'{text!r} is no whole number from {least}; write it as "{max(least, 20)}"')
        return int(text)

    return parse


def _seconds(text: str) -> int:
    return parse_duration(text).seconds


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1:
        raise ValueError(f'{text!r} is no probability; write a number above 0 and at most 1, as in "0.01"')
    return value


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"{text!r} is not allowed; use {' or '.join(allowed)}")
        return text

    return parse


def _unknown(text: str) -> UnknownPolicy:
    if text == "exclude":
        return UnknownPolicy("exclude")
    if text == "bad":
        return UnknownPolicy("bad")
    if text.startswith("bad-after-"):
        return UnknownPolicy("bad-after", _seconds(text.removeprefix("bad-after-")))
    raise ValueError(f"{text!r} is no policy; use exclude, bad, or bad-after-24h")


def _list(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        raise ValueError(
            "the list is empty; name environments or reasons, separated by commas, or leave it out"
        )
    return names


def _dimensions(text: str) -> tuple[str, ...]:
    names = _list(text)
    for name in names:
        if name not in ("agent", "task_type"):
            raise ValueError(f"{name!r} is no dimension; use agent, task_type, or agent, task_type")
    return tuple(dict.fromkeys(names))


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; fill it in or leave it out")
    return text.strip()


SLO_ANNOTATIONS: Mapping[str, Callable[[str], Any]] = {
    "unknown-policy": _unknown,
    "exclude": _list,
    "min-events": _whole(1),
    "settle-delay": _seconds,
    "deadline": _seconds,
    "evidence": _choice("any", "verified"),
    "composite": _choice("burn", "all"),
    "empty-slices": _choice("ignore", "good", "bad"),
    "runbook": _text,
    "per": _dimensions,
    "intervention-floor": _share,
    "unit": _text,
    "title": _text,
}
SLI_ANNOTATIONS: Mapping[str, Callable[[str], Any]] = {"unit": _text}
CONDITION_ANNOTATIONS: Mapping[str, Callable[[str], Any]] = {
    "short-window": _seconds,
    "min-bad-events": _whole(1),
    "max-p-value": _share,
}


@dataclass(frozen=True)
class Annotations:
    """Parsed annotations of one object, by the name after the prefix."""

    values: Mapping[str, Any]

    def get(self, name: str, default: Any = None) -> Any:
        return self.values.get(name, default)


def parse_annotations(
    given: Mapping[str, str],
    known: Mapping[str, Callable[[str], Any]],
    read: Read,
    path: tuple[str | int, ...] = ("metadata", "annotations"),
) -> Annotations:
    """Our annotations of an object; those of others are left alone. Raises OpenSLOError."""
    values: dict[str, Any] = {}
    for key, text in given.items():
        if not key.startswith(PREFIX):
            continue
        name = key.removeprefix(PREFIX)
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            allowed = ", ".join(PREFIX + k for k in known) or "none"
            remedy = f"did you mean {PREFIX}{near[0]}?" if near else f"known on this object: {allowed}"
            raise read.problem((*path, key), f"unknown annotation {key}", remedy)
        try:
            values[name] = known[name](text)
        except ValueError as error:
            problem, _, remedy = str(error).partition("; ")
            raise read.problem((*path, key), problem, remedy) from None
    return Annotations(values)
