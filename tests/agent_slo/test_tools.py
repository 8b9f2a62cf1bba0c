"""`agent-slo tools` and the chain of reasons of `agent-slo task --explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from agent_slo.commands.tools import stanza
from metrics.reasons import reasons
from metrics.settings import MetricsSettings
from tests.agent_slo.conftest import AS_OF, Run
from tests.metrics.bench import request, span


def seen(tool: str, effect_class: str, class_source: str) -> dict[str, str]:
    return {"tool": tool, "effect_class": effect_class, "class_source": class_source}


def test_every_tool_with_its_class_and_where_it_came_from(run: Run, sample_data: Path) -> None:
    found = json.loads(run("tools", "--data", sample_data, "--format", "json").stdout)["tools"]
    by_name = {row["tool"]: row for row in found}
    assert (by_name["issue_refund"]["effect_class"], by_name["issue_refund"]["class_source"]) == (
        "write",
        "configured",
    )
    assert by_name["get_order"]["effect_class"] == "read"
    text = run("tools", "--data", sample_data).stdout
    assert all(tool in text for tool in by_name)
    assert "your configuration" in text


def test_the_stanza_of_guessed_tools_is_a_configuration(tmp_path: Path, run: Run) -> None:
    spans = [span("t", "invoke_agent clerk", 0, 9, gen_ai__operation__name="invoke_agent")]
    for number, tool in enumerate(["send_letter", "frobnicate", "read [all]*"]):
        spans.append(
            span("t", f"execute_tool {tool}", number + 1, number + 1.5, "invoke_agent clerk@0",
                 gen_ai__operation__name="execute_tool", gen_ai__tool__name=tool)
        )  # fmt: skip
    traces = tmp_path / "traces.jsonl"
    traces.write_text(json.dumps(request(spans)) + "\n")
    data = tmp_path / "data"
    assert run("import", traces, "--data", data, "--as-of", AS_OF).exit_code == 0
    text = run("tools", "--data", data, "--format", "yaml").stdout
    settings = MetricsSettings.model_validate(yaml.safe_load(text))
    assert settings.tools["send_letter"].effect == "write"
    # a glob in a name is meant literally, and a tool that nobody knows is left to you
    assert settings.tools["read [[]all][*]"].effect == "read"
    assert "# frobnicate: {effect: }" in text


def test_stated_tools_need_no_stanza() -> None:
    assert stanza([seen("a", "write", "stated"), seen("b", "read", "configured")]) == []
    assert stanza([seen("c: d", "write", "guessed")])[-1] == "  'c: d': {effect: write}"


@pytest.mark.parametrize("duplicate", ["unprotected", "protected"])
def test_explain_tells_the_reasons_of_a_repeat(run: Run, sample_data: Path, duplicate: str) -> None:
    sql = f"SELECT task_id, rule, cause, evidence FROM attempts WHERE duplicate = '{duplicate}' LIMIT 1"
    (row,) = json.loads(run("query", sql, "--data", sample_data, "--format", "json").stdout)
    text = run("task", row["task_id"], "--explain", "--data", sample_data).stdout
    assert f"{reasons()[row['rule']]} [{row['rule']}]" in text
    assert reasons()[f"cause.{row['cause']}"] in text
    assert all(span_id in text for span_id in row["evidence"])
    assert " later: " in text
