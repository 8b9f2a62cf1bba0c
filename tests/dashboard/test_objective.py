"""The page of an objective over derived samples: what it tries out is what the evaluation says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from dashboard.definitions import changed, definition, definitions, openslo_text
from dashboard.door import Answers, Row, answers
from dashboard.preview import back_test, worst
from metrics.openslo import load
from tests.dashboard.conftest import OpenPage, texts


@pytest.fixture
def reader(samples: Path) -> Iterator[Answers]:
    with answers(samples) as opened:
        yield opened


def counted(reader: Answers) -> list[Row]:
    return [row for row in reader.rows("overview_cards", agents=None, task_types=None) if row["counted"]]


def test_every_row_has_its_definition(samples: Path, reader: Answers) -> None:
    names = reader.rows("objective_names")
    assert len(names) > 10
    for name in names:
        row = reader.row("objective_status", slo=name["slo"], objective=name["objective"])
        assert row is not None
        found = definition(samples, row)
        assert found is not None
        assert found.key == (row["slo"], row["objective"])
        assert definition(samples, {**row, "revision": "other"}) is None


def test_an_unchanged_preview_is_the_status(samples: Path, reader: Answers) -> None:
    rows = counted(reader)
    assert len(rows) > 5
    for row in rows:
        objective = definition(samples, row)
        assert objective is not None
        days = objective.window.duration.seconds // 86400
        as_of = row["settled_until"] + timedelta(seconds=objective.settle_s)
        tried = changed(objective, objective.target, days, objective.cut)
        status, points = back_test(reader, samples, tried, as_of, 0)
        for column in ("n", "good", "bad", "unknown", "excluded", "sli", "remaining", "state", "burn"):
            assert getattr(status, column) == row[column], (row["slo"], column)
        assert points[-1].remaining == row["remaining"]


def test_another_target_and_cut_change_the_preview(samples: Path, reader: Answers) -> None:
    row = next(row for row in counted(reader) if row["sli_name"] == "latency")
    objective = definition(samples, row)
    assert objective is not None
    as_of = row["settled_until"] + timedelta(seconds=objective.settle_s)
    strict, _ = back_test(reader, samples, changed(objective, Decimal("0.99"), 28, Decimal(1)), as_of, 0)
    loose, _ = back_test(reader, samples, changed(objective, Decimal("0.5"), 28, Decimal(10**6)), as_of, 0)
    assert strict.good < loose.good
    assert (strict.target, loose.target) == (0.99, 0.5)


def test_the_worst_tasks_are_the_bad_ones(samples: Path, reader: Answers) -> None:
    row = next(row for row in counted(reader) if row["slo"] == "duplicate-action")
    objective = definition(samples, row)
    assert objective is not None
    found = worst(reader, objective, row["window_start"], row["window_end"], most=1000)
    assert sum(task.bad for task in found) == row["bad"] > 0


def test_every_objective_can_be_saved_and_read_again(tmp_path: Path) -> None:
    for objective in definitions(tmp_path).objectives:
        if objective.is_floor:
            continue
        wanted = changed(objective, Decimal("0.975"), 14, objective.cut)
        again = load(openslo_text(tmp_path, wanted))
        found = next(o for o in again if o.slo == objective.slo and not o.is_floor)
        assert (found.target, str(found.window.duration)) == (Decimal("0.975"), "14d")
        assert (found.source, found.cut, found.unknown) == (
            objective.source,
            objective.cut,
            objective.unknown,
        )


def test_the_page_tries_and_offers_a_file(open_page: OpenPage, samples: Path) -> None:
    test = open_page(
        samples, "screens/objective.py", slo="task-completion", **{"try": "true", "try_target": "99.9"}
    )
    said = texts(test)
    assert "Target 99.9%" in said
    assert "Worst tasks" in said
    assert [button.label for button in test.get("download_button")] == ["Save as an OpenSLO file"]
