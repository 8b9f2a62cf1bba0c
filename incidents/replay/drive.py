"""Driving an agent through a case: turns, waits, crashes with restart from the checkpoint, repeated delivery."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .checks import Ending, Verdict, judge
from .world import ProcessCrash, Simulator, ToolError, ToolTimeout

Message = dict[str, Any]
MAX_STEPS = 200
MAX_RESTARTS = 8


@dataclass(frozen=True)
class Act:
    """One turn: call a tool, wait some seconds, or end with an answer."""

    tool: str | None = None
    args: Mapping[str, Any] | None = None
    wait: float | None = None
    final: str | None = None


class Agent(Protocol):
    """One process of an agent: it sees the conversation and decides the next turn."""

    def act(self, messages: Sequence[Message]) -> Act: ...


Start = Callable[[], Agent]
"""Starts a process: after a crash the memory of the one before is gone."""


@dataclass(frozen=True)
class Outcome:
    """What a run did and how it is judged."""

    sim: Simulator
    ending: Ending
    verdict: Verdict


def _kept(case: Mapping[str, Any], base: list[Message], messages: list[Message]) -> list[Message]:
    """The conversation the checkpoint held: the task and the first tool results of the dead process."""
    results = case.get("resume", {}).get("keep_tool_results", 0)
    return base + messages[len(base) : len(base) + 2 * results]


def run_agent(
    case: Mapping[str, Any], start: Start, sim: Simulator | None = None, max_steps: int = MAX_STEPS
) -> Outcome:
    """Run an agent through a case and judge what it did. Ends after `max_steps` turns at the latest."""
    sim = sim or Simulator(case)
    base: list[Message] = [dict(message) for message in case["task"]["messages"]]
    messages, agent, steps = list(base), start(), 0
    deliveries = case.get("resume", {}).get("deliveries", 1)
    while steps < max_steps:
        steps += 1
        act = agent.act(messages)
        if act.wait is not None:
            sim.clock.sleep(act.wait)
        elif act.tool is None:
            sim.final = act.final or ""
            deliveries -= 1
            if deliveries <= 0:
                break
            sim.run += 1
            messages, agent = list(base), start()
        else:
            try:
                messages = messages + _turn(sim, act.tool, act.args or {})
            except ProcessCrash:
                sim.restarts += 1
                sim.run += 1
                if sim.restarts > MAX_RESTARTS:
                    break
                messages, agent = _kept(case, base, messages), start()
    ending = Ending(sim.final, steps)
    return Outcome(sim, ending, judge(case, sim, ending))


def _turn(sim: Simulator, tool: str, args: Mapping[str, Any]) -> list[Message]:
    error = None
    try:
        content = sim.call(tool, args)
    except ToolTimeout as timeout:
        content, error = {"error": {"type": "timeout", "message": str(timeout)}}, "timeout"
    except ToolError as failure:
        content, error = {"error": failure.error}, "error"
    call_id = f"call-{len(sim.calls)}"
    return [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": call_id, "name": tool, "arguments": dict(args)}],
        },
        {
            "role": "tool",
            "tool_call_id": call_id,
            "name": tool,
            "content": json.dumps(content),
            "error": error,
        },
    ]


def replay_recorded(case: Mapping[str, Any]) -> Outcome:
    """Drive the recorded calls through the case: they must fail the checks the incident failed."""
    from .agents import recorded

    return run_agent(case, recorded(case), max_steps=MAX_STEPS + 4 * len(case["observed"]["calls"]))
