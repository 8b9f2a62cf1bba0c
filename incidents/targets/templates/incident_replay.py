"""Inspect AI task over the cases of this export: `inspect eval incident_replay.py --model provider/model`.

Every tool of a case is served by its simulator; a crash restarts the agent with what its checkpoint held; the checks
look at what the simulated world did. No sandbox and no network are needed beside the model's own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from inspect_ai import Task, task  # noqa: E402
from inspect_ai.agent import react, run  # noqa: E402
from inspect_ai.dataset import json_dataset  # noqa: E402
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool  # noqa: E402
from inspect_ai.scorer import (  # noqa: E402
    CORRECT,
    INCORRECT,
    NOANSWER,
    SampleScore,
    Score,
    accuracy,
    grouped,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import solver  # noqa: E402
from inspect_ai.tool import ToolCall, ToolDef, ToolError, ToolParams  # noqa: E402
from inspect_ai.util import store  # noqa: E402
from replay import ProcessCrash, Simulator, ToolTimeout, judge  # noqa: E402
from replay import ToolError as ReplayError  # noqa: E402
from replay.checks import Ending  # noqa: E402

SIMULATORS: dict[str, Simulator] = {}
"""The running simulator of each case, for scripted models that wait on its clock."""


class Crash(Exception):
    """The agent's process died; an ordinary exception, so that it ends the agent and not the evaluation."""


def _crashed(error: BaseException) -> bool:
    return isinstance(error, Crash) or any(_crashed(inner) for inner in getattr(error, "exceptions", ()))


def _parameters(schema: dict[str, Any]) -> ToolParams:
    """Inspect refuses a parameter without a description; recorded schemas often lack one."""
    known = {"type", "description", "enum", "items", "properties", "required", "default", "format", "anyOf"}
    properties = {}
    for name, value in schema.get("properties", {}).items():
        plain = {key: item for key, item in value.items() if key in known} if isinstance(value, dict) else {}
        properties[name] = {"description": name.replace("_", " "), **plain}
    required = [name for name in schema.get("required", []) if name in properties]
    return ToolParams.model_validate({"type": "object", "properties": properties, "required": required})


def _tools(sim: Simulator) -> list[Any]:
    def bound(name: str) -> Any:
        async def execute(**arguments: Any) -> str:
            try:
                return json.dumps(sim.call(name, arguments))
            except ToolTimeout as timeout:
                raise TimeoutError(str(timeout)) from timeout
            except ReplayError as error:
                raise ToolError(json.dumps({"error": error.error})) from error
            except ProcessCrash as crash:
                raise Crash(str(crash)) from crash

        return execute

    return [
        ToolDef(
            bound(tool["name"]),
            name=tool["name"],
            description=tool["description"],
            parameters=_parameters(tool["parameters"]),
            parallel=False,
        ).as_tool()
        for tool in sim.case["tools"]
    ]


def _kept(sim: Simulator, run_number: int, results: int) -> list[Any]:
    """The first tool results of the dead process, as its checkpoint held them."""
    messages: list[Any] = []
    rows = [row for row in sim.calls if row["run"] == run_number and row["status"] == "ok"][:results]
    for number, row in enumerate(rows):
        call_id = f"kept-{run_number}-{number}"
        call = ToolCall(id=call_id, function=row["tool"], arguments=row["args"], type="function")
        messages.append(ChatMessageAssistant(content="", tool_calls=[call]))
        answer = json.dumps(row.get("answer"))
        messages.append(ChatMessageTool(content=answer, tool_call_id=call_id, function=row["tool"]))
    return messages


@solver
def replay(max_restarts: int = 8) -> Any:
    async def solve(state: Any, generate: Any) -> Any:
        case = state.metadata["case"]
        sim = SIMULATORS[case["case_id"]] = Simulator(case)
        store().set("case_id", case["case_id"])
        agent = react(tools=_tools(sim), submit=False, prompt=None)
        resume = case.get("resume", {})
        deliveries = resume.get("deliveries", 1)
        base = list(state.messages)
        messages = base
        while True:
            try:
                ended = await run(agent, messages)
                state.messages, state.output = ended.messages, ended.output
                deliveries -= 1
                if deliveries <= 0:
                    break
                messages = list(base)
            except Exception as error:
                if not _crashed(error) or sim.restarts >= max_restarts:
                    raise
                sim.restarts += 1
                messages = base + _kept(sim, sim.run, resume.get("keep_tool_results", 0))
            sim.run += 1
        sim.final = state.output.completion
        return state

    return solve


@metric
def groups_passed() -> Any:
    """Share of groups of which every member passed: a single case can be passed by luck."""

    def measured(scores: list[SampleScore]) -> float:
        groups: dict[str, bool] = {}
        for score in scores:
            group = str((score.sample_metadata or {}).get("split_group"))
            groups[group] = groups.get(group, True) and score.score.as_float() == 1.0
        return sum(groups.values()) / len(groups) if groups else 0.0

    return measured


@scorer(metrics=[accuracy(), stderr(), groups_passed(), grouped(accuracy(), "failure_mode")])
def invariants() -> Any:
    async def score(state: Any, target: Any) -> Score:
        case = state.metadata["case"]
        sim = SIMULATORS[case["case_id"]]
        steps = sum(message.role == "assistant" for message in state.messages)
        verdict = judge(case, sim, Ending(sim.final, steps))
        value = CORRECT if verdict.passed else NOANSWER if verdict.inconclusive else INCORRECT
        return Score(
            value=value,
            answer=sim.final,
            explanation="\n".join(
                f"{'ok  ' if r['pass'] else 'FAIL'} {r['id']} [{r['level']}] {r['why']}"
                for r in verdict.results
            ),
            metadata={
                "checks": [dict(r) for r in verdict.results],
                "effects": len(sim.effects),
                "calls": len(sim.calls),
                "restarts": sim.restarts,
                "unmatched": sim.unmatched,
            },
        )

    return score


@task
def incident_replay(dataset: str = "incidents.jsonl") -> Task:
    return Task(
        dataset=json_dataset(str(HERE / dataset)), solver=replay(), scorer=invariants(), message_limit=120
    )
