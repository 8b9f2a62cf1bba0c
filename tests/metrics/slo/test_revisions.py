"""A new target does not rewrite what was promised before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import duckdb
import pytest

from metrics.slo.history import histories
from metrics.slo.objective import Objective, SloWindow
from metrics.slo.revisions import RevisionError, as_it_was, note_revisions, read_revisions, revise
from metrics.slo.windows import parse_duration
from tests.metrics.slo.conftest import AS_OF, ago, event, objective

Add = Callable[..., None]


def with_target(target: str, one: Objective | None = None) -> Objective:
    return replace(one or objective(), target=Decimal(target))


def targets(con: duckdb.DuckDBPyConnection, one: Objective, points: int = 5) -> list[float]:
    return [p.target for p in histories(con, [one], AS_OF, points=points, revisions=read_revisions(con))]


def test_the_first_definition_holds_since_ever(con: duckdb.DuckDBPyConnection) -> None:
    assert note_revisions(con, [with_target("0.9")], ago(days=2)) == 1
    assert note_revisions(con, [with_target("0.9")], ago(days=1)) == 0
    ((noted,),) = read_revisions(con).values()
    assert (noted.since, noted.target) == (None, Decimal("0.9"))
    assert targets(con, with_target("0.9")) == [0.9] * 5


def test_points_keep_the_target_they_had(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(*[event(ago(days=d, hours=1), "bad" if d % 10 == 0 else "good") for d in range(40)])
    note_revisions(con, [with_target("0.8")], ago(days=9))
    note_revisions(con, [with_target("0.95")], ago(days=2, hours=1))
    now = with_target("0.95")
    assert targets(con, now) == [0.8, 0.8, 0.95, 0.95, 0.95]
    points = histories(con, [now], AS_OF, points=5, revisions=read_revisions(con))
    for point in points:
        assert point.remaining == pytest.approx(1 - (point.bad / point.n) / (1 - point.target))
    assert [p.revision for p in points] == [with_target(str(p.target)).revision for p in points]


def test_parts_keep_it_too(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(*[event(ago(days=d, hours=1), "good", agent="a [b]") for d in range(9)])
    whole = objective(per=("agent",))
    note_revisions(con, [with_target("0.8", whole)], ago(days=9))
    note_revisions(con, [with_target("0.95", whole)], ago(days=2, hours=1))
    part = with_target("0.95", whole).narrowed((("agent", "a [b]"),))
    assert part.base_key == whole.key
    assert targets(con, part) == [0.8, 0.8, 0.95, 0.95, 0.95]


def test_slices_keep_it_too(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(*[event(ago(days=d, hours=1), "good") for d in range(9)])
    for method in ("Timeslices", "RatioTimeslices"):
        one = objective(slo=method, method=method, slice_target=Decimal("0.9"), slice_s=3600)
        note_revisions(con, [with_target("0.8", one)], ago(days=9))
        note_revisions(con, [with_target("0.95", one)], ago(days=2, hours=1))
        assert targets(con, with_target("0.95", one)) == [0.8, 0.8, 0.95, 0.95, 0.95]


def test_what_is_defined_otherwise_is_shown_under_todays_definition(con: duckdb.DuckDBPyConnection) -> None:
    before = replace(with_target("0.8"), window=SloWindow(parse_duration("7d")))
    note_revisions(con, [before], ago(days=9))
    note_revisions(con, [with_target("0.95")], ago(days=2))
    assert targets(con, with_target("0.95")) == [0.95] * 5


def test_a_person_says_since_when(con: duckdb.DuckDBPyConnection) -> None:
    for target, days in (("0.8", 9), ("0.95", 1)):
        note_revisions(con, [with_target(target)], ago(days=days))
    assert revise(con, AS_OF, slo="completion", objective=None, since=ago(days=3), reason="agreed") == [
        ("completion", "o")
    ]
    assert targets(con, with_target("0.95")) == [0.8, 0.95, 0.95, 0.95, 0.95]
    revise(con, AS_OF, slo="completion", objective="o", since=ago(days=400), reason="always meant so")
    assert targets(con, with_target("0.95")) == [0.95] * 5
    (rows,) = con.execute("SELECT count(*) FROM core.slo_revisions").fetchall()
    assert rows == (4,)
    # what a person said is no change of the file
    assert note_revisions(con, [with_target("0.95")], AS_OF) == 0


def test_back_to_an_earlier_target_is_a_change_of_its_own(con: duckdb.DuckDBPyConnection) -> None:
    for target, days in (("0.8", 9), ("0.95", 3), ("0.8", 1)):
        note_revisions(con, [with_target(target)], ago(days=days, minutes=1))
    assert targets(con, with_target("0.8")) == [0.8, 0.95, 0.95, 0.8, 0.8]


def test_without_notes_it_is_todays(con: duckdb.DuckDBPyConnection) -> None:
    one = with_target("0.9")
    assert as_it_was(one, AS_OF, {}) == one


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"slo": "nothing"}, "no SLO 'nothing' is evaluated; there are completion"),
        ({"objective": "x"}, "no objective 'x' of 'completion' is evaluated; there are o"),
        ({"since": ago(days=-1)}, "cannot hold from the future"),
    ],
)
def test_what_cannot_be_revised(con: duckdb.DuckDBPyConnection, given: dict[str, object], words: str) -> None:
    note_revisions(con, [with_target("0.9")], ago(days=2))
    said = {"slo": "completion", "objective": None, "since": ago(days=1), "reason": "r", **given}
    with pytest.raises(RevisionError, match=words):
        revise(con, AS_OF, **said)  # type: ignore[arg-type]
