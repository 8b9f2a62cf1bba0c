"""OpenSLO v1 files in, objectives out (and back to text)."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from metrics.openslo.errors import OpenSLOError, first_of
from metrics.openslo.link import link
from metrics.openslo.model import AnyObject
from metrics.openslo.reader import Read, read
from metrics.openslo.write import dump
from metrics.slo.objective import DEFAULT_UNKNOWN, Objective, UnknownPolicy

__all__ = ["Loaded", "Objective", "OpenSLOError", "default_objectives", "dump", "load", "load_all"]

_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Loaded:
    """All that a set of files holds: objectives to evaluate, objects to write back, and what was noticed."""

    objectives: list[Objective]
    objects: list[AnyObject]
    warnings: list[OpenSLOError]
    problems: list[OpenSLOError]


def _files(source: str | Path) -> list[Path]:
    """Files of a path, a folder or a glob pattern. Raises OpenSLOError when there are none."""
    path = Path(source)
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix in _SUFFIXES and p.is_file())
    elif path.is_file():
        found = [path]
    else:
        found = sorted(Path(p) for p in glob.glob(str(source), recursive=True) if Path(p).is_file())
    if not found:
        raise OpenSLOError(
            "no objective file there", file=str(source), remedy="name a .yaml or .json file or folder"
        )
    return found


def _texts(source: str | Path | Iterable[str | Path]) -> list[tuple[str, str]]:
    """(text, name) pairs. A string with a line break or starting with a brace is a text, else a path."""
    if isinstance(source, str) and ("\n" in source or source.lstrip()[:1] in ("{", "[")):
        return [(source, "")]
    paths = [source] if isinstance(source, (str, Path)) else list(source)
    texts: list[tuple[str, str]] = []
    for path in dict.fromkeys(f for p in paths for f in _files(p)):
        try:
            texts.append((path.read_text(encoding="utf-8-sig"), str(path)))
        except (OSError, UnicodeDecodeError) as error:
            raise OpenSLOError(f"cannot be read: {error}", file=str(path), remedy="check the file") from None
    return texts


def load_all(
    source: str | Path | Iterable[str | Path],
    *,
    strict: bool = True,
    unknown: UnknownPolicy = DEFAULT_UNKNOWN,
) -> Loaded:
    """Everything in `source` (text, or paths, folders and globs), problems collected instead of raised.

    Raises OpenSLOError only when a path holds no file or cannot be read. Objects of all files see each
    other. With `strict=False` files that other tools accept are mended where the meaning is plain, and every
    mend is a warning. `unknown` holds for objectives that say nothing of unknown outcomes.
    """
    reads: list[Read] = []
    problems: list[OpenSLOError] = []
    warnings: list[OpenSLOError] = []
    for text, name in _texts(source):
        found, trouble = read(text, name, strict=strict)
        reads.extend(found)
        for problem in trouble:
            (warnings if problem.is_warning else problems).append(problem)
    linked = link(reads, unknown)
    return Loaded(
        objectives=linked.objectives,
        objects=[r.object for r in reads],
        warnings=warnings + linked.warnings,
        problems=problems + linked.problems,
    )


def load(
    source: str | Path | Iterable[str | Path],
    *,
    strict: bool = True,
    unknown: UnknownPolicy = DEFAULT_UNKNOWN,
) -> list[Objective]:
    """Objectives of `source`. Raises OpenSLOError for the first problem; its `more` holds the others."""
    loaded = load_all(source, strict=strict, unknown=unknown)
    if loaded.problems:
        raise first_of(loaded.problems)
    return loaded.objectives


def default_text() -> str:
    """The packaged objective pack as OpenSLO YAML."""
    return (resources.files("metrics") / "objectives" / "default.yaml").read_text(encoding="utf-8")


def default_objectives(unknown: UnknownPolicy = DEFAULT_UNKNOWN) -> list[Objective]:
    """The packaged objectives: what holds as long as no file of the user's says otherwise."""
    return load(default_text(), unknown=unknown)
