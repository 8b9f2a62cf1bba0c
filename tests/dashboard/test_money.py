"""Money: what was lost follows the filters, and a cost that is unknown says what is unknown of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dashboard.door import answers
from dashboard.filters import EVERYTHING
from dashboard.queries import query_text
from dashboard.unpriced import unpriced_words
from tests.dashboard.conftest import OpenPage, texts

PARTS = ("duplicates_usd", "retries_usd", "loops_usd", "failed_tasks_usd", "abandoned_tasks_usd")


def test_without_filters_the_weeks_are_those_of_the_view(samples: Path) -> None:
    with answers(samples) as reader:
        weeks = reader.rows("waste_weeks", **EVERYTHING)
        view = reader.ask(
            "SELECT * FROM waste_weekly WHERE weeks_ago BETWEEN 0 AND 11 ORDER BY weeks_ago", {}
        )
        given: list[dict[str, Any]] = view.to_pylist()
    assert len(weeks) == len(given) > 0
    for week, row in zip(weeks, given, strict=True):
        assert {name: week[name] for name in row} == row


def test_the_weeks_of_all_agents_sum_to_the_whole(samples: Path) -> None:
    with answers(samples) as reader:
        whole = reader.rows("waste_weeks", **EVERYTHING)
        agents = (reader.row("filter_choices") or {})["agents"]
        assert len(agents) > 1
        each = [reader.rows("waste_weeks", **{**EVERYTHING, "agents": f'["{agent}"]'}) for agent in agents]
        nobody = reader.rows("waste_weeks", **{**EVERYTHING, "agents": '["nobody"]'})
    for column in ("tasks", "wasteful_tasks", "cost_usd", "waste_usd", *PARTS):
        total = sum(week[column] or 0 for weeks in each for week in weeks)
        assert total == pytest.approx(sum(week[column] or 0 for week in whole)), column
    assert nobody == []


def test_the_overview_says_whose_money_it_is(open_page: OpenPage, samples: Path) -> None:
    assert "for model calls of all agents in the last seven days" in texts(open_page(samples))
    narrowed = texts(open_page(samples, agent="nobody"))
    assert "No task of these filters was decided in the last seven days." in narrowed


def test_what_was_read_from_the_cache_is_a_share_of_all_input() -> None:
    con = duckdb.connect(":memory:")
    con.execute("CREATE TABLE pipeline AS SELECT TIMESTAMP '2026-11-28' AS as_of")
    con.execute(
        "CREATE TABLE task_costs AS SELECT 't' AS task_id, 's' AS service, 's' AS task_service, 'a' AS agent, "
        "'x' AS task_type, 'prod' AS environment, '1' AS app_version, TIMESTAMP '2026-11-27' AS task_started_at, "
        "'p' AS provider, 'm' AS model, 2 AS calls, 0 AS fresh_tokens, 60 AS cache_read_tokens, "
        "40 AS cache_write_tokens, 5 AS output_tokens, 0.1 AS cost_usd, 0 AS unpriced_calls"
    )
    found = con.execute(query_text("cost_models"), dict(EVERYTHING))
    columns = [column[0] for column in found.description or ()]
    (row,) = [dict(zip(columns, values, strict=True)) for values in found.fetchall()]
    con.close()
    assert row["cached_share"] == 0.6
    assert row["cache_write_tokens"] == 40


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {"tasks": 15, "no_usage": 15, "no_price": 0},
            "15 tasks have a model call whose cost is unknown: in 15 a call does not state its usage (tokens).",
        ),
        (
            {"tasks": 3, "no_usage": 1, "no_price": 2},
            "3 tasks have a model call whose cost is unknown: in 1 a call does not state its usage (tokens), "
            "in 2 a model has no price.",
        ),
        (
            {"tasks": 1, "no_usage": 0, "no_price": 1},
            "1 task has a model call whose cost is unknown: in 1 a model has no price.",
        ),
    ],
)
def test_an_unknown_cost_is_explained(row: dict[str, int], said: str) -> None:
    assert unpriced_words(row) == said


def test_both_pages_say_it_in_the_same_words(open_page: OpenPage, samples: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(samples, data)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        three = [
            row[0] for row in con.execute("SELECT DISTINCT task_id FROM core.task_costs LIMIT 3").fetchall()
        ]
        con.execute(
            "UPDATE core.tasks SET cost_complete = false WHERE task_id IN (SELECT unnest(?))", [three]
        )
        con.execute("UPDATE core.task_costs SET unpriced_calls = 1 WHERE task_id = ?", [three[0]])
    with answers(data) as reader:
        row = reader.row("cost_unknown", **EVERYTHING)
    assert row == {"tasks": 3, "no_usage": 2, "no_price": 1}
    for page in ("screens/cost.py", "screens/data.py"):
        assert unpriced_words(row) in texts(open_page(data, page, range="all"))
