"""`agent-slo replay`: an agent of yours against the tools of an incident."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import signal
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import httpx

from agent_slo.commands.incidents import require_grouped
from agent_slo.errors import EXIT_FINDING, CommandError
from agent_slo.options import Place, common
from agent_slo.output import answer_console, print_json, say
from agent_slo.reading import reading
from dashboard.format import one_line
from incidents import evidence
from incidents.case import make_group
from incidents.case_files import CaseFileError, read_cases
from metrics.settings import parse_duration

if TYPE_CHECKING:
    from incidents.command_agent import Played
    from incidents.replay_server import ReplayServer

Json = dict[str, Any]
ROLES = ("incident", "twin", "control")
EXTRAS = ("wait", "answer")


def _duration(context: click.Context, option: click.Parameter, value: str) -> float:
    try:
        length: timedelta = parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if length.total_seconds() <= 0:
        raise click.BadParameter(f"{value!r} is no time to wait; write 300s or 5m")
    return length.total_seconds()


@click.command()
@click.argument("case", metavar="CASE")
@click.option("--agent", "agent", help="Command line of the agent, run once a case (and once more a crash).")
@click.option(
    "--mcp",
    "transport",
    type=click.Choice(["http", "stdio"]),
    default="http",
    show_default=True,
    help="How the agent reaches the tools: a URL, or a command it starts.",
)
@click.option(
    "--serve",
    type=click.Choice(["http", "stdio"]),
    help="Serve one case as an MCP server and start no agent; the verdict comes when it ends.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of --serve http (default: any free one)."
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    help="Take CASE from this export or file of cases, not from the data folder.",
)
@click.option(
    "--role", "roles", multiple=True, type=click.Choice(ROLES), help="Only these members of the group."
)
@click.option(
    "--timeout",
    default="300s",
    show_default=True,
    callback=_duration,
    help="How long an agent may take for one case.",
)
@click.option(
    "--time-scale",
    type=click.FloatRange(min=0.0),
    default=1.0,
    show_default=True,
    help="Seconds of the replay for one second the agent really waits; 0: only recorded delays and waits count.",
)
@click.option(
    "--offer",
    "extras",
    multiple=True,
    type=click.Choice(EXTRAS),
    help="Offer replay_wait (lets time pass) or replay_answer (takes the final answer) as a tool as well.",
)
@click.option("--otlp", metavar="URL", help="Send the verdict to this OTLP/HTTP endpoint as well.")
@click.option(
    "--verdict",
    "verdict_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the verdict to this file as JSON as well.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@common
def replay(
    place: Place,
    case: str,
    agent: str | None,
    transport: str,
    serve: str | None,
    port: int,
    source: Path | None,
    roles: Sequence[str],
    timeout: float,
    time_scale: float,
    extras: Sequence[str],
    otlp: str | None,
    verdict_file: Path | None,
    form: str,
    as_json: bool,
) -> None:
    """Run an agent against the tools of an incident and judge what it did.

    CASE is the id of an incident or case, an export folder, or a file of cases. The agent is a command line: it gets
    the task on standard input, the address of an MCP server with the incident's tools in its environment, and writes
    its answer to standard output. It passes when it passes the incident, its twin and its control.

    Exit: 0 every case passed, 1 one did not, 2 the replay could not be run.
    """
    if (agent is None) == (serve is None):
        raise CommandError("name --agent 'COMMAND' to run an agent, or --serve http|stdio to serve one case")
    cases = _chosen(place, case, source, roles)
    if importlib.util.find_spec("mcp") is None:
        raise CommandError(
            "the replay server needs the package mcp; install it with: pip install 'agent-slo[replay]'"
        )
    if agent is not None:
        played = _run(cases, agent, transport, timeout, time_scale, extras)
        stdio = False
    else:
        stdio = serve == "stdio"
        groups = {one["split_group"] for one in cases}
        if len(groups) > 1:
            raise CommandError(
                f"{case}: holds {len(groups)} groups and one case is served; name it, with --from {case}"
            )
        played = [_serve(cases[0], serve or "http", port, time_scale, extras)]
    _tell(played, form="json" if as_json else form, verdict_file=verdict_file, silent=stdio)
    if otlp is not None:
        _send(otlp, played)
    if not all(one.passed for one in played):
        raise click.exceptions.Exit(EXIT_FINDING)


def _chosen(place: Place, named: str, source: Path | None, roles: Sequence[str]) -> list[Json]:
    """The cases to replay: those of the group that is named, or all of a file."""
    try:
        if source is not None:
            found = _of(read_cases(source), named, str(source))
        elif os.sep in named or named.endswith((".json", ".jsonl")) or Path(named).exists():
            found = read_cases(Path(named))
        else:
            found = _derived(place, named)
    except CaseFileError as error:
        raise CommandError(str(error)) from error
    if roles:
        found = [one for one in found if one["role"] in roles]
        if not found:
            raise CommandError(f"{named}: has no {' or '.join(roles)}; leave out --role")
    for one in found:
        if not one["expect"]["checks"]:
            raise CommandError(f"{one['case_id']}: is a draft without checks: {one['review'].get('note')}")
        if one["role"] == "incident" and one["review"]["state"] == "draft":
            say(f"{one['case_id']} is a draft: {one['review'].get('note')}")
    return found


def _of(cases: list[Json], named: str, where: str) -> list[Json]:
    """One case by its id, or the group of an incident by the incident's."""
    group = {
        one["split_group"]
        for one in cases
        if named in (one["case_id"], one["origin"]["incident_id"], one["split_group"])
    }
    found = [one for one in cases if one["split_group"] in group]
    single = [one for one in found if one["case_id"] == named and one["role"] != "incident"]
    if not found:
        raise CommandError(f"no case {named!r} in {where}; its cases.jsonl names them")
    return single or found


def _derived(place: Place, named: str) -> list[Json]:
    incident_id = named.removesuffix("-twin").removesuffix("-control")
    settings = place.config().config
    with reading(place.data) as reader:
        require_grouped(reader, place.data)
        told = list(evidence.gather(reader, evidence.find(reader, ids=[incident_id])))
    if not told:
        raise CommandError(
            f"no incident {incident_id!r} in {place.data}; `agent-slo incidents` lists them, "
            "and --from names an export"
        )
    return _of(
        make_group(told[0], settings, f"agent-slo/{installed('agent-slo')}").cases, named, str(place.data)
    )


def _run(
    cases: Sequence[Json],
    agent: str,
    transport: str,
    timeout: float,
    time_scale: float,
    extras: Sequence[str],
) -> list[Played]:
    from incidents.command_agent import AgentError, run_command

    try:
        command = shlex.split(agent)
    except ValueError as error:
        raise CommandError(f"--agent: {agent!r} is no command line ({str(error).lower()})") from error
    if not command:
        raise CommandError("--agent: is empty; name a program with its arguments")
    played = []
    for case in cases:
        try:
            played.append(
                run_command(
                    case,
                    command,
                    transport="stdio" if transport == "stdio" else "http",
                    timeout_s=timeout,
                    time_scale=time_scale,
                    extras=[name for name in ("wait", "answer") if name in extras],
                )
            )
        except (AgentError, ValueError) as error:
            # it may quote what the agent wrote, which is not for a terminal to obey
            raise CommandError(one_line(str(error), 600)) from error
    return played


def _serve(case: Json, transport: str, port: int, time_scale: float, extras: Sequence[str]) -> Played:
    """Serve one case until the client is done (stdio) or the user is (Ctrl-C); the verdict of what was called."""
    import secrets

    from incidents.command_agent import Played, verdict_json
    from incidents.replay import LiveClock, Simulator, judge
    from incidents.replay.checks import Ending
    from incidents.replay_server import ReplayServer, serve_stdio, serving

    sim = Simulator(case, LiveClock(time_scale))
    trace = secrets.token_hex(16), secrets.token_hex(8)
    try:
        server: ReplayServer = ReplayServer(sim, [name for name in ("wait", "answer") if name in extras])
    except ValueError as error:
        raise CommandError(str(error)) from error

    def played() -> Played:
        return Played(case, sim, judge(case, sim, Ending(sim.final)), trace_id=trace[0], span_id=trace[1])

    if transport == "stdio":
        serve_stdio(server)
        return played()
    try:
        with serving(server, port, lambda: verdict_json(case, sim, played().verdict)) as url:
            say(f"{case['case_id']} at {url}; Ctrl-C ends it")
            _until_stopped()
    except OSError as error:
        raise CommandError(
            f"port {port}: {(error.strerror or str(error)).lower()}; take another with --port"
        ) from error
    return played()


def _until_stopped() -> None:
    """Wait for Ctrl-C or a polite kill, and leave the handlers as they were."""
    stopped = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        stopped.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _document(played: Sequence[Played]) -> Json:
    return {
        "pass": all(one.passed for one in played),
        "inconclusive": any(one.verdict.inconclusive for one in played),
        "cases": [one.as_json() for one in played],
    }


def _tell(played: Sequence[Played], *, form: str, verdict_file: Path | None, silent: bool) -> None:
    document = _document(played)
    if verdict_file is not None:
        try:
            verdict_file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise CommandError(
                f"{verdict_file}: {(error.strerror or str(error)).lower()}; name another file with --verdict"
            ) from error
    if silent:
        # standard output belongs to the protocol
        for line in _lines(played):
            say(line)
    elif form == "json":
        print_json(document)
    else:
        out = answer_console()
        for line in _lines(played):
            out.print(line, markup=False, soft_wrap=True)


def _lines(played: Sequence[Played]) -> Iterator[str]:
    for one in played:
        word = "pass" if one.passed else "inconclusive" if one.verdict.inconclusive else "FAIL"
        yield f"{word} {one.case['case_id']} ({one.case['role']}): {one_line(one.case['title'])}"
        for result in one.verdict.results:
            mark = "ok  " if result["pass"] else "FAIL" if result["level"] == "must" else "note"
            yield f"  {mark} {result['id']}: {one_line(result['why'], 200)}"
        facts = [f"{len(one.sim.calls)} calls", f"{len(one.sim.effects)} effects"]
        if one.sim.restarts:
            facts.append(f"killed and started again {one.sim.restarts} times")
        if one.timed_out:
            facts.append("did not end in time")
        facts += [f"exit code {code}" for code in one.exits if code]
        yield "  " + ", ".join(facts)
        for row in one.sim.unmatched[:3]:
            yield f"  the incident has no answer for {one_line(row['tool'])} {one_line(json.dumps(row['args']), 200)}"
        if any(one.exits) and one.errors.strip():
            yield "  the agent's last words on stderr: " + one_line(one.errors.strip().splitlines()[-1], 200)
    passed = sum(one.passed for one in played)
    yield f"{passed} of {len(played)} cases passed"


def _send(endpoint: str, played: Sequence[Played]) -> None:
    from incidents.evaluation_log import send

    try:
        send(endpoint, played, installed("agent-slo"), os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""))
    except ValueError as error:
        raise CommandError(f"--otlp: {error}") from error
    except httpx.HTTPError as error:
        raise CommandError(
            f"--otlp: {endpoint} did not take the verdict ({error}); is a collector there?"
        ) from error
