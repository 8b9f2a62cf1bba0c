"""Runs an agent that is a command line through a case, with the case's tools behind MCP.

What the command is given: the task on standard input and in the environment, the server in the environment. What it
gives: its calls, and on standard output its answer. A process that the incident let die is killed in that very call
and started again with what its checkpoint held.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from incidents.replay import LiveClock, Simulator, Verdict, judge
from incidents.replay.checks import Ending
from incidents.replay.drive import MAX_RESTARTS, Message
from incidents.replay_server import Extra, ReplayServer, serving

Json = dict[str, Any]
Transport = Literal["http", "stdio"]
ENVIRONMENT = "replay"
"""Value of `deployment.environment.name` for everything a replay sends; left out of objectives by default."""
VERDICT = "agent-slo/replay-verdict"
MOST_OUTPUT = 1_000_000
"""Bytes of an agent's output that are read: an answer, not a log."""
TAIL = 2000
_GRACE_S = 10.0


class AgentError(Exception):
    """The command could not be run as an agent; the message says what to mend."""


@dataclass(frozen=True)
class Played:
    """What one command did in one case. `exits`: exit code of each process, None for one that was killed."""

    case: Mapping[str, Any]
    sim: Simulator
    verdict: Verdict
    exits: list[int | None] = field(default_factory=list)
    timed_out: bool = False
    errors: str = ""
    trace_id: str = ""
    span_id: str = ""

    @property
    def passed(self) -> bool:
        """Every `must` check holds and the agent came to its end in time."""
        return self.verdict.passed and not self.timed_out

    def as_json(self) -> Json:
        """The verdict as it is printed and kept."""
        return verdict_json(self.case, self.sim, self.verdict) | {
            "pass": self.passed,
            "exits": self.exits,
            "timed_out": self.timed_out,
            "trace_id": self.trace_id,
        }


def verdict_json(case: Mapping[str, Any], sim: Simulator, verdict: Verdict) -> Json:
    """A verdict as plain JSON: which case, which checks hold and why, what was called and what took effect."""
    return {
        "schema": VERDICT,
        "case_id": case["case_id"],
        "split_group": case["split_group"],
        "role": case["role"],
        "content_hash": case["content_hash"],
        "revision": case["revision"],
        "pass": verdict.passed,
        "inconclusive": verdict.inconclusive,
        "results": [dict(result) for result in verdict.results],
        "calls": [
            {name: row[name] for name in ("tool", "args", "status", "run", "fault") if name in row}
            | {"t": round(row["t"], 3)}
            for row in sim.calls
        ],
        "effects": [{"tool": effect["tool"], "args": effect["args"]} for effect in sim.effects],
        "unmatched": sim.unmatched,
        "restarts": sim.restarts,
        "final": sim.final,
    }


def run_command(
    case: Mapping[str, Any],
    command: Sequence[str],
    *,
    transport: Transport = "http",
    timeout_s: float = 300.0,
    time_scale: float = 1.0,
    extras: Sequence[Extra] = (),
) -> Played:
    """Run the command through the case and judge what it did.

    Raises `AgentError` when it cannot be started, or ends with an error before its first call.
    """
    run = _Run(case, command, transport, timeout_s, time_scale, extras)
    with tempfile.TemporaryDirectory(prefix="agent-slo-replay-") as folder:
        run.play(Path(folder))
    verdict = judge(case, run.sim, Ending(run.sim.final))
    return Played(case, run.sim, verdict, run.exits, run.timed_out, run.errors, run.trace_id, run.span_id)


class _Run:
    """One replay of one case by one command, over all its processes."""

    def __init__(
        self,
        case: Mapping[str, Any],
        command: Sequence[str],
        transport: Transport,
        timeout_s: float,
        time_scale: float,
        extras: Sequence[Extra],
    ) -> None:
        self.case = case
        self.command = list(command)
        self.transport = transport
        self.extras = extras
        self.sim = Simulator(case, LiveClock(time_scale))
        self.exits: list[int | None] = []
        self.timed_out = False
        self.errors = ""
        self.trace_id, self.span_id = secrets.token_hex(16), secrets.token_hex(8)
        self._until = time.monotonic() + timeout_s

    def play(self, folder: Path) -> None:
        base: list[Message] = [dict(message) for message in self.case["task"]["messages"]]
        deliveries = self.case.get("resume", {}).get("deliveries", 1)
        messages = base
        while True:
            crashed = self._process(folder, messages)
            if self.timed_out:
                return
            if crashed:
                self.sim.restarts += 1
                messages = base + self._kept()
                if self.sim.restarts > MAX_RESTARTS:
                    return
            else:
                deliveries -= 1
                if deliveries <= 0:
                    return
                messages = base
            self.sim.run += 1

    def _kept(self) -> list[Message]:
        """What the checkpoint of the dead process held: its first tool results."""
        kept: list[Message] = []
        results = self.case.get("resume", {}).get("keep_tool_results", 0)
        rows = [row for row in self.sim.calls if row["run"] == self.sim.run and row["status"] != "crash"]
        for number, row in enumerate(rows[:results]):
            call_id = f"kept-{self.sim.run}-{number}"
            call = {"id": call_id, "name": row["tool"], "arguments": row["args"]}
            content = (
                row.get("answer")
                if row["status"] == "ok"
                else {"error": row.get("error", {"type": "timeout"})}
            )
            kept.append({"role": "assistant", "content": "", "tool_calls": [call]})
            kept.append(
                {"role": "tool", "tool_call_id": call_id, "name": row["tool"], "content": json.dumps(content)}
            )
        return kept

    def _process(self, folder: Path, messages: Sequence[Message]) -> bool:
        """Run one process of the agent. Returns whether the incident let it die."""
        died = threading.Event()
        replay = ReplayServer(self.sim, self.extras, on_crash=died.set)
        number = self.sim.run
        asked, said, cried = (
            folder / f"{name}-{number}" for name in ("task.txt", "answer.txt", "errors.txt")
        )
        asked.write_text(_task(self.case), encoding="utf-8")
        with (
            serving(replay) as url,
            asked.open("rb") as given,
            said.open("wb") as out,
            cried.open("wb") as err,
        ):
            try:
                process = subprocess.Popen(
                    self.command,
                    stdin=given,
                    stdout=out,
                    stderr=err,
                    env=self._environment(folder, url, messages),
                    start_new_session=True,
                )
            except OSError as error:
                raise AgentError(
                    f"--agent: {self.command[0]!r} does not start ({(error.strerror or str(error)).lower()}); "
                    "name a program with its arguments, as you would in a shell"
                ) from error
            try:
                crashed = self._wait(process, died)
            finally:
                _end(process)
        self.exits.append(None if crashed or self.timed_out else process.returncode)
        self.errors = _tail(cried, TAIL)
        if crashed or self.timed_out:
            return crashed
        text = replay.final if replay.final is not None else _tail(said, MOST_OUTPUT)
        self.sim.final = text.strip() or None
        if process.returncode != 0 and not self.sim.calls:
            words = self.errors.strip().splitlines()
            raise AgentError(
                f"--agent: {self.command[0]!r} ended with exit code {process.returncode} before it called a tool"
                + (f": {words[-1][:300]}" if words else "")
            )
        return False

    def _wait(self, process: subprocess.Popen[bytes], died: threading.Event) -> bool:
        while process.poll() is None:
            if died.wait(0.02):
                return True
            if time.monotonic() > self._until:
                self.timed_out = True
                return False
        # a process that ended by itself after it was to die has died in that call
        return died.is_set()

    def _environment(self, folder: Path, url: str, messages: Sequence[Message]) -> dict[str, str]:
        bridge = [sys.executable, "-m", "incidents.replay_bridge", url]
        server: Json = (
            {"type": "http", "url": url}
            if self.transport == "http"
            else {"command": bridge[0], "args": bridge[1:], "env": _importable()}
        )
        config, told = folder / f"mcp-{self.sim.run}.json", folder / f"messages-{self.sim.run}.json"
        config.write_text(json.dumps({"mcpServers": {"incident": server}}), encoding="utf-8")
        told.write_text(json.dumps(list(messages), ensure_ascii=False), encoding="utf-8")
        given = {
            "AGENT_SLO_REPLAY_CASE": str(self.case["case_id"]),
            "AGENT_SLO_REPLAY_RUN": str(self.sim.run),
            "AGENT_SLO_REPLAY_TASK": _task(self.case),
            "AGENT_SLO_REPLAY_INSTRUCTIONS": _spoken(self.case, "system"),
            "AGENT_SLO_REPLAY_MESSAGES": str(told),
            "AGENT_SLO_REPLAY_MCP_CONFIG": str(config),
            "TRACEPARENT": f"00-{self.trace_id}-{self.span_id}-01",
            "OTEL_RESOURCE_ATTRIBUTES": _resource(os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")),
        }
        if self.transport == "http":
            given["AGENT_SLO_REPLAY_URL"] = url
        else:
            given["AGENT_SLO_REPLAY_COMMAND"] = json.dumps(bridge)
            given |= _importable()
        # NUL can stand in a trace and in no environment
        return {**os.environ, **{name: value.replace("\0", "�") for name, value in given.items()}}


def _importable() -> dict[str, str]:
    """What a process needs to import this package, wherever it is started."""
    here = str(Path(__file__).resolve().parents[1])
    others = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": here + (os.pathsep + others if others else "")}


def _spoken(case: Mapping[str, Any], role: str) -> str:
    return "\n\n".join(m["content"] for m in case["task"]["messages"] if m["role"] == role)


def _task(case: Mapping[str, Any]) -> str:
    """What the user asked for."""
    return _spoken(case, "user")


def _resource(stated: str) -> str:
    """The sender's own resource attributes, with the environment in which nothing counts for an objective."""
    kept = [
        pair
        for pair in stated.split(",")
        if pair.strip()
        and pair.partition("=")[0].strip() not in ("deployment.environment.name", "deployment.environment")
    ]
    return ",".join([*kept, f"deployment.environment.name={ENVIRONMENT}"])


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the agent: the process and what it started in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # the whole group is gone already
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=_GRACE_S)


def _tail(path: Path, most: int) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - most))
        return file.read(most).decode("utf-8", "replace")
