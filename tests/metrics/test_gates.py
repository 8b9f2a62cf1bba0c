"""Whether an approval that the agent waits for by design is an intervention is for the configuration to say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from metrics.settings import MetricsSettings
from tests.metrics.bench import at, bench, request, span

Span = dict[str, Any]
LATER = at(86_400)


def task(name: str, agent: str, *, gate: bool = False, escalates: bool = False) -> list[Span]:
    root = span(
        name, "invoke_agent", 0, 60, id="root", gen_ai__operation__name="invoke_agent", gen_ai__agent__name=agent,
        agent_slo__task__id=name, agent_slo__task__outcome="completed",
    )  # fmt: skip
    tool: dict[str, Any] = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__call__result": "done"}
    approved: dict[str, Any] = {"agent_slo__human__decision": "approved"} if gate else {}
    spans = [root, span(name, "execute_tool pay", 1, 2, "root", gen_ai__tool__name="pay", **approved, **tool)]
    if escalates:
        spans.append(span(name, "execute_tool ask_boss", 3, 9, "root", gen_ai__tool__name="ask_boss", **tool))
    return spans


@pytest.mark.parametrize(
    ("rules", "counted"),
    [
        ({}, {"gate": 1, "both": 2, "other": 1, "alone": 0}),
        ({"default": {"gate_is_intervention": False}}, {"gate": 0, "both": 1, "other": 0, "alone": 0}),
        (
            {"pay": {"match": {"agent": "clerk"}, "gate_is_intervention": False}},
            {"gate": 0, "both": 1, "other": 1, "alone": 0},
        ),
    ],
)
def test_a_planned_gate_counts_unless_it_is_said_not_to(
    tmp_path: Path, rules: dict[str, Any], counted: dict[str, int]
) -> None:
    settings = MetricsSettings.model_validate(
        {"tools": {"pay": {"effect": "write"}, "ask_boss": {"effect": "escalate"}}, "tasks": rules}
    )
    sent = [
        *task("gate", "clerk", gate=True),
        *task("both", "clerk", gate=True, escalates=True),
        *task("other", "teller", gate=True),
        *task("alone", "clerk"),
    ]
    with bench(tmp_path, settings) as one:
        one.send([request(sent)]).derive(LATER)
        tasks = {r["task_id"]: r for r in one.rows("SELECT * FROM core.tasks")}
        events = {
            (r["sli"], r["task_id"]): r["verdict"]
            for r in one.rows("SELECT sli, task_id, verdict FROM core.sli_events")
        }
        (moments,) = one.rows("SELECT count(*) AS n FROM core.interventions")
    assert {name: row["interventions"] for name, row in tasks.items()} == counted
    assert {name: row["planned_interventions"] for name, row in tasks.items()} == {
        "gate": 1, "both": 1, "other": 1, "alone": 0,
    }  # fmt: skip
    assert moments["n"] == 4  # listed all the same
    for name, number in counted.items():
        assert tasks[name]["autonomous"] == (number == 0)
        assert events["human_intervention", name] == ("good" if number == 0 else "bad")
        assert events["autonomous_completion", name] == ("good" if number == 0 else "bad")
