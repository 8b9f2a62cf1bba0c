"""Text -> OpenSLO objects, each checked on its own."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from metrics.openslo.documents import Document, documents
from metrics.openslo.errors import OpenSLOError
from metrics.openslo.model import API_VERSION, KINDS, AnyObject
from metrics.openslo.v2alpha import V2ALPHA, translated

_EXTENSIONS = "extensions belong in metadata.annotations (agent-slo/...)"


@dataclass(frozen=True)
class Read:
    """An object and where it stood."""

    object: AnyObject
    file: str
    document: Document

    @property
    def label(self) -> str:
        return f"{self.object.kind}/{self.object.metadata.name}"

    def problem(self, path: tuple[str | int, ...], problem: str, remedy: str) -> OpenSLOError:
        return OpenSLOError(
            problem,
            file=self.file,
            object=self.label,
            path=dotted(self.document.written(path)),
            remedy=remedy,
            line=self.document.line(path),
        )


def dotted(path: tuple[str | int, ...]) -> str:
    """`("spec", "objectives", 0)` as `spec.objectives[0]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def read(text: str, file: str = "", *, strict: bool = True) -> tuple[list[Read], list[OpenSLOError]]:
    """(objects, problems) of a text. `strict` is the official validator's verdict, object by object.

    Not strict, files that other tools accept are mended where the meaning is plain: `op` and `value` beside
    a ratio metric and unknown fields are dropped, a missing time window is 28 days rolling, a bare number as
    slice window is minutes. What was mended is told in `problems` with `is_warning` set.
    """
    objects: list[Read] = []
    problems: list[OpenSLOError] = []
    try:
        for document in documents(text, file):
            found, trouble = _object(document, file, strict)
            if found is not None:
                objects.append(found)
            problems.extend(trouble)
    except OpenSLOError as error:
        problems.append(error)
    return objects, problems


def _object(document: Document, file: str, strict: bool) -> tuple[Read | None, list[OpenSLOError]]:
    value = document.value
    line = document.line(())
    if not isinstance(value, dict):
        return None, [
            OpenSLOError(
                "an OpenSLO object is a mapping",
                file=file,
                line=line,
                remedy="begin with apiVersion: openslo/v1 and kind: SLO",
            )
        ]
    kind, version = value.get("kind"), value.get("apiVersion")
    metadata = value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    label = f"{kind}/{name}" if name else str(kind or "")
    warnings: list[OpenSLOError] = []
    if version == V2ALPHA:
        document, refused = translated(document)
        if refused:
            return None, [
                OpenSLOError(
                    r.problem,
                    file=file,
                    object=label,
                    path=dotted(r.path),
                    remedy=r.remedy,
                    line=document.line(r.path),
                )
                for r in refused
            ]
        value = document.value
        text = f"{V2ALPHA} is not stable: it is read, and written as {API_VERSION}"
        warnings.append(_warning(text, file, label, ("apiVersion",), document))
    elif version != API_VERSION:
        remedy = f"only apiVersion: {API_VERSION} is read, and {V2ALPHA} as far as it is known"
        return None, [
            OpenSLOError(f"apiVersion is {version!r}", file=file, object=label, line=line, remedy=remedy)
        ]
    model = KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        lowered = {k.lower(): k for k in KINDS}
        near = [lowered[k] for k in difflib.get_close_matches(str(kind).lower(), lowered, n=1)]
        remedy = f"did you mean {near[0]}?" if near else f"known kinds: {', '.join(KINDS)}"
        return None, [
            OpenSLOError(f"unknown kind {kind!r}", file=file, object=label, line=line, remedy=remedy)
        ]
    if not strict:
        warnings += [_warning(text, file, label, path, document) for path, text in _mend(value)]
    for _ in range(1 if strict else 50):
        try:
            return Read(model.model_validate(value), file, document), warnings
        except ValidationError as error:
            details = error.errors(include_url=False)
            unknown = [d for d in details if d["type"] == "extra_forbidden"]
            if strict or not unknown:
                return None, warnings + [_explain(dict(d), model, document, file, label) for d in details]
            for detail in unknown:
                path = tuple(detail["loc"])
                _drop(value, path)
                text = "unknown field ignored"
                warnings.append(_warning(text, file, label, path, document))
    return None, warnings


def _warning(
    text: str, file: str, label: str, path: tuple[str | int, ...], document: Document
) -> OpenSLOError:
    return OpenSLOError(
        text,
        file=file,
        object=label,
        path=dotted(document.written(path)),
        line=document.line(path),
        is_warning=True,
    )


def _drop(value: Any, path: tuple[str | int, ...]) -> None:
    for step in path[:-1]:
        value = value[step]
    value.pop(path[-1], None)


def _mend(value: dict[str, Any]) -> list[tuple[tuple[str | int, ...], str]]:
    """Change an SLO that is not strictly valid where its meaning is plain; say what was changed."""
    told: list[tuple[tuple[str | int, ...], str]] = []
    spec = value.get("spec")
    if value.get("kind") != "SLO" or not isinstance(spec, dict):
        return told
    if not spec.get("timeWindow"):
        spec["timeWindow"] = [{"duration": "28d", "isRolling": True}]
        told.append((("spec", "timeWindow"), "missing, read as 28 days rolling"))
    objectives = spec.get("objectives")
    for i, objective in enumerate(objectives if isinstance(objectives, list) else []):
        if not isinstance(objective, dict):
            continue
        at = ("spec", "objectives", i)
        inline = objective.get("indicator") or spec.get("indicator")
        is_ratio = isinstance(inline, dict) and "ratioMetric" in (inline.get("spec") or {})
        for field in ("op", "value"):
            if is_ratio and field in objective:
                del objective[field]
                told.append(((*at, field), "has no meaning beside a ratio metric, ignored"))
        if isinstance(objective.get("timeSliceWindow"), int):
            objective["timeSliceWindow"] = f"{objective['timeSliceWindow']}m"
            told.append(((*at, "timeSliceWindow"), "a bare number is read as minutes"))
    return told


def _fields(model: type[BaseModel]) -> list[str]:
    return [f.alias or name for name, f in model.model_fields.items()]


def _explain(
    detail: dict[str, Any], model: type[BaseModel], document: Document, file: str, label: str
) -> OpenSLOError:
    """A pydantic error as one line a person can act on."""
    path = tuple(detail["loc"])
    kind, given = detail["type"], detail.get("input")
    problem, remedy = str(detail["msg"]), ""
    if kind == "extra_forbidden":
        known = _known_fields(model, path[:-1])
        near = difflib.get_close_matches(str(path[-1]), known, n=1)
        problem = f"unknown field {path[-1]}"
        remedy = f"did you mean {near[0]}?" if near else _EXTENSIONS
    elif kind == "value_error":
        problem, _, remedy = problem.removeprefix("Value error, ").partition("; ")
    elif kind == "missing":
        problem, remedy = "is missing", "add it"
    elif kind == "string_type":
        problem, remedy = f"{given!r} is not text", "put it in quotes"
    elif kind in ("too_short", "too_long"):
        limits: dict[str, Any] = detail.get("ctx", {})
        least, most = limits.get("min_length"), limits.get("max_length")
        problem = f"has {len(given or [])} entries"
        remedy = f"write at least {least}" if kind == "too_short" else f"keep {most}"
    elif kind == "literal_error":
        problem, remedy = f"{given!r} is not allowed", f"use {detail['ctx']['expected']}"
    elif kind in ("less_than", "greater_than", "greater_than_equal", "less_than_equal"):
        problem = f"{given} is out of range: {problem[0].lower()}{problem[1:]}"
        if path[-1:] == ("target",):
            remedy = "a target is a share below 1, as in 0.95 (targetPercent: 95 says the same)"
    return OpenSLOError(
        problem,
        file=file,
        object=label,
        path=dotted(document.written(path)),
        remedy=remedy,
        line=document.line(path),
    )


def _known_fields(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """Field names of the model at `path`, for "did you mean"."""
    current: type[BaseModel] = model
    for step in path:
        if isinstance(step, int):
            continue
        field = next((f for n, f in current.model_fields.items() if step in (n, f.alias)), None)
        inner = _model_in(field.annotation) if field is not None else None
        if inner is None:
            return []
        current = inner
    return _fields(current)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in getattr(annotation, "__args__", ()):
        found = _model_in(part)
        if found is not None:
            return found
    return None
