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
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from collector.reader import open_reader
from incidents.bundle import Choice, export
from incidents.targets import HOW_TO, TARGETS
from tests.incidents.folders import fill
from tests.incidents.stories import SETTINGS, paid_twice
from tests.incidents.test_export import HOSTILE
from tests.metrics import worlds
from tests.metrics.bench import at

INSPECT = os.environ.get("AGENT_SLO_INSPECT_PYTHON") or (
    sys.executable if importlib.util.find_spec("inspect_ai") else None
)
PROMPTFOO = os.environ.get("AGENT_SLO_PROMPTFOO")  # path of promptfoo/dist/src/entrypoint.js


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
    pytest.importorskip("pydantic_evals", reason="pydantic-evals is not installed")
    run = subprocess.run(
        [sys.executable, "-c", EVALUATE, str(bundle / "targets/pydantic_evals"), "careful", "recorded"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout)
    assert len(found["careful"]) == len(canonical(bundle))
    assert all(found["careful"].values())
    assert not any(found["recorded"][name] for name in incidents(bundle))


# ---- Inspect AI ---------------------------------------------------------------------------------------------------


def inspect_run(folder: Path, agent: str) -> dict[str, Any]:
    assert INSPECT is not None
    run = subprocess.run(
        [INSPECT, str(Path(__file__).with_name("inspect_agents.py")), str(folder), agent],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return dict(json.loads(run.stdout.splitlines()[-1]))


@pytest.mark.skipif(
    INSPECT is None, reason="inspect_ai is not installed; AGENT_SLO_INSPECT_PYTHON names a Python that has it"
)
def test_inspect_loads_and_judges(bundle: Path) -> None:
    careful = inspect_run(bundle / "targets/inspect", "careful")
    assert careful["status"] == "success", careful["error"]
    assert set(careful["scores"]) == {case["case_id"] for case in canonical(bundle)}
    assert set(careful["scores"].values()) == {"C"}
    assert careful["metrics"]["groups_passed"] == 1.0
    recorded = inspect_run(bundle / "targets/inspect", "recorded")
    assert {recorded["scores"][name] for name in incidents(bundle)} == {"I"}
    assert recorded["metrics"]["groups_passed"] == 0.0


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


@pytest.mark.node
@pytest.mark.skipif(
    PROMPTFOO is None or shutil.which("node") is None,
    reason="AGENT_SLO_PROMPTFOO does not name promptfoo's dist/src/entrypoint.js",
)
@pytest.mark.parametrize(("agent", "code"), [("careful", 0), ("recorded", 100)])
def test_promptfoo_loads_and_judges(tmp_path: Path, agent: str, code: int) -> None:
    data = fill(tmp_path / "data", [paid_twice()], SETTINGS, at(90000))
    with open_reader(data) as reader:
        export(reader, SETTINGS, tmp_path / "out", Choice(targets=("promptfoo",)), "9.9.9")
    assert PROMPTFOO is not None
    quiet = dict.fromkeys(
        ("DISABLE_TELEMETRY", "DISABLE_UPDATE", "DISABLE_REMOTE_GENERATION", "SELF_HOSTED"), "1"
    )
    run = subprocess.run(
        [
            "node",
            PROMPTFOO,
            "eval",
            "-c",
            "promptfooconfig.yaml",
            "--no-progress-bar",
            "--no-table",
            "--no-cache",
        ],
        cwd=tmp_path / "out/targets/promptfoo",
        capture_output=True,
        text=True,
        env={
            **os.environ,
            **{f"PROMPTFOO_{name}": value for name, value in quiet.items()},
            "PROMPTFOO_CONFIG_DIR": str(tmp_path / "config"),
            "PROMPTFOO_PYTHON": sys.executable,
            "AGENT_SLO_AGENT": agent,
            "CI": "1",
        },
    )
    assert run.returncode == code, run.stdout[-3000:] + run.stderr[-2000:]


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
