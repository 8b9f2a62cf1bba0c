"""Plugs an agent into a replay by name, for tools that start one process a case and read JSON."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from .agents import AGENTS
from .drive import run_agent


def load_agent(name: str) -> Any:
    """The agent factory `module:attribute` names, or one of the scripted agents (`careful`, `recorded`, ...).

    A factory takes the case and returns a function that starts one process of the agent. Raises `ValueError`.
    """
    if name in AGENTS:
        return AGENTS[name]
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise ValueError(f"{name!r} is no agent: write module:factory, or one of {', '.join(AGENTS)}")
    return getattr(importlib.import_module(module), attribute)


def play(case: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Run the named agent through a case; the verdict as plain JSON."""
    outcome = run_agent(case, load_agent(name)(case))
    return {
        "case_id": case["case_id"],
        "final": outcome.ending.final,
        "verdict": {
            "pass": outcome.verdict.passed,
            "inconclusive": outcome.verdict.inconclusive,
            "results": [dict(result) for result in outcome.verdict.results],
        },
        "calls": len(outcome.sim.calls),
        "effects": [{"tool": e["tool"], "args": e["args"]} for e in outcome.sim.effects],
        "unmatched": outcome.sim.unmatched,
        "restarts": outcome.sim.restarts,
    }
