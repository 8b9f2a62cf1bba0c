from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.slo.predicate import (
    EVENT_COLUMNS,
    TASK_COLUMNS,
    TRUE,
    All,
    Any_,
    Compare,
    Flag,
    In,
    IsNull,
    Not,
    PredicateError,
    SqlWriter,
    columns_of,
    parse,
)


def test_forms() -> None:
    tree = parse(
        "eligible AND (agent = 'a''b' OR NOT outcome IN ('failed', 'lost')) and cost_usd IS NOT NULL",
        TASK_COLUMNS,
    )
    assert tree == All(
        (
            Flag("eligible"),
            Any_((Compare("agent", "=", "a'b"), Not(In("outcome", ("failed", "lost"), False)))),
            IsNull("cost_usd", True),
        )
    )
    assert columns_of(tree) == {"eligible", "agent", "outcome", "cost_usd"}
    assert parse("  ", TASK_COLUMNS) == TRUE
    assert parse("wall_s <> -1.5", TASK_COLUMNS) == Compare("wall_s", "!=", -1.5)
    assert parse("autonomous = false", TASK_COLUMNS) == Compare("autonomous", "=", False)


def test_and_binds_closer_than_or() -> None:
    tree = parse("agent = 'a' OR agent = 'b' AND service = 's'", EVENT_COLUMNS)
    assert tree == Any_(
        (Compare("agent", "=", "a"), All((Compare("agent", "=", "b"), Compare("service", "=", "s"))))
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agnt = 'a'", "did you mean agent"),
        ("outcome = 'failed'", "unknown column outcome"),
        ("agent = 3", "text in single quotes"),
        ('agent = "a"', "unexpected '\"'"),
        ("agent = 'a' AND", "a column expected"),
        ("agent", "a comparison with agent expected"),
        ("agent = 'a' OR OR agent = 'b'", "a column expected"),
        ("(agent = 'a'", ") expected"),
        ("agent NOT = 'a'", "IN expected"),
        ("agent IN ()", "text in single quotes"),
        ("agent = 'a'; DROP TABLE tasks", "unexpected ';'"),
        ("agent = 'a' -- comment", "unexpected '-'"),
        ("agent = (SELECT 'a')", "text in single quotes"),
        ("lower(agent) = 'a'", "unknown column lower"),
        ("1 = 1", "a column expected"),
        ("agent = 'a' agent = 'b'", "AND, OR or the end"),
        ("(" * 60 + "agent = 'a'" + ")" * 60, "nests deeper"),
        ("agent = '" + "x" * 5000 + "'", "longer than"),
    ],
)
def test_anything_else_is_an_error(text: str, said: str) -> None:
    with pytest.raises(PredicateError) as caught:
        parse(text, EVENT_COLUMNS)
    assert said in str(caught.value)


def test_types_of_task_columns() -> None:
    for text in ("interventions = 'none'", "eligible > true", "cost_usd = true"):
        with pytest.raises(PredicateError):
            parse(text, TASK_COLUMNS)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        known = columns_of(parse(text, TASK_COLUMNS))
    except PredicateError as error:
        known = frozenset() if error.problem and error.remedy else frozenset({"an error that says nothing"})
    assert known <= TASK_COLUMNS.keys()


@given(st.text(max_size=30))
def test_literals_are_never_sql(value: str) -> None:
    writer = SqlWriter("p")
    quoted = value.replace("'", "''")
    sql = writer.write(parse(f"agent = '{quoted}'", EVENT_COLUMNS))
    assert sql == '"agent" = $p0'
    assert writer.params == {"p0": value}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("outcome = 'completed'", [True, False, None]),
        ("outcome IS NULL", [False, False, True]),
        ("outcome = 'unknown'", [False, False, True]),
        ("NOT outcome IN ('failed')", [True, False, None]),
        ("cost_usd <= 1", [True, None, True]),
        ("eligible AND interventions = 0", [True, False, True]),
    ],
)
def test_what_the_sql_means(text: str, matches: list[bool | None]) -> None:
    writer = SqlWriter("p")
    sql = writer.write(parse(text, TASK_COLUMNS))
    rows = duckdb.execute(
        f"""SELECT {sql} FROM (VALUES
            (1, 'completed', 0.5, TRUE, TRUE, 0),
            (2, 'failed', 0.5, FALSE, TRUE, 2),
            (3, 'unknown', 1.0, TRUE, TRUE, 0)
        ) t(i, outcome, cost_usd, cost_complete, eligible, interventions) ORDER BY i""",
        writer.params,
    ).fetchall()
    assert [r[0] for r in rows] == matches


def test_assuming_eligible() -> None:
    writer = SqlWriter("p", assume={"eligible": True})
    assert writer.write(parse("eligible", TASK_COLUMNS)) == "TRUE"
    assert writer.write(parse("eligible = false", TASK_COLUMNS)) == "FALSE"
    assert writer.write(parse("eligible != false", TASK_COLUMNS)) == "TRUE"
    with pytest.raises(ValueError, match="cannot be measured"):
        writer.value("agent")
