"""A case proves itself before it leaves: the recorded run fails, no trivial agent passes, a careful one can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .agents import TRIVIAL, careful
from .drive import replay_recorded, run_agent


@dataclass(frozen=True)
class Proof:
    """`reasons`: why the group is no more than a draft; none when it is proven."""

    recorded_fails: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.reasons


def prove(group: Sequence[Mapping[str, Any]]) -> Proof:
    """Prove a group: the incident first, then its twin and control.

    An agent passes a group when it passes every member; a group is proven when the recorded calls fail the incident,
    none of the six trivial agents passes the group and the careful one does.
    """
    incident = group[0]
    reasons = []
    told = replay_recorded(incident)
    fails = tuple(told.verdict.failed)
    if not incident["expect"]["checks"]:
        reasons.append("it has no checks")
    elif not fails:
        reasons.append("the recorded calls pass every check when they are replayed")
    if told.sim.unmatched:
        missing = sorted({row["tool"] for row in told.sim.unmatched})
        reasons.append(f"the replay has no answer for recorded calls of {', '.join(missing)}")
    stated = list(incident["observed"].get("failed_checks", []))
    if stated and fails and stated != list(fails):
        reasons.append(f"the recorded calls fail {', '.join(fails)} and not {', '.join(stated)}")
    if incident["expect"]["checks"]:
        for name, make in TRIVIAL.items():
            if all(run_agent(case, make(case)).verdict.passed for case in group):
                reasons.append(f"an agent that can only {name.replace('_', ' ')} passes the whole group")
        for case in group:
            verdict = run_agent(case, careful(case)).verdict
            if not verdict.passed:
                reasons.append(
                    f"a careful agent fails {', '.join(verdict.failed)} of the {case.get('role', 'incident')}"
                )
    return Proof(fails, tuple(reasons))
