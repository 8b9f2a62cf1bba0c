"""`agent-slo label` and the action behind it, on files and through a running collector."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_slo.actions import routes
from agent_slo.config import load_config
from agent_slo.derivation import Derivation
from agent_slo.label_actions import label_actions
from collector.access import Token
from collector.reader import open_reader
from collector.serve import Collector, CollectorSettings
from metrics.openslo import default_objectives
from tests.agent_slo.conftest import Run
from tests.agent_slo.waiting import until


def rows(data: Path, sql: str) -> list[dict[str, Any]]:
    with open_reader(data) as reader:
        found: list[dict[str, Any]] = reader.sql(sql).to_pylist()
    return found


@pytest.fixture
def data(tmp_path: Path, sample_data: Path) -> Path:
    shutil.copytree(sample_data, tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def asked(data: Path) -> str:
    """A task that asked a human and that nothing labels."""
    (row,) = rows(
        data, "SELECT min(task_id) AS task_id FROM human_labels WHERE asked AND verdict = 'unknown'"
    )
    assert row["task_id"]
    return str(row["task_id"])


def test_on_files_a_label_is_shown_at_once(run: Run, data: Path, asked: str) -> None:
    answer = run(
        "label", asked, "--needed", "yes", "--note", "over the limit", "--by", "reviewer", "--data", data
    )
    assert answer.exit_code == 0, answer.output
    assert "needed a human (it asked one)" in answer.stderr
    assert "agent-slo rederive" in answer.stderr
    (row,) = rows(data, f"SELECT * FROM human_labels WHERE task_id = '{asked}'")
    assert (row["verdict"], row["source"], row["note"], row["said_by"]) == (
        "needed",
        "person",
        "over the limit",
        "reviewer",
    )
    (log,) = rows(data, "SELECT action, arguments FROM operator_log WHERE refused IS NULL")
    assert log["action"] == "tasks.label"
    assert json.loads(log["arguments"])["task_id"] == asked


def test_several_tasks_at_once_and_as_json(run: Run, data: Path, asked: str) -> None:
    (other,) = rows(data, "SELECT min(task_id) AS id FROM tasks WHERE interventions = 0")
    answer = run("label", asked, other["id"], "--needed", "no", "--format", "json", "--data", data)
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.stdout)
    assert [(t["task_id"], t["needed"], t["asked"]) for t in told] == [
        (asked, False, True),
        (other["id"], False, False),
    ]


def test_the_account_is_kept_when_nobody_is_named(run: Run, data: Path, asked: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "kim")
    assert run("label", asked, "--needed", "unknown", "--data", data).exit_code == 0
    (row,) = rows(data, "SELECT needed, said_by FROM label_log")
    assert row == {"needed": None, "said_by": "kim"}


def test_a_task_that_is_none_is_one_line(run: Run, data: Path) -> None:
    answer = run("label", "nowhere", "--needed", "yes", "--data", data)
    assert answer.exit_code == 2
    assert answer.stderr.splitlines() == [
        "agent-slo: no task 'nowhere' is derived; `agent-slo tasks` lists them"
    ]
    assert run("label", "nowhere", "--data", data).exit_code == 2


def test_through_the_door_once_and_into_the_objectives(data: Path, asked: str, sample_settings: Path) -> None:
    config = load_config(sample_settings, data).config
    derivation = Derivation(config, default_objectives())
    settings = CollectorSettings(
        data=data, http="127.0.0.1:0", grpc=None, tokens=(Token("admin", "boss-1"), Token("read", "reader-1"))
    )
    door = routes(label_actions(), derivation.evaluation.lock)

    def ask(arguments: dict[str, Any], token: str = "boss-1", **more: str) -> httpx.Response:
        return httpx.post(
            f"http://{collector.door}/actions",
            json={"action": "tasks.label", "arguments": arguments, **more},
            headers={"authorization": f"Bearer {token}"},
            timeout=60.0,
            trust_env=False,
        )

    def verdict(sli: str) -> list[str]:
        with collector.store.reader() as con:
            found = con.execute("SELECT verdict FROM sli_events WHERE task_id = ? AND sli = ?", [asked, sli])
            return [row[0] for row in found.fetchall()]

    with Collector(settings, background=derivation, door_routes=door) as collector:
        first = ask({"task_id": asked, "needed": True}, id="l-1")
        again = ask({"task_id": asked, "needed": True}, id="l-1")
        assert first.status_code == 200, first.text
        assert (
            first.json() == again.json() == {"task_id": asked, "needed": True, "asked": True, "frozen": False}
        )
        with collector.store.reader() as con:
            assert con.execute("SELECT count(*) FROM label_log").fetchone() == (1,)
        until(
            lambda: verdict("escalation_recall") == ["good"] and verdict("escalation_precision") == ["good"]
        )
        assert ask({"task_id": asked, "needed": "no"}).status_code == 200
        until(lambda: verdict("escalation_recall") == [] and verdict("escalation_precision") == ["bad"])
        assert ask({"task_id": asked, "needed": True}, token="reader-1").status_code == 403
        refused = ask({"task_id": asked, "needed": "perhaps"})
        assert refused.status_code == 400
        assert "needed" in refused.json()["error"]


def test_labels_of_many_senders_all_count(data: Path, asked: str) -> None:
    settings = CollectorSettings(data=data, http="127.0.0.1:0", grpc=None, tokens=(Token("admin", "boss-1"),))
    with Collector(settings, door_routes=routes(label_actions(), threading.Lock())) as collector:
        answers: list[int] = []

        def send(number: int) -> None:
            body = {"action": "tasks.label", "arguments": {"task_id": asked, "needed": number % 2 == 0}}
            headers = {"authorization": "Bearer boss-1"}
            url = f"http://{collector.door}/actions"
            answers.append(
                httpx.post(url, json=body, headers=headers, timeout=60.0, trust_env=False).status_code
            )

        threads = [threading.Thread(target=send, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with collector.store.reader() as con:
            numbers = con.execute("SELECT list(said_no ORDER BY said_no) FROM label_log").fetchone()
    assert answers == [200] * 8
    assert numbers == (list(range(1, 9)),)
