"""`agent-slo alerts`, and a collector that is killed between an alert's start and its end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_slo.ports import free_port
from tests.agent_slo.conftest import Run
from tests.agent_slo.waiting import until
from tests.metrics.alerts.receiver import Receiver, receiving

Started = Callable[..., subprocess.Popen[str]]

SETTINGS = """
tools:
  issue_refund: {{effect: write}}
alerts:
  dashboard: http://127.0.0.1:8501
  targets:
    - {{type: webhook, name: hook, url: "{url}/hook", repeat: 1s}}
    - {{type: alertmanager, name: am, url: "{url}", severities: [page]}}
  events:
    - {{name: done-twice, finding: duplicate_action, max_age: 36500d, quiet: 36500d}}
"""


def settings(tmp_path: Path, receiver: Receiver) -> Path:
    file = tmp_path / "settings.yaml"
    file.write_text(SETTINGS.format(url=receiver.url))
    return file


def hooks(receiver: Receiver, status: str) -> list[dict[str, Any]]:
    with receiver.lock:
        return [b for path, _, b in receiver.got if path == "/hook" and b["status"] == status]


def test_an_alert_keeps_its_identity_when_the_collector_is_killed(
    run: Run, started: Started, tmp_path: Path, samples: Path
) -> None:
    with receiving() as receiver:
        data, config = tmp_path / "data", settings(tmp_path, receiver)
        options = ("collect", "--data", data, "--config", config, "--http", "127.0.0.1:0", "--no-grpc")
        first = started(*options)
        until(lambda: (data / "door.json").exists(), first)
        assert run("import", samples, "--data", data).exit_code == 0
        until(lambda: bool(hooks(receiver, "firing")), first)
        door = json.loads((data / "door.json").read_text())
        text = httpx.get(f"http://{door['http']}/metrics", trust_env=False).text
        assert 'agent_slo_sli_ratio{slo="task-completion"' in text
        assert "agent_slo_collector_stored_total" in text
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        told = len(hooks(receiver, "firing"))
        second = started(*options)
        until(lambda: len(hooks(receiver, "firing")) > told, second)
        listed = json.loads(run("alerts", "list", "--data", data, "--format", "json").stdout)
        assert {a["state"] for a in listed} == {"firing"}
        for alert in listed:
            assert (
                run("alerts", "resolve", alert["alert_id"], "--data", data, "--reason", "mended").exit_code
                == 0
            )
        until(lambda: len(hooks(receiver, "resolved")) == len(listed), second)
        groups: dict[str, set[Any]] = {}
        for body in hooks(receiver, "firing") + hooks(receiver, "resolved"):
            alert = body["alerts"][0]
            groups.setdefault(alert["fingerprint"], set()).add(
                (alert["startsAt"], tuple(sorted(alert["labels"].items())))
            )
        assert len(groups) == len(listed)
        assert all(len(identities) == 1 for identities in groups.values())
        assert "/task?id=" in hooks(receiver, "firing")[0]["commonAnnotations"]["tasks"]
        log = run("query", "SELECT action FROM operator_log", "--data", data, "--format", "csv").stdout
        assert log.splitlines()[1:] == ["alerts.resolve"] * len(listed)


ALERTMANAGER = shutil.which("alertmanager") or shutil.which("prometheus-alertmanager")


@pytest.mark.skipif(
    ALERTMANAGER is None, reason="Alertmanager (Debian: prometheus-alertmanager) is not installed"
)
def test_a_real_alertmanager_knows_an_alert_again_after_a_kill_and_hears_its_end(
    run: Run, started: Started, tmp_path: Path, samples: Path
) -> None:
    address = f"127.0.0.1:{free_port('127.0.0.1')}"
    with receiving() as receiver:
        (tmp_path / "am.yml").write_text(
            "route: {receiver: r, group_wait: 0s, group_interval: 1s, repeat_interval: 1h}\n"
            f"receivers: [{{name: r, webhook_configs: [{{url: '{receiver.url}/hook', send_resolved: true}}]}}]\n"
        )
        options = ["--config.file=am.yml", "--storage.path=am", f"--web.listen-address={address}"]
        manager = subprocess.Popen([str(ALERTMANAGER), *options, "--cluster.listen-address="], cwd=tmp_path)
        try:
            config = tmp_path / "settings.yaml"
            target = f'{{type: alertmanager, name: am, url: "http://{address}", repeat: 1s}}'
            rule = "{name: done-twice, finding: duplicate_action, tool: issue_refund, max_age: 36500d, quiet: 36500d}"
            config.write_text(f"alerts: {{targets: [{target}], events: [{rule}]}}\n")
            data = tmp_path / "data"
            collect = ("collect", "--data", data, "--config", config, "--http", "127.0.0.1:0", "--no-grpc")
            first = started(*collect)
            until(lambda: (data / "door.json").exists(), first)
            assert run("import", samples, "--data", data).exit_code == 0
            until(lambda: bool(hooks(receiver, "firing")), first)
            (before,) = known_to(address)
            os.kill(first.pid, signal.SIGKILL)
            first.wait()
            second = started(*collect)
            until(lambda: known_to(address)[0]["updatedAt"] > before["updatedAt"], second)
            (again,) = known_to(address)
            assert [again[k] for k in ("fingerprint", "labels", "startsAt")] == [
                before[k] for k in ("fingerprint", "labels", "startsAt")
            ]
            assert again["labels"]["severity"] == "page"
            (listed,) = json.loads(run("alerts", "list", "--data", data, "--format", "json").stdout)
            assert run("alerts", "resolve", listed["alert_id"], "--data", data).exit_code == 0
            until(lambda: bool(hooks(receiver, "resolved")), second)
            told = {(a["fingerprint"], a["startsAt"]) for b in receiver.bodies() for a in b["alerts"]}
            assert len(told) == 1
        finally:
            manager.terminate()
            manager.wait(timeout=30)


def known_to(address: str) -> list[dict[str, Any]]:
    """The alerts that Alertmanager holds."""
    found: list[dict[str, Any]] = httpx.get(f"http://{address}/api/v2/alerts", trust_env=False).json()
    return found


def test_a_silence_with_and_without_a_collector(
    run: Run, started: Started, tmp_path: Path, samples: Path
) -> None:
    with receiving() as receiver:
        data, config = tmp_path / "data", settings(tmp_path, receiver)
        common = ("--data", data, "--config", config)
        assert run("import", samples, *common).exit_code == 0
        silence = run("alerts", "silence", "--for", "2h", "--slo", "done-*", "--reason", "known", *common)
        assert silence.exit_code == 0
        name = silence.stdout.strip()
        collector = started("collect", *common, "--http", "127.0.0.1:0", "--no-grpc")
        until(lambda: (data / "door.json").exists(), collector)
        until(lambda: "silenced" in run("alerts", "list", *common).stdout, collector)
        listed = json.loads(run("alerts", "list", "--silences", *common, "--format", "json").stdout)
        assert [(s["silence_id"], s["slo"], s["reason"]) for s in listed] == [(name, "done-*", "known")]
        assert run("alerts", "unsilence", name, *common).exit_code == 0
        assert run("alerts", "unsilence", name, *common).exit_code == 2
        assert receiver.bodies() == []


def test_a_test_message_reaches_every_target(run: Run, tmp_path: Path) -> None:
    with receiving() as receiver:
        config = settings(tmp_path, receiver)
        result = run("alerts", "test", "--config", config)
        assert (result.exit_code, result.stdout.splitlines()) == (
            0,
            ["hook (webhook): taken", "am (alertmanager): taken"],
        )
        assert len(receiver.got) == 2
        receiver.answers = [503]
        failed = run("alerts", "test", "hook", "--config", config)
        assert failed.exit_code == 1
        assert "hook (webhook): failed: answer 503" in failed.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("test", "nobody"), "no target 'nobody'"),
        (("silence", "--reason", "r"), "--for and --until"),
        (("silence", "--reason", "r", "--for", "soon"), "no duration"),
        (("list", "--dead", "--silences"), "one of them"),
        (("resolve", "zz"), "no alert"),
        (("unsilence", "zz"), "no silence"),
    ],
)
def test_bad_use_is_one_line(
    run: Run, tmp_path: Path, sample_data: Path, arguments: tuple[str, ...], words: str
) -> None:
    with receiving() as receiver:
        config = settings(tmp_path, receiver)
        result = run("alerts", *arguments, "--config", config, "--data", sample_data)
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_nothing_configured(run: Run, tmp_path: Path, sample_data: Path) -> None:
    config = tmp_path / "empty.yaml"
    config.write_text("")
    assert "no target is configured" in run("alerts", "test", "--config", config).stderr
    assert json.loads(run("alerts", "list", "--data", sample_data, "--format", "json").stdout) == []
    assert "none" in run("alerts", "list", "--dead", "--data", sample_data).stderr
