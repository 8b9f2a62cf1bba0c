"""The floor of the published accuracy, and that docs/accuracy.md says what the cases say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.score import KINDS, Score, kinds_without_a_case, lines, run
from tests.metrics.test_ground_truth import NOT_DERIVED

DOCUMENT = Path(__file__).parents[2] / "docs" / "accuracy.md"


@pytest.fixture(scope="module")
def score() -> Score:
    return run()


def test_no_look_alike_is_flagged_and_nothing_is_wrongly_completed(score: Score) -> None:
    assert score.traps >= 15
    assert score.trapped == []
    assert score.wrongly_completed == []


def test_duplicates_per_attempt(score: Score) -> None:
    found = score.attempts["unprotected"]
    assert found.precision is not None
    assert found.recall is not None
    assert found.precision >= 0.95
    assert found.recall >= 0.90
    for name in ("protected", "no_op", "compensated", "cause"):
        assert score.attempts[name].recall == 1.0, score.differences


@pytest.mark.parametrize("kind", KINDS)
def test_findings_per_case(score: Score, kind: str) -> None:
    found = score.findings[kind]
    assert found.precision is not None, f"no case raises {kind}"
    assert found.recall is not None
    assert found.precision >= 0.9, score.differences
    assert found.recall >= 0.9, score.differences


def test_nine_in_ten_cases_meet_every_label(score: Score) -> None:
    assert score.clean_cases >= 0.9 * score.cases, score.differences


def test_every_scored_kind_is_demanded_by_a_case() -> None:
    assert kinds_without_a_case() == []


def test_the_document_holds_the_table_of_this_version(score: Score) -> None:
    """`make accuracy` prints the table: paste it between the marks when a detector changed."""
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text.split("<!-- accuracy -->")[1].split("<!-- /accuracy -->")[0].strip()
    assert table == "\n".join(lines(score)).strip()


def test_the_document_names_what_is_not_derived() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert all(f"`{kind}`" in text for kind in NOT_DERIVED)
