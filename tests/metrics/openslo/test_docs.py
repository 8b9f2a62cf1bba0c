"""docs/objectives.md names what exists, and its examples are accepted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from metrics.openslo import load
from metrics.openslo.annotations import CONDITION_ANNOTATIONS, SLI_ANNOTATIONS, SLO_ANNOTATIONS
from metrics.prices import PriceOverride
from metrics.slo.arithmetic import account, unknown_bounds
from metrics.slo.confidence import p_met, wilson
from metrics.slo.objective import RATIO_SLIS, THRESHOLD_SLIS
from metrics.slo.predicate import TASK_COLUMNS, VALUE_COLUMNS

DOC = (Path(__file__).parents[3] / "docs" / "objectives.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", DOC, re.S)


@pytest.mark.parametrize("name", sorted({*SLO_ANNOTATIONS, *SLI_ANNOTATIONS, *CONDITION_ANNOTATIONS}))
def test_every_annotation_is_documented(name: str) -> None:
    assert f"| `agent-slo/{name}` |" in DOC


@pytest.mark.parametrize("name", sorted({*RATIO_SLIS, *THRESHOLD_SLIS, *TASK_COLUMNS, *VALUE_COLUMNS}))
def test_every_sli_and_column_is_documented(name: str) -> None:
    assert f"`{name}`" in DOC


def test_examples_are_accepted() -> None:
    objectives, prices = BLOCKS
    assert [o.slo for o in load(objectives)] == ["refund-completion"]
    overrides = [PriceOverride.model_validate(p) for p in yaml.safe_load(prices)["prices"]]
    assert len(overrides) == 3


def test_the_worked_example() -> None:
    result = account(970, 1000, "0.95")
    band = wilson(970, 1000)
    met = p_met(970, 1000, "0.95")
    assert band is not None
    assert met is not None
    assert result.remaining is not None
    _, worst, best = unknown_bounds(970, 30, 6)
    for number in (band[0], band[1], met, float(worst or 0), float(best or 0)):
        assert f"{number * 100:.1f} %" in DOC
    assert f"{float(result.remaining) * 100:.0f} % = {int(result.events_left)} tasks" in DOC
