"""Real traces of real frameworks with scripted models, held against what really happened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.metrics.bench import MemoryBench

FOLDER = Path(__file__).parent.parent / "captures"
EXPECTED = yaml.safe_load((FOLDER / "expected.yaml").read_text())
FILES = sorted(path for path in FOLDER.glob("*.jsonl") if not path.name.endswith(".logs.jsonl"))


# Ids that the scripts gave to every run: made different by file, so that all captures can be derived side by side.
SHARED_IDS = re.compile(
    rb"conv-42|thread-42|thread-1\b|sess-1\b|call_[0-9]_[0-9]|[a-z]+(?:-[a-z]+)*-refund-desk|\"refund-bot\""
)


class Derived:
    """All captures derived in one pass, each by its own traces."""

    def __init__(self, memory: MemoryBench) -> None:
        self.memory = memory
        self.traces: dict[str, list[str]] = {}
        requests: list[bytes] = []
        logs: list[bytes] = []
        for number, path in enumerate(FILES):
            lines = [apart(line, number) for line in path.read_bytes().splitlines() if line.strip()]
            requests += lines
            told = path.with_suffix(".logs.jsonl")
            if told.exists():
                logs += [apart(line, number) for line in told.read_bytes().splitlines() if line.strip()]
            self.traces[path.stem] = sorted({id.decode() for line in lines for id in TRACE_ID.findall(line)})
        memory.derive_only(requests, logs=logs)

    def rows(self, path: Path, table: str, order: str) -> list[dict[str, Any]]:
        return self.memory.rows(
            f"SELECT * FROM {table} WHERE task_id IN "
            f"(SELECT task_id FROM core._trace_tasks WHERE list_contains(?, trace_id)) ORDER BY {order}",
            self.traces[path.stem],
        )


TRACE_ID = re.compile(rb'"traceId": ?"([0-9a-f]{32})"')


def apart(line: bytes, number: int) -> bytes:
    """The same request as if its ids had been given to this file alone."""

    def other(found: re.Match[bytes]) -> bytes:
        text = found[0]
        return text[:-1] + b'-%d"' % number if text.endswith(b'"') else text + b"-%d" % number

    return SHARED_IDS.sub(other, line)


@pytest.fixture(scope="module")
def derived() -> Iterator[Derived]:
    with MemoryBench() as memory:
        yield Derived(memory)


def wanted_of(path: Path) -> dict[str, Any]:
    framework, instrumentation, scenario = path.stem.split("__")
    wanted = {"interventions": [], "duplicates": [], **EXPECTED["scenarios"][scenario]}
    if (
        scenario.startswith("g1_")
        and f"{framework}__{instrumentation}" in EXPECTED["resumed_from_a_checkpoint"]
    ):
        wanted |= {"effects": 1, "duplicates": []}
    return wanted | EXPECTED["differs"].get(path.stem, {})


def test_every_scenario_and_difference_has_its_captures() -> None:
    assert {path.stem.split("__")[2] for path in FILES} == set(EXPECTED["scenarios"])
    assert set(EXPECTED["differs"]) <= {path.stem for path in FILES}
    assert all(difference["why"] for difference in EXPECTED["differs"].values())


def test_at_least_95_percent_show_all_that_a_trace_of_their_kind_can() -> None:
    """Files with ground truth of effects: all but those whose spans lack what happened or what was answered."""
    told = [
        path.stem for path in FILES if path.stem.split("__")[2][:2] in ("a_", "b_", "c_", "d_", "g1", "i_")
    ]
    # `unknown` instead of an outcome that no span shows is a right answer; anything else that differs is a miss
    missed = [
        name
        for name in told
        if set(EXPECTED["differs"].get(name, {})) - {"why"}
        and (
            set(EXPECTED["differs"][name]) != {"why", "tasks"}
            or set(EXPECTED["differs"][name]["tasks"]) != {"unknown"}
        )
    ]
    assert len(told) == 106
    assert len(missed) <= 4, missed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_capture_is_understood(path: Path, derived: Derived) -> None:
    wanted = wanted_of(path)
    tasks = derived.rows(path, "core.tasks", "started_at")
    interventions = derived.rows(path, "core.interventions", "requested_at")
    attempts = [a for a in derived.rows(path, "work.attempts", "start_ns") if a["action_id"]]
    assert [task["outcome"] for task in tasks] == wanted["tasks"]
    assert [[i["kind"], i["decision"]] for i in interventions] == wanted["interventions"]
    assert sum(attempt["outcome"] == "ok" for attempt in attempts) == wanted["effects"]
    repeats = [attempt for attempt in attempts if attempt["duplicate"]]
    assert [[r["duplicate"], r["cause"]] for r in repeats] == wanted["duplicates"]
    if "tokens" in wanted:
        sums = [
            sum(task[side] for task in tasks) if all(task[side] is not None for task in tasks) else None
            for side in ("input_tokens", "output_tokens")
        ]
        assert sums == wanted["tokens"]
    # a verdict without its rule and its evidence is no verdict, and nothing here states or evaluates an outcome
    assert all(task["rule"] for task in tasks)
    assert all(task["evidence"] for task in tasks if task["outcome_evidence"] == "inferred")
    assert all(task["outcome_evidence"] in ("inferred", "none") for task in tasks)
    assert all(repeat["rule"] and len(repeat["evidence"]) == 2 for repeat in repeats)


# Sums over the parts of one task: three model calls of 1,200 (800 of them read from a cache) and 80 tokens.
PRICED = sorted(FOLDER.glob("*a_two_tools.jsonl"))
NO_MODEL_SPANS = ("crewai__", "fastmcp__", "openai-agents__otel-genai")


@pytest.mark.parametrize(
    "path", [p for p in PRICED if not p.name.startswith(NO_MODEL_SPANS)], ids=lambda path: path.stem
)
def test_tokens_are_those_of_the_model_calls_alone(path: Path, derived: Derived) -> None:
    """Sums on agents count nothing, duplicate spellings count once, cached tokens are part of the input everywhere."""
    (task,) = derived.rows(path, "core.tasks", "started_at")
    if path.name.startswith("google-adk__openinference"):
        # one span is all that is left of three calls under this pair, with the last one's tokens
        assert (task["input_tokens"], task["output_tokens"], task["model_calls"]) == (1200, 80, 1)
    else:
        assert (task["input_tokens"], task["output_tokens"], task["model_calls"]) == (3600, 240, 3)
    # a model that no price list knows has no cost, and says so
    assert (task["cost_usd"], task["cost_complete"]) == (None, False)
