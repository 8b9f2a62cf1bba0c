"""Prometheus recording rules that give our metrics the names Sloth's dashboards ask for.

Names with colons are reserved for recording rules, so they are not exposed directly.
Source: Sloth's generated rules (sli_error, meta and info recordings).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import yaml

from metrics.slo.exposition import PERIOD, labels_text
from metrics.slo.objective import Objective
from metrics.slo.windows import Duration

_COUNTED = ("5m", "30m", "2h")
"""Windows without a burn rate of ours at every traffic: from the counters."""
_BURNING = {"1h": 3600, "6h": 21600, "1d": 86400, "3d": 259200}
_CALENDAR_DAYS = {"M": 30, "Q": 90, "Y": 365}


def rule_file(objectives: Sequence[Objective]) -> str:
    """A Prometheus rule file (YAML) for the objectives; floors of bands have no burn and are left out."""
    alone = {
        o.slo for o in objectives if sum(1 for p in objectives if p.slo == o.slo and not p.is_floor) == 1
    }
    groups: list[dict[str, Any]] = []
    for objective in objectives:
        if not objective.is_floor:
            groups += _groups(objective, alone=objective.slo in alone)
    head = (
        "# Written by `agent-slo slo rules`; maps agent-slo's metrics to the names Sloth's dashboards use.\n"
    )
    return head + yaml.safe_dump({"groups": groups}, sort_keys=False, width=1000, allow_unicode=True)


def _days(duration: Duration) -> Decimal:
    if duration.is_calendar:
        return Decimal(duration.count * _CALENDAR_DAYS[duration.unit])
    return Decimal(duration.seconds) / 86400


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _groups(objective: Objective, *, alone: bool) -> Iterable[dict[str, Any]]:
    name = objective.slo if alone else f"{objective.slo}-{_slug(objective.objective)}"
    identity = {
        "sloth_id": f"{objective.service}-{name}",
        "sloth_service": objective.service,
        "sloth_slo": name,
    }
    where = {"slo": objective.slo, "objective": objective.objective, "agent": "", "task_type": ""}
    period = f"{_days(objective.window.duration).normalize():f}d"
    budget = 1 - objective.target
    window_s = int(_days(objective.window.duration) * 86400)
    errors = []
    if objective.method == "Occurrences":
        errors += [(w, _from_counters(where, w)) for w in _COUNTED]
    burning = {w: w for w, s in _BURNING.items() if s < window_s}
    errors += [(w, _from_burn(where, label, budget)) for w, label in (burning | {period: PERIOD}).items()]
    yield {
        "name": f"agent-slo-sli-{identity['sloth_id']}",
        "rules": [
            _rule(f"slo:sli_error:ratio_rate{w}", expression, identity | {"sloth_window": w})
            for w, expression in errors
        ],
    }
    same = labels_text({"sloth_id": identity["sloth_id"]})
    on = "on(sloth_id, sloth_slo, sloth_service)"
    shortest = errors[0][0]
    burn = f"{on} group_left slo:error_budget:ratio{same}"
    yield {
        "name": f"agent-slo-meta-{identity['sloth_id']}",
        "rules": [
            _rule("slo:objective:ratio", f"vector({objective.target.normalize():f})", identity),
            _rule("slo:error_budget:ratio", f"vector({budget.normalize():f})", identity),
            _rule(
                "slo:time_period:days", f"vector({_days(objective.window.duration).normalize():f})", identity
            ),
            _rule(
                "slo:current_burn_rate:ratio",
                f"slo:sli_error:ratio_rate{shortest}{same} / {burn}",
                identity,
            ),
            _rule("slo:period_burn_rate:ratio", f"slo:sli_error:ratio_rate{period}{same} / {burn}", identity),
            _rule(
                "slo:period_error_budget_remaining:ratio",
                "agent_slo_error_budget_remaining_ratio" + labels_text(where),
                identity,
            ),
            _rule(
                "sloth_slo_info",
                "vector(1)",
                identity
                | {
                    "sloth_mode": "agent-slo",
                    "sloth_objective": f"{(objective.target * 100).normalize():f}",
                    "sloth_spec": "openslo/v1",
                    "sloth_version": "agent-slo",
                },
            ),
        ],
    }


def _from_counters(where: dict[str, str], window: str) -> str:
    bad = labels_text({**where, "outcome": "bad"})
    every = labels_text(where)[:-1] + ',outcome=~"good|bad"}'
    name = "agent_slo_events_total"
    return f"sum(rate({name}{bad}[{window}])) / (sum(rate({name}{every}[{window}])) > 0)"


def _from_burn(where: dict[str, str], window: str, budget: Decimal) -> str:
    burn = labels_text({**where, "window": window})
    return f"sum(agent_slo_burn_rate{burn}) * {budget.normalize():f}"


def _rule(record: str, expression: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"record": record, "expr": expression, "labels": labels}
