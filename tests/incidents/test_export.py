"""The export as a user gets it: valid, equal byte for byte, without secrets, and careful with folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from agent_slo.cli import cli
from agent_slo.config import Config
from agent_slo.redaction import redaction_rules
from collector.reader import open_reader
from collector.redaction.detectors import PLACEHOLDER
from collector.redaction.redactor import Redactor as StoreRedactor
from incidents.bundle import Choice, ExportError, Written, check_folder, export
from incidents.case import canonical_text, content_hash, schema
from incidents.redaction import Redactor
from metrics.conventions import content_setting
from metrics.settings import MetricsSettings
from tests.incidents.folders import fill
from tests.incidents.stories import SETTINGS, paid_twice
from tests.incidents.test_redaction import PLANTED
from tests.metrics import worlds
from tests.metrics.bench import at

SAMPLE_SETTINGS = Path("sample_traces/agent-slo.yaml")


def write(data: Path, out: Path, settings: MetricsSettings, **choice: Any) -> Written:
    with open_reader(data) as reader:
        return export(reader, settings, out, Choice(**choice), "9.9.9")


def cases(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "cases.jsonl").read_text().splitlines()]


def tree(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def exported(company: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "out"
    write(company, out, worlds.settings(), kinds=("duplicate_action",))
    return out


def test_every_case_follows_the_published_schema(exported: Path) -> None:
    published = json.loads((exported / "case.schema.json").read_text())
    Draft202012Validator.check_schema(published)
    valid = Draft202012Validator(published)
    found = cases(exported)
    assert found
    assert [error.message for case in found for error in valid.iter_errors(case)] == []


def test_every_cause_of_duplicates_becomes_a_proven_group(exported: Path) -> None:
    modes = {case["classification"]["failure_mode"] for case in cases(exported)}
    causes = {
        duplicate["cause"]
        for task in worlds.truth()["tasks"].values()
        for duplicate in task.get("duplicates", [])
        if duplicate["protection"] == "unprotected"
    }
    assert modes == {f"duplicate_action.{cause}" for cause in causes}
    assert {case["review"]["state"] for case in cases(exported)} == {"in_review"}
    groups = json.loads((exported / "manifest.json").read_text())["groups"]
    assert all([c["role"] for c in group["cases"]] == ["incident", "twin", "control"] for group in groups)
    assert all(group["recorded_fails"] for group in groups)


def test_the_hidden_effect_is_opposite_in_the_twin(exported: Path) -> None:
    by_id = {case["case_id"]: case for case in cases(exported)}
    checked = 0
    for case in by_id.values():
        if case["role"] == "incident" and any(f["kind"] == "timeout" for f in case["faults"]):
            twin = by_id[case["case_id"] + "-twin"]
            effects = [
                (f["effect"], g["effect"]) for f, g in zip(case["faults"], twin["faults"], strict=True)
            ]
            assert all({a, b} == {"applied", "not_applied"} for a, b in effects)
            assert by_id[case["case_id"] + "-control"]["faults"] == []
            checked += 1
    assert checked


def test_two_runs_give_equal_bytes_whatever_the_hash_seed(company: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.incidents.test_export import write; "
        "from tests.metrics import worlds; write(Path(sys.argv[1]), Path(sys.argv[2]), worlds.settings())"
    )
    trees = []
    for seed in ("1", "77"):
        out = tmp_path / seed
        subprocess.run(
            [sys.executable, "-c", code, str(company), str(out)],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo" if seed == "77" else "UTC"},
        )
        trees.append(tree(out))
    assert trees[0] == trees[1]
    assert any(name.startswith("traces/") for name in trees[0])


def test_the_content_hash_is_over_what_decides_a_replay(exported: Path) -> None:
    case = cases(exported)[0]
    assert case["content_hash"] == content_hash(case)
    assert content_hash({**case, "title": "other", "revision": 4}) == case["content_hash"]
    assert content_hash({**case, "tools": []}) != case["content_hash"]


def test_the_bundle_runs_without_agent_slo(exported: Path, tmp_path: Path) -> None:
    # -I: no site, no current folder, no PYTHONPATH beyond what is named here
    proof = subprocess.run(
        [sys.executable, "-S", "-c", "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]; "
         "import runpy; sys.path.insert(0, '.'); sys.argv = ['replay', 'cases.jsonl']; "
         "runpy.run_module('replay', run_name='__main__')"],
        cwd=exported, capture_output=True, text=True,
    )  # fmt: skip
    assert proof.returncode == 0, proof.stdout + proof.stderr
    assert proof.stdout.count("ok ") == len({case["split_group"] for case in cases(exported)})


@pytest.mark.parametrize(("agent", "passes"), [("careful", True), ("recorded", False), ("act_once", False)])
def test_the_exported_pytest_judges_an_agent(
    exported: Path, tmp_path: Path, agent: str, passes: bool
) -> None:
    (tmp_path / "mine.py").write_text(f"from replay import AGENTS\nmake = AGENTS[{agent!r}]\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(exported / "test_cases.py")],
        cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "AGENT_SLO_AGENT": "mine:make", "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert (run.returncode == 0) == passes, run.stdout[-2000:]
    assert "failed" in run.stdout or passes


# ---- secrets and hostile text -------------------------------------------------------------------------------------


def test_planted_secrets_are_in_no_exported_byte(tmp_path: Path) -> None:
    planted = " | ".join(PLANTED.values())
    story = paid_twice(
        ask=f"Pay 40 to Ada. {planted}",
        args={
            "to": "Ada",
            "amount": 40,
            "note": planted,
            "password": "correct-horse-9",
            "mail": PLANTED["EMAIL"],
        },
        result={"payment": "P-77", "token": "tok-zz-998877", "said": planted},
        answer=f"Paid with correct-horse-9. {planted}",
    )
    data = fill(tmp_path / "data", [story], SETTINGS, at(90000))
    write(data, tmp_path / "out", SETTINGS)
    whole = b"\n".join(tree(tmp_path / "out").values())
    assert cases(tmp_path / "out")
    for value in (*PLANTED.values(), "correct-horse-9", "tok-zz-998877"):
        assert value.encode() not in whole, value
    counts = cases(tmp_path / "out")[0]["privacy"]["counts"]
    assert set(counts) >= {"EMAIL", "CARD", "IBAN", "SECRET", "JWT"}


def test_the_case_proves_itself_after_redaction(tmp_path: Path) -> None:
    story = paid_twice(args={"to": PLANTED["EMAIL"], "amount": 40})
    data = fill(tmp_path / "data", [story], SETTINGS, at(90000))
    written = write(data, tmp_path / "out", SETTINGS, kinds=("duplicate_action",))
    assert written.excluded == []
    case = cases(tmp_path / "out")[0]
    assert case["review"]["state"] == "in_review"
    assert case["observed"]["failed_checks"] == ["once", "key"]
    assert case["observed"]["calls"][0]["args"]["to"] == "<EMAIL_1>"
    assert case["world"]["rules"][0]["when"]["to"] == "<EMAIL_1>"


HOSTILE = (
    "{{ 7*7 }} ${7*7} =cmd|' /C calc'!A1 <script>alert(1)</script> ../../etc/passwd \"'\\ \u2028 \u0000 \u202e "
    "!!python/object/apply:os.system ['id'] %s {} `rm -rf`"
)


def test_hostile_text_stays_data(tmp_path: Path) -> None:
    story = paid_twice(
        "../../hostile", ask=HOSTILE, args={"to": HOSTILE, "amount": 40, HOSTILE: HOSTILE}, tool="../{0} x\n| `y` |",
        result={"payment": "P-77", "said": HOSTILE}, answer=HOSTILE,
    )  # fmt: skip
    settings = MetricsSettings.model_validate({"tools": {"*x*": {"effect": "write"}}})
    data = fill(tmp_path / "data", [story], settings, at(90000))
    written = write(data, tmp_path / "out", settings, include_draft=True)
    assert written.groups
    names = set(tree(tmp_path / "out"))
    assert all(".." not in name and "\n" not in name for name in names)
    assert {p.name for p in tmp_path.iterdir()} == {"data", "out"}
    case = cases(tmp_path / "out")[0]
    assert "{{ 7*7 }}" in case["task"]["messages"][0]["content"]
    assert (tmp_path / "out" / "cases.jsonl").read_bytes().isascii()
    assert "../{0} x" not in (tmp_path / "out" / "README.md").read_text()
    assert [e.message for e in Draft202012Validator(schema()).iter_errors(case)] == []


# ---- what is missing ----------------------------------------------------------------------------------------------


def test_without_captured_content_the_case_is_a_draft_that_says_how_to_capture(tmp_path: Path) -> None:
    stories = [paid_twice(captured=False)]
    settings = MetricsSettings.model_validate({"tools": {"pay": {"effect": "write"}}})
    data = fill(tmp_path / "data", stories, settings, at(90000))
    with open_reader(data) as reader:
        found = reader.sql("SELECT incident_id FROM incidents ORDER BY 1").to_pylist()
    assert found
    written = write(data, tmp_path / "all", settings, include_draft=True)
    assert {group["state"] for group in written.groups} == {"draft"}
    for case in cases(tmp_path / "all"):
        assert "no input captured" in case["review"]["note"]
        assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in case["review"]["note"]
        assert case["task"]["messages"] == []
        assert [e.message for e in Draft202012Validator(schema()).iter_errors(case)] == []


def test_a_draft_names_the_setting_of_the_instrumentation_that_sent_it(tmp_path: Path) -> None:
    request = paid_twice(captured=False)
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            scope["scope"] = {"name": "pydantic-ai"}
    data = fill(tmp_path / "data", [request], SETTINGS, at(90000))
    written = write(data, tmp_path / "out", SETTINGS)
    assert written.excluded
    assert all(content_setting("pydantic-ai") in row["reason"] for row in written.excluded)


def stored(tmp_path: Path, policy: str) -> Path:
    """A folder as a collector with this policy has it."""
    rules = redaction_rules(Config.model_validate({"collector": {"redaction": policy}}))
    mail = {"to": "ada@example.com", "amount": 40}
    story = paid_twice(ask="Pay 40 to ada@example.com.", args=mail)
    return fill(tmp_path / "data", [story], SETTINGS, at(90000), StoreRedactor(rules, b"k" * 32))


def test_what_the_collector_replaced_stays_equal_and_proves_itself(tmp_path: Path) -> None:
    written = write(stored(tmp_path, "redact"), tmp_path / "out", SETTINGS)
    assert {group["state"] for group in written.groups} == {"in_review"}
    for case in cases(tmp_path / "out"):
        (mail,) = {call["args"]["to"] for call in case["observed"]["calls"]}
        assert PLACEHOLDER.fullmatch(mail)
        assert mail in case["task"]["messages"][0]["content"]
        assert case["privacy"]["counts"] == {"EMAIL": 1}


def test_content_that_the_collector_dropped_makes_a_draft_that_names_the_policy(tmp_path: Path) -> None:
    written = write(stored(tmp_path, "drop-content"), tmp_path / "out", SETTINGS)
    assert written.groups == []
    assert written.excluded
    assert all("collector.redaction" in row["reason"] for row in written.excluded)


def test_drafts_are_left_out_with_their_reason_unless_asked_for(tmp_path: Path) -> None:
    settings = MetricsSettings.model_validate({"tools": {"pay": {"effect": "write"}}})
    data = fill(tmp_path / "data", [paid_twice(captured=False)], settings, at(90000))
    written = write(data, tmp_path / "out", settings)
    assert written.groups == []
    assert all("no input captured" in row["reason"] for row in written.excluded)
    asked = [row["incident_id"] for row in written.excluded]
    named = write(data, tmp_path / "named", settings, incidents=asked)
    assert [group["incident_id"] for group in named.groups] == sorted(asked)


# ---- folders ------------------------------------------------------------------------------------------------------


def test_an_existing_folder_is_refused_and_only_an_export_is_replaced(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    check_folder(out, data, False)
    out.mkdir()
    check_folder(out, data, False)
    (out / "thesis.txt").write_text("mine")
    with pytest.raises(ExportError, match="--force"):
        check_folder(out, data, False)
    with pytest.raises(ExportError, match="no export of agent-slo"):
        check_folder(out, data, True)
    with pytest.raises(ExportError, match="data folder"):
        check_folder(data / "out", data, True)
    with pytest.raises(ExportError, match="data folder"):
        check_folder(tmp_path, data, True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ExportError, match="is a file"):
        check_folder(tmp_path / "file", data, True)
    (tmp_path / "link").symlink_to(out)
    with pytest.raises(ExportError, match="is a link"):
        check_folder(tmp_path / "link", data, True)
    assert (out / "thesis.txt").read_text() == "mine"


def test_a_failed_write_leaves_the_earlier_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = fill(tmp_path / "data", [paid_twice()], SETTINGS, at(90000))
    write(data, tmp_path / "out", SETTINGS)
    before = tree(tmp_path / "out")
    real = Path.write_bytes

    def full(self: Path, text: bytes) -> int:
        if self.name == "manifest.json":
            raise OSError(28, "No space left on device", str(self))
        return real(self, text)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write(data, tmp_path / "out", SETTINGS)
    assert tree(tmp_path / "out") == before
    assert {p.name for p in tmp_path.iterdir()} == {"data", "out"}


def test_the_revision_grows_only_with_the_content(tmp_path: Path) -> None:
    data = fill(tmp_path / "data", [paid_twice()], SETTINGS, at(90000))
    out = tmp_path / "out"
    write(data, out, SETTINGS)
    first = tree(out)
    write(data, out, SETTINGS)
    assert tree(out) == first
    other = SETTINGS.model_copy(update={"tools": {}})
    write(data, out, other, include_draft=True)
    assert {case["revision"] for case in cases(out)} == {2}
    write(data, out, SETTINGS)
    assert {case["revision"] for case in cases(out)} == {3}


# ---- many incidents -----------------------------------------------------------------------------------------------


def test_a_thousand_customers_with_one_fault_are_one_case(tmp_path: Path) -> None:
    stories = [
        paid_twice(f"many-{n}", ask=f"Pay {n} to C-{n}.", args={"to": f"C-{n}", "amount": n + 1}, at=n * 7.0)
        for n in range(120)
    ]
    data = fill(tmp_path / "data", stories, SETTINGS, at(0) + timedelta(days=3))
    write(data, tmp_path / "out", SETTINGS, kinds=("duplicate_action",))
    incident = cases(tmp_path / "out")[0]
    assert [case["role"] for case in cases(tmp_path / "out")] == ["incident", "twin", "control"]
    assert incident["origin"]["seen_count"] == 120
    assert len(incident["origin"]["other_trace_ids"]) == 20
    assert "C-119" in incident["task"]["messages"][0]["content"]


# ---- command line -------------------------------------------------------------------------------------------------


def test_the_command_writes_and_says_what_it_did(company: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    base = [
        "--data",
        str(company),
        "--config",
        str(SAMPLE_SETTINGS),
        "export",
        "--out",
        str(tmp_path / "out"),
    ]
    done = runner.invoke(cli, [*base, "--kind", "duplicate_action", "--target", "jsonl"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["groups"] > 0
    again = runner.invoke(cli, [*base, "--kind", "duplicate_action"])
    assert again.exit_code == 2
    assert "--force" in again.stderr
    forced = runner.invoke(cli, [*base, "--kind", "duplicate_action", "--force"])
    assert forced.exit_code == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--incident", "inc-none"], "no incident 'inc-none'"),
        (["--kind", "nonsense"], "'nonsense' is no kind of finding"),
        (["--kind", "runaway_cost"], "no incident matches"),
        (["--target", "excel"], "no target 'excel'"),
    ],
)
def test_bad_input_is_one_clear_line(company: Path, tmp_path: Path, more: list[str], words: str) -> None:
    run = CliRunner().invoke(cli, ["--data", str(company), "export", "--out", str(tmp_path / "out"), *more])
    assert run.exit_code == 2
    assert words in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_redacted_value_that_comes_back_is_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = fill(tmp_path / "data", [paid_twice(ask="Mail ada@example.com")], SETTINGS, at(90000))
    whole = Redactor.text

    def leaky(self: Redactor, text: str) -> str:
        found = whole(self, text)
        return text if "Mail " in text else found

    monkeypatch.setattr(Redactor, "text", leaky)
    written = write(data, tmp_path / "out", SETTINGS, include_draft=True)
    assert written.groups == []
    assert all("still stood" in row["reason"] for row in written.excluded)
    assert b"ada@example.com" not in b"".join(tree(tmp_path / "out").values())


def test_canonical_text_refuses_what_is_no_json() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        canonical_text({"x": float("nan")})
