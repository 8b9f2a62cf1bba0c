"""The exports in the tools themselves: a scripted agent that repeats the mistake fails, one that behaves passes."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from collector.reader import open_reader
from incidents.bundle import Choice, export
from incidents.replay import AGENTS, TRIVIAL, run_agent
from incidents.targets import HOW_TO, TARGETS
from tests.incidents.folders import fill
from tests.incidents.stories import SETTINGS, paid_twice
from tests.incidents.test_export import HOSTILE
from tests.metrics import worlds
from tests.metrics.bench import at

PROMPTFOO = os.environ.get(
    "AGENT_SLO_PROMPTFOO"
)  # promptfoo's dist/src/entrypoint.js, as `make test-evals` sets it
PROMISED = {
    "duplicate_action.model_repeat", "duplicate_action.retry_after_timeout", "duplicate_action.resume_reexecution",
    "duplicate_action.crash_replay", "duplicate_action.redelivery", "duplicate_action.orchestrator_retry",
    "unbounded", "no_backoff", "non_retryable", "same_args_after_rejection", "amplification", "missed_retry",
    "blind_retry", "false_success", "lost", "executed_without_approval", "not_compensated",
}  # fmt: skip
"""Failure modes of which the sample company must give a group that every tool judges."""


@pytest.fixture(scope="module")
def bundle(company: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("targets") / "out"
    with open_reader(company) as reader:
        export(reader, worlds.settings(), out, Choice(targets=tuple(TARGETS)), "9.9.9")
    return out


def canonical(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "cases.jsonl").read_text().splitlines()]


def incidents(out: Path) -> set[str]:
    return {case["case_id"] for case in canonical(out) if case["role"] == "incident"}


def promised(out: Path) -> dict[str, list[dict[str, Any]]]:
    """One proven group of every promised failure mode, by its mode."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for case in canonical(out):
        groups.setdefault(case["fingerprint"]["value"], []).append(case)
    chosen: dict[str, list[dict[str, Any]]] = {}
    for group in groups.values():
        mode = group[0]["classification"]["failure_mode"]
        if group[0]["review"]["state"] != "draft" and mode in PROMISED:
            chosen.setdefault(mode, group)
    assert set(chosen) == PROMISED
    return chosen


def judged(out: Path, passed: Mapping[str, Mapping[str, bool]]) -> None:
    """Assert what a tool must find of the promised groups: agent -> case -> passed."""
    for mode, group in promised(out).items():
        names = [case["case_id"] for case in group]
        assert not passed["recorded"][names[0]], mode
        assert all(passed["careful"][name] for name in names), mode
        for agent in TRIVIAL:
            assert not all(passed[agent][name] for name in names), (mode, agent)


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem + uuid.uuid4().hex, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_every_target_is_told_how_to_run(bundle: Path) -> None:
    text = (bundle / "README.md").read_text()
    assert set(HOW_TO) == set(TARGETS)
    for lines in HOW_TO.values():
        assert "\n".join(lines) in text
    assert set(json.loads((bundle / "manifest.json").read_text())["targets"]) == set(TARGETS)


def test_the_manifest_has_the_hash_of_every_other_file(bundle: Path) -> None:
    import hashlib

    stated = json.loads((bundle / "manifest.json").read_text())["files"]
    found = {
        str(path.relative_to(bundle)): "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
        for path in bundle.rglob("*")
        if path.is_file() and path.name != "manifest.json" and "__pycache__" not in path.parts
    }
    assert stated == found


# ---- pydantic-evals -----------------------------------------------------------------------------------------------

EVALUATE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import evaluate
print(json.dumps({agent: evaluate.evaluate(agent) for agent in sys.argv[2:]}))
"""


def test_pydantic_evals_loads_and_judges(bundle: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", EVALUATE, str(bundle / "targets/pydantic_evals"), *AGENTS],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout)
    judged(bundle, found)
    assert len(found["careful"]) == len(canonical(bundle))
    assert all(found["careful"].values())
    assert not any(found["recorded"][name] for name in incidents(bundle))


# ---- Inspect AI ---------------------------------------------------------------------------------------------------


def telling(group: list[dict[str, Any]], agent: str) -> list[str]:
    """The cases that decide about an agent: all for one that behaves, one that it fails for another.

    Inspect takes tenths of a second for what the replay core does in a millisecond.
    """
    if agent == "careful":
        return [case["case_id"] for case in group]
    failed = [case for case in group if not run_agent(case, AGENTS[agent](case)).verdict.passed]
    return [failed[0]["case_id"]]


def test_inspect_loads_and_judges(bundle: Path, tmp_path: Path) -> None:
    lines = (bundle / "targets/inspect/incidents.jsonl").read_text().splitlines()
    samples = {json.loads(line)["id"]: line for line in lines}
    groups = promised(bundle)
    wanted = {
        agent: [name for group in groups.values() for name in telling(group, agent)] for agent in AGENTS
    }
    assert wanted["recorded"] == [group[0]["case_id"] for group in groups.values()]
    for agent, names in wanted.items():
        (tmp_path / f"{agent}.jsonl").write_text("".join(samples[name] + "\n" for name in names))
    run = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("inspect_agents.py")),
            str(bundle / "targets/inspect"),
            *(str(tmp_path / f"{agent}.jsonl") for agent in AGENTS),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout.splitlines()[-1])
    assert {agent: told["error"] for agent, told in found.items()} == dict.fromkeys(AGENTS)
    for agent, told in found.items():
        assert set(told["scores"]) == set(wanted[agent])
        assert set(told["scores"].values()) == {"C" if agent == "careful" else "I"}, agent
        assert told["metrics"]["groups_passed"] == (1.0 if agent == "careful" else 0.0)


def test_a_sample_of_inspect_has_what_its_loader_takes(bundle: Path) -> None:
    samples = [
        json.loads(line) for line in (bundle / "targets/inspect/incidents.jsonl").read_text().splitlines()
    ]
    assert len({sample["id"] for sample in samples}) == len(samples) == len(canonical(bundle))
    for sample in samples:
        assert set(sample) == {"id", "input", "target", "metadata"}
        assert all(m["content"] and m["role"] in ("system", "user", "assistant") for m in sample["input"])
        assert sample["metadata"]["case"]["case_id"] == sample["id"]


# ---- promptfoo ----------------------------------------------------------------------------------------------------


def test_a_test_of_promptfoo_holds_nothing_a_template_engine_would_read(tmp_path: Path) -> None:
    data = fill(tmp_path / "data", [paid_twice(ask=HOSTILE, answer=HOSTILE)], SETTINGS, at(90000))
    with open_reader(data) as reader:
        export(reader, SETTINGS, tmp_path / "out", Choice(targets=("promptfoo",)), "9.9.9")
    text = (tmp_path / "out/targets/promptfoo/tests.jsonl").read_text()
    assert "{{" not in text
    tests = [json.loads(line) for line in text.splitlines()]
    assert tests
    for test in tests:
        assert all(isinstance(value, str) for value in test["vars"].values())
        case = json.loads(base64.b64decode(test["vars"]["case_b64"]))
        assert "{{ 7*7 }}" in case["task"]["messages"][0]["content"]
        assert {a["config"]["check"] for a in test["assert"]} <= {c["id"] for c in case["expect"]["checks"]}


def test_the_provider_and_the_assertion_judge(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bundle / "targets/promptfoo"
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", list(sys.path))
    provider, check = module(folder / "provider.py"), module(folder / "check.py")
    tests = [json.loads(line) for line in (folder / "tests.jsonl").read_text().splitlines()]
    monkeypatch.delenv("AGENT_SLO_AGENT", raising=False)
    assert "AGENT_SLO_AGENT" in provider.call_api("", {}, {"vars": tests[0]["vars"]})["error"]
    for agent in ("careful", "recorded"):
        failed = set()
        for test in tests:
            answer = provider.call_api("", {"config": {"agent": agent}}, {"vars": test["vars"]})
            for wanted in test["assert"]:
                if not check.get_assert(answer["output"], {"config": wanted["config"]})["pass"]:
                    failed.add(test["vars"]["case_id"])
        assert failed >= incidents(bundle) if agent == "recorded" else not failed


def promptfoo(folder: Path, config: str, home: Path, agent: str = "") -> subprocess.CompletedProcess[str]:
    quiet = ("DISABLE_TELEMETRY", "DISABLE_UPDATE", "DISABLE_REMOTE_GENERATION", "SELF_HOSTED")
    return subprocess.run(
        [
            "node", str(PROMPTFOO), "eval", "-c", config, "--no-progress-bar", "--no-table", "--no-cache",
            "-o", str(home / "out.json"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            **{f"PROMPTFOO_{name}": "1" for name in quiet},
            "PROMPTFOO_CONFIG_DIR": str(home / "config"),
            "PROMPTFOO_PYTHON": sys.executable,
            "AGENT_SLO_AGENT": agent,
            "PYTHONDONTWRITEBYTECODE": "1",
            "CI": "1",
        },
    )  # fmt: skip


needs_promptfoo = pytest.mark.skipif(
    PROMPTFOO is None or shutil.which("node") is None,
    reason="promptfoo is not installed; `make test-evals` installs and runs it",
)


@pytest.mark.node
@needs_promptfoo
@pytest.mark.parametrize(("agent", "code"), [("careful", 0), ("recorded", 100)])
def test_promptfoo_runs_the_export_as_it_stands(tmp_path: Path, agent: str, code: int) -> None:
    data = fill(tmp_path / "data", [paid_twice()], SETTINGS, at(90000))
    with open_reader(data) as reader:
        export(reader, SETTINGS, tmp_path / "out", Choice(targets=("promptfoo",)), "9.9.9")
    run = promptfoo(tmp_path / "out/targets/promptfoo", "promptfooconfig.yaml", tmp_path, agent)
    assert run.returncode == code, run.stdout[-3000:] + run.stderr[-2000:]


@pytest.mark.node
@pytest.mark.timeout(900)
@needs_promptfoo
def test_promptfoo_loads_and_judges(bundle: Path, tmp_path: Path) -> None:
    few = {case["case_id"] for group in promised(bundle).values() for case in group}
    folder = Path(shutil.copytree(bundle, tmp_path / "bundle")) / "targets/promptfoo"
    tests = (folder / "tests.jsonl").read_text().splitlines()
    (folder / "promised.jsonl").write_text(
        "".join(line + "\n" for line in tests if json.loads(line)["vars"]["case_id"] in few)
    )
    config = yaml.safe_load((folder / "promptfooconfig.yaml").read_text())
    (provider,) = config["providers"]
    config["providers"] = [{**provider, "label": agent, "config": {"agent": agent}} for agent in AGENTS]
    config["tests"] = "file://promised.jsonl"
    (folder / "promised.yaml").write_text(yaml.safe_dump(config))
    run = promptfoo(folder, "promised.yaml", tmp_path)
    assert run.returncode == 100, run.stdout[-3000:] + run.stderr[-2000:]
    passed: dict[str, dict[str, bool]] = {}
    for result in json.loads((tmp_path / "out.json").read_text())["results"]["results"]:
        passed.setdefault(result["provider"]["label"], {})[result["vars"]["case_id"]] = result["success"]
    assert {agent: set(found) for agent, found in passed.items()} == dict.fromkeys(AGENTS, few)
    judged(bundle, passed)


# ---- rows ---------------------------------------------------------------------------------------------------------


def test_rows_become_the_records_of_other_tools(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loaders = module(bundle / "targets/rows/loaders.py")
    rows = loaders.rows()
    assert [row["id"] for row in rows] == [case["case_id"] for case in canonical(bundle)]
    assert all(set(row) == {"id", "input", "expected", "metadata"} for row in rows)
    langfuse = loaders.langfuse(rows, "set")
    assert {item["id"] for item in langfuse} == {f"set-{row['id']}" for row in rows}
    assert all(len(item["source_trace_id"]) == 32 for item in langfuse)
    assert len({uuid.UUID(item["id"]) for item in loaders.langsmith(rows)}) == len(rows)
    assert loaders.langsmith(rows) == loaders.langsmith(rows)
    mlflow = loaders.mlflow(rows)
    assert all(record["inputs"]["case_id"] == row["id"] for record, row in zip(mlflow, rows, strict=True))
    assert all(isinstance(v, str) for record in mlflow for v in record["tags"].values())
    assert {tuple(sorted(example)) for example in loaders.phoenix(rows)} == {
        ("id", "input", "metadata", "output", "splits")
    }
    assert set(loaders.braintrust(rows)[0]) == {"id", "input", "expected", "metadata", "tags"}
    goldens = loaders.deepeval(rows)
    assert all(isinstance(golden["input"], str) for golden in goldens)
    assert all(isinstance(v, str) for golden in goldens for v in golden["custom_column_key_values"].values())
