"""How long the export of a thousand incidents takes, and whether a planted secret is in any byte of it.

`python -m benchmarks.export [--incidents 1000] [--profile]`

The sample company's tasks, two of every story, many times over: every copy has its own agents, services, ids and
conversations, so that each gives incidents of its own, traces and all. Secrets are planted in what users wrote, in the
arguments of tools, in attributes and in status messages, and stored as they came (redaction of the collector off), so
that only the export stands between them and the folder. Exit 1 when one is found in a file, or its name.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
import yaml

from collector.decode import decode
from collector.reader import open_reader
from collector.store import Store
from incidents import grouping
from incidents.bundle import Choice, Written, export
from incidents.targets import TARGETS
from metrics.deriver import Deriver
from metrics.settings import MetricsSettings
from sample_traces import replay

Json = dict[str, Any]
OWN = frozenset(
    {"service.name", "gen_ai.agent.name", "gen_ai.conversation.id", "gen_ai.tool.call.id", "agent_slo.task.id",
     "agent_slo.task.input_id", "agent_slo.action.idempotency_key", "agent_slo.action.compensates"}
)  # fmt: skip
PLANTED = {
    "mail": "ada.lovelace@mail.example.com",
    "phone": "+49 170 1234567",
    "card": "4111 1111 1111 1111",
    "iban": "DE89 3704 0044 0532 0130 00",
    "address": "203.0.113.77",
    "social": "078-05-1120",
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "github": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "stripe": "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "bearer": "Bearer abcdef0123456789ABCDEF",
}
NAMED = "correct-horse-9"
"""Known by the name of its key alone."""
PROSE = " | ".join(PLANTED.values())


def requests(copies: int) -> Iterator[Json]:
    """The chosen tasks, `copies` times over, with secrets in them: one request a copy."""
    truth: Json = json.loads((files("sample_traces") / replay.TRUTHS["company"]).read_text())
    stories: dict[str, list[list[str]]] = defaultdict(list)
    for task in truth["tasks"].values():
        if len(stories[task["story"]]) < 2:
            stories[task["story"]].append(task["traces"])
    wanted = {trace for listed in stories.values() for traces in listed for trace in traces}
    chosen: list[Json] = []
    for request in replay.load("company"):
        for resource in request["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                spans = [_planted(span) for span in scope["spans"] if span["traceId"] in wanted]
                if spans:
                    chosen.append(
                        {"resourceSpans": [{**resource, "scopeSpans": [{**scope, "spans": spans}]}]}
                    )
    own = {value for request in chosen for value in _own(request)} | wanted
    pattern = re.compile("|".join(re.escape(value) for value in sorted(own, key=len, reverse=True)))
    text = json.dumps({"resourceSpans": [one for request in chosen for one in request["resourceSpans"]]})
    for copy in range(copies):

        def renamed(match: re.Match[str], mark: str = f"{copy:04x}") -> str:
            return match[0][:-4] + mark if match[0] in wanted else f"{match[0]}-{mark}"

        yield json.loads(pattern.sub(renamed, text))


def _own(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("key") in OWN and (value := node.get("value", {}).get("stringValue")):
            yield value
        for inner in node.values():
            yield from _own(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _own(inner)


def _planted(span: Json) -> Json:
    """The span with secrets wherever content stands; the same in each call, so equal arguments stay equal."""
    attributes = []
    for attribute in span["attributes"]:
        text = attribute["value"].get("stringValue")
        if text is not None and attribute["key"] == "gen_ai.tool.call.arguments":
            attribute = _text(attribute, json.dumps({**json.loads(text), "memo": PROSE, "password": NAMED}))
        elif text is not None and attribute["key"] in ("gen_ai.input.messages", "gen_ai.tool.call.result"):
            attribute = _text(
                attribute,
                json.dumps(_said(json.loads(text))) if text[:1] in ("{", "[") else f"{text} {PROSE}",
            )
        attributes.append(attribute)
    attributes += [
        {"key": "app.note", "value": {"stringValue": PROSE}},
        {"key": "http.request.header.x-api-key", "value": {"stringValue": NAMED}},
    ]
    status = {**span.get("status", {})}
    if status.get("message"):
        status["message"] += " " + PROSE
    return {**span, "attributes": attributes, "status": status}


def _text(attribute: Json, text: str) -> Json:
    return {**attribute, "value": {"stringValue": text}}


def _said(value: Any) -> Any:
    if isinstance(value, dict):
        told = {key: _said(item) for key, item in value.items()}
        return (
            {**told, "content": f"{told['content']} {PROSE}"}
            if isinstance(told.get("content"), str)
            else told
        )
    return [_said(item) for item in value] if isinstance(value, list) else value


def filled(folder: Path, copies: int, settings: MetricsSettings) -> None:
    """Store, derive and group."""
    truth: Json = json.loads((files("sample_traces") / replay.TRUTHS["company"]).read_text())
    end = datetime.fromtimestamp(truth["end_ns"] / 1e9, tz=UTC).replace(tzinfo=None)
    store = Store.open(folder)
    try:
        for request in requests(copies):
            store.append(decode("traces", "json", orjson.dumps(request)).batch)
        con = store.derivation()
        deriver = Deriver(con, settings, sources=store.spans_since)
        deriver.migrate()
        deriver.catch_up(end)
        con.close()
        store.refresh_views()
        con = store.derivation()
        grouping.refresh(con)
        con.close()
        store.refresh_views()
    finally:
        store.close()


def leaks(folder: Path) -> Counter[str]:
    """Planted secrets in files and their names: which, and in how many files."""
    found: Counter[str] = Counter()
    secrets = {**PLANTED, "named": NAMED}
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        for name, secret in secrets.items():
            spellings = {secret, json.dumps(secret)[1:-1], secret.replace(" ", "")}
            found[name] += any(s.encode() in content or s in path.name for s in spellings)
    return +found


def measured(data: Path, out: Path, settings: MetricsSettings) -> tuple[Written, float, float]:
    """One export to every target: what was written, seconds, CPU seconds of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    with open_reader(data) as reader:
        written = export(
            reader, settings, out, Choice(targets=tuple(TARGETS), include_draft=True), "benchmark"
        )
    return written, time.perf_counter() - wall, time.process_time() - cpu


def main() -> int:
    """Measure once and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--incidents", type=int, default=1000)
    parser.add_argument("--profile", action="store_true", help="also say where the time goes")
    asked = parser.parse_args()
    stated = yaml.safe_load((files("sample_traces") / "agent-slo.yaml").read_text())
    settings = MetricsSettings.model_validate(
        {k: v for k, v in stated.items() if k in MetricsSettings.model_fields}
    )
    copies = -(-asked.incidents // 60)
    with tempfile.TemporaryDirectory(prefix="agent-slo-export-") as scratch:
        data, out = Path(scratch) / "data", Path(scratch) / "out"
        filled(data, copies, settings)
        profiler = cProfile.Profile() if asked.profile else None
        if profiler:
            profiler.enable()
        written, wall, cpu = measured(data, out, settings)
        if profiler:
            profiler.disable()
            pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumulative").print_stats(35)
        again = measured(data, Path(scratch) / "again", settings)
        same = (out / "manifest.json").read_bytes() == (Path(scratch) / "again/manifest.json").read_bytes()
        found = leaks(out)
        total = len(written.groups) + len(written.excluded)
        drafts = sum(group["state"] == "draft" for group in written.groups)
        print(
            f"incidents   {total} ({drafts} drafts, {len(written.excluded)} left out), {written.cases} cases"
        )
        print(f"bytes       {written.bytes / 1e6:.1f} MB to {len(TARGETS)} targets")
        print(f"seconds     {wall:.1f} (again {again[1]:.1f}), of CPU {cpu:.1f} (again {again[2]:.1f})")
        print(f"bytes again {'the same' if same else 'DIFFERENT'}")
        print(
            f"secrets     {'none of ' + str(len(PLANTED) + 1) + ' planted in any byte' if not found else dict(found)}"
        )
    return 1 if found or not same or total < asked.incidents else 0


if __name__ == "__main__":
    sys.exit(main())
