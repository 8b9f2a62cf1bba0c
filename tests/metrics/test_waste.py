"""What unreliability costs: no cent twice, and every part sums to the whole."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from metrics.prices import PriceOverride
from metrics.settings import MetricsSettings
from tests.metrics import worlds
from tests.metrics.bench import Bench, ListPrices, at, bench, request, span

Span = dict[str, Any]
LATER = at(86_400)
# one dollar a call, whatever it says
DOLLAR = PriceOverride.model_validate({"model": "m", "input": 1, "output": 0})
SETTINGS = MetricsSettings.model_validate(
    {"tools": {"pay": {"effect": "write"}, "get_*": {"effect": "read"}}}
)
PARTS = ("duplicates_usd", "retries_usd", "loops_usd", "failed_tasks_usd", "abandoned_tasks_usd")


def root(trace: str = "a", end: float | None = 60, **more: Any) -> Span:
    attributes = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "clerk", **more}
    return span(trace, "invoke_agent clerk", 0, end, id="root", **attributes)


def model(start: float, trace: str = "a", **more: Any) -> Span:
    attributes = {
        "gen_ai__operation__name": "chat",
        "gen_ai__request__model": "m",
        "gen_ai__usage__input_tokens": 1_000_000,
        "gen_ai__usage__output_tokens": 10,
        "gen_ai__response__finish_reasons": ["stop"],
        **more,
    }
    return span(trace, "chat m", start, start + 1, "root", **attributes)


def tool(start: float, name: str, arguments: str = "{}", result: str = "ok", **more: Any) -> Span:
    attributes = {
        "gen_ai__operation__name": "execute_tool",
        "gen_ai__tool__name": name,
        "gen_ai__tool__call__arguments": arguments,
        "gen_ai__tool__call__result": result,
    }
    return span("a", f"execute_tool {name}", start, start + 0.5, "root", **attributes, **more)


def wasted(folder: Path, *spans: Span) -> dict[str, float | None]:
    with bench(folder, SETTINGS, ListPrices([DOLLAR])) as one:
        one.send([request(spans)]).derive(LATER)
        found = one.rows("SELECT kind, cost_usd FROM core.waste ORDER BY kind")
        (week,) = one.rows("SELECT * FROM core.waste_weekly")
    assert_sums(week)
    return {row["kind"]: row["cost_usd"] for row in found}


def assert_sums(week: dict[str, Any]) -> None:
    assert sum(week[part] for part in PARTS) == pytest.approx(week["waste_usd"], abs=1e-9)
    assert week["useful_usd"] + week["waste_usd"] == pytest.approx(week["cost_usd"], abs=1e-9)
    assert week["useful_usd"] >= -1e-9


def test_a_task_without_trouble_wastes_nothing(tmp_path: Path) -> None:
    assert wasted(tmp_path, root(), model(1), tool(3, "pay", '{"order":1}'), model(5)) == {}


def test_the_call_that_asked_for_a_duplicate_is_waste(tmp_path: Path) -> None:
    """Three calls, three dollars; the second asked to pay again."""
    spans = [
        root(),
        model(1),
        tool(3, "pay", '{"order":1}', "paid 1"),
        model(5),
        tool(7, "pay", '{"order":1}', "paid 2"),
        model(9),
    ]
    assert wasted(tmp_path, *spans) == {"duplicate": pytest.approx(1)}


def test_a_call_is_shared_by_the_tools_it_asked_for(tmp_path: Path) -> None:
    spans = [
        root(),
        model(1),
        tool(3, "pay", '{"order":1}', "paid 1"),
        model(5),
        tool(7, "pay", '{"order":1}', "paid 2"),
        tool(7, "get_order", '{"order":1}', "here"),
        tool(7, "get_stock", '{"order":1}', "there"),
        tool(7, "get_price", '{"order":1}', "5"),
        model(9),
    ]
    assert wasted(tmp_path, *spans) == {"duplicate": pytest.approx(0.25)}


def test_asking_again_after_an_error_is_a_retry(tmp_path: Path) -> None:
    spans = [
        root(),
        model(1),
        tool(3, "get_order", '{"order":1}', error="TimeoutError"),
        model(5),
        tool(7, "get_order", '{"order":1}'),
        model(9),
    ]
    assert wasted(tmp_path, *spans) == {"retry": pytest.approx(1)}


def test_a_try_of_the_client_alone_took_no_model_call(tmp_path: Path) -> None:
    spans = [
        root(),
        model(1),
        tool(3, "get_order", '{"order":1}', error="TimeoutError"),
        tool(5, "get_order", '{"order":1}', agent_slo__action__attempt=2),
        model(9),
    ]
    assert wasted(tmp_path, *spans) == {}


def test_a_loop_is_waste_from_its_second_round(tmp_path: Path) -> None:
    spans = [root()]
    for turn in range(6):
        spans += [model(1 + 5 * turn), tool(3 + 5 * turn, "get_order", '{"order":1}', "the same")]
    assert wasted(tmp_path, *spans, model(40)) == {"loop": pytest.approx(5)}


def test_a_failed_task_is_waste_once_and_as_a_whole(tmp_path: Path) -> None:
    """Its duplicate is in it already."""
    spans = [
        root(agent_slo__task__outcome="failed"),
        model(1),
        tool(3, "pay", '{"order":1}', "paid 1"),
        model(5),
        tool(7, "pay", '{"order":1}', "paid 2"),
    ]
    assert wasted(tmp_path, *spans) == {"failed_task": pytest.approx(2)}


def test_a_lost_task_is_abandoned(tmp_path: Path) -> None:
    assert wasted(tmp_path, model(1), model(3)) == {"abandoned_task": pytest.approx(2)}


def test_waste_without_a_price_is_unknown_and_counted(tmp_path: Path) -> None:
    with bench(tmp_path, SETTINGS) as one:
        one.send([request([model(1), model(3)])]).derive(LATER)
        assert one.rows("SELECT kind, cost_usd FROM core.waste") == [
            {"kind": "abandoned_task", "cost_usd": None}
        ]
        (week,) = one.rows("SELECT tasks, wasteful_tasks, unpriced_tasks FROM core.waste_weekly")
    assert week == {"tasks": 1, "wasteful_tasks": 1, "unpriced_tasks": 1}


def test_every_week_of_the_samples_sums_to_its_whole(derived_company: Bench) -> None:
    company = derived_company
    weeks = company.rows("SELECT * FROM core.waste_weekly ORDER BY weeks_ago")
    assert len(weeks) == 4
    for number, week in enumerate(weeks):
        assert week["weeks_ago"] == number
        assert week["week_end"] == worlds.end() - timedelta(days=7 * number)
        assert_sums(week)
        assert 0 < week["waste_usd"] < week["cost_usd"]
    (whole,) = company.rows(
        "SELECT sum(cost_usd) AS usd FROM core.tasks WHERE outcome NOT IN ('running', 'waiting_human')"
    )
    excluded = company.rows(
        "SELECT coalesce(sum(cost_usd), 0) AS usd FROM core.tasks WHERE excluded_reason LIKE 'environment:%'"
    )
    assert sum(week["cost_usd"] for week in weeks) == pytest.approx(
        whole["usd"] - excluded[0]["usd"], abs=1e-9
    )


def test_no_task_of_the_samples_wastes_more_than_it_cost(derived_company: Bench) -> None:
    over = derived_company.rows(
        """
        SELECT t.task_id, t.cost_usd, sum(w.cost_usd) AS wasted
        FROM core.waste w JOIN core.tasks t USING (task_id)
        GROUP BY ALL
        HAVING sum(w.cost_usd) > t.cost_usd + 1e-9
        """
    )
    assert over == []
    kinds = {row["kind"] for row in derived_company.rows("SELECT DISTINCT kind FROM core.waste")}
    assert kinds == {"duplicate", "retry", "loop", "failed_task", "abandoned_task"}
