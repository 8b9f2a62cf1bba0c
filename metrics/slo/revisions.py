"""Which definition of an objective holds since when, so that a new target does not rewrite what was promised before.

Every change of a file is noted when it is first evaluated. A person may say that it holds since another moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

import duckdb

from metrics.slo.objective import Objective
from metrics.slo.tables import create

TABLE = "core.slo_revisions"


class RevisionError(ValueError):
    """A revision that does not exist or cannot hold; says how to mend."""


@dataclass(frozen=True)
class Revision:
    """One definition: `basis` is all of it but the target. `since` (naive UTC) None: since ever."""

    revision: str
    basis: str
    target: Decimal
    since: datetime | None


Revisions = Mapping[tuple[str, str], Sequence[Revision]]
"""Definitions by (slo, objective), in the order in which they were noted; the last word on each stretch."""


def create_table(con: duckdb.DuckDBPyConnection) -> None:
    """Create `core.slo_revisions` where it is missing."""
    create(con, "slo_revisions", TABLE)


def read_revisions(con: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], list[Revision]]:
    """What is noted; later words on one revision take the place of earlier ones."""
    create_table(con)
    found: dict[tuple[str, str], list[Revision]] = {}
    rows = con.execute(
        f"SELECT slo, objective, revision, basis, target, since FROM {TABLE} ORDER BY noted_no"
    ).fetchall()
    for slo, objective, revision, basis, target, since in rows:
        noted = found.setdefault((slo, objective), [])
        if noted and noted[-1].revision == revision:
            noted.pop()
        noted.append(Revision(revision, basis, Decimal(target), since))
    return found


def note_revisions(con: duckdb.DuckDBPyConnection, objectives: Sequence[Objective], as_of: datetime) -> int:
    """Note definitions that are new since the last call, as holding from `as_of` (naive UTC); return how many.

    The first definition of an objective holds since ever. `con` may write `core`.
    """
    known = read_revisions(con)
    changed = [o for o in objectives if o.key not in known or known[o.key][-1].revision != o.revision]
    for objective in changed:
        since = as_of if objective.key in known else None
        _note(con, objective.key, _of(objective, since), as_of, None, None)
    return len(changed)


def _of(objective: Objective, since: datetime | None) -> Revision:
    return Revision(objective.revision, objective.basis, objective.target, since)


def _note(
    con: duckdb.DuckDBPyConnection,
    key: tuple[str, str],
    revision: Revision,
    now: datetime,
    reason: str | None,
    said_by: str | None,
) -> None:
    con.execute(
        f"INSERT INTO {TABLE} SELECT coalesce(max(noted_no), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM {TABLE}",
        [now, *key, revision.revision, revision.basis, str(revision.target), revision.since, reason, said_by],
    )


def revise(
    con: duckdb.DuckDBPyConnection,
    now: datetime,
    *,
    slo: str,
    objective: str | None,
    since: datetime,
    reason: str,
    said_by: str | None = None,
) -> list[tuple[str, str]]:
    """Say that the present definition of an SLO (all its objectives, or one) holds since another moment.

    Times are naive UTC. Returns the (slo, objective) pairs. Raises RevisionError for what is not evaluated yet and for
    a moment in the future.
    """
    if since > now:
        raise RevisionError("a definition cannot hold from the future; give an earlier time")
    known = read_revisions(con)
    keys = [key for key in known if key[0] == slo and objective in (None, key[1])]
    if not keys:
        names = sorted(
            {key[0] for key in known} if objective is None else {k[1] for k in known if k[0] == slo}
        )
        words = (
            f"no objective {objective!r} of {slo!r}" if objective is not None and names else f"no SLO {slo!r}"
        )
        raise RevisionError(f"{words} is evaluated; there are {', '.join(names) or 'none'}")
    for key in keys:
        _note(con, key, replace(known[key][-1], since=since), now, reason, said_by)
    return keys


def as_it_was(objective: Objective, at: datetime, revisions: Revisions) -> Objective:
    """The objective with the target that held at `at` (naive UTC), where only the target has changed since.

    What was defined otherwise (another SLI, window, cut, ...) cannot be counted any more without its file, so points of
    such a time are shown under today's definition.
    """
    noted = revisions.get(objective.base_key, ())
    held = next((r for r in reversed(noted) if r.since is None or r.since <= at), None)
    if held is None or held.basis != objective.unscoped().basis or held.target == objective.target:
        return objective
    return replace(objective, target=held.target)
