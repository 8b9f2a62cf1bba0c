"""Everything `POST /actions` takes, in one place; each is described in docs/actions.md."""

from __future__ import annotations

from typing import Any

from agent_slo.actions import Action, registry
from agent_slo.alert_actions import alert_actions
from agent_slo.case_actions import case_actions
from agent_slo.incident_actions import incident_actions
from agent_slo.label_actions import label_actions
from agent_slo.objective_actions import objective_actions
from metrics.alerts.engine import AlertEngine


def operator_actions(engine: AlertEngine) -> dict[str, Action[Any]]:
    """Actions by name; `engine` keeps the alerts they may silence or end."""
    return registry(
        *incident_actions().values(),
        *case_actions().values(),
        *label_actions().values(),
        *objective_actions().values(),
        *alert_actions(engine).values(),
    )
