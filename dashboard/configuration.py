"""What the pages need of `agent-slo.yaml`: objective files, and settings an export asks for.

The command line validates the whole file; here only these two are read, from the same places.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from metrics.settings import MetricsSettings

FILE_VARIABLE = "AGENT_SLO_CONFIG"
"""Names the file when it lies in neither of the usual places."""
FILE_NAME = "agent-slo.yaml"


class ConfigurationError(ValueError):
    """The file cannot be used; the message says which and why."""


def configuration_file(data: Path) -> Path | None:
    """The file the variable names, else the one in the data folder, else the one in the working directory.

    Raises `ConfigurationError` when the named file is not there.
    """
    named = os.environ.get(FILE_VARIABLE)
    if named:
        if not Path(named).is_file():
            raise ConfigurationError(f"{named}: no such file; it is named by {FILE_VARIABLE} or --config")
        return Path(named)
    return next((place for place in (data / FILE_NAME, Path.cwd() / FILE_NAME) if place.is_file()), None)


def metrics_settings(data: Path) -> MetricsSettings:
    """The sections about tools, tasks, policies and prices. Raises `ConfigurationError`."""
    path, values = _values(data)
    known = {key: value for key, value in values.items() if key in MetricsSettings.model_fields}
    try:
        return MetricsSettings.model_validate(known)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {error.errors(include_url=False)[0]['msg']}") from error


def objective_files(data: Path) -> tuple[Path, ...]:
    """The files the globs under `objectives:` name, relative to the configuration file; none: the packaged ones.

    Raises `ConfigurationError`.
    """
    path, values = _values(data)
    patterns = values.get("objectives") or []
    base = path.parent if path is not None else Path.cwd()
    found: list[Path] = []
    for pattern in (str(p) for p in patterns):
        # Path.glob refuses absolute patterns, so those are split at their anchor.
        anchor = Path(pattern).anchor
        files = sorted((Path(anchor) if anchor else base).glob(pattern[len(anchor) :]))
        if not files:
            raise ConfigurationError(f"{path}: objectives: no file matches {pattern!r}")
        found += [file for file in files if file not in found]
    return tuple(found)


def _values(data: Path) -> tuple[Path | None, dict[str, Any]]:
    path = configuration_file(data)
    if path is None:
        return None, {}
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from error
    if values is not None and not isinstance(values, dict):
        raise ConfigurationError(f"{path}: expected sections such as `tools:`")
    return path, dict(values or {})
