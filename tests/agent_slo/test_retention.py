"""Days go with everything that was made of them; what was decided stays decided."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from agent_slo.config import StorageConfig
from agent_slo.retention import Retention
from collector import store as store_module
from collector.decode import decode
from collector.store import Store, StoreOptions
from metrics.deriver import Deriver
from tests.metrics.bench import at, request, span

SECRET = "the-words-of-a-person-nobody-may-keep"
HOUR = 3600.0
DAY = 24 * HOUR


class Place:
    """A store whose clock the test moves, with a deriver on it."""

    def __init__(self, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.data = data
        self.seconds = 0.0
        monkeypatch.setattr(store_module, "_now", lambda: at(self.seconds))
        self.open()

    def open(self) -> None:
        options = StoreOptions(merge_days=False, tend_seconds=1e9, retire_seconds=0)
        self.store = Store.open(self.data, options)
        self.con = self.store.derivation()
        self.deriver = Deriver(self.con, sources=self.store.spans_since)
        self.deriver.migrate()

    def close(self) -> None:
        self.con.close()
        self.store.close()

    def day(self, number: int, *traces: str, words: str = SECRET) -> None:
        """On this day each of the traces runs: an agent whose tool is called twice alike, one after the other."""
        self.seconds = number * DAY
        for trace in traces:
            self.send(work(trace, self.seconds, words))
        self.seconds += HOUR
        self.deriver.catch_up(at(self.seconds))

    def send(self, *spans: dict[str, Any]) -> None:
        body = orjson.dumps(request([s for one in spans for s in (one if isinstance(one, list) else [one])]))
        self.store.append(decode("traces", "json", body).batch)

    def retain(self, day: float, **kept: Any) -> int:
        self.seconds = day * DAY
        self.store.tend()
        keeping = Retention(StorageConfig(**kept), threading.Lock())
        removed = keeping.run(self.store, self.deriver, at(self.seconds), now=True)
        self.store.tend()
        return removed

    def all(self, sql: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self.con.execute(sql).fetchall()
        return found

    def verdicts(self) -> dict[str, Any]:
        """What retention must not change."""
        tasks = (
            "SELECT task_id, outcome, rule, runs, traces, cost_usd, started_at FROM core.tasks ORDER BY ALL"
        )
        events = (
            "SELECT sli, task_id, subject_id, verdict, value, event_time FROM core.sli_events ORDER BY ALL"
        )
        hours = "SELECT * EXCLUDE (histogram) FROM core.sli_hourly ORDER BY ALL"
        actions = "SELECT action_id, attempts, duplicates_unprotected, cause FROM core.actions ORDER BY ALL"
        return {sql: self.all(sql) for sql in (tasks, events, hours, actions)}


def work(trace: str, start: float, words: str) -> Any:
    calls = [
        span(
            trace,
            f"execute_tool send_mail {n}",
            start + 1 + n,
            start + 1.5 + n,
            "agent",
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name="send_mail",
            gen_ai__tool__call__arguments={"to": trace, "text": words},
            gen_ai__tool__call__result=f"ok {words}",
        )
        for n in range(2)
    ]
    agent = span(
        trace,
        "invoke_agent",
        start,
        start + 9,
        id="agent",
        gen_ai__operation__name="invoke_agent",
        gen_ai__agent__name="desk",
        gen_ai__conversation__id=f"conversation {trace}",
        gen_ai__input__messages=[{"role": "user", "parts": [{"type": "text", "content": words}]}],
    )
    return [agent, *calls]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    one = Place(tmp_path / "data", monkeypatch)
    yield one
    one.close()


def leaks(data: Path, needle: str) -> list[str]:
    return sorted(p.name for p in data.rglob("*") if p.is_file() and needle.encode() in p.read_bytes())


def test_nothing_of_an_expired_day_is_left_but_its_verdicts(place: Place) -> None:
    place.day(0, "a", "b", words=SECRET)
    place.day(3, "c", words="younger words")
    before = place.verdicts()
    assert len(before) == 4
    assert all(before.values())
    place.con.execute("CHECKPOINT core")
    place.con.execute("CHECKPOINT work")
    assert place.retain(4, keep_days=2) == 1
    assert place.verdicts() == before
    frozen = "SELECT frozen, count(*), count(next_due_at) FROM core.tasks GROUP BY ALL ORDER BY ALL"
    assert [row[:2] for row in place.all(frozen)] == [(False, 1), (True, 2)]
    assert place.all("SELECT count(DISTINCT trace_id) FROM work.steps") == [(1,)]
    assert place.all("SELECT count(DISTINCT trace_id) FROM work.attempts") == [(1,)]
    assert place.all("SELECT count(*) FROM core.actions WHERE arguments IS NOT NULL") == [(1,)]
    assert place.all("SELECT count(*) FROM spans") == [(3,)]
    place.close()
    assert leaks(place.data, SECRET) == []
    place.open()
    assert place.verdicts() == before


def test_neither_a_rebuild_nor_a_late_span_changes_a_frozen_task(place: Place) -> None:
    place.day(0, "a", "b")
    place.day(3, "c")
    before = place.verdicts()
    place.retain(4, keep_days=2)
    place.deriver.rebuild(at(4 * DAY))
    assert place.verdicts() == before
    late = span(
        "a", "invoke_agent", 20, 21, None, id="late", gen_ai__operation__name="invoke_agent", error="Boom"
    )
    place.send(late)
    place.deriver.catch_up(at(4 * DAY + 60))
    assert place.verdicts() == before
    assert place.all("SELECT late_after_retention FROM core.pipeline") == [(1,)]
    place.deriver.rebuild(at(4 * DAY + 120))
    assert place.verdicts() == before
    assert place.all("SELECT late_after_retention FROM core.pipeline") == [(1,)]
    # the same conversation goes on: that is a task of its own, the frozen one stays as it is
    place.day(5, "a2")
    frozen = [row[0] for row in place.all("SELECT frozen FROM core.tasks ORDER BY started_at")]
    assert frozen == [True, True, False, False]


def test_frozen_tasks_survive_other_columns(place: Place) -> None:
    """A newer program derives other columns: what has spans is derived again, what has none is taken over."""
    place.day(0, "a")
    place.day(3, "c")
    before = place.verdicts()
    place.retain(4, keep_days=2)
    place.con.execute("ALTER TABLE core.tasks DROP COLUMN rule")
    place.con.execute("ALTER TABLE core.tasks ADD COLUMN forgotten INTEGER")
    place.con.execute("UPDATE core._layout SET signature = 'older'")
    place.close()
    place.open()
    place.deriver.catch_up(at(4 * DAY))
    after = place.verdicts()
    tasks = next(iter(before))
    blank = [(*row[:2], None, *row[3:]) if row[6] < at(DAY) else row for row in before[tasks]]
    assert after[tasks] == blank
    assert {k: v for k, v in after.items() if k != tasks} == {k: v for k, v in before.items() if k != tasks}


def test_parts_of_frozen_tasks_say_what_their_task_is(place: Place) -> None:
    """Tables of an older program did not say it, and nothing derives the rows of frozen tasks again."""
    place.day(0, "a")
    place.retain(4, keep_days=2)
    said = "SELECT agent, task_type, environment, app_version, task_started_at FROM core.task_times"
    before = place.all(said)
    assert before == place.all(said.replace("task_times", "tasks").replace("task_started_at", "started_at"))
    for column in ("agent", "task_type", "environment", "app_version", "task_started_at"):
        place.con.execute(f"ALTER TABLE core.task_times DROP COLUMN {column}")
    place.con.execute("UPDATE core._layout SET signature = 'older'")
    place.close()
    place.open()
    assert place.all(said) == before


def test_what_is_not_derived_yet_stays(place: Place) -> None:
    place.day(0, "a")
    place.seconds = DAY
    place.send(work("b", DAY, SECRET))
    assert place.retain(9, keep_days=1) == 1
    assert place.all("SELECT count(DISTINCT trace_id) FROM spans") == [(1,)]
    place.deriver.catch_up(at(9 * DAY))
    assert place.retain(9, keep_days=1) == 1


def test_size_and_age_of_tasks(place: Place) -> None:
    for number in range(3):
        place.day(number, f"t{number}")
    assert place.retain(3, keep_gb=100) == 0
    assert place.retain(3, keep_gb=1e-9) == 3
    assert place.all("SELECT count(*) FROM core.tasks WHERE frozen") == [(3,)]
    place.retain(3, keep_gb=1e-9, tasks_days=2)
    assert place.all("SELECT count(*) FROM core.tasks") == [(2,)]
    assert place.all("SELECT count(DISTINCT task_id) FROM core.sli_events") == [(2,)]


def test_a_crash_in_the_middle_is_mended_by_the_next_run(place: Place) -> None:
    place.day(0, "a")
    place.day(3, "c", words="younger words")
    before = place.verdicts()
    gone = place.store.expired(2, None, at(4 * DAY))
    place.store.owe_rewrite("core", "work")
    place.deriver.freeze(gone[-1].max_seq)  # and then the process is killed
    place.close()
    place.open()
    assert place.retain(4, keep_days=2) == 1
    assert place.verdicts() == before
    place.close()
    assert not list(place.data.glob("*.rewrite"))
    assert leaks(place.data, SECRET) == []
    place.open()
