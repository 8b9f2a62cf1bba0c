"""An alert says chances and budgets as the pages do."""

from __future__ import annotations

from typing import Any, cast

import pytest

from dashboard import format as pages
from metrics.alerts.words import budget_words, chance, share
from metrics.slo.status import StatusRow


class _Row:
    exhaustion = "{}"

    def __init__(self, remaining: float | None) -> None:
        self.remaining = remaining


@pytest.mark.parametrize("value", [0.0, 2.1e-07, 0.0004, 0.9997, 1.0])
def test_a_chance_near_certainty_reads_as_on_the_pages(value: float) -> None:
    assert chance(value) == pages.chance(value)


@pytest.mark.parametrize(
    ("remaining", "said"),
    [
        (None, "budget unknown"),
        (-21.78, "budget overspent by 2178%"),
        (0.0, "budget overspent by 0%"),
        (0.29, "29% of the budget left"),
    ],
)
def test_what_is_left_of_a_budget(remaining: float | None, said: str) -> None:
    assert budget_words(cast(StatusRow, cast(Any, _Row(remaining)))) == said


def test_a_share_that_is_unknown_is_said() -> None:
    assert (share(None), share(0.9807)) == ("unknown", "98.07%")
