"""What model calls cost: list prices of `genai-prices` (offline) under dated overrides of the user's own.

Nothing here asks the network: the price data is the one packaged with the installed `genai-prices`. A model
without a price is `None` and its cost unknown, never 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MILLION = Decimal(1_000_000)

# Names that instrumentation writes into gen_ai.provider.name / gen_ai.system, where the id or the pattern of
# genai-prices would not find the provider or would find another one ("az.ai.openai" contains "openai").
PROVIDER_ALIASES = {
    "az.ai.openai": "azure",
    "az.ai.inference": "azure",
    "azure.ai.openai": "azure",
    "azure.ai.inference": "azure",
    "azure.openai": "azure",
    "azure_openai": "azure",
    "azure-openai": "azure",
    "azureopenai": "azure",
    "azure_ai": "azure",
    "aws.bedrock": "aws",
    "aws_bedrock": "aws",
    "bedrock_converse": "aws",
    "gcp.gemini": "google",
    "gcp.gen_ai": "google",
    "gcp.vertex_ai": "google",
    "google-gla": "google",
    "mistral_ai": "mistral",
    "x_ai": "x-ai",
    "fireworks_ai": "fireworks",
    "deepseek_ai": "deepseek",
    "moonshot_ai": "moonshotai",
}

SELF_HOSTED = frozenset(
    {
        "ollama",
        "vllm",
        "lmstudio",
        "lm_studio",
        "llama_cpp",
        "llama.cpp",
        "llamafile",
        "sglang",
        "tgi",
        "localai",
    }
)
"""Servers people run themselves: a hosted model's list price under the same name would be wrong for them."""


class PriceOverride(BaseModel):
    """A price of the user's own for a time: a contract, a model nobody lists, a discount on list prices.

    Prices are USD per million tokens; `provider`, `model` and `service` are globs. Either prices (`input`
    and `output` at least) or a `discount` (0.15 = 15 % off) or both. Of several that match, the first one
    wins. `valid_from` is included, `valid_to` is not; dates are UTC midnights, open when left out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: str = "*"
    model: Annotated[str, Field(min_length=1)]
    service: str | None = None
    valid_from: datetime | date | None = None
    valid_to: datetime | date | None = None
    input: Annotated[Decimal, Field(ge=0)] | None = None
    output: Annotated[Decimal, Field(ge=0)] | None = None
    cache_read: Annotated[Decimal, Field(ge=0)] | None = None
    cache_write: Annotated[Decimal, Field(ge=0)] | None = None
    discount: Annotated[Decimal, Field(ge=0, le=1)] | None = None

    @model_validator(mode="after")
    def _usable(self) -> Self:
        priced = self.input is not None and self.output is not None
        if not priced and any(
            p is not None for p in (self.input, self.output, self.cache_read, self.cache_write)
        ):
            raise ValueError("a price needs input and output, in USD per million tokens; add the missing one")
        if not priced and self.discount is None:
            raise ValueError("neither prices nor a discount are given; add input and output, or discount")
        start, end = _moment(self.valid_from), _moment(self.valid_to)
        if start is not None and end is not None and start >= end:
            raise ValueError("valid_to must be after valid_from; it is the first moment the price is over")
        return self

    def covers(self, provider: str | None, model: str, service: str | None) -> bool:
        return (
            fnmatchcase((provider or "").lower(), self.provider.lower())
            and fnmatchcase(model.lower(), self.model.lower())
            and (self.service is None or fnmatchcase(service or "", self.service))
        )

    def active(self, at: datetime) -> bool:
        start, end = _moment(self.valid_from), _moment(self.valid_to)
        return (start is None or at >= start) and (end is None or at < end)


@dataclass(frozen=True)
class Rates:
    """USD per million tokens. `None` means that kind is not priced apart: cached tokens cost `input` then."""

    input: Decimal | None
    output: Decimal | None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None

    def times(self, factor: Decimal) -> Rates:
        def scaled(rate: Decimal | None) -> Decimal | None:
            return None if rate is None else rate * factor

        return Rates(
            scaled(self.input), scaled(self.output), scaled(self.cache_read), scaled(self.cache_write)
        )

    def as_json(self) -> dict[str, float]:
        named = {
            "input": self.input,
            "output": self.output,
            "cache_read": self.cache_read,
            "cache_write": self.cache_write,
        }
        return {k: float(v) for k, v in named.items() if v is not None}


@dataclass(frozen=True)
class Tier:
    """Rates for *all* tokens of a call with more than `over` input tokens."""

    over: int
    rates: Rates


@dataclass(frozen=True)
class Tariff:
    """Rates with their tiers, smallest threshold first, and a fee per request."""

    rates: Rates
    tiers: tuple[Tier, ...] = ()
    per_request: Decimal = Decimal(0)

    def for_input(self, tokens: int) -> Rates:
        return next((t.rates for t in reversed(self.tiers) if tokens > t.over), self.rates)

    def times(self, factor: Decimal) -> Tariff:
        tiers = tuple(Tier(t.over, t.rates.times(factor)) for t in self.tiers)
        return Tariff(self.rates.times(factor), tiers, self.per_request * factor)

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.tiers:
            found["tiers"] = [{"over": t.over, **t.rates.as_json()} for t in self.tiers]
        if self.per_request:
            found["per_request"] = float(self.per_request)
        return found


@dataclass(frozen=True)
class Hours:
    """Another tariff at certain hours of the UTC day (off-peak prices); may pass midnight."""

    start: time
    end: time
    tariff: Tariff

    def active(self, at: datetime) -> bool:
        clock = at.time()
        if self.end < self.start:
            return clock >= self.start or clock < self.end
        return self.start <= clock < self.end


@dataclass(frozen=True)
class Price:
    """The price of one model over one period [valid_from, valid_to) in naive UTC; None is open."""

    provider: str | None
    model: str
    valid_from: datetime | None
    valid_to: datetime | None
    tariff: Tariff
    hours: tuple[Hours, ...] = ()
    source: str = ""
    service: str | None = None

    @property
    def input(self) -> Decimal | None:
        return self.tariff.rates.input

    @property
    def output(self) -> Decimal | None:
        return self.tariff.rates.output

    @property
    def cache_read(self) -> Decimal | None:
        return self.tariff.rates.cache_read

    @property
    def cache_write(self) -> Decimal | None:
        return self.tariff.rates.cache_write

    def tariff_at(self, at: datetime | None) -> Tariff:
        """The tariff at a moment; without one, the tariff outside special hours."""
        if at is not None:
            moment = _moment(at)
            assert moment is not None
            for hours in self.hours:
                if hours.active(moment):
                    return hours.tariff
        return self.tariff

    def tiers_json(self) -> str | None:
        """What the four price columns cannot say, or None.

        `{"tiers": [{"over": 200000, "input": ..}], "per_request": 0.005, "hours": [{"from": "00:30",
        "to": "16:30", "input": .., "tiers": [..]}]}`: the tier with the largest `over` below the call's input
        tokens prices all its tokens; the first of `hours` around the call's UTC time replaces the columns.
        """
        found = self.tariff.as_json()
        if self.hours:
            found["hours"] = [
                {
                    "from": h.start.strftime("%H:%M"),
                    "to": h.end.strftime("%H:%M"),
                    **h.tariff.rates.as_json(),
                    **h.tariff.as_json(),
                }
                for h in self.hours
            ]
        return json.dumps(found) if found else None

    def row(self) -> tuple[Any, ...]:
        """Values of `COLUMNS`."""
        rates = self.tariff.rates
        numbers = (rates.input, rates.output, rates.cache_read, rates.cache_write)
        return (
            self.provider,
            self.model,
            self.valid_from,
            self.valid_to,
            *(None if n is None else float(n) for n in numbers),
            self.tiers_json(),
            self.source,
            self.service,
        )


COLUMNS = (
    "provider",
    "model",
    "valid_from",
    "valid_to",
    "input",
    "output",
    "cache_read",
    "cache_write",
    "tiers",
    "source",
    "service",
)
"""Columns of `core.model_prices`: USD per million tokens, TIMESTAMP in UTC, `tiers` JSON text."""


def cost(
    price: Price,
    input: int,
    output: int,
    cache_read: int = 0,
    cache_write: int = 0,
    *,
    at: datetime | None = None,
) -> Decimal | None:
    """USD of one call; None when it used a kind of token that has no price.

    `input` includes the cached tokens, as the conventions have it. Cached tokens without a price of their own
    cost the input price. More cached than input tokens (a sender that leaves them out) are charged as cached
    and the uncached rest is 0.
    """
    tariff = price.tariff_at(at)
    rates = tariff.for_input(input)
    fresh, total = input, tariff.per_request
    for tokens, rate in ((cache_read, rates.cache_read), (cache_write, rates.cache_write)):
        if rate is not None:
            fresh -= tokens
            total += rate * tokens / MILLION
    for tokens, rate in ((max(fresh, 0), rates.input), (output, rates.output)):
        if tokens and rate is None:
            return None
        total += (rate or Decimal(0)) * tokens / MILLION
    return total


def _moment(value: datetime | date | None) -> datetime | None:
    """As naive UTC; a date is its UTC midnight."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        return datetime.combine(value, time())
    return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value


@dataclass
class PriceBook:
    """Prices by provider and model, once looked up kept. `overrides` come first."""

    overrides: Sequence[PriceOverride] = ()
    _periods: dict[tuple[str | None, str, str | None], list[Price]] = field(default_factory=dict, repr=False)

    @property
    def by_service(self) -> bool:
        """Whether prices differ by service, so that rows must be asked for per service."""
        return any(o.service is not None for o in self.overrides)

    def resolve(
        self, provider: str | None, model: str | None, at: datetime, service: str | None = None
    ) -> Price | None:
        """The price of `model` at a moment; None when nobody knows one.

        `provider` is what the trace says. A name that is no provider (a framework such as `langchain`) does
        not stand in the way: the model's name decides then.
        """
        moment = _moment(at)
        assert moment is not None
        for price in self.periods(provider, model, service):
            after = price.valid_from is None or moment >= price.valid_from
            if after and (price.valid_to is None or moment < price.valid_to):
                return price
        return None

    def rows(
        self, keys: Iterable[tuple[str | None, str | None] | tuple[str | None, str | None, str | None]]
    ) -> list[tuple[Any, ...]]:
        """Rows (`COLUMNS`) for (provider, model[, service]) as the traces spell them; periods do not overlap.

        Keys without a price give no row, so a LEFT JOIN leaves their cost NULL.
        """
        found: list[tuple[Any, ...]] = []
        for key in dict.fromkeys(keys):
            provider, model, service = (*key, None)[:3]
            found += [p.row() for p in self.periods(provider, model, service)]
        return found

    def periods(self, provider: str | None, model: str | None, service: str | None = None) -> list[Price]:
        """The model's prices over time, oldest first."""
        if not model:
            return []
        key = (provider, model, service)
        if key not in self._periods:
            self._periods[key] = self._build(provider, model, service)
        return self._periods[key]

    def _build(self, provider: str | None, model: str, service: str | None) -> list[Price]:
        listed = self._listed(provider, model)
        mine = [(i, o) for i, o in enumerate(self.overrides, start=1) if o.covers(provider, model, service)]
        cuts = {_moment(m) for _, o in mine for m in (o.valid_from, o.valid_to)}
        cuts |= {p.valid_from for p in listed}
        edges: list[datetime | None] = [None, *sorted(c for c in cuts if c is not None), None]
        found: list[Price] = []
        for start, end in pairwise(edges):
            inside = start or datetime.min
            base = None
            for listing in listed:
                if listing.valid_from is None or listing.valid_from <= inside:
                    base = listing
            number, override = next(((i, o) for i, o in mine if o.active(inside)), (0, None))
            price = _applied(base, override, number) if override is not None else base
            if price is not None:
                found.append(
                    replace(
                        price, provider=provider, model=model, service=service, valid_from=start, valid_to=end
                    )
                )
        return found

    # -- list prices ------------------------------------------------------------------------------

    @cached_property
    def _snapshot(self) -> Any:
        """The packaged data, whatever an updater in this process may have fetched."""
        from genai_prices.data import providers
        from genai_prices.data_snapshot import DataSnapshot

        return DataSnapshot(providers=providers, from_auto_update=False)

    def _listed(self, provider: str | None, model: str) -> list[Price]:
        name = (provider or "").strip().lower()
        if name in SELF_HOSTED:
            return []
        found = self._find(name, model.strip())
        if found is None:
            return []
        owner, info = found
        return _periods_of(info, f"genai-prices {_version()} {owner.id}/{info.id}")

    def _find(self, name: str, model: str) -> tuple[Any, Any] | None:
        """(provider, model) of genai-prices: by the provider named, a "provider/model" prefix, the model."""
        snapshot = self._snapshot
        attempts = [(name, model)]
        prefix, slash, rest = model.partition("/")
        if slash:
            attempts += (
                [(prefix.lower(), rest), (name, rest)] if prefix.lower() != "models" else [(name, rest)]
            )
        for provider_name, reference in attempts:
            owner = self._provider(provider_name)
            info = (
                owner.find_model(reference, all_providers=snapshot.providers) if owner is not None else None
            )
            if info is not None:
                return owner, info
        for reference in (model, rest) if slash else (model,):
            try:
                return snapshot.find_provider_model(reference, None, None, None)  # type: ignore[no-any-return]
            except LookupError:
                continue
        return None

    def _provider(self, name: str) -> Any:
        from genai_prices.data_snapshot import find_provider_by_id

        if not name:
            return None
        return find_provider_by_id(self._snapshot.providers, PROVIDER_ALIASES.get(name, name))


def _version() -> str:
    from genai_prices import __version__

    return str(__version__)


def _applied(base: Price | None, override: PriceOverride, number: int) -> Price | None:
    """The override as a price; a mere discount needs a list price to apply to."""
    factor = 1 - (override.discount or Decimal(0))
    source = f"override {number} ({override.model})"
    if override.input is not None:
        rates = Rates(override.input, override.output, override.cache_read, override.cache_write)
        return Price(None, "", None, None, Tariff(rates.times(factor)), source=source)
    if base is None:
        return None
    hours = tuple(replace(h, tariff=h.tariff.times(factor)) for h in base.hours)
    return replace(base, tariff=base.tariff.times(factor), hours=hours, source=f"{source} on {base.source}")


def _periods_of(info: Any, source: str) -> list[Price]:
    """The price periods of a genai-prices model, oldest first.

    Of its conditional prices the last one whose condition holds applies: a start date opens a period, hours
    of the day become `Hours` of the periods in which nothing later overrides them.
    """
    if not isinstance(info.prices, list):
        tariff = _tariff(info.prices)
        return [Price(None, "", None, None, tariff, source=source)] if tariff is not None else []
    starts = {p.constraint.start_date for p in info.prices if hasattr(p.constraint, "start_date")}
    found: list[Price] = []
    for start in [None, *sorted(starts)]:
        base, hours = info.prices[0].prices, []
        for conditional in reversed(info.prices):
            constraint = conditional.constraint
            if hasattr(constraint, "start_time"):
                hours.append((constraint.start_time, constraint.end_time, conditional.prices))
            elif constraint is None or (start is not None and constraint.start_date <= start):
                base = conditional.prices
                break
        tariff = _tariff(base)
        if tariff is None:
            continue
        special = [(_utc(a), _utc(b), _tariff(p)) for a, b, p in hours]
        found.append(
            Price(
                None,
                "",
                _moment(start),
                None,
                tariff,
                tuple(Hours(a, b, t) for a, b, t in special if t is not None),
                source,
            )
        )
    return found


def _utc(clock: time) -> time:
    if clock.tzinfo is None:
        return clock
    return datetime.combine(date(2000, 1, 1), clock).astimezone(UTC).time()


_KINDS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")


def _tariff(prices: Any) -> Tariff | None:
    """Rates and tiers of a genai-prices ModelPrice; None when it is not priced by token."""
    values = [getattr(prices, kind) for kind in _KINDS]
    if values[0] is None and values[1] is None:
        return None
    starts = sorted({t.start for v in values if hasattr(v, "tiers") for t in v.tiers})

    def at(value: Any, over: int | None) -> Decimal | None:
        if value is None or isinstance(value, Decimal):
            return value
        reached = [t.price for t in value.tiers if over is not None and t.start <= over]
        return Decimal(reached[-1] if reached else value.base)

    fee = getattr(prices, "requests_kcount", None)
    return Tariff(
        Rates(*(at(v, None) for v in values)),
        tuple(Tier(s, Rates(*(at(v, s) for v in values))) for s in starts),
        fee / 1000 if isinstance(fee, Decimal) else Decimal(0),
    )
