"""`agent-slo doctor`: each sender understood, each lack with its remedy, and a test trace that becomes a task."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent_slo.conftest import Run, answer
from tests.agent_slo.waiting import until

CAPTURES = Path(__file__).parent.parent / "captures"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    """Two senders, one without content and one with it. Tests only read it."""
    folder = tmp_path_factory.mktemp("senders") / "data"
    names = ("google-adk__native__a_two_tools", "langgraph__openinference__a_two_tools")
    done = run("import", *(CAPTURES / f"{name}.jsonl" for name in names), "--data", folder)
    assert done.exit_code == 0, done.output
    return folder


def test_a_sender_without_content_is_told_its_switch(run: Run, data: Path) -> None:
    said = json.loads(run("doctor", "--data", data, "--format", "json").stdout)
    adk, langgraph = said["senders"]
    assert (adk["family"], adk["model_calls"], adk["tool_calls"], adk["tasks"]) == ("google-adk", 3, 2, 1)
    without = {lack["lack"]: lack for lack in adk["lacks"]}
    lack = without["2 of 2 tool calls without arguments"]
    assert "duplicate_action" in lack["slo"]
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true" in lack["supply"]
    assert langgraph["family"] == "langchain"
    assert not any(
        "arguments" in lack["lack"] or "conversation" in lack["lack"] for lack in langgraph["lacks"]
    )
    assert any("refund: {effect: write}" in lack["supply"] for lack in langgraph["lacks"])


def test_text_names_sender_scope_and_remedy(run: Run, data: Path) -> None:
    said = run("doctor", "--data", data, "--service", "google-adk-refund-desk").stdout
    assert "google-adk-refund-desk · gcp.vertex.agent 2.13.0 · read as google-adk" in said
    assert "langgraph" not in said
    assert "agent_slo_emit.instrument(provider)" in said
    assert "  - no application version\n    for marks of deploys: set the resource attribute" in said


def test_without_a_collector_the_test_trace_is_refused_with_a_remedy(run: Run, data: Path) -> None:
    result = run("doctor", "--data", data, "--send-test")
    assert result.exit_code == 2
    assert "agent-slo up" in result.output


def test_the_test_trace_becomes_a_task(started: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    folder = tmp_path / "live"
    process = started("collect", "--data", folder, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
    until(lambda: (folder / "door.json").exists(), process)
    said = json.loads(answer("doctor", "--data", folder, "--send-test", "--format", "json"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert said["test_task"]["outcome"] == "completed"
    (sender,) = said["senders"]
    assert (sender["agent_spans"], sender["model_calls"], sender["tool_calls"]) == (1, 1, 1)
