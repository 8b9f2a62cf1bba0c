"""Why costs changed: each cause alone is told by its own name, and the causes sum to the whole."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from metrics.costs import query
from metrics.prices import PriceOverride
from tests.metrics import worlds
from tests.metrics.bench import Bench, ListPrices, at, bench, request, span

DAY = 86_400.0
Row = dict[str, Any]
# (task type, [(model, input, cached, output), ...]) of one task
Work = tuple[str, list[tuple[str, int, int, int]]]


def price(model: str, **more: Any) -> PriceOverride:
    return PriceOverride.model_validate({"model": model, **more})


PRICES = [
    price("small", input=1, output=4, cache_read="0.1"),
    price("large", input=10, output=40, cache_read=1),
]


def requests(day: int, works: list[Work], version: str = "1.0") -> list[Row]:
    found = []
    for number, (kind, calls) in enumerate(works):
        trace, start = f"{day}/{number}", day * DAY + number * 100
        root = {
            "gen_ai__operation__name": "invoke_agent",
            "gen_ai__agent__name": "clerk",
            "agent_slo__task__type": kind,
            "agent_slo__task__outcome": "completed",
        }
        spans = [span(trace, "invoke_agent clerk", start, start + 90, id="root", **root)]
        for place, (model, input, cached, output) in enumerate(calls):
            stated = {
                "gen_ai__operation__name": "chat",
                "gen_ai__request__model": model,
                "gen_ai__usage__input_tokens": input,
                "gen_ai__usage__output_tokens": output,
                "gen_ai__usage__cache_read__input_tokens": cached,
            }
            spans.append(span(trace, f"chat {place}", start + place, start + place + 1, "root", **stated))
        found.append(request(spans, agent_slo__app__version=version))
    return found


def ask(
    one: Bench, before: tuple[Any, Any, Any], after: tuple[Any, Any, Any]
) -> tuple[dict[str, float], Row]:
    parameters = {
        f"{side}_{name}": value
        for side, values in (("before", before), ("after", after))
        for name, value in zip(("start", "end", "version"), values, strict=True)
    }
    one.store.refresh_views()
    with one.store.reader() as con:
        found = con.execute(query("change"), parameters)
        names = [column[0] for column in found.description]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    assert [row["position"] for row in rows] == list(range(1, 9))
    each = rows[0]["after_usd"] / rows[0]["after_tasks"] - rows[0]["before_usd"] / rows[0]["before_tasks"]
    assert sum(row["usd"] for row in rows) == pytest.approx(
        rows[0]["after_usd"] - rows[0]["before_usd"], abs=1e-9
    )
    assert sum(row["per_task_usd"] for row in rows) == pytest.approx(each, abs=1e-9)
    return {row["cause"]: row["usd"] for row in rows if abs(row["usd"]) > 1e-12}, rows[0]


def change(
    folder: Path, before: list[Work], after: list[Work], prices: list[PriceOverride] | None = None
) -> tuple[dict[str, float], Row]:
    """Causes in USD between day 0 and day 1."""
    with bench(folder, prices=ListPrices(PRICES if prices is None else prices)) as one:
        one.send([*requests(0, before), *requests(1, after)]).derive(at(3 * DAY))
        return ask(one, (at(0), at(DAY), None), (at(DAY), at(2 * DAY), None))


ONE: Work = ("refund", [("small", 1_000_000, 0, 100_000)])  # 1 + 0.4 USD


def near(usd: float) -> Any:
    return pytest.approx(usd, abs=1e-9)


def test_nothing_changed(tmp_path: Path) -> None:
    assert change(tmp_path, [ONE], [ONE])[0] == {}


def test_more_tasks(tmp_path: Path) -> None:
    assert change(tmp_path, [ONE], [ONE] * 3)[0] == {"tasks": near(2.8)}


def test_more_steps(tmp_path: Path) -> None:
    assert change(tmp_path, [ONE], [("refund", ONE[1] * 3)])[0] == {"steps": near(2.8)}


def test_longer_prompts_and_answers(tmp_path: Path) -> None:
    longer: Work = ("refund", [("small", 1_500_000, 0, 200_000)])
    assert change(tmp_path, [ONE], [longer])[0] == {"prompts": near(0.5), "answers": near(0.4)}


def test_cache_hit_rate(tmp_path: Path) -> None:
    """Half of the prompt is read from the cache at a tenth of the price."""
    cached: Work = ("refund", [("small", 1_000_000, 500_000, 100_000)])
    assert change(tmp_path, [ONE], [cached])[0] == {"cache": near(-0.45)}


def test_another_model_is_no_change_of_price(tmp_path: Path) -> None:
    assert change(tmp_path, [ONE], [("refund", [("large", 1_000_000, 0, 100_000)])])[0] == {
        "model": near(12.6)
    }


def test_a_price_that_changed(tmp_path: Path) -> None:
    dated = [
        price("small", input=1, output=4, valid_to=(at(DAY)).isoformat()),
        price("small", input=3, output=4, valid_from=(at(DAY)).isoformat()),
    ]
    assert change(tmp_path, [ONE], [ONE], dated)[0] == {"price": near(2)}


def test_another_mix_of_task_types(tmp_path: Path) -> None:
    """Each type costs what it cost; there are more of the dear one."""
    dear: Work = ("audit", ONE[1] * 5)
    assert change(tmp_path, [ONE, ONE, ONE, dear], [ONE, dear, dear, dear])[0] == {"mix": near(2 * 4 * 1.4)}


def test_a_task_type_that_is_new_is_all_in_the_mix(tmp_path: Path) -> None:
    new: Work = ("audit", [("large", 2_000_000, 1_000_000, 0)])
    assert change(tmp_path, [ONE, ONE], [ONE, new])[0] == {"mix": near(11 - 1.4)}


def test_two_causes_are_told_apart(tmp_path: Path) -> None:
    """Twice the calls, each with half of its prompt: both are seen, though the tokens of the task are the same."""
    halved: Work = ("refund", [("small", 500_000, 0, 100_000)] * 2)
    assert change(tmp_path, [ONE], [halved])[0] == {"steps": near(1.4), "prompts": near(-1)}


def test_tasks_without_a_complete_cost_are_left_out_and_counted(tmp_path: Path) -> None:
    causes, first = change(tmp_path, [ONE, ("refund", [("nobody-knows", 5, 0, 5)])], [ONE])
    assert causes == {}
    assert (first["before_tasks"], first["before_left_out"], first["after_left_out"]) == (1, 1, 0)


def test_versions_are_compared_whenever_they_ran(tmp_path: Path) -> None:
    with bench(tmp_path, prices=ListPrices(PRICES)) as one:
        one.send(
            requests(0, [ONE], "1.4")
            + requests(1, [("refund", ONE[1] * 2)], "1.5")
            + requests(2, [ONE], "1.4")
        )
        one.derive(at(4 * DAY))
        causes, first = ask(one, (None, None, "1.4"), (None, None, "1.5"))
    assert causes == {"tasks": near(-1.4), "steps": near(1.4)}
    assert (first["before_tasks"], first["after_tasks"]) == (2, 1)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_changed_the_causes_sum_to_the_whole(tmp_path: Path, seed: int) -> None:
    """`ask` holds every answer against the totals."""
    dice = random.Random(seed)

    def works() -> list[Work]:
        return [
            (
                dice.choice(["refund", "audit", "report", "rare"]),
                [
                    (
                        dice.choice(["small", "large", "other"]),
                        tokens,
                        dice.randint(0, tokens),
                        dice.randint(0, 9_000),
                    )
                    for tokens in [dice.randint(0, 90_000) for _ in range(dice.randint(1, 5))]
                ],
            )
            for _ in range(dice.randint(2, 7))
        ]

    causes, _ = change(tmp_path, works(), works(), [*PRICES, price("other", input=2, output=7)])
    assert len(causes) > 4


def test_weeks_of_the_samples(derived_company: Bench) -> None:
    middle, week = worlds.end() - timedelta(days=14), timedelta(days=7)
    causes, first = ask(derived_company, (middle - week, middle, None), (middle, middle + week, None))
    (told,) = derived_company.rows("SELECT cost_usd FROM core.waste_weekly WHERE weeks_ago = 1")
    assert {"tasks", "mix", "steps", "prompts"} <= set(causes)
    assert first["after_usd"] == pytest.approx(told["cost_usd"], abs=1e-9)
