"""What an earlier run showed, to tell what is new from what is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSION = 1


class BaselineError(ValueError):
    """A baseline file that cannot be used; says what, where and how to mend."""


@dataclass(frozen=True)
class Before:
    """One objective in the earlier run."""

    good: int
    n: int
    failed: bool


@dataclass(frozen=True)
class Baseline:
    """Objectives by key, findings by key with their number, and how many tasks there were."""

    objectives: Mapping[str, Before]
    findings: Mapping[str, int]
    tasks: int

    def text(self) -> str:
        """As JSON, for a file under version control: sorted, one value a line."""
        value = {
            "version": VERSION,
            "tasks": self.tasks,
            "objectives": {
                k: {"good": o.good, "n": o.n, "failed": o.failed} for k, o in sorted(self.objectives.items())
            },
            "findings": dict(sorted(self.findings.items())),
        }
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def read_baseline(path: Path) -> Baseline:
    """The baseline of a file. Raises BaselineError."""
    remedy = "write a new one with --write-baseline"
    try:
        value: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BaselineError(f"{path}: cannot be read: {error}; {remedy}") from None
    except ValueError as error:
        raise BaselineError(f"{path}: no JSON: {error}; {remedy}") from None
    if not isinstance(value, dict) or value.get("version") != VERSION:
        raise BaselineError(f"{path}: no baseline of version {VERSION}; {remedy}")
    try:
        return Baseline(
            objectives={
                str(k): Before(int(o["good"]), int(o["n"]), bool(o["failed"]))
                for k, o in value["objectives"].items()
            },
            findings={str(k): int(n) for k, n in value["findings"].items()},
            tasks=int(value["tasks"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BaselineError(f"{path}: not as written by --write-baseline ({error!r}); {remedy}") from None
