"""A card praises and blames only by enough events, and says what is left out and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dashboard.cards import excluded_words, share_figure
from dashboard.screens.objective import share_range
from tests.dashboard.conftest import OpenPage, texts
from tests.dashboard.data_folder import write_folder


def row(**more: Any) -> dict[str, Any]:
    return {
        "n": 300, "good": 291, "sli": 0.97, "unknown": 0, "excluded": 0, "state": "ok", "unit": "tasks", "cut": None,
        "excluded_by": "{}", **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, ("291 of 300 tasks", "97.0%")),
        ({"n": 1, "good": 1, "sli": 1.0, "state": "insufficient_data"}, ("tasks, too few events", "1 of 1")),
        ({"n": 0, "unknown": 16, "state": "no_data"}, ("16 events, all unknown", "—")),
        ({"n": 0, "unknown": 1, "state": "no_data"}, ("1 event, unknown", "—")),
        ({"n": 0, "excluded": 3, "state": "no_data"}, ("3 events, all excluded", "—")),
        ({"n": 0, "unknown": 2, "excluded": 3, "state": "no_data"}, ("5 events: 2 unknown, 3 excluded", "—")),
        ({"n": None, "unknown": None, "excluded": None, "state": "no_data"}, ("no tasks yet", "—")),
    ],
)
def test_the_figure_of_a_card(more: dict[str, Any], said: tuple[str, str]) -> None:
    assert share_figure(row(**more)) == said


def test_what_is_excluded_is_said_with_the_most_frequent_reason_first() -> None:
    by = {"maintenance": 7, "environment:test": 47, "claim_not_verified": 832, "some_rule": 1}
    given = row(excluded=887, excluded_by=json.dumps(by))
    assert excluded_words(given) == (
        "887 excluded (832 claims that nobody verified, 47 of environment test, 7 in a maintenance window, 1 some rule)"
    )
    assert excluded_words(given, 2) == (
        "887 excluded (832 claims that nobody verified, 47 of environment test, 8 for other reasons)"
    )
    assert excluded_words(row(excluded=3, excluded_by='{"maintenance": 3}')) == (
        "3 excluded (in a maintenance window)"
    )


@pytest.mark.parametrize(
    ("shares", "target"), [([0.5, 1.0], 0.9), ([1.0, 1.0], 0.999), ([None], None), ([0.0], 0.9)]
)
def test_an_axis_of_shares_stays_within_0_and_1(shares: list[float | None], target: float | None) -> None:
    low, high = share_range(shares, target)
    known = [share for share in (*shares, target) if share is not None]
    assert 0 <= low < high <= 1
    assert all(low <= share <= high for share in known)


def test_objectives_of_which_all_is_unknown_are_cards_and_one_event_has_no_full_bar(
    open_page: OpenPage, tmp_path: Path
) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute(
            "UPDATE core.slo_status SET n = 0, good = 0, bad = 0, unknown = 16, excluded = 0, sli = NULL, "
            "lower = NULL, upper = NULL, remaining = NULL, state = 'no_data', firing = '[]' WHERE slo = 'latency'"
        )
        con.execute(
            "UPDATE core.slo_status SET n = 0, good = 0, bad = 0, unknown = 0, excluded = 0, sli = NULL, "
            "remaining = NULL, state = 'no_data' WHERE slo = 'lost-task'"
        )
    test = open_page(data)
    said = texts(test)
    assert "16 events, all unknown —" in said
    assert "tasks, too few events 12 of 12" in said
    assert [box.label for box in test.expander] == ["1 objective without any event yet"]
    bars = [bar.proto.text for bar in test.get("progress")]
    # Neither the one with too few events nor those without any.
    assert len(bars) == 3
    # The page of the objective opens too.
    assert "16 events, all unknown" in texts(open_page(data, "screens/objective.py", slo="latency"))
