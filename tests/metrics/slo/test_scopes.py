"""Objectives split by agent and task type, and the floor of a band."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import duckdb
import pytest

from metrics.openslo import OpenSLOError, load
from metrics.slo.evaluate import MOST_SCOPES, evaluate, split_objectives
from metrics.slo.history import histories
from metrics.slo.objective import EventSource
from metrics.slo.predicate import Compare
from metrics.slo.status import StatusRow
from tests.metrics.slo.conftest import AS_OF, ago, event, objective

Add = Callable[..., None]

BAND = """
apiVersion: openslo/v1
kind: SLI
metadata: {name: hands-off}
spec:
  ratioMetric:
    good: {metricSource: {type: AgentSLO, spec: {builtin: BUILTIN}}}
    total: {metricSource: {type: AgentSLO, spec: {builtin: BUILTIN}}}
---
apiVersion: openslo/v1
kind: SLO
metadata:
  name: hands-off
  annotations: {agent-slo/intervention-floor: "FLOOR", agent-slo/settle-delay: 0s}
spec:
  service: s
  indicatorRef: hands-off
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{displayName: ceiling, target: 0.8}]
"""


def band(builtin: str = "human_intervention", floor: str = "0.02") -> str:
    return BAND.replace("BUILTIN", builtin).replace("FLOOR", floor)


def some_agents(add: Add) -> None:
    add(
        *[event(ago(hours=i + 1), "good", agent="big", task_type="a") for i in range(30)],
        *[event(ago(hours=i + 1), "bad", agent="small", task_type="b") for i in range(5)],
        *[event(ago(hours=i + 1), "good", agent="small", task_type=None) for i in range(2)],
        *[event(ago(hours=i + 1), "excluded", agent="excluded", task_type="c") for i in range(9)],
    )


def counted(rows: list[StatusRow]) -> list[tuple[str | None, str | None, int, int]]:
    return [(r.agent, r.task_type, r.good, r.n) for r in rows]


def test_every_agent_and_type_has_a_row_behind_the_row_of_all(
    con: duckdb.DuckDBPyConnection, add: Add
) -> None:
    some_agents(add)
    split = objective(per=("agent", "task_type"))
    rows = evaluate(con, [split, objective(slo="plain")], AS_OF)
    assert counted(rows) == [
        (None, None, 32, 37),
        ("big", "a", 30, 30),
        ("small", "b", 0, 5),
        ("small", None, 2, 2),
        (None, None, 32, 37),
    ]
    assert [r.split for r in rows] == [False, True, True, True, False]
    assert len({(r.slo, r.objective) for r in rows}) == len(rows)
    assert rows[1].title == "Completion: big / a"


def test_a_part_says_what_a_condition_would_say(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    some_agents(add)
    small = next(r for r in evaluate(con, [objective(per=("agent",))], AS_OF) if r.agent == "small")
    where = Compare("agent", "=", "small")
    (alone,) = evaluate(con, [objective(source=EventSource("task_completion", where))], AS_OF)
    names = ("objective", "title", "agent", "split", "revision")
    assert replace(small, **dict.fromkeys(names)) == replace(alone, **dict.fromkeys(names))


def test_one_agent_alone_is_not_told_twice(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(*[event(ago(hours=i + 1), "good") for i in range(3)])
    assert len(evaluate(con, [objective(per=("agent", "task_type"))], AS_OF)) == 1


def test_the_busiest_are_kept_when_there_are_too_many(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(*[event(ago(hours=i + 1), "good", agent="busy") for i in range(2)])
    add(*[event(ago(hours=1), "good", agent=f"agent {i}") for i in range(MOST_SCOPES + 20)])
    rows = evaluate(con, [objective(per=("agent",))], AS_OF)
    assert len(rows) == MOST_SCOPES + 1
    assert rows[1].agent == "busy"


def test_parts_have_a_history(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    some_agents(add)
    given = [objective(per=("agent", "task_type"))]
    rows = evaluate(con, given, AS_OF)
    every = split_objectives(given, rows)
    assert [o.objective for o in every] == [r.objective for r in rows]
    last = {r.objective: (r.good, r.n) for r in histories(con, every, AS_OF) if r.at == AS_OF}
    assert last == {r.objective: (r.good, r.n) for r in rows}


@pytest.mark.parametrize(
    ("touched", "of", "state"),
    [
        (0, 20, "at_risk"),
        (0, 300, "exhausted"),
        (20, 300, "ok"),
        (3, 100, "at_risk"),
        (1, 10, "insufficient_data"),
    ],
)
def test_a_floor_is_judged_by_how_sure_it_is(
    con: duckdb.DuckDBPyConnection, add: Add, touched: int, of: int, state: str
) -> None:
    add(
        *[
            event(ago(minutes=i + 1), "bad" if i < touched else "good", sli="human_intervention")
            for i in range(of)
        ]
    )
    ceiling, floor = evaluate(con, load(band()), AS_OF)
    assert (ceiling.good, floor.good, floor.n) == (of - touched, touched, of)
    assert floor.state == state
    assert (floor.firing, floor.pairs, floor.exhaustion) == ("[]", "[]", "{}")
    point = [r for r in histories(con, load(band()), AS_OF) if r.at == AS_OF]
    assert [(r.good, r.n) for r in point] == [(of - touched, of), (touched, of)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (band("task_completion"), "only the human-intervention rate has a floor"),
        (band(floor="0.2"), "not below the ceiling"),
        (band(floor="2"), "no probability"),
        (band().replace("agent-slo/settle-delay: 0s", "agent-slo/per: tool"), "'tool' is no dimension"),
    ],
)
def test_a_band_that_makes_no_sense_is_refused(text: str, words: str) -> None:
    with pytest.raises(OpenSLOError, match=words):
        load(text)


def test_a_split_composite_is_refused() -> None:
    text = band().replace('agent-slo/intervention-floor: "0.02"', "agent-slo/per: agent")
    text = text.replace("  indicatorRef: hands-off\n", "").replace(
        "ceiling,", "ceiling, indicatorRef: hands-off,"
    )
    with pytest.raises(OpenSLOError, match="split by agent"):
        load(text)


def test_a_floor_and_its_ceiling_cover_every_task(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(*[event(ago(minutes=i + 1), "bad" if i % 3 else "good", sli="human_intervention") for i in range(30)])
    ceiling, floor = evaluate(con, load(band()), AS_OF)
    assert ceiling.good + floor.good == ceiling.n == floor.n
    assert floor.target == float(Decimal("0.02"))
