"""What tasks cost: equal to arithmetic by hand, and honest about what nobody can price."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from metrics.prices import PriceOverride
from tests.metrics.bench import ListPrices, at, bench, request, span

Span = dict[str, Any]
LATER = at(86_400)


def moment(seconds: float) -> datetime:
    return at(seconds).replace(tzinfo=UTC)


def root(trace: str = "a", **more: Any) -> Span:
    attributes = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "clerk", **more}
    return span(trace, "invoke_agent clerk", 0, 60, id="root", **attributes)


def call(
    start: float,
    model: str,
    input: int | None,
    output: int | None,
    *,
    read: int | None = None,
    written: int | None = None,
    provider: str | None = "house",
    trace: str = "a",
    error: str | None = None,
    **more: Any,
) -> Span:
    """A model call with its usage."""
    stated = {
        "gen_ai__operation__name": "chat",
        "gen_ai__request__model": model,
        "gen_ai__provider__name": provider,
        "gen_ai__usage__input_tokens": input,
        "gen_ai__usage__output_tokens": output,
        "gen_ai__usage__cache_read__input_tokens": read,
        "gen_ai__usage__cache_creation__input_tokens": written,
        **more,
    }
    present = {key: value for key, value in stated.items() if value is not None}
    return span(trace, f"chat {model}", start, start + 1, "root", error=error, **present)


def price(model: str, **more: Any) -> PriceOverride:
    return PriceOverride.model_validate({"model": model, **more})


HOUSE = price("house-a", input=2, output=10)
CACHED = price("house-c", input=3, output=15, cache_read="0.3", cache_write="3.75")
BY_DATE = [
    price("house-d", input=1, output=4, valid_to=moment(10)),
    price("house-d", input=2, output=8, valid_from=moment(10), valid_to=moment(20)),
    price("house-d", input="0.5", output=2, valid_from=moment(20)),
]

# name -> overrides, spans of one task, service, USD by hand, complete
BY_HAND: dict[str, tuple[Sequence[PriceOverride], list[Span], str, float | None, bool]] = {
    # 1,000 x 2 + 100 x 10
    "plain": ([HOUSE], [call(1, "house-a", 1_000, 100)], "desk", 0.003, True),
    # 2,000 fresh x 3 + 6,000 read x 0.30 + 2,000 written x 3.75 + 500 x 15
    "cache": ([CACHED], [call(1, "house-c", 10_000, 500, read=6_000, written=2_000)], "desk", 0.0228, True),
    # cached tokens without a price of their own cost what input costs: 10,000 x 2 + 500 x 10
    "cache without a price": (
        [HOUSE],
        [call(1, "house-a", 10_000, 500, read=6_000, written=2_000)],
        "desk",
        0.025,
        True,
    ),
    # list price with a threshold at 200,000 input tokens, which prices all tokens of a call:
    # below: 40,000 x 3 + 160,000 x 0.30 + 1,000 x 15 = 0.183
    # above: 50,001 x 6 + 150,000 x 0.60 + 1,000 x 22.5 = 0.412506
    "tiers": (
        [],
        [
            call(1, "claude-sonnet-4-5", 200_000, 1_000, read=160_000, provider="anthropic"),
            call(3, "claude-sonnet-4-5", 200_001, 1_000, read=150_000, provider="anthropic"),
        ],
        "desk",
        0.595506,
        True,
    ),
    # 1,000,000 of each at 1+4, at 2+8 and at 0.5+2; the first moment of a price is its own
    "overrides by date": (
        BY_DATE,
        [call(start, "house-d", 1_000_000, 1_000_000) for start in (9.999, 10, 20)],
        "desk",
        17.5,
        True,
    ),
    # list price 0.15 and 0.60, cached 0.075, less 15 %: (600 x 0.15 + 400 x 0.075 + 100 x 0.60) x 0.85
    "discount": (
        [price("gpt-4o-mini", discount="0.15")],
        [call(1, "gpt-4o-mini", 1_000, 100, read=400, provider="openai")],
        "desk",
        0.000153,
        True,
    ),
    # half price, but only for the batch service
    "discount of this service": (
        [price("gpt-4o-mini", discount="0.5", service="batch-*")],
        [call(1, "gpt-4o-mini", 1_000, 100, provider="openai")],
        "batch-nightly",
        0.000105,
        True,
    ),
    "discount of another service": (
        [price("gpt-4o-mini", discount="0.5", service="batch-*")],
        [call(1, "gpt-4o-mini", 1_000, 100, provider="openai")],
        "desk",
        0.00021,
        True,
    ),
    # the first entry that matches wins
    "two overrides": (
        [price("house-*", input=1, output=1), HOUSE],
        [call(1, "house-a", 1_000, 100)],
        "desk",
        0.0011,
        True,
    ),
    "unpriced": ([HOUSE], [call(1, "nobody-knows", 1_000, 100)], "desk", None, False),
    # the priced half is shown, and is said to be a part
    "unpriced beside priced": (
        [HOUSE],
        [call(1, "house-a", 1_000, 100), call(3, "nobody-knows", 1_000, 100)],
        "desk",
        0.003,
        False,
    ),
    # no price list, but the emitter says what it paid
    "stated alone": (
        [],
        [call(1, "nobody-knows", 1_000, 100, gen_ai__usage__cost=0.0123)],
        "desk",
        0.0123,
        True,
    ),
    # our price list stands before what the emitter states; the stated figure is kept beside it
    "stated and computed": (
        [HOUSE],
        [call(1, "house-a", 1_000, 100, gen_ai__usage__cost=0.004)],
        "desk",
        0.003,
        True,
    ),
    # refused before it used anything: nothing to price, and nothing missing
    "refused and repeated": (
        [HOUSE],
        [call(1, "house-a", None, None, error="RateLimitError"), call(3, "house-a", 1_000, 100)],
        "desk",
        0.003,
        True,
    ),
}


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_a_task_costs_what_it_costs_by_hand(tmp_path: Path, name: str) -> None:
    overrides, spans, service, usd, complete = BY_HAND[name]
    with bench(tmp_path, prices=ListPrices(overrides)) as one:
        one.send([request([root(), *spans], service=service)]).derive(LATER)
        (task,) = one.rows("SELECT cost_usd, cost_complete FROM core.tasks")
        (kinds,) = one.rows(
            """
            SELECT sum(cost_usd) AS whole,
              sum(coalesce(input_cost_usd, 0) + coalesce(cache_read_cost_usd, 0) + coalesce(cache_write_cost_usd, 0)
                + coalesce(output_cost_usd, 0) + coalesce(request_cost_usd, 0)) AS parts,
              sum(stated_only_calls) AS stated_only
            FROM core.task_costs
            """
        )
    if usd is None:
        assert (task["cost_usd"], kinds["whole"]) == (None, None)
    else:
        assert task["cost_usd"] == pytest.approx(usd, abs=1e-9)
        assert kinds["whole"] == pytest.approx(usd, abs=1e-9)
        if not kinds["stated_only"]:
            assert kinds["parts"] == pytest.approx(usd, abs=1e-9)
    assert task["cost_complete"] is complete


def test_a_sum_under_a_price_with_thresholds_has_no_cost(tmp_path: Path) -> None:
    """Nobody knows how long each prompt within it was; under a plain price the sum can be priced."""
    stated = {"gen_ai__request__model": "claude-sonnet-4-5", "gen_ai__provider__name": "anthropic"}
    tokens = {"gen_ai__usage__input_tokens": 900_000, "gen_ai__usage__output_tokens": 100}
    plain = {"gen_ai__request__model": "gpt-4o-mini", "gen_ai__provider__name": "openai"}
    with bench(tmp_path, prices=ListPrices()) as one:
        one.send([request([root("a", **stated, **tokens)]), request([root("b", **plain, **tokens)])]).derive(
            LATER
        )
        found = {
            row["model"]: (row["cost_usd"], row["unpriced_input_tokens"])
            for row in one.rows("SELECT model, cost_usd, unpriced_input_tokens FROM core.task_costs")
        }
    assert found["claude-sonnet-4-5"] == (None, 900_000)
    assert found["gpt-4o-mini"] == (pytest.approx(0.9 * 0.15 + 100 * 0.6 / 1e6, abs=1e-9), None)


def test_unpriced_usage_is_tokens_by_model(tmp_path: Path) -> None:
    """codex-observability-plugin 22: usage without a price became free. Here it is tokens, by model."""
    spans = [
        root(),
        call(1, "house-a", 1_000, 100),
        call(3, "nobody-knows", 700, 30),
        call(5, "nobody-knows", 300, 20),
    ]
    with bench(tmp_path, prices=ListPrices([HOUSE])) as one:
        one.send([request(spans)]).derive(LATER)
        assert one.rows(
            "SELECT model, calls, tasks, input_tokens, output_tokens FROM core.unpriced_usage"
        ) == [{"model": "nobody-knows", "calls": 2, "tasks": 1, "input_tokens": 1_000, "output_tokens": 50}]
        sources = one.rows("SELECT model, source FROM core.model_prices ORDER BY model")
        assert sources == [
            {"model": "house-a", "source": sources[0]["source"]},
            {"model": "nobody-knows", "source": "unpriced"},
        ]
        events = one.rows("SELECT verdict, value FROM core.sli_events WHERE sli = 'cost'")
        assert events == [{"verdict": "unknown", "value": None}]


def test_stated_cost_is_kept_beside_the_computed_one_and_compared(tmp_path: Path) -> None:
    spans = [
        root(),
        call(1, "house-a", 1_000, 100, gen_ai__usage__cost=0.004),
        call(3, "house-a", 1_000, 100),
        call(5, "nobody-knows", 10, 1, gen_ai__usage__cost=0.5),
    ]
    with bench(tmp_path, prices=ListPrices([HOUSE])) as one:
        one.send([request(spans)]).derive(LATER)
        steps = one.rows(
            "SELECT computed_cost_usd AS c, stated_cost_usd AS s, cost_usd AS u FROM work.steps "
            "WHERE role = 'model' ORDER BY start_ns"
        )
        costs = {
            row["model"]: row
            for row in one.rows(
                "SELECT model, compared_calls, compared_computed_usd, compared_stated_usd, stated_only_calls "
                "FROM core.task_costs"
            )
        }
    near = pytest.approx(0.003, abs=1e-12)
    assert [(r["c"], r["s"], r["u"]) for r in steps] == [
        (near, 0.004, near),
        (near, None, near),
        (None, 0.5, 0.5),
    ]
    house = costs["house-a"]
    assert (house["compared_calls"], house["compared_computed_usd"], house["compared_stated_usd"]) == (
        1,
        near,
        0.004,
    )
    assert costs["nobody-knows"]["stated_only_calls"] == 1


def test_prices_by_service_are_asked_for_by_service(tmp_path: Path) -> None:
    override = price("gpt-4o-mini", discount=Decimal("0.5"), service="batch-*")
    with bench(tmp_path, prices=ListPrices([override])) as one:
        for trace, service in (("a", "batch-1"), ("b", "desk")):
            spans = [root(trace), call(1, "gpt-4o-mini", 1_000, 0, provider="openai", trace=trace)]
            one.send([request(spans, service=service)])
        one.derive(LATER)
        assert one.rows("SELECT service, input FROM core.model_prices ORDER BY service") == [
            {"service": "batch-1", "input": 0.075},
            {"service": "desk", "input": 0.15},
        ]
        costs = one.rows("SELECT service, cost_usd FROM core.tasks ORDER BY service")
        assert [row["cost_usd"] for row in costs] == [pytest.approx(0.000075), pytest.approx(0.00015)]


def test_a_folder_whose_prices_were_not_by_service_is_not_charged_twice(tmp_path: Path) -> None:
    """An override for one service is added to the settings: the rows asked for before stay, and are not used."""
    spans = [root(), call(1, "gpt-4o-mini", 1_000, 0, provider="openai")]
    with bench(tmp_path, prices=ListPrices()) as one:
        one.send([request(spans, service="batch-1")]).derive(LATER)
    override = price("gpt-4o-mini", discount=Decimal("0.5"), service="batch-*")
    with bench(tmp_path, prices=ListPrices([override])) as one:
        again = [root("b"), call(1, "gpt-4o-mini", 1_000, 0, provider="openai", trace="b")]
        one.send([request(again, service="batch-1")]).derive(LATER)
        costs = one.rows("SELECT cost_usd FROM core.tasks ORDER BY cost_usd")
        assert [row["cost_usd"] for row in costs] == [pytest.approx(0.000075), pytest.approx(0.00015)]
        one.deriver.rebuild(LATER)
        costs = one.rows("SELECT cost_usd FROM core.tasks")
        assert [row["cost_usd"] for row in costs] == [pytest.approx(0.000075)] * 2
