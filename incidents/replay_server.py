"""The simulator of a case as an MCP server: any agent that speaks MCP can be pointed at the incident's tools.

Every call goes through the ledger of one simulator, however many connections and processes the agent uses. Needs the
package `mcp` (extra `replay`); nothing else of the export does.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import anyio
import mcp_types as types
import uvicorn
from mcp.client import Client
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from incidents.replay import ProcessCrash, Simulator, ToolError, ToolTimeout

Json = dict[str, Any]
Extra = Literal["wait", "answer"]
EXTRAS: tuple[Extra, ...] = ("wait", "answer")
WAIT, ANSWER, TASK = "replay_wait", "replay_answer", "task"
HOST = "127.0.0.1"
DIED = -32001
"""JSON-RPC code of a call in which the recorded process died, where nobody can kill the agent."""

_EXTRA_TOOLS: dict[Extra, types.Tool] = {
    "wait": types.Tool(
        name=WAIT,
        description="Let time pass: moves the clock of the replay without waiting.",
        input_schema={
            "type": "object",
            "properties": {"seconds": {"type": "number", "minimum": 0, "description": "How long to wait."}},
            "required": ["seconds"],
        },
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    ),
    "answer": types.Tool(
        name=ANSWER,
        description="Give the final answer of the task.",
        input_schema={
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "The answer, as the user would read it."}
            },
            "required": ["text"],
        },
        annotations=types.ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    ),
}


def described(tool: Mapping[str, Any]) -> types.Tool:
    """A tool of a case as `tools/list` tells it. The hints say what the case knows, never more."""
    reads = tool["effect"] == "read"
    return types.Tool(
        name=tool["name"],
        description=tool["description"],
        input_schema={**tool["parameters"], "type": "object"},
        annotations=types.ToolAnnotations(
            read_only_hint=reads,
            # handing a case to a person adds something and takes nothing away; of other writes nobody said so
            destructive_hint=not reads and not tool.get("escalates", False),
            idempotent_hint=reads or bool(tool.get("idempotent", False)),
            open_world_hint=False,
        ),
    )


class ReplayServer:
    """One simulator behind MCP handlers.

    `on_crash` is told when the recorded process dies inside a call; the call is then never answered, nor is any other
    of that process, and the one who was told kills it. Without it the caller gets a JSON-RPC error and the next call
    counts as one of a new process.
    """

    def __init__(
        self, sim: Simulator, extras: Sequence[Extra] = (), on_crash: Callable[[], None] | None = None
    ) -> None:
        self.sim = sim
        self.final: str | None = None
        self._extras = tuple(extras)
        self._on_crash = on_crash
        self._dead = False
        taken = {WAIT, ANSWER} & set(sim.tools)
        if taken and extras:
            raise ValueError(f"the case has a tool {min(taken)} of its own; leave the extra tools out")

    def mcp(self) -> Server[Any]:
        """A server with the tools of the case, and its task as the prompt `task`."""
        return Server(
            "agent-slo replay",
            instructions="Tools of a recorded incident. Nothing they do leaves this simulation.",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_prompts=self._prompts,
            on_get_prompt=self._prompt,
        )

    async def _list(self, ctx: Any, params: Any) -> types.ListToolsResult:
        tools = [described(tool) for tool in self.sim.case["tools"]]
        return types.ListToolsResult(tools=tools + [_EXTRA_TOOLS[name] for name in self._extras])

    async def _call(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if self._dead:
            await anyio.sleep_forever()
        args = params.arguments or {}
        if params.name == WAIT and "wait" in self._extras:
            return self._wait(args)
        if params.name == ANSWER and "answer" in self._extras:
            self.final = self.sim.final = str(args.get("text", ""))
            return _told({"ok": True})
        try:
            return _told(self.sim.call(params.name, args))
        except ToolTimeout as timeout:
            return _told({"error": {"type": "timeout", "message": str(timeout)}}, failed=True)
        except ToolError as error:
            return _told({"error": error.error}, failed=True)
        except ProcessCrash as crash:
            return await self._die(crash)

    def _wait(self, args: Mapping[str, Any]) -> types.CallToolResult:
        seconds = args.get("seconds")
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds <= 1e9:
            return _told(
                {"error": {"type": "invalid", "message": "seconds: a number of 0 or more"}}, failed=True
            )
        self.sim.clock.sleep(float(seconds))
        return _told({"now": round(self.sim.clock.now(), 3)})

    async def _die(self, crash: ProcessCrash) -> types.CallToolResult:
        if self._on_crash is None:
            self.sim.restarts += 1
            self.sim.run += 1
            raise MCPError(
                DIED, "the recorded process died inside this call: start the agent anew with the same task"
            ) from None
        self._dead = True
        self._on_crash()
        await anyio.sleep_forever()
        raise AssertionError("unreachable") from crash

    async def _prompts(self, ctx: Any, params: Any) -> types.ListPromptsResult:
        prompt = types.Prompt(name=TASK, description="What the agent was asked in the recorded incident.")
        return types.ListPromptsResult(prompts=[prompt])

    async def _prompt(self, ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != TASK:
            raise MCPError(types.INVALID_PARAMS, f"no prompt {params.name!r}; there is {TASK}")
        return types.GetPromptResult(
            messages=[
                types.PromptMessage(
                    # MCP knows no instructions: they are told as the user's
                    role="assistant" if message["role"] == "assistant" else "user",
                    content=types.TextContent(type="text", text=message["content"]),
                )
                for message in self.sim.case["task"]["messages"]
            ]
        )


def _told(value: Any, failed: bool = False) -> types.CallToolResult:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=value if isinstance(value, dict) else None,
        is_error=failed,
    )


@contextmanager
def serving(replay: ReplayServer, port: int = 0, verdict: Callable[[], Json] | None = None) -> Iterator[str]:
    """Serve over streamable HTTP on loopback, in a thread; yields the URL for an MCP client.

    The URL holds a random part, so that no other user of the machine reaches the ledger. With `verdict`, `GET task`
    and `verdict` beside the URL tell the messages and the verdict so far, `POST answer` takes the final answer.
    Raises `OSError` when the port is taken.
    """
    root = "/" + secrets.token_urlsafe(18)
    app = replay.mcp().streamable_http_app(
        streamable_http_path=f"{root}/mcp",
        host=HOST,
        json_response=True,
        stateless_http=True,
        custom_starlette_routes=_beside(replay, root, verdict) if verdict else None,
    )
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError:
        listener.close()
        raise
    server = uvicorn.Server(
        uvicorn.Config(
            app, log_level="critical", access_log=False, lifespan="on", timeout_graceful_shutdown=1
        )
    )
    ready = threading.Event()
    thread = threading.Thread(target=_run, args=(server, listener, ready), name="replay-server", daemon=True)
    thread.start()
    ready.wait()
    try:
        yield f"http://{HOST}:{listener.getsockname()[1]}{root}/mcp"
    finally:
        # a call in which the process died is never answered, so there is no grace to wait for
        server.should_exit = server.force_exit = True
        thread.join(timeout=10)
        listener.close()


def _run(server: uvicorn.Server, listener: socket.socket, ready: threading.Event) -> None:
    async def serve() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_told_ready, server, ready)
            await server.serve(sockets=[listener])

    anyio.run(serve)


async def _told_ready(server: uvicorn.Server, ready: threading.Event) -> None:
    while not server.started and not server.should_exit:
        await anyio.sleep(0.005)
    ready.set()


def _beside(replay: ReplayServer, root: str, verdict: Callable[[], Json]) -> list[Route]:
    async def task(request: Request) -> Response:
        return JSONResponse(replay.sim.case["task"]["messages"])

    async def told(request: Request) -> Response:
        return JSONResponse(verdict())

    async def answer(request: Request) -> Response:
        replay.final = replay.sim.final = (await request.body()).decode("utf-8", "replace")
        return Response(status_code=204)

    return [
        Route(f"{root}/task", task, methods=["GET"]),
        Route(f"{root}/verdict", told, methods=["GET"]),
        Route(f"{root}/answer", answer, methods=["POST"]),
    ]


def serve_stdio(replay: ReplayServer) -> None:
    """Serve on standard input and output until the client closes them."""
    anyio.run(_stdio, replay.mcp())


async def _stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def bridge(url: str) -> None:
    """Serve on standard input and output what the replay server at `url` has: for agents that start their server.

    The ledger stays where it is, so an agent may start the command again after a crash.
    """
    anyio.run(_bridged, url)


async def _bridged(url: str) -> None:
    async with Client(url) as client:

        async def listed(ctx: Any, params: Any) -> types.ListToolsResult:
            return await client.list_tools()

        async def called(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
            return await client.call_tool(params.name, params.arguments)

        async def prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
            return await client.list_prompts()

        async def prompt(ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
            return await client.get_prompt(params.name)

        await _stdio(
            Server(
                "agent-slo replay",
                on_list_tools=listed,
                on_call_tool=called,
                on_list_prompts=prompts,
                on_get_prompt=prompt,
            )
        )
