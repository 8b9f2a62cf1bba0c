"""Prices against genai-prices itself, overrides over time, and the SQL reading of a price row."""

from __future__ import annotations

import socket
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from genai_prices import Usage, calc_price
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from metrics.prices import COLUMNS, PriceBook, PriceOverride, cost

AT = datetime(2026, 11, 20, 12)
BOOK = PriceBook()


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("prices must never ask the network")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


MODELS = [
    ("openai", "gpt-4o"),
    ("openai", "gpt-4o-mini"),
    ("anthropic", "claude-sonnet-4-5"),
    ("anthropic", "claude-sonnet-4-6"),
    ("google", "gemini-2.5-pro"),
    ("google", "gemini-2.5-flash"),
    ("deepseek", "deepseek-chat"),
    ("mistral", "mistral-large-latest"),
    ("perplexity", "sonar"),
    ("x-ai", "grok-4.20"),
    ("aws", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(MODELS),
    st.integers(0, 600_000),
    st.integers(0, 20_000),
    st.floats(0, 0.5),
    st.floats(0, 0.5),
    st.datetimes(datetime(2026, 1, 1), datetime(2026, 11, 30)),
)
def test_equal_to_genai_prices(
    model: tuple[str, str], input: int, output: int, read: float, written: float, at: datetime
) -> None:
    cached, stored = int(input * read), int(input * written)
    usage = Usage(
        input_tokens=input, output_tokens=output, cache_read_tokens=cached, cache_write_tokens=stored
    )
    expected = calc_price(
        usage, model[1], provider_id=model[0], genai_request_timestamp=at.replace(tzinfo=UTC)
    )
    price = BOOK.resolve(*model, at)
    assert price is not None
    found = cost(price, input, output, cached, stored, at=at)
    assert found is not None
    assert abs(found - expected.total_price) < Decimal("1e-9")


@pytest.mark.parametrize(
    ("provider", "model", "source"),
    [
        ("openai.chat", "gpt-4o-mini-2024-07-18", "openai/gpt-4o-mini"),
        ("gcp.gemini", "gemini-2.5-pro", "google/gemini-2.5-pro"),
        ("gcp.vertex_ai", "models/gemini-2.5-flash", "google/gemini-2.5-flash"),
        ("az.ai.openai", "gpt-4o", "azure/gpt-4o"),
        ("aws.bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "aws/regional.anthropic"),
        ("mistral_ai", "mistral-large-latest", "mistral/mistral-large"),
        ("langchain", "gpt-4o", "openai/gpt-4o"),
        ("langchain", "claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("litellm", "anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        (None, "openai/gpt-4o", "openai/gpt-4o"),
        ("", "gpt-4o", "openai/gpt-4o"),
        ("OpenAI", "GPT-4o", "openai/gpt-4o"),
        ("openai", "deepseek-chat", "deepseek/deepseek-chat"),
    ],
)
def test_names_found_in_traces(provider: str | None, model: str, source: str) -> None:
    price = BOOK.resolve(provider, model, AT)
    assert price is not None
    assert source in price.source
    assert (price.provider, price.model) == (provider, model)


@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "no-such-model"), (None, None), ("openai", ""), ("ollama", "mistral"), ("vllm", "gpt-4o")],
)
def test_unknown_is_none_never_zero(provider: str | None, model: str | None) -> None:
    assert BOOK.resolve(provider, model, AT) is None
    assert BOOK.rows([(provider, model)]) == []


def test_prices_change_over_time() -> None:
    first, second = BOOK.periods("anthropic", "claude-sonnet-4-6")
    assert first.valid_from is None
    assert first.valid_to == second.valid_from == datetime(2026, 3, 13)
    assert second.valid_to is None
    assert first.tariff.tiers
    assert not second.tariff.tiers
    assert BOOK.resolve("anthropic", "claude-sonnet-4-6", datetime(2026, 3, 12, 23, 59)) == first
    assert BOOK.resolve("anthropic", "claude-sonnet-4-6", datetime(2026, 3, 13)) == second


def test_tiers_price_all_tokens() -> None:
    price = BOOK.resolve("google", "gemini-2.5-pro", AT)
    assert price is not None
    below, above = cost(price, 200_000, 0), cost(price, 200_001, 0)
    assert price.input is not None
    assert below == price.input * 200_000 / 1_000_000
    assert above is not None
    assert above > below * Decimal("1.9")


def test_cached_tokens_without_a_price_cost_the_input_price() -> None:
    (price,) = PriceBook([PriceOverride(model="m", input=Decimal(2), output=Decimal(4))]).periods("p", "m")
    assert cost(price, 1000, 100, 600, 200) == cost(price, 1000, 100) == Decimal("0.0024")


def test_more_cached_than_input_is_not_negative() -> None:
    override = PriceOverride(model="m", input=Decimal(2), output=Decimal(4), cache_read=Decimal(1))
    (price,) = PriceBook([override]).periods("p", "m")
    assert cost(price, 100, 0, 1000) == Decimal("0.001")


def test_a_kind_without_a_price_is_unknown() -> None:
    price = BOOK.resolve("openai", "text-embedding-3-small", AT)
    assert price is not None
    assert price.output is None
    assert cost(price, 1000, 0) == Decimal("0.00002")
    assert cost(price, 1000, 5) is None


def test_overrides_cut_the_time_line() -> None:
    book = PriceBook(
        [
            PriceOverride(
                provider="openai*", model="gpt-4o*", valid_from=date(2026, 6, 1), valid_to=date(2026, 7, 1),
                input=Decimal(1), output=Decimal(2),
            ),
            PriceOverride(model="gpt-4o*", valid_from=date(2026, 6, 15), discount=Decimal("0.5")),
        ]
    )  # fmt: skip
    periods = book.periods("openai", "gpt-4o")
    assert [(p.valid_from, p.valid_to, p.input) for p in periods] == [
        (None, datetime(2026, 6, 1), Decimal("2.5")),
        (datetime(2026, 6, 1), datetime(2026, 6, 15), Decimal(1)),
        (datetime(2026, 6, 15), datetime(2026, 7, 1), Decimal(1)),
        (datetime(2026, 7, 1), None, Decimal("1.25")),
    ]
    assert periods[0].source.startswith("genai-prices")
    assert periods[1].source == "override 1 (gpt-4o*)"
    assert periods[3].source.startswith("override 2 (gpt-4o*) on genai-prices")
    for moment in (datetime(2026, 5, 31, 23), datetime(2026, 6, 1), datetime(2026, 7, 1)):
        assert (
            sum(
                (p.valid_from or moment) <= moment and (p.valid_to is None or moment < p.valid_to)
                for p in periods
            )
            == 1
        )


def test_override_for_a_model_nobody_lists() -> None:
    book = PriceBook(
        [
            PriceOverride(
                provider="vllm",
                model="house-*",
                valid_from=date(2026, 6, 1),
                input=Decimal(0),
                output=Decimal(0),
            )
        ]
    )
    assert book.resolve("vllm", "house-7b", datetime(2026, 5, 1)) is None
    free = book.resolve("vllm", "house-7b", datetime(2026, 6, 1))
    assert free is not None
    assert cost(free, 1000, 1000) == 0, "free because its owner says so"
    assert PriceBook([PriceOverride(model="*", discount=Decimal("0.1"))]).resolve("x", "unlisted", AT) is None


def test_prices_by_service() -> None:
    book = PriceBook([PriceOverride(model="gpt-4o", service="batch-*", discount=Decimal("0.5"))])
    assert book.by_service
    assert not BOOK.by_service
    rows = book.rows(
        [("openai", "gpt-4o", "batch-refunds"), ("openai", "gpt-4o", "chat"), ("openai", "gpt-4o")]
    )
    assert [(r[COLUMNS.index("service")], r[COLUMNS.index("input")]) for r in rows] == [
        ("batch-refunds", 1.25),
        ("chat", 2.5),
        (None, 2.5),
    ]


def test_zones_are_honoured() -> None:
    tokyo = timezone(timedelta(hours=9))
    override = PriceOverride(
        model="m", valid_from=datetime(2026, 6, 1, 9, tzinfo=tokyo), input=Decimal(1), output=Decimal(1)
    )
    book = PriceBook([override])
    assert book.resolve("p", "m", datetime(2026, 6, 1, 0, 0)) is not None
    assert book.resolve("p", "m", datetime(2026, 5, 31, 23, 59)) is None
    assert book.resolve("p", "m", datetime(2026, 6, 1, 8, 59, tzinfo=tokyo)) is None


@pytest.mark.parametrize(
    ("given_as", "said"),
    [
        ({"model": "m"}, "neither prices nor a discount"),
        ({"model": "m", "input": 1}, "input and output"),
        ({"model": "m", "cache_read": 1, "discount": 0.5}, "input and output"),
        ({"model": "m", "input": -1, "output": 1}, "greater than or equal to 0"),
        ({"model": "m", "discount": 1.5}, "less than or equal to 1"),
        ({"model": "", "discount": 0.5}, "at least 1 character"),
        ({"model": "m", "discount": 0.5, "price": 3}, "Extra inputs"),
        (
            {"model": "m", "discount": 0.5, "valid_from": "2026-02-01", "valid_to": "2026-02-01"},
            "after valid_from",
        ),
    ],
)
def test_overrides_are_validated(given_as: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        PriceOverride.model_validate(given_as)


# How a `core.model_prices` row is read in SQL: tier and hour replace the four columns.
SQL_COST = """
WITH call AS (
    SELECT $input AS input, $output AS output, $read AS cache_read, $written AS cache_write, $at AS at_time,
           strftime($at, '%H:%M') AS clock
), priced AS (
    SELECT c.*, p.* EXCLUDE (input, output, cache_read, cache_write), p.input AS p_input,
           p.output AS p_output, p.cache_read AS p_read, p.cache_write AS p_written,
           list_filter(CAST(p.tiers->'hours' AS JSON[]), lambda h:
               CASE WHEN h->>'to' < h->>'from' THEN clock >= h->>'from' OR clock < h->>'to'
                    ELSE clock >= h->>'from' AND clock < h->>'to' END)[1] AS hour
    FROM call c
    JOIN prices p ON (p.valid_from IS NULL OR at_time >= p.valid_from)
                 AND (p.valid_to IS NULL OR at_time < p.valid_to)
), chosen AS (
    SELECT *, coalesce(
        list_filter(CAST(CASE WHEN hour IS NULL THEN tiers->'tiers' ELSE hour->'tiers' END AS JSON[]),
                    lambda t: CAST(t->>'over' AS BIGINT) < input)[-1],
        hour) AS rates
    FROM priced
), rated AS (
    SELECT *, CASE WHEN rates IS NULL THEN p_input ELSE CAST(rates->>'input' AS DOUBLE) END AS r_input,
           CASE WHEN rates IS NULL THEN p_output ELSE CAST(rates->>'output' AS DOUBLE) END AS r_output,
           CASE WHEN rates IS NULL THEN p_read ELSE CAST(rates->>'cache_read' AS DOUBLE) END AS r_read,
           CASE WHEN rates IS NULL THEN p_written ELSE CAST(rates->>'cache_write' AS DOUBLE) END AS r_written
    FROM chosen
)
SELECT (greatest(0, input - CASE WHEN r_read IS NULL THEN 0 ELSE cache_read END
                          - CASE WHEN r_written IS NULL THEN 0 ELSE cache_write END) * r_input
        + cache_read * coalesce(r_read, 0) + cache_write * coalesce(r_written, 0)
        + CASE WHEN output = 0 THEN 0 ELSE output * r_output END) / 1e6
       + coalesce(CAST(tiers->>'per_request' AS DOUBLE), 0)
FROM rated
"""


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(MODELS),
    st.integers(0, 600_000),
    st.integers(0, 20_000),
    st.floats(0, 0.5),
    st.datetimes(datetime(2026, 1, 1), datetime(2026, 11, 30)).map(
        lambda d: d.replace(second=0, microsecond=0)
    ),
)
def test_rows_hold_all_that_sql_needs(
    model: tuple[str, str], input: int, output: int, share: float, at: datetime
) -> None:
    price = BOOK.resolve(*model, at)
    assert price is not None
    cached = int(input * share)
    with duckdb.connect(":memory:") as con:
        con.execute(
            """CREATE TABLE prices (provider VARCHAR, model VARCHAR, valid_from TIMESTAMP, valid_to TIMESTAMP,
               input DOUBLE, output DOUBLE, cache_read DOUBLE, cache_write DOUBLE, tiers JSON, source VARCHAR,
               service VARCHAR)"""
        )
        marks = ", ".join("?" for _ in COLUMNS)
        con.executemany(f"INSERT INTO prices VALUES ({marks})", [list(r) for r in BOOK.rows([model])])
        params = {"input": input, "output": output, "read": cached, "written": 0, "at": at}
        found = con.execute(SQL_COST, params).fetchall()
    expected = cost(price, input, output, cached, at=at)
    assert expected is not None
    assert [r[0] for r in found] == [pytest.approx(float(expected), abs=1e-9)]
