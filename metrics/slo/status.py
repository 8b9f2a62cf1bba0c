"""Rows of `slo_status`: what the counts of one objective mean. Pure functions over plain values."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal

from metrics.slo.arithmetic import (
    account,
    budget,
    burn_rate,
    composite_burn,
    composite_target,
    exhaustion_from_now,
    exhaustion_naive,
    exhaustion_rolling,
    unknown_bounds,
)
from metrics.slo.confidence import p_met, wilson
from metrics.slo.cube import Counts
from metrics.slo.objective import Objective
from metrics.slo.pairs import Verdict, pair_key
from metrics.slo.windows import format_seconds

State = Literal["ok", "at_risk", "exhausted", "insufficient_data", "no_data", "invalid"]

AT_RISK_BELOW = Fraction(1, 4)
"""Share of the budget below which an objective is at risk."""

EXCLUDED_ABOVE = Fraction(1, 10)
"""Share of excluded events above which an objective is at risk: it no longer speaks for the traffic."""


@dataclass(frozen=True)
class StatusRow:
    """One row of `slo_status`; times are naive UTC, shares are 0..1, `None` is unknown.

    `split` marks a row of one agent or task type beside the row of all; `budgeting` is the method.
    `burn`, `exhaustion`, `firing`, `pairs`, `excluded_by` and `notes` are JSON text.
    """

    slo: str
    objective: str
    revision: str
    window_start: datetime
    window_end: datetime
    settled_until: datetime
    evaluated_at: datetime
    n: int
    good: int
    bad: int
    unknown: int
    excluded: int
    sli: float | None
    lower: float | None
    upper: float | None
    sli_unknown_bad: float | None
    sli_unknown_good: float | None
    p_met: float | None
    target: float
    budget_events: float
    remaining: float | None
    burn: str
    exhaustion: str
    state: State
    firing: str
    sli_name: str
    title: str
    unit: str
    op: str | None
    cut: float | None
    description: str
    inferred_share: float | None
    pairs: str
    excluded_by: str
    notes: str
    runbook: str | None
    service: str
    agent: str | None
    task_type: str | None
    split: bool
    last_event_at: datetime | None
    budgeting: str
    is_floor: bool


FLOOR_SURE = 0.9
FLOOR_MISSED = 0.05
"""Chance that the floor of a band is kept above which it is ok, and below which it is missed."""


@dataclass(frozen=True)
class Measured:
    """The window's result, whatever the budgeting method: what `n` counts differs, the rest follows."""

    good: int
    n: int
    sli: Fraction | None
    exact_counts: bool = True
    """False for RatioTimeslices, whose SLI is a mean: no binomial interval belongs to it."""


@dataclass(frozen=True)
class Burn:
    """Burn rate of one window with the counts behind it."""

    value: Fraction | None
    n: int
    bad: int


def _float(value: Fraction | float | None) -> float | None:
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def forecast(
    remaining: Fraction | None,
    burn: Burn | None,
    burn_s: int,
    window_s: int,
    buckets: Sequence[tuple[int, int]],
    objective: Objective,
) -> dict[str, Any]:
    """The three exhaustion forecasts in seconds at the burn rate of the last `burn_s` seconds.

    `never` says that at this rate the budget holds; the seconds are None then, as they are when unknown.
    """
    rate = burn.value if burn is not None else None
    rolling: float | None = None
    if buckets and burn is not None and burn.n:
        share = Fraction(window_s, len(buckets)) / burn_s
        ahead = (burn.n * share, burn.bad * share)
        rolling = exhaustion_rolling(buckets, ahead, objective.target, Fraction(window_s, len(buckets)))
    from_now = exhaustion_from_now(remaining, rate, window_s)
    decisive = rolling if rolling is not None else from_now
    return {
        "naive_s": _float(exhaustion_naive(rate, window_s)),
        "from_now_s": _float(from_now),
        "rolling_s": _float(rolling),
        "never": None if decisive is None else math.isinf(decisive),
        "window": format_seconds(burn_s),
    }


def state_of(
    n: int, min_events: int, remaining: Fraction | None, firing: bool, excluded: int, notes: list[str]
) -> State:
    """The state shown for an objective; reasons for amber go to `notes`."""
    if n == 0 or remaining is None:
        return "no_data"
    if n < min_events:
        notes.append(f"{n} of at least {min_events} events: too few to judge")
        return "insufficient_data"
    if remaining <= 0:
        return "exhausted"
    reasons = []
    if firing:
        reasons.append("an alert is firing")
    if remaining < AT_RISK_BELOW:
        reasons.append(f"{float(remaining) * 100:.0f} % of the error budget is left")
    share = Fraction(excluded, n + excluded)
    if share > EXCLUDED_ABOVE:
        reasons.append(f"{float(share) * 100:.0f} % of the events are excluded")
    notes.extend(reasons)
    return "at_risk" if reasons else "ok"


def floor_state(n: int, min_events: int, chance: float | None, notes: list[str]) -> State:
    """State of the lower end of a band, from the chance that the true share reaches it.

    Not from the budget: a floor of 2 % leaves a budget of 98 %, of which a healthy 5 % have used up 97 %;
    and 0 of 20 say little about 2 %.
    """
    if n == 0 or chance is None:
        return "no_data"
    if n < min_events:
        notes.append(f"{n} of at least {min_events} events: too few to judge")
        return "insufficient_data"
    if chance >= FLOOR_SURE:
        return "ok"
    notes.append(f"the floor is kept with a probability of {chance * 100:.0f} %")
    return "exhausted" if chance < FLOOR_MISSED else "at_risk"


def status_row(
    objective: Objective,
    *,
    window: tuple[datetime, datetime],
    settled_until: datetime,
    evaluated_at: datetime,
    counts: Counts,
    measured: Measured,
    burns: Mapping[int, Burn],
    exhaustion: Mapping[str, Any],
    verdicts: Sequence[Verdict],
    notes: Sequence[str] = (),
) -> StatusRow:
    """The row of one objective from its counts; all arithmetic is `metrics.slo.arithmetic`."""
    result = account(measured.good, measured.n, objective.target)
    sli, remaining = result.sli, result.remaining
    band, chance = wilson(measured.good, measured.n), p_met(measured.good, measured.n, objective.target)
    if not measured.exact_counts:
        sli, band, chance = measured.sli, None, None
        remaining = None if sli is None else 1 - (1 - sli) / budget(objective.target)
    _, worst, best = unknown_bounds(counts.good, counts.bad, counts.unknown)
    firing = [v for v in verdicts if v.firing]
    said: list[str] = []
    if objective.is_floor:
        state = floor_state(measured.n, objective.min_events, chance, said)
    else:
        state = state_of(measured.n, objective.min_events, remaining, bool(firing), counts.excluded, said)
    return StatusRow(
        slo=objective.slo,
        objective=objective.objective,
        revision=objective.revision,
        window_start=window[0],
        window_end=window[1],
        settled_until=settled_until,
        evaluated_at=evaluated_at,
        n=measured.n,
        good=measured.good,
        bad=measured.n - measured.good,
        unknown=counts.unknown,
        excluded=counts.excluded,
        sli=_float(sli),
        lower=band[0] if band else None,
        upper=band[1] if band else None,
        sli_unknown_bad=_float(worst),
        sli_unknown_good=_float(best),
        p_met=chance,
        target=float(objective.target),
        budget_events=float(result.events),
        remaining=_float(remaining),
        burn=_json(
            {
                format_seconds(s): {"value": _float(b.value), "n": b.n, "bad": b.bad}
                for s, b in sorted(burns.items())
            }
        ),
        exhaustion=_json(dict(exhaustion)),
        state=state,
        firing=_json([_verdict(v) for v in firing]),
        sli_name=objective.sli_name,
        title=objective.title,
        unit=objective.unit,
        op=objective.op,
        cut=None if objective.cut is None else float(objective.cut),
        description=objective.description,
        inferred_share=counts.inferred / counts.n if counts.n else None,
        pairs=_json([_verdict(v) | {"firing": v.firing, "chosen": v.pair.why} for v in verdicts]),
        excluded_by=_json(dict(counts.excluded_by)),
        notes=_json([*said, *notes]),
        runbook=objective.runbook,
        service=objective.service,
        agent=dict(objective.scope).get("agent"),
        task_type=dict(objective.scope).get("task_type"),
        split=bool(objective.scope),
        last_event_at=counts.last_at,
        budgeting=objective.method,
        is_floor=objective.is_floor,
    )


def _verdict(verdict: Verdict) -> dict[str, Any]:
    pair = verdict.pair
    return {
        "severity": pair.severity,
        "long": format_seconds(pair.long_s),
        "short": format_seconds(pair.short_s),
        "factor": float(pair.factor),
        "min_bad": pair.min_bad,
        "max_p": pair.max_p,
        "frozen": verdict.frozen,
        "key": pair_key(pair),
        "after_s": pair.after_s,
        "targets": list(pair.targets),
        "tell_end": pair.tell_end,
        "why": verdict.why,
    }


def invalid_row(objective: Objective, as_of: datetime, problem: str) -> StatusRow:
    """The row of an objective that could not be evaluated, with the reason in its notes."""
    empty = Counts(0, 0, 0, 0, 0, None)
    row = status_row(
        objective,
        window=(as_of, as_of),
        settled_until=as_of,
        evaluated_at=as_of,
        counts=empty,
        measured=Measured(0, 0, None),
        burns={},
        exhaustion={},
        verdicts=(),
        notes=(problem,),
    )
    return replace(row, state="invalid")


def composite_row(rows: Sequence[StatusRow], objectives: Sequence[Objective]) -> StatusRow:
    """The row of a composite SLO: OpenSLO's weighted sum of the burns of its objectives.

    It has no SLI of its own (one event can be good for one part and bad for another), so `sli` is NULL;
    `remaining` is 1 - the weighted sum of what each part consumed, and `n` the smallest part.
    """
    weights = [o.weight for o in objectives]
    used = composite_burn(
        [(None if r.remaining is None else 1 - r.remaining, w) for r, w in zip(rows, weights, strict=True)]
    )
    remaining = None if used is None else 1 - used
    burns: dict[str, Any] = {}
    parts = [json.loads(r.burn) for r in rows]
    for name in parts[0]:
        if all(name in p for p in parts):
            values = [(p[name]["value"], w) for p, w in zip(parts, weights, strict=True)]
            burns[name] = {
                "value": _float(composite_burn(values)),
                "n": min(p[name]["n"] for p in parts),
                "bad": sum(p[name]["bad"] for p in parts),
            }
    notes = ["composite: the weighted sum of its objectives' burn rates"]
    fewest = min(rows, key=lambda r: r.n)
    state = state_of(
        fewest.n, objectives[0].min_events, remaining, any(r.firing != "[]" for r in rows), 0, notes
    )
    return replace(
        fewest,
        objective="composite",
        sli_name="composite",
        unit="",
        op=None,
        cut=None,
        sli=None,
        lower=None,
        upper=None,
        sli_unknown_bad=None,
        sli_unknown_good=None,
        p_met=None,
        target=float(composite_target([o.target for o in objectives])),
        remaining=_float(remaining),
        burn=_json(burns),
        exhaustion="{}",
        state=state,
        firing="[]",
        pairs="[]",
        notes=_json(notes),
    )


def burn_of(good: int, n: int, objective: Objective) -> Burn:
    """Burn of a window of counted events (or slices)."""
    return Burn(burn_rate(n - good, n, objective.target), n, n - good)
