"""The sample company as a whole, derived once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sample_traces import replay
from tests.conftest import MadeOnce
from tests.metrics import worlds
from tests.metrics.bench import Bench, ListPrices, bench


@pytest.fixture(scope="session")
def derived_company(made_once: MadeOnce) -> Iterator[Bench]:
    """Four weeks of the sample company at list prices, as of their end. Tests only read it."""

    def derive(folder: Path) -> None:
        with bench(folder, worlds.settings(), ListPrices()) as one:
            one.send(replay.load("company")).derive(worlds.end())

    with bench(made_once("whole_company", derive), worlds.settings(), ListPrices()) as one:
        yield one
