"""Runs an exported Inspect task with scripted agents in place of a model.

`inspect_agents.py TASK_FOLDER DATASET...`: a dataset has the name of the agent that plays it.

Prints a JSON object by agent: `status`, `error`, `scores` by case and `metrics`. It needs nothing of ours but what the
export holds.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.update(INSPECT_LOG_DIR=tempfile.mkdtemp(), INSPECT_DISPLAY="none")
sys.path.insert(0, sys.argv[1])

import incident_replay  # the exported task
from inspect_ai import eval as run_eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.util import store
from replay import AGENTS  # the exported replay core


def plain(message: Any) -> dict[str, Any]:
    """A message as the scripted agents know it."""
    found: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == "assistant" and message.tool_calls:
        found["tool_calls"] = [
            {"id": c.id, "name": c.function, "arguments": c.arguments} for c in message.tool_calls
        ]
    if message.role == "tool":
        found["tool_call_id"] = message.tool_call_id
        if message.error is not None:
            found["error"] = "timeout" if message.error.type == "timeout" else "error"
            found["content"] = message.error.message
    return found


def scripted(agent: str) -> Any:
    starts: dict[str, Any] = {}
    running: dict[tuple[str, int], Any] = {}

    def outputs(messages: list[Any], tools: Any, choice: Any, config: Any) -> ModelOutput:
        case_id = store().get("case_id")
        sim = incident_replay.SIMULATORS[case_id]
        start = starts.setdefault(case_id, AGENTS[agent](sim.case))
        process = running.setdefault((case_id, sim.run), None) or start()
        running[(case_id, sim.run)] = process
        told = [plain(message) for message in messages]
        act = process.act(told)
        while act.wait is not None:
            sim.clock.sleep(act.wait)
            act = process.act(told)
        if act.tool is None:
            output = ModelOutput.from_content("mockllm", act.final or " ")
        else:
            output = ModelOutput.for_tool_call("mockllm", act.tool, dict(act.args or {}))
        # without usage the mock model counts tokens with a table it would download
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    return get_model("mockllm/model", custom_outputs=outputs)


found = {}
for path in map(Path, sys.argv[2:]):
    agent = path.stem
    log = run_eval(incident_replay.incident_replay(str(path)), model=scripted(agent), display="none")[0]
    found[agent] = {
        "status": log.status,
        "error": log.error and log.error.message,
        "scores": {str(s.id): s.scores["invariants"].value for s in log.samples or [] if s.scores},
        "metrics": {
            n: m.value for s in (log.results.scores if log.results else []) for n, m in s.metrics.items()
        },
    }
print(json.dumps(found))
