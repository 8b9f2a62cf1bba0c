"""Incidents: one for each structure, equal whatever the order of arrival, and what people say of them is kept."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from collector.reader import open_reader
from collector.store import Store
from incidents import evidence, grouping, timeline
from metrics.deriver import Deriver
from tests.incidents.folders import Request, fill, group
from tests.incidents.stories import SETTINGS, paid_twice
from tests.metrics import worlds
from tests.metrics.bench import at


def rows(data: Path, sql: str) -> list[dict[str, Any]]:
    with open_reader(data) as reader:
        return list(reader.sql(sql).to_pylist())


def incidents(data: Path) -> list[dict[str, Any]]:
    return rows(data, "SELECT * FROM incidents ORDER BY incident_id")


def test_the_view_keeps_its_promised_columns(company: Path) -> None:
    columns = [row["column_name"] for row in rows(company, "SELECT column_name FROM (DESCRIBE incidents)")]
    assert columns[:11] == [
        "incident_id", "fingerprint", "kind", "severity", "state", "agent", "tool", "seen_count", "first_seen",
        "last_seen", "representative_task_id",
    ]  # fmt: skip


def test_every_finding_belongs_to_one_incident(company: Path) -> None:
    found = rows(
        company,
        "SELECT (SELECT count(*) FROM findings) AS findings, (SELECT count(*) FROM incident_findings) AS placed, "
        "(SELECT count(DISTINCT finding_id) FROM incident_findings) AS once, "
        "(SELECT sum(findings) FROM incidents) AS summed",
    )[0]
    assert found["findings"] == found["placed"] == found["once"] == found["summed"] > 0


def test_tasks_of_one_story_share_their_incidents_and_causes_stay_apart(company: Path) -> None:
    found = incidents(company)
    modes = [row["mode"] for row in found if row["kind"] == "duplicate_action"]
    assert {mode.split(".")[1] for mode in modes} >= {"crash_replay", "retry_after_timeout", "redelivery"}
    assert len({row["fingerprint"] for row in found}) == len(found)
    assert all(row["incident_id"] == "inc-" + row["fingerprint"] for row in found)
    assert any(row["seen_count"] > 1 for row in found)
    assert all(row["first_seen"] <= row["last_seen"] for row in found)


def test_the_fingerprint_sees_structure_and_never_values(tmp_path: Path) -> None:
    stories = [
        paid_twice("a", args={"to": "Ada", "amount": 1}),
        paid_twice("b", args={"to": "Bob", "amount": 2}, at=99),
    ]
    one = incidents(fill(tmp_path / "one", stories, SETTINGS, at(90000)))
    assert {row["seen_count"] for row in one} == {2}
    other = [paid_twice("c", tool="pay"), paid_twice("d", tool="pay_out", at=99)]
    two = incidents(fill(tmp_path / "two", other, SETTINGS, at(90000)))
    assert len({row["fingerprint"] for row in two}) == len(two)
    assert {row["tool"] for row in two} == {"pay", "pay_out"}


def test_incidents_are_the_same_whatever_the_order_and_pieces_of_arrival(tmp_path: Path) -> None:
    stories: list[Request] = [paid_twice(f"s{n}", at=n * 50.0) for n in range(6)]
    at_once = incidents(fill(tmp_path / "once", stories, SETTINGS, at(90000)))
    store = Store.open(tmp_path / "pieces")
    con = store.derivation()
    deriver = Deriver(con, SETTINGS, sources=store.spans_since)
    deriver.migrate()
    store.close()
    folder = tmp_path / "pieces"
    for story in reversed(stories):
        fill(folder, [story], SETTINGS, at(90000))
    assert incidents(folder) == at_once


def test_an_unchanged_grouping_writes_nothing(tmp_path: Path) -> None:
    folder = fill(tmp_path / "data", [paid_twice()], SETTINGS, at(90000))
    store = Store.open(folder)
    try:
        before = store.derivation().execute("SELECT * FROM core.incidents").fetchall()
        assert group(store) is False
        assert store.derivation().execute("SELECT * FROM core.incidents").fetchall() == before
    finally:
        store.close()


def say(folder: Path, moment: datetime, **said: Any) -> None:
    store = Store.open(folder)
    con = store.derivation()
    try:
        first = con.execute("SELECT min(incident_id) FROM core.incidents").fetchall()[0][0]
        grouping.say(con, first, moment, **said)
    finally:
        con.close()
    group(store)
    store.close()


def test_what_a_person_said_is_kept_and_a_recurrence_reopens(tmp_path: Path) -> None:
    folder = fill(tmp_path / "data", [paid_twice()], SETTINGS, at(90000))
    assert {row["state"] for row in incidents(folder)} == {"open"}
    say(folder, at(3600), state="acknowledged", note="looking")
    say(folder, at(7200), state="resolved", verdict="real")
    first = incidents(folder)[0]
    assert (first["state"], first["note"], first["verdict"]) == ("resolved", "looking", "real")
    fill(folder, [paid_twice("earlier", at=-500.0)], SETTINGS, at(90001))
    assert incidents(folder)[0]["state"] == "resolved"
    fill(folder, [paid_twice("again", at=9000.0)], SETTINGS, at(99000))
    again = incidents(folder)[0]
    assert (again["state"], again["seen_count"]) == ("reopened", 3)
    say(folder, at(99001), state="ignored")
    assert incidents(folder)[0]["state"] == "ignored"


def test_rederiving_everything_keeps_what_people_said(tmp_path: Path) -> None:
    folder = fill(tmp_path / "data", [paid_twice()], SETTINGS, at(90000))
    say(folder, at(3600), state="acknowledged", note="mine")
    store = Store.open(folder)
    con = store.derivation()
    deriver = Deriver(con, SETTINGS, sources=store.spans_since)
    deriver.migrate()
    deriver.rebuild(at(90000))
    con.close()
    group(store)
    store.close()
    assert incidents(folder)[0]["note"] == "mine"


def test_an_unknown_incident_is_refused(tmp_path: Path) -> None:
    folder = fill(tmp_path / "data", [paid_twice()], SETTINGS, at(90000))
    store = Store.open(folder)
    try:
        with pytest.raises(ValueError, match="no incident 'inc-x'"):
            grouping.say(store.derivation(), "inc-x", at(0), state="open")
    finally:
        store.close()


def test_a_broken_query_leaves_the_kept_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fill(tmp_path / "data", [paid_twice()], SETTINGS, at(90000))
    before = incidents(folder)
    store = Store.open(folder)
    with monkeypatch.context() as patched:
        patched.setattr(grouping, "query_text", lambda name: "SELECT no_such_column FROM findings")
        with pytest.raises(duckdb.Error):
            grouping.refresh(store.derivation())
    store.close()
    assert incidents(folder) == before


# ---- the timeline -------------------------------------------------------------------------------------------------


def told(data: Path, where: str) -> list[str]:
    with open_reader(data) as reader:
        ids = [
            row["incident_id"]
            for row in reader.sql(f"SELECT incident_id FROM incidents WHERE {where} ORDER BY ALL").to_pylist()
        ]
        found = next(evidence.gather(reader, evidence.find(reader, ids=ids[:1])))
    return [line.text for line in timeline.tell(found)]


def test_the_timeline_tells_the_fault_in_words(tmp_path: Path) -> None:
    data = fill(tmp_path / "data", [paid_twice()], SETTINGS, at(90000))
    lines = told(data, "kind = 'duplicate_action'")
    assert lines[0] == "the task began"
    assert lines[1] == (
        'pay(amount=40, to=Ada), without a key: ended unknown after 30.0 s (TimeoutError)'
    )  # fmt: skip
    assert lines[2].startswith(
        "pay(amount=40, to=Ada) again, 200 ms later, without a key: done; unprotected duplicate"
    )
    assert lines[-1].startswith("outcome of the task: ")


def test_the_timeline_tells_crashes_and_loops(company: Path) -> None:
    crash = told(company, "mode = 'duplicate_action.crash_replay'")
    assert "the process fell silent and never ended its run" in crash
    assert any(line.startswith("the work began again") for line in crash)
    # one call again and again; a round of several calls is told call by call
    loop = told(company, "kind = 'loop' AND len(shape) = 1")
    assert any("more times with the same answer" in line for line in loop)


def test_the_sentence_names_the_times(tmp_path: Path) -> None:
    data = fill(tmp_path / "data", [paid_twice()], SETTINGS, at(90000))
    with open_reader(data) as reader:
        found = next(evidence.gather(reader, evidence.find(reader, kinds=["duplicate_action"])))
    words = timeline.sentence(timeline.tell(found))
    assert words.startswith("09:00:01 pay(")
    assert "09:00:31 pay(" in words


def test_lines_are_in_order_of_time_for_every_incident(company: Path) -> None:
    with open_reader(company) as reader:
        for found in evidence.gather(reader, evidence.find(reader)):
            moments = [line.at for line in timeline.tell(found)]
            assert moments == sorted(moments)
            assert moments[-1] - moments[0] < timedelta(days=2)


def test_the_sample_company_has_the_kinds_its_truth_names(company: Path) -> None:
    kinds = {row["kind"] for row in incidents(company)}
    named = {kind for task in worlds.truth()["tasks"].values() for kind in task.get("findings", [])}
    derived = {row["kind"] for row in rows(company, "SELECT DISTINCT kind FROM findings")}
    assert kinds == derived
    assert named & derived
