"""Figures lead to what they count: the list on their page, or another page with the filters as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from collector.reader import open_reader
from dashboard.cards import allowed_events
from dashboard.door import answers
from dashboard.filters import EVERYTHING
from dashboard.queries import query_text
from dashboard.screens.cost import FAILED
from dashboard.verdict import evidence_ids
from tests.dashboard.conftest import OpenPage, texts
from tests.dashboard.data_folder import write_folder
from tests.dashboard.test_pages import frame_with


def follow(test: AppTest, name: str) -> AppTest:
    """Click the name of a figure."""
    next(button for button in test.button if button.label.replace("\\", "") == name).click()
    test.run()
    assert not test.exception, test.exception
    return test


def figure(test: AppTest, name: str) -> str:
    found = next(metric for metric in test.metric if metric.label.replace("\\", "") == name)
    return str(found.value).replace("\\", "")


@pytest.fixture
def decided(tmp_path: Path) -> Path:
    """Interventions of four tasks: rejected, edited, open, and decided without a word on how."""
    data = write_folder(tmp_path / "data", tasks=16)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        for task, decision, decided_at, wait in (
            ("task-0000", "rejected", "2026-11-21 10:00:00", 90.0),
            ("task-0005", "edited", "2026-11-21 10:00:00", 5000.0),
            ("task-0010", None, None, None),
            ("task-0015", None, "2026-11-22 10:00:00", 700.0),
        ):
            con.execute(
                "UPDATE interventions SET decision = ?, decided_at = ?, wait_s = ? WHERE task_id = ?",
                [decision, decided_at, wait, task],
            )
    return data


def listed(test: AppTest) -> list[str]:
    return list(frame_with(test, "Requested")["Task"])


def test_figures_of_humans_narrow_the_list_to_what_they_count(open_page: OpenPage, decided: Path) -> None:
    test = open_page(decided, "screens/humans.py")
    assert figure(test, "Interventions") == "4"
    for name, tasks in (
        ("Rejected", ["task-0000"]),
        ("Edited", ["task-0005"]),
        ("Still open", ["task-0010"]),
    ):
        assert figure(test, name) == str(len(tasks))
        assert listed(follow(test, name)) == tasks
    assert "1 intervention (open), open ones first." in texts(test)
    assert test.query_params["decision"] == "open"
    assert set(listed(follow(test, "Share rejected"))) == {"task-0000", "task-0005"}
    assert len(listed(follow(test, "Interventions"))) == 4
    assert "decision" not in test.query_params
    follow(test, "Approved")
    assert "None (approved)." in texts(test)


def test_waits_lead_to_the_longest_one_first(open_page: OpenPage, decided: Path) -> None:
    test = open_page(decided, "screens/humans.py", decision="open", kind="approval")
    assert listed(test)[0] == "task-0010"
    for name in ("Waiting, median", "Waiting, slowest 5%", "Waited in all"):
        assert listed(follow(test, name)) == ["task-0005", "task-0015", "task-0000", "task-0010"]
    assert "4 interventions, longest wait first." in texts(test)
    assert listed(open_page(decided, "screens/humans.py", order="longest wait first"))[0] == "task-0005"


@pytest.mark.parametrize(
    ("page", "name", "carried"),
    [
        ("humans", "Tasks with one", {"human": "true"}),
        ("humans", "Share of tasks", {"human": "true"}),
        ("cost", "Cost of model calls", {}),
        ("cost", "Per completed task", {"outcome": ["completed"]}),
        (
            "cost",
            "Spent on what failed",
            {"outcome": ["failed", "lost", "dead letter", "cancelled by the system"]},
        ),
    ],
)
def test_figures_lead_to_tasks_of_the_same_time_and_filters(
    open_page: OpenPage, twelve: Path, monkeypatch: pytest.MonkeyPatch, page: str, name: str, carried: Any
) -> None:
    gone: list[tuple[str, Any]] = []
    monkeypatch.setattr("streamlit.switch_page", lambda to, query_params: gone.append((to, query_params)))
    test = follow(open_page(twelve, f"screens/{page}.py", range="90d", version="1.0"), name)
    assert gone == [("screens/tasks.py", carried)]
    assert test.session_state["brought"]["range"] == "90d"
    assert test.session_state["brought"]["version"] == ["1.0"]


def test_what_failed_is_spent_on_the_tasks_it_leads_to(samples: Path) -> None:
    with answers(samples) as reader:
        (totals,) = reader.rows("cost_totals", **EVERYTHING)
        asked = {**dict.fromkeys(("since", "until", "text")), "duplicates": False, "interventions": False}
        tasks = reader.rows(
            "task_list", **EVERYTHING, **asked, outcomes=json.dumps(FAILED), max_rows=1000, skip_rows=0
        )
    assert totals["cost_of_failed"] > 0
    assert totals["cost_of_failed"] == pytest.approx(sum(task["cost_usd"] or 0 for task in tasks))


@pytest.mark.parametrize(
    ("name", "heading", "column"),
    [
        ("Cost, median", "The dearest tasks", "cost_usd"),
        ("Cost, dearest 5%", "The dearest tasks", "cost_usd"),
        ("Active, slowest 5%", "The slowest tasks", "active_s"),
        ("Wall, slowest 5%", "The slowest tasks", "wall_s"),
        ("Tokens in / out", "The largest tasks", "coalesce(input_tokens, 0) + coalesce(output_tokens, 0)"),
    ],
)
def test_measures_of_cost_lead_to_the_tasks_with_most_of_it(
    open_page: OpenPage, twelve: Path, name: str, heading: str, column: str
) -> None:
    test = follow(open_page(twelve, "screens/cost.py"), name)
    assert heading in [title.value for title in test.subheader]
    with open_reader(twelve) as reader:
        (most,) = reader.sql(
            f"SELECT task_id FROM tasks ORDER BY {column} DESC NULLS LAST, task_id LIMIT 1"
        ).to_pylist()
    assert frame_with(test, "Model / tool calls")["Task"][0] == most["task_id"]


def test_figures_of_an_objective_lead_to_its_events(open_page: OpenPage, samples: Path) -> None:
    test = open_page(samples, "screens/objective.py", slo="latency")
    with answers(samples) as reader:
        (row,) = [
            r for r in reader.rows("overview_cards", agents=None, task_types=None) if r["slo"] == "latency"
        ]

    def events(which: str) -> pd.DataFrame:
        assert f"{row[which]} {which} event{'' if row[which] == 1 else 's'}, the" in texts(test)
        return frame_with(test, "Counted at")

    assert row["bad"] > 0
    assert row["good"] > row["bad"]
    assert len(events("bad")) == row["bad"]
    follow(test, f"{row['good']} of {row['n']} tasks")
    assert len(events("good")) == row["good"]
    assert test.query_params["show"] == "good"
    assert "None." in texts(open_page(samples, "screens/objective.py", slo="latency", show="excluded"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("is_floor = true", "The floor of a band counts the events of the objective above it"),
        ("sli_name = 'composite'", "A composite counts no events of its own"),
        ("revision = 'gone'", "The definition of this objective is not known here"),
    ],
)
def test_an_objective_without_a_list_says_why(
    open_page: OpenPage, tmp_path: Path, change: str, said: str
) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute(f"UPDATE core.slo_status SET {change}")
    test = open_page(data, "screens/objective.py", slo="latency")
    assert said in texts(test)
    assert [b.label for b in test.button if "Unknown" in b.label or " of " in b.label] == []


def test_figures_of_actions_lead_to_the_repeats_they_count(open_page: OpenPage, samples: Path) -> None:
    test = open_page(samples, "screens/actions.py", range="all")
    counted = 0
    for name in (
        "Unprotected duplicates",
        "Proven to take effect twice",
        "Undone later",
        "Protected by a key",
        "Without effect",
        "Suspected",
    ):
        value = int(figure(follow(test, name), name))
        assert re.search(rf"(?<!\d){value} repeats?\b" if value else r"\nNone", texts(test)), name
        counted += value
    assert counted > 3
    assert test.query_params["kind"] == "suspected"
    follow(test, "Undone later")
    assert test.query_params["only"] == "undone later"


def test_figures_of_data_lead_to_the_lists_there_are(open_page: OpenPage, samples: Path) -> None:
    test = open_page(samples, "screens/data.py")
    assert [b.label for b in test.button] == ["Spans", "Last received", "On disk"]
    for button in ("Spans", "Last received", "On disk"):
        follow(test, button)
    assert int(figure(test, "Spans").replace(",", "")) > 0
    assert len(frame_with(test, "Read as")) > 0


def test_an_alert_stands_before_too_few_events(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=6)

    def badges(slo: str) -> list[str]:
        shown = open_page(data, "screens/objective.py", slo=slo).markdown
        words = ("alert", "Too few events", "Budget spent")
        return [m.value for m in shown if "badge" in m.value and any(word in m.value for word in words)]

    (calm,) = badges("cost")
    assert "Too few events" in calm
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute('UPDATE slo_status SET firing = \'[{"severity": "page", "why": "4 of 5"}]\'')
    first, second = badges("cost")
    assert "Page alert" in first
    assert "Too few events" in second
    # A state that alarms by itself is not said twice.
    (alarmed,) = badges("duplicate-action")
    assert "Budget spent" in alarmed


def test_a_budget_of_less_than_one_event_is_not_zero() -> None:
    assert [allowed_events(n) for n in (0, 0.02, 0.28, 1.0, 4.4, 12.5, 279.1)] == [
        "0", "fewer than 0.1", "0.3", "1", "4.4", "12.5", "279",
    ]  # fmt: skip


def test_each_span_of_an_evidence_is_shown_once(open_page: OpenPage, tmp_path: Path) -> None:
    assert evidence_ids(["b", "a", "b"]) == ["b", "a"]
    data = write_folder(tmp_path / "data", tasks=6)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        for table in ("runs", "tasks", "interventions"):
            con.execute(f"UPDATE {table} SET evidence = ['span-1', 'span-2', 'span-1']")
    test = open_page(data, "screens/task.py", id="task-0000")
    shown = [
        cell
        for block in test.dataframe
        if "Evidence (span ids)" in block.value.columns
        for cell in block.value["Evidence (span ids)"]
        if "span-2" in str(cell)
    ]
    assert set(shown) == {"span-1, span-2"}
    assert "See span span-1, span-2." in texts(test)


def test_tokens_are_a_measure_of_days_and_of_their_spread(twelve: Path) -> None:
    with open_reader(twelve) as reader:
        asked = {**EVERYTHING, "by": "tokens"}
        days = reader.sql(query_text("cost_daily"), asked).to_pylist()
        spread = reader.sql(query_text("cost_distribution"), asked).to_pylist()
        (most,) = reader.sql("SELECT max(input_tokens + output_tokens) AS most FROM tasks").to_pylist()
    assert max(day["median"] or 0 for day in days) <= most["most"]
    assert spread[-1]["low"] <= most["most"] < spread[-1]["high"]
