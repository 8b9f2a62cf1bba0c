"""Objects of `openslo.com/v2alpha`, the unstable proposal, as objects of openslo/v1: read, never written.

What differs (as the official SDK reads it): no display name; one text a label; `sli` and `sliRef` for the indicator;
`serviceRef` beside `service`; a metric is `dataSourceRef` or `dataSourceSpec` with `spec`, without `metricSource`
around it; durations in m, h, d and w only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from metrics.openslo.documents import Document
from metrics.openslo.model import API_VERSION
from metrics.slo.windows import parse_duration

V2ALPHA = "openslo.com/v2alpha"

Path = tuple[str | int, ...]
_RENAMED = {"sli": "indicator", "sliRef": "indicatorRef", "serviceRef": "service"}
_OLD = {"indicator": "sli", "indicatorRef": "sliRef"}
_METRICS = ("thresholdMetric", "good", "bad", "total", "raw")
_DURATIONS = ("duration", "timeSliceWindow", "lookbackWindow", "alertAfter")
_UNITS = "mhdw"


@dataclass(frozen=True)
class Refusal:
    """What the proposal does not allow, at a path of the object as written."""

    path: Path
    problem: str
    remedy: str


@dataclass(frozen=True)
class TranslatedDocument(Document):
    """A document whose value has become v1; paths in it lead back to what was written."""

    def written(self, path: Path) -> Path:
        """The path of the same part as the file has it."""
        back: list[str | int] = []
        for i, step in enumerate(path):
            before = path[i - 1] if i else None
            if step == "metricSource" and before in _METRICS:
                continue
            names = {v1: v2 for v2, v1 in _RENAMED.items()} | {"metricSourceRef": "dataSourceRef"}
            other = names.get(step) if isinstance(step, str) else None
            back.append(other if other is not None and self.has((*back, other)) else step)
        return tuple(back)


def translated(document: Document) -> tuple[Document, list[Refusal]]:
    """The document as v1, and what v2alpha refuses in it. Its value must be a mapping."""
    refused = list(_refusals(document.value, ()))
    value = {**_renamed(document.value), "apiVersion": API_VERSION}
    return TranslatedDocument(value, document.node), refused


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if not isinstance(value, dict):
        return value
    found: dict[Any, Any] = {}
    for key, part in value.items():
        if key in ("metadata", "connectionDetails"):
            found[key] = part
        elif key in _METRICS and isinstance(part, dict):
            found[key] = _metric(part)
        else:
            # both names of one thing stay two keys, so that the second is refused as unknown
            name = _RENAMED.get(key, key) if isinstance(key, str) else key
            found[name if name == key or name not in value else key] = _renamed(part)
    return found


def _metric(part: dict[Any, Any]) -> dict[Any, Any]:
    """`{dataSourceRef | dataSourceSpec, spec}` as `{metricSource: ...}`; unknown keys stay where they are refused."""
    source: dict[Any, Any] = {}
    rest: dict[Any, Any] = {}
    for key, value in part.items():
        if key == "dataSourceRef":
            source["metricSourceRef"] = value
        elif key == "dataSourceSpec" and isinstance(value, dict):
            source["type"] = value.get("type")
        elif key == "spec":
            source["spec"] = value
        else:
            rest[key] = value
    return {"metricSource": source, **rest}


def _refusals(value: Any, path: Path) -> Iterator[Refusal]:
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from _refusals(item, (*path, i))
    if not isinstance(value, dict):
        return
    for key, part in value.items():
        at = (*path, key)
        if key == "metadata" and isinstance(part, dict):
            yield from _metadata(part, at)
        elif key in _METRICS and isinstance(part, dict):
            yield from _source(part, at)
        elif key in _DURATIONS and isinstance(part, str):
            try:
                parse_duration(part, _UNITS)
            except ValueError as error:
                problem, _, remedy = str(error).partition("; ")
                yield Refusal(at, problem, remedy)
        elif key in _OLD:
            yield Refusal(at, f"{V2ALPHA} has no {key}", f"write {_OLD[key]}")
        elif key != "connectionDetails":
            yield from _refusals(part, at)


def _metadata(part: dict[Any, Any], at: Path) -> Iterator[Refusal]:
    if "displayName" in part:
        remedy = "say it in the annotation agent-slo/title"
        yield Refusal((*at, "displayName"), f"{V2ALPHA} has no displayName in metadata", remedy)
    labels = part.get("labels")
    for name, label in labels.items() if isinstance(labels, dict) else ():
        if not isinstance(label, str):
            yield Refusal((*at, "labels", name), f"a label of {V2ALPHA} is one text", "write one value")


def _source(part: dict[Any, Any], at: Path) -> Iterator[Refusal]:
    if "metricSource" in part:
        remedy = "write its spec here, and dataSourceRef or dataSourceSpec beside it"
        yield Refusal((*at, "metricSource"), f"{V2ALPHA} has no metricSource", remedy)
    elif ("dataSourceRef" in part) == ("dataSourceSpec" in part):
        yield Refusal(at, "exactly one of dataSourceRef and dataSourceSpec must be set", "keep one")
