"""What people say on the pages: kept while a collector goes, said once, and not over another's word."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import duckdb
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import door
from dashboard.door import ActionRefused, DoesNotAnswer, _check_files, act, alive
from dashboard.saying import command_id
from dashboard.screens import alerts as alerts_page
from dashboard.screens import incidents as incidents_page
from tests.agent_slo.conftest import answer
from tests.dashboard.conftest import OpenPage, texts
from tests.dashboard.data_folder import write_folder

NOW = datetime(2026, 11, 30, 10, 0, 30)


@pytest.fixture
def spoken_to(tmp_path: Path) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    """A folder whose door takes actions and keeps them; an action named `hang` is not answered."""
    taken: list[dict[str, Any]] = []

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say({"status": "ok"})

        def do_POST(self) -> None:
            taken.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            if taken[-1]["action"] == "hang":
                time.sleep(1)
                return
            self._say({"silence_id": "s1"})

        def _say(self, said: dict[str, Any]) -> None:
            body = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "door.json").write_text(
        json.dumps({"door": f"http://127.0.0.1:{server.server_port}", "token": "t"}), encoding="utf-8"
    )
    yield tmp_path, taken
    server.shutdown()
    server.server_close()


def test_an_action_says_who_asks_and_has_an_id_of_its_content(
    spoken_to: tuple[Path, list[dict[str, Any]]],
) -> None:
    data, taken = spoken_to
    content = {"slo": "cost", "reason": "known"}
    told = act(data, "alerts.silence", content, by="anna", command_id=command_id("alerts.silence", content))
    assert told == {"silence_id": "s1"}
    assert taken[0]["by"] == "anna"
    assert taken[0]["id"] == command_id("alerts.silence", dict(content))
    assert command_id("alerts.silence", {**content, "reason": "other"}) != taken[0]["id"]
    act(data, "alerts.silence", content)
    assert set(taken[1]) == {"action", "arguments"}


def test_a_collector_that_hangs_is_told_and_not_waited_for(
    spoken_to: tuple[Path, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, _ = spoken_to
    assert alive(data)
    monkeypatch.setattr(door, "ACTION_SECONDS", 0.2)
    with pytest.raises(ActionRefused, match="does not answer"):
        act(data, "hang", {})
    (data / "door.json").write_text('{"door": "http://127.0.0.1:9", "token": "t"}', encoding="utf-8")
    assert not alive(data)
    with pytest.raises(ActionRefused, match="does not answer"):
        act(data, "alerts.silence", {})


def test_files_held_by_a_silent_process_are_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_folder(tmp_path / "data", tasks=1)
    _check_files(data)

    def held(*_: Any, **__: Any) -> None:
        raise duckdb.IOException("IO Error: Could not set lock on file: Conflicting lock is held (PID 7)")

    monkeypatch.setattr(duckdb, "connect", held)
    with pytest.raises(DoesNotAnswer, match="does not answer"):
        _check_files(data)
    _check_files(tmp_path / "nothing")


def silence(**more: Any) -> dict[str, Any]:
    return {
        "silence_id": "s", "slo": "*", "agent": "*", "severity": "*", "starts_at": NOW - timedelta(hours=1),
        "ends_at": NOW + timedelta(hours=1), **more,
    }  # fmt: skip


def test_a_silence_covers_what_its_globs_name_while_it_holds() -> None:
    alert = {"slo": "cost", "agent": None, "severity": "ticket"}
    assert alerts_page.covering(alert, [silence()], NOW) is not None
    assert alerts_page.covering(alert, [silence(slo="co*", severity="ticket")], NOW) is not None
    for other in ({"slo": "latency"}, {"agent": "a"}, {"severity": "page"}, {"ends_at": NOW}):
        assert alerts_page.covering(alert, [silence(**other)], NOW) is None
    longer = silence(silence_id="long", ends_at=NOW + timedelta(hours=9))
    assert alerts_page.covering(alert, [silence(), longer], NOW) == longer
    assert alerts_page.scope_of(alert) == {"slo": "cost", "agent": "*", "severity": "ticket"}


def test_a_silence_ends_on_a_minute() -> None:
    first, second = (alerts_page.silence_end(NOW + timedelta(seconds=s), 4) for s in (1, 20))
    assert first == second == datetime(2026, 11, 30, 14, 1)
    assert alerts_page.silence_end(NOW.replace(second=0, tzinfo=UTC), 1) == datetime(
        2026, 11, 30, 11, 0, tzinfo=UTC
    )


def test_without_a_collector_the_commands_have_the_scope_the_folder_and_the_note(
    open_page: OpenPage, tmp_path: Path
) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute("UPDATE alerts SET agent = 'refund agent' WHERE alert_id = 'alert-firing'")
    test = open_page(data, "screens/alerts.py", id="alert-firing")
    test.text_input(key="note_alert-firing").set_value("it's known").run()
    typed = test.code[0].value
    for part in (
        "--agent 'refund agent'",
        "--severity page",
        "--for 1h",
        f"--data {data}",
        "it'\"'\"'s known",
    ):
        assert part in typed
    test = open_page(data, "screens/incidents.py", id="inc-feed")
    test.text_input(key="note_inc-feed").set_value("seen").run()
    assert f"agent-slo incident inc-feed --state resolved --note seen --data {data}" in test.code[0].value
    # It outlives a page that does not draw its field.
    test.switch_page("screens/data.py").run()
    test.switch_page("screens/incidents.py")
    test.query_params["id"] = "inc-feed"
    test.run()
    assert test.text_input(key="note_inc-feed").value == "seen"


Told = list[tuple[str, dict[str, Any], dict[str, Any]]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """What pages ask of a collector, which says that it took it; the pages take their files for a door."""
    asked: Told = []

    def taken(_: Path, action: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
        asked.append((action, dict(arguments), more))
        return {}

    monkeypatch.setattr("dashboard.saying.act", taken)
    return asked


@pytest.fixture
def as_door(monkeypatch: pytest.MonkeyPatch) -> None:
    made = door.Answers.__init__

    def opened(self: door.Answers, reader: Any) -> None:
        made(self, reader)
        self._ask = lambda sql, parameters: reader.sql(sql, parameters or None)  # type: ignore[method-assign]
        self.source = "door"

    monkeypatch.setattr(door.Answers, "__init__", opened)
    monkeypatch.setattr(door.Answers, "health", lambda _: {})
    monkeypatch.setattr(door.Answers, "ahead", lambda *_, **__: None)


@pytest.mark.usefixtures("as_door")
def test_a_silence_is_confirmed_with_its_end_and_asked_for_once(
    open_page: OpenPage, tmp_path: Path, told: Told
) -> None:
    test = open_page(write_folder(tmp_path / "data", tasks=6), "screens/alerts.py", id="alert-firing")
    assert test.button(key="silence").disabled
    for _ in range(2):
        test.text_input(key="note_alert-firing").set_value("known")
        test.text_input(key="by").set_value("anna").run()
        test.button(key="silence").click().run()
        assert not test.exception
        assert "Silenced until 20" in test.success[0].value.replace("\\", "")
        # The text was used, the name stays.
        assert test.text_input(key="note_alert-firing").value == ""
        assert test.text_input(key="by").value == "anna"
    (action, first, more), (_, second, again) = told
    assert action == "alerts.silence"
    assert (first, more) == (second, again)
    assert more["by"] == "anna"
    assert first["severity"] == "page"
    assert not test.run().success


def incident_of_two(data: Path) -> None:
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute(
            "INSERT INTO incident_log (incident_id, said_at, state, note) "
            "VALUES ('inc-feed', TIMESTAMP '2026-11-29 10:00:00', 'acknowledged', 'mine')"
        )


@pytest.mark.usefixtures("as_door")
def test_what_changed_since_the_page_was_drawn_is_told_before_anything_is_said(
    open_page: OpenPage, tmp_path: Path, told: Told
) -> None:
    data = write_folder(tmp_path / "data", tasks=12)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute(
            "CREATE TABLE IF NOT EXISTS core.incident_log "
            "(incident_id VARCHAR, said_at TIMESTAMP, state VARCHAR, note VARCHAR, verdict VARCHAR)"
        )
    test = open_page(data, "screens/incidents.py", id="inc-feed")
    incident_of_two(data)
    test.button(key="say_Resolve").click().run()
    assert told == []
    warned = test.warning[0].value.replace("\\", "")
    assert (
        "Not sent: it changed since this page was drawn. Somebody: acknowledged, “mine” (2026-11-29" in warned
    )
    test.button(key="say_Resolve").click().run()
    assert [(action, asked["state"]) for action, asked, _ in told] == [("incidents.say", "resolved")]
    assert test.success[0].value.replace("\\", "") == "Kept: resolve."


def test_who_said_it_is_found_in_the_log_of_commands(
    open_page: OpenPage, samples: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    shutil.copytree(samples, data)
    incident = json.loads(answer("incidents", "--data", data, "--format", "json"))[0]["incident_id"]
    answer("incident", incident, "--state", "acknowledged", "--note", "seen", "--data", data)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute("UPDATE core.operator_log SET acted_by = 'anna'")
    test: AppTest = open_page(data, "screens/incidents.py", id=incident)
    said = next(block.value for block in test.dataframe if "Who" in block.value.columns)
    assert list(said["Who"]) == ["anna"]
    assert (
        incidents_page.said_line(
            {"state": "acknowledged", "verdict": None, "note": "seen", "said_by": "anna", "said_at": NOW}
        )
        == "anna: acknowledged, “seen” (2026-11-30 10:00:30 UTC)"
    )
    assert "Note: seen" in texts(test)
