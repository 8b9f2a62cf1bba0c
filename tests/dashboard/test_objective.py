"""The page of an objective over derived samples: what it tries out is what the evaluation says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dashboard.counted import counted_rows
from dashboard.definitions import changed, definition, definitions, openslo_text
from dashboard.door import Answers, Row, answers
from dashboard.preview import back_test
from metrics.openslo import load
from metrics.slo.counted import EventClass, counted_events
from metrics.slo.cube import run
from metrics.slo.evaluate import evaluate
from metrics.slo.objective import ConjunctionSource, EventSource, Part, TaskSource, UnknownPolicy
from metrics.slo.predicate import TASK_COLUMNS, parse
from tests.dashboard.conftest import OpenPage, texts

SHOWN: tuple[EventClass, ...] = ("bad", "unknown", "good", "excluded")


OWN: tuple[dict[str, Any], ...] = (
    {
        "source": TaskSource(
            total=parse("runs >= 1", TASK_COLUMNS), bad=parse("outcome = 'lost'", TASK_COLUMNS)
        )
    },
    {
        "source": TaskSource(total=parse("runs >= 1", TASK_COLUMNS), value="cost_usd"),
        "op": "lte",
        "cut": Decimal("0.002"),
    },
    {
        "source": ConjunctionSource(
            (Part(EventSource("task_completion")), Part(EventSource("latency"), "lte", Decimal(60)))
        )
    },
)
"""Objectives over conditions of their own: on tasks, on a value of tasks, and on several SLIs at once."""


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


def test_what_is_listed_is_what_was_counted(samples: Path, reader: Answers) -> None:
    (environment,) = (reader.row("filter_choices") or {})["environments"]
    variants: tuple[dict[str, Any], ...] = (
        {},
        {"verified_only": True},
        {"exclude": (environment,)},
        {"unknown": UnknownPolicy("exclude")},
        {"unknown": UnknownPolicy("bad")},
        {"unknown": UnknownPolicy("bad-after", 3600), "exclude": (environment,), "verified_only": True},
    )
    rows = counted(reader)
    as_of = rows[0]["evaluated_at"]
    written = [found for row in rows if (found := definition(samples, row)) is not None]
    assert len(written) == len(rows) > 5
    written += [replace(written[0], slo=f"own-{place}", **own) for place, own in enumerate(OWN)]
    listed = dict.fromkeys(SHOWN, 0)
    with duckdb.connect(":memory:") as con:
        for view in ("sli_events", "tasks"):
            con.register("given", reader.ask(f"SELECT * FROM {view}", {}))
            con.execute(f"CREATE TABLE {view} AS FROM given")
        for variant in variants:
            objectives = [replace(objective, per=(), **variant) for objective in written]
            for objective, status in zip(objectives, evaluate(con, objectives, as_of), strict=True):
                for which in SHOWN:
                    found = run(con, *counted_events(objective, which, as_of, 3)).fetchall()
                    said = getattr(status, which)
                    assert (found[0][-1] if found else 0) == said, (objective.key, variant, which)
                    assert len(found) == min(3, said)
                    listed[which] += len(found)
    assert all(listed.values())


def test_the_page_lists_what_the_status_counts(samples: Path, reader: Answers) -> None:
    for row in counted(reader):
        objective = definition(samples, row)
        assert objective is not None
        for which in SHOWN:
            found = counted_rows(reader, objective, which, row["evaluated_at"], most=3)
            assert (found[0]["matching"] if found else 0) == row[which], (row["slo"], which)


def test_split_objectives_list_their_own_events(samples: Path, reader: Answers) -> None:
    parts = [p for row in counted(reader) for p in reader.rows("objective_parts", slo=row["slo"]) if p["bad"]]
    assert len(parts) > 2
    for part in parts:
        row = reader.row("objective_status", slo=part["slo"], objective=part["objective"])
        assert row is not None
        objective = definition(samples, row)
        assert objective is not None
        found = counted_rows(reader, objective, "bad", row["evaluated_at"])
        assert found[0]["matching"] == row["bad"]
        assert {event["agent"] for event in found if row["agent"]} <= {row["agent"]}


def test_the_farthest_beyond_the_cut_comes_first(samples: Path, reader: Answers) -> None:
    row = next(row for row in counted(reader) if row["sli_name"] == "latency")
    objective = definition(samples, row)
    assert objective is not None
    strict = changed(objective, objective.target, 28, Decimal("0.001"))
    values = [e["value"] for e in counted_rows(reader, strict, "bad", row["evaluated_at"]) if e["value"]]
    assert len(values) > 3
    assert values == sorted(values, reverse=True)


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
    assert "Counted events" in said
    offered = [button.label.replace("\\", "") for button in test.get("download_button")]
    assert offered == ["events_bad.csv", "Save all objectives, with this one changed", "Save this one alone"]
