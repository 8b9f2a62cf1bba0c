"""The incident's tools behind MCP: a client over stdio and HTTP, agents that are commands, and their verdict."""

from __future__ import annotations

import importlib.util
import json
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import orjson
import pytest
from click.testing import CliRunner, Result
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from agent_slo.cli import cli
from agent_slo.config import Config
from agent_slo.derivation import derive_once
from collector.decode import decode
from collector.reader import open_reader
from collector.store import Store
from incidents.bundle import Choice, export
from incidents.command_agent import Played, run_command
from incidents.evaluation_log import EVENT, log_request
from incidents.replay import Simulator
from incidents.replay_server import ReplayServer
from metrics.openslo import default_objectives
from tests.incidents.folders import fill
from tests.incidents.stories import SETTINGS, paid_twice
from tests.incidents.test_export import HOSTILE
from tests.metrics.bench import at

Case = dict[str, Any]
HERE = Path(__file__).parent
PAY = {"to": "Ada", "amount": 40}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("paid") / "data", [paid_twice()], SETTINGS, at(90000))


@pytest.fixture(scope="module")
def bundle(data: Path) -> Path:
    out = data.parent / "out"
    with open_reader(data) as reader:
        export(reader, SETTINGS, out, Choice(kinds=("duplicate_action",)), "9.9.9")
    return out


@pytest.fixture(scope="module")
def group(bundle: Path) -> list[Case]:
    """The incident, its twin and its control."""
    return [json.loads(line) for line in (bundle / "cases.jsonl").read_text().splitlines()]


def plain(kind: str) -> list[str]:
    return [sys.executable, str(HERE / "plain_agent.py"), kind]


def scripted(name: str, bundle: Path) -> list[str]:
    return [sys.executable, str(HERE / "mcp_agents.py"), name, str(bundle / "cases.jsonl")]


def crashing(case: Case) -> Case:
    """The same case, where the process dies in its first payment, which took effect."""
    fault = {
        "id": "f1", "tool": "pay", "from_call": 1, "times": 1, "kind": "crash", "effect": "applied",
    }  # fmt: skip
    return {**case, "faults": [fault], "resume": {"keep_tool_results": 0}}


def inside(server: ReplayServer, body: Callable[[Client], Any]) -> Any:
    async def run() -> Any:
        async with Client(server.mcp()) as client:
            return await body(client)

    return anyio.run(run)


# ---- the server ---------------------------------------------------------------------------------------------------


def test_the_tools_are_told_with_their_schemas_and_hints(group: list[Case]) -> None:
    async def listed(client: Client) -> Any:
        return (await client.list_tools()).tools, await client.get_prompt("task")

    case = group[0]
    to = {"properties": {"to": {"type": "string"}}}
    other = {"name": "look", "description": "Looks.", "effect": "read", "parameters": to}
    set_to = {**case["tools"][0], "name": "set_limit", "idempotent": True}
    person = {**case["tools"][0], "name": "ask_person", "escalates": True}
    tools, prompt = inside(
        ReplayServer(Simulator({**case, "tools": [*case["tools"], other, set_to, person]}), ("wait",)), listed
    )
    found = {tool.name: tool for tool in tools}
    assert set(found) == {"pay", "look", "set_limit", "ask_person", "replay_wait"}
    assert found["pay"].input_schema["properties"].keys() >= PAY.keys()
    hints = {
        name: (t.annotations.read_only_hint, t.annotations.destructive_hint, t.annotations.idempotent_hint)
        for name, t in found.items()
    }
    assert hints["pay"] == (False, True, False)
    assert hints["look"] == (True, False, True)
    assert hints["set_limit"] == (False, True, True)
    assert hints["ask_person"] == (False, False, False)
    assert [message.content.text for message in prompt.messages] == ["Pay 40 to Ada."]


def test_the_fault_strikes_at_the_recorded_call_with_its_hidden_effect(group: list[Case]) -> None:
    async def played(client: Client) -> Any:
        return [await client.call_tool("pay", {**PAY, "idempotency_key": "k"}) for _ in range(2)]

    for case, hidden in zip(group, (1, 0, 1), strict=True):
        sim = Simulator(case)
        first, second = inside(ReplayServer(sim), played)
        if case["role"] == "control":
            assert not first.is_error
        else:
            assert first.is_error
            assert first.structured_content["error"]["type"] == "timeout"
            assert sim.calls[0]["status"] == "timeout"
            assert sum(effect["call"] == 0 for effect in sim.effects) == hidden
        assert not second.is_error
        assert second.structured_content["state"] == "made"
        assert len(sim.effects) == 1


def test_what_the_incident_does_not_know_is_an_error_and_no_verdict(group: list[Case]) -> None:
    async def played(client: Client) -> Any:
        return await client.call_tool("pay", {"to": "Bob", "amount": 1}), await client.call_tool("fly", {})

    sim = Simulator(group[2])
    unknown, none = inside(ReplayServer(sim), played)
    assert unknown.structured_content["error"]["type"] == "replay_unmatched"
    assert none.structured_content["error"]["type"] == "no_such_tool"
    assert [row["tool"] for row in sim.unmatched] == ["pay"]


def test_waiting_moves_the_clock_and_nothing_else(group: list[Case]) -> None:
    async def waited(client: Client) -> Any:
        return [await client.call_tool("replay_wait", {"seconds": s}) for s in (3600, -1, "long", True)]

    sim = Simulator(group[0])
    right, *wrong = inside(ReplayServer(sim, ("wait",)), waited)
    assert not right.is_error
    assert all(answer.is_error for answer in wrong)
    assert sim.clock.now() == 3600
    assert sim.calls == []


def test_hostile_names_and_texts_stay_data(group: list[Case]) -> None:
    name = '=cmd|"{{ 7*7 }}" pay\x00 ../x <b>'

    async def played(client: Client) -> Any:
        return (await client.list_tools()).tools[0].name, await client.call_tool(name, PAY)

    tool = {**group[2]["tools"][0], "name": name, "description": "\x00 ${x} {{ y }} \u2028"}
    rules = [{"tool": name, "result": {"said": HOSTILE}}]
    case = {**group[2], "tools": [tool], "world": {"rules": rules, "on_unmatched": "error"}}
    listed, answer = inside(ReplayServer(Simulator(case)), played)
    assert listed == name
    assert answer.structured_content == {"said": HOSTILE}
    assert json.loads(answer.content[0].text) == {"said": HOSTILE}


def test_a_crash_without_somebody_to_kill_is_told_and_the_next_call_is_a_new_process(
    group: list[Case],
) -> None:
    async def played(client: Client) -> Any:
        with pytest.raises(MCPError, match="start the agent anew"):
            await client.call_tool("pay", PAY)
        return await client.call_tool("pay", PAY)

    sim = Simulator(crashing(group[0]))
    assert not inside(ReplayServer(sim), played).is_error
    assert [row["run"] for row in sim.calls] == [0, 1]
    assert (sim.restarts, len(sim.effects)) == (1, 2)


def test_extra_tools_never_hide_one_of_the_case(group: list[Case]) -> None:
    own = {**group[0]["tools"][0], "name": "replay_wait"}
    with pytest.raises(ValueError, match="replay_wait"):
        ReplayServer(Simulator({**group[0], "tools": [own]}), ("wait",))


# ---- agents that are commands -------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_a_scripted_client_is_judged_end_to_end(group: list[Case], bundle: Path, transport: Any) -> None:
    repeats = run_command(group[0], scripted("recorded", bundle), transport=transport, extras=["wait"])
    assert not repeats.passed
    assert repeats.verdict.failed == group[0]["observed"]["failed_checks"]
    assert [row["status"] for row in repeats.sim.calls] == ["timeout", "ok"]
    assert repeats.exits == [0]
    behaves = [
        run_command(case, scripted("careful", bundle), transport=transport, extras=["wait"]) for case in group
    ]
    assert [one.passed for one in behaves] == [True, True, True]
    assert behaves[0].sim.final


def test_a_process_is_killed_in_the_call_in_which_it_died(group: list[Case], bundle: Path) -> None:
    case = crashing(group[0])
    careless = run_command(case, plain("careless"))
    assert careless.exits == [None, 0]
    assert careless.sim.restarts == 1
    assert [(row["run"], row["status"]) for row in careless.sim.calls] == [(0, "crash"), (1, "ok")]
    assert not careless.passed
    assert run_command(case, plain("careful"), extras=["wait"]).passed


def test_without_a_time_scale_only_recorded_delays_move_the_clock(group: list[Case]) -> None:
    played = run_command(group[0], plain("careless"), time_scale=0.0)
    first, second = played.sim.calls
    assert (first["t"], first["t_end"], second["t"]) == (0.0, 30.0, 30.0)


def test_an_agent_that_never_ends_is_killed_and_fails(group: list[Case]) -> None:
    endless = run_command(group[0], plain("endless"), timeout_s=0.5)
    assert endless.timed_out
    assert not endless.passed
    assert endless.exits == [None]
    assert endless.as_json()["pass"] is False


def test_what_an_agent_sends_itself_is_marked_as_a_replay(
    group: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=production,team=a")
    shown = run_command(
        group[0],
        [
            sys.executable,
            "-c",
            "import os; print(os.environ['OTEL_RESOURCE_ATTRIBUTES'], os.environ['TRACEPARENT'])",
        ],
    )
    attributes, parent = str(shown.sim.final).split()
    assert attributes == "team=a,deployment.environment.name=replay"
    assert parent == f"00-{shown.trace_id}-{shown.span_id}-01"


# ---- the command --------------------------------------------------------------------------------------------------


def ask(*words: str) -> Result:
    return CliRunner().invoke(cli, ["replay", *words])


def test_exit_codes_and_both_forms_of_the_verdict(bundle: Path, data: Path, tmp_path: Path) -> None:
    kept = tmp_path / "verdict.json"
    good = ask(
        str(bundle), "--agent", shlex.join(plain("careful")), "--offer", "wait", "--verdict", str(kept)
    )
    assert good.exit_code == 0, good.output
    assert "3 of 3 cases passed" in good.stdout
    assert json.loads(kept.read_text())["pass"] is True
    bad = ask(str(bundle), "--role", "incident", "--json", "--agent", shlex.join(plain("careless")))
    assert bad.exit_code == 1, bad.output
    told = json.loads(bad.stdout)
    assert told["pass"] is False
    (case,) = told["cases"]
    assert [r["id"] for r in case["results"] if r["level"] == "must" and not r["pass"]] == ["once", "key"]
    assert [call["fault"] for call in case["calls"] if "fault" in call] == ["f1"]
    settings = tmp_path / "agent-slo.yaml"
    settings.write_text("tools: {pay: {effect: write, key_fields: [to, amount]}}\n")
    stored = ask(
        case["case_id"], "--data", str(data), "--config", str(settings), "--role", "control", "--json",
        "--agent", shlex.join(plain("careless")),
    )  # fmt: skip
    assert stored.exit_code == 0, stored.output
    assert json.loads(stored.stdout)["cases"][0]["role"] == "control"


def test_what_cannot_be_run_is_one_clear_line(bundle: Path, data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"schema": "something"}\n')
    newer = tmp_path / "newer.jsonl"
    newer.write_text('{"schema": "agent-slo/eval-case", "schema_version": "9.0.0"}\n')
    agent = ("--agent", shlex.join(plain("careful")))
    several = tmp_path / "several.jsonl"
    lines = (bundle / "cases.jsonl").read_text()
    several.write_text(lines + lines.replace('"split_group":"grp-', '"split_group":"grp-other-'))
    for words, part in (
        ((str(bundle),), "--agent"),
        ((str(bundle), *agent, "--serve", "http"), "--agent"),
        ((str(several), "--serve", "stdio"), "holds 2 groups"),
        ((str(bundle), "--agent", "no-such-program"), "does not start"),
        ((str(bundle), "--agent", "'open"), "no command line"),
        ((str(bundle), "--agent", ""), "is empty"),
        ((str(bundle), "--agent", shlex.join(plain("broken"))), "no model is configured"),
        ((str(tmp_path / "none.jsonl"), *agent), "no such file"),
        ((str(other), *agent), "other.jsonl: is no case"),
        ((str(newer), *agent), "9.0.0"),
        (("inc-none", *agent, "--from", str(bundle)), "no case 'inc-none'"),
        (("inc-none", *agent, "--data", str(data)), "no incident 'inc-none'"),
        ((str(bundle), *agent, "--otlp", "nonsense"), "no address"),
    ):
        run = ask(*words)
        assert run.exit_code == 2, (words, run.output)
        lines = run.stderr.strip().splitlines()
        assert part in lines[-1], (words, lines)
        assert sum(line.startswith("agent-slo:") for line in lines) == 1


def test_without_the_package_the_command_says_how_to_get_it(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "mcp" else find(name, *rest)
    )
    run = ask(str(bundle), "--agent", "true")
    assert run.exit_code == 2
    assert "agent-slo[replay]" in run.stderr


def test_a_served_case_over_stdio(bundle: Path, tmp_path: Path) -> None:
    verdict = tmp_path / "verdict.json"
    server = StdioServerParameters(
        command=sys.executable,
        args=[
            "-m", "agent_slo", "replay", str(bundle), "--role", "incident", "--serve", "stdio", "--offer", "answer",
            "--verdict", str(verdict),
        ],
        env={"PYTHONPATH": str(HERE.parents[1])},
    )  # fmt: skip

    async def played() -> None:
        async with Client(server) as client:
            for _ in range(2):
                await client.call_tool("pay", {**PAY, "idempotency_key": "k"})
            await client.call_tool("replay_answer", {"text": "Paid."})

    anyio.run(played)
    (case,) = json.loads(verdict.read_text())["cases"]
    assert (case["pass"], case["final"]) == (True, "Paid.")
    assert [call["status"] for call in case["calls"]] == ["timeout", "ok"]


def test_a_served_case_over_http(bundle: Path) -> None:
    process = subprocess.Popen(
        [
            sys.executable, "-m", "agent_slo", "replay", str(bundle), "--role", "incident", "--serve", "http", "--json",
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=HERE.parents[1],
    )  # fmt: skip
    try:
        assert process.stderr is not None
        url = process.stderr.readline().split(" at ")[1].split(";")[0]
        assert url.startswith("http://127.0.0.1:")

        async def played() -> Any:
            async with Client(url) as client:
                return await client.call_tool("pay", PAY)

        assert anyio.run(played).is_error
        beside = url.removesuffix("mcp")
        with urllib.request.urlopen(beside + "task") as answer:
            assert json.load(answer)[0]["content"] == "Pay 40 to Ada."
        with urllib.request.urlopen(
            urllib.request.Request(beside + "answer", b"Not sure.", method="POST")
        ) as answer:
            assert answer.status == 204
        with urllib.request.urlopen(beside + "verdict") as answer:
            so_far = json.load(answer)
        assert (so_far["final"], len(so_far["calls"])) == ("Not sure.", 1)
    finally:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert json.loads(out)["cases"][0]["effects"] == [{"args": PAY, "tool": "pay"}]


# ---- the verdict as telemetry -------------------------------------------------------------------------------------


@contextmanager
def endpoint(taken: list[tuple[str, dict[str, str], bytes]], status: int = 200) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            taken.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            """Keeps quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_verdict_goes_to_an_endpoint_and_a_refusal_is_told(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[str, dict[str, str], bytes]] = []
    words = (str(bundle), "--role", "incident", "--agent", shlex.join(plain("careless")))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc")
    with endpoint(taken) as url:
        assert ask(*words, "--otlp", url).exit_code == 1
    ((path, headers, body),) = taken
    assert path == "/v1/logs"
    assert headers["authorization"] == "Bearer abc"
    records = json.loads(body)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert {record["eventName"] for record in records} == {EVENT}
    with endpoint([], 503) as url:
        refused = ask(*words, "--otlp", url)
    assert refused.exit_code == 2
    assert "did not take the verdict" in refused.stderr


def test_a_verdict_never_counts_for_an_objective(group: list[Case], tmp_path: Path) -> None:
    played: list[Played] = [run_command(case, plain("careless")) for case in group]
    asked = log_request(played, "9.9.9", int(datetime(2026, 11, 28).timestamp() * 1e9))
    store = Store.open(tmp_path / "data")
    try:
        store.append(decode("logs", "json", orjson.dumps(asked)).batch)
        derive_once(store, Config(), default_objectives(), datetime(2026, 12, 5))
        with store.reader() as con:
            logs = con.execute("SELECT event_name, trace_id, service FROM logs").fetchall()
            counted = con.execute(
                "SELECT sli, verdict FROM sli_events WHERE verdict <> 'excluded'"
            ).fetchall()
            tasks = con.execute("SELECT DISTINCT environment, excluded_reason FROM tasks").fetchall()
            findings = con.execute("SELECT kind FROM findings").fetchall()
    finally:
        store.close()
    assert {(row[0], row[2]) for row in logs} == {(EVENT, "agent-slo-replay")}
    assert {row[1] for row in logs} == {one.trace_id for one in played}
    assert counted == []
    assert findings == []
    assert tasks == []
