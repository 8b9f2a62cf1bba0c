"""A command-line agent for tests of the replay: plays a scripted agent over MCP. `mcp_agents.py NAME CASE_FILE`.

It keeps to what the replay tells a command: the address in its environment, the conversation in a file, the answer on
standard output. The case file only tells the scripted agent its part.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from incidents.replay import AGENTS


def server() -> Any:
    if "AGENT_SLO_REPLAY_COMMAND" not in os.environ:
        return os.environ["AGENT_SLO_REPLAY_URL"]
    command, *arguments = json.loads(os.environ["AGENT_SLO_REPLAY_COMMAND"])
    return StdioServerParameters(
        command=command, args=arguments, env={"PYTHONPATH": os.environ["PYTHONPATH"]}
    )


async def play(name: str, case: dict[str, Any]) -> str:
    messages = json.loads(Path(os.environ["AGENT_SLO_REPLAY_MESSAGES"]).read_text(encoding="utf-8"))
    start = AGENTS[name](case)
    run = int(os.environ["AGENT_SLO_REPLAY_RUN"])
    if name == "recorded":  # the tape goes on where the dead process was cut off
        made = [call for call in case["observed"]["calls"] if call.get("run", 0) == run]
        start = AGENTS[name](
            {**case, "observed": {**case["observed"], "calls": [{**c, "run": 0} for c in made]}}
        )
    agent = start()
    async with Client(server()) as client:
        for number in range(200):
            act = agent.act(messages)
            if act.wait is not None:
                await client.call_tool("replay_wait", {"seconds": act.wait})
                continue
            if act.tool is None:
                return act.final or ""
            answer = await client.call_tool(act.tool, dict(act.args or {}))
            text = answer.content[0].text  # type: ignore[union-attr]
            error = None
            if answer.is_error:
                kind = json.loads(text)["error"]["type"]
                error = "timeout" if kind == "timeout" else "error"
            call = {"id": f"c{run}-{number}", "name": act.tool, "arguments": dict(act.args or {})}
            messages += [
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {
                    "role": "tool",
                    "tool_call_id": call["id"],
                    "name": act.tool,
                    "content": text,
                    "error": error,
                },
            ]
    return ""


if __name__ == "__main__":
    wanted = {
        c["case_id"]: c for c in map(json.loads, Path(sys.argv[2]).read_text(encoding="utf-8").splitlines())
    }
    print(anyio.run(play, sys.argv[1], wanted[os.environ["AGENT_SLO_REPLAY_CASE"]]))
