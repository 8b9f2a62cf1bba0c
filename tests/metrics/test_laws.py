"""Laws of the derivation: when, in what order and how often spans arrive changes nothing."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.metrics import worlds
from tests.metrics.bench import PUBLIC, Bench, ListPrices, bench

# What depends on the history of passes by definition: how often a verdict changed, and when a finding was first seen.
HISTORY = ("revision", "found_at")
# A second delivery of a span is counted, and counted only here.
DELIVERIES = ("telemetry_duplicates", "deliveries")

# Dozens of passes over sixty SQL files each: minutes on a busy machine.
pytestmark = pytest.mark.timeout(900)

# An example opens two stores and runs several passes, so a failing one is shown as it is and not made smaller.
_laws = settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def some_spans(draw: st.DrawFn) -> list[worlds.Span]:
    """The spans of two to five tasks of different stories, in the order of delivery."""
    stories = draw(
        st.lists(st.sampled_from(sorted(worlds.tasks_by_story())), min_size=2, max_size=5, unique=True)
    )
    spans: list[worlds.Span] = []
    for story in stories:
        for trace in draw(st.sampled_from(worlds.tasks_by_story()[story])):
            spans += worlds.spans_by_trace()[trace]
    return spans


def everything(one: Bench, without: tuple[str, ...] = HISTORY) -> dict[str, list[tuple[Any, ...]]]:
    return {name: one.view(name, without=without) for name in PUBLIC}


def from_scratch(
    spans: list[worlds.Span], without: tuple[str, ...] = HISTORY
) -> dict[str, list[tuple[Any, ...]]]:
    with tempfile.TemporaryDirectory() as folder, bench(Path(folder), worlds.settings(), ListPrices()) as one:
        return everything(one.send(spans).derive(worlds.end()), without)


@_laws
@given(data=st.data())
def test_incremental_passes_equal_one_from_scratch(data: st.DataObject) -> None:
    spans = data.draw(some_spans())
    order = data.draw(st.permutations(spans))
    with (
        tempfile.TemporaryDirectory() as folder,
        bench(Path(folder), worlds.settings(), ListPrices(), pass_spans=40) as one,
    ):
        size = max(1, len(order) // data.draw(st.integers(2, 5)))
        while order:
            batch, order = order[:size], order[size:]
            # passes in between decide at earlier moments, from what had arrived by then
            one.send(batch).derive(worlds.end() - timedelta(minutes=data.draw(st.integers(0, 40_000))))
        one.derive(worlds.end())
        got = everything(one)
        one.deriver.rebuild(worlds.end())
        again = everything(one)
    wanted = from_scratch(spans)
    assert got == wanted
    assert again == wanted


@_laws
@given(data=st.data())
def test_redelivery_changes_nothing(data: st.DataObject) -> None:
    spans = data.draw(some_spans())
    again = data.draw(st.lists(st.sampled_from(spans), max_size=30))
    order = data.draw(st.permutations(spans + again))
    assert from_scratch(order, HISTORY + DELIVERIES) == from_scratch(spans, HISTORY + DELIVERIES)


@_laws
@given(data=st.data())
def test_the_clock_alone_decides_due_tasks(data: st.DataObject) -> None:
    """A pass with nothing new at a later moment gives what deriving at that moment gives."""
    spans = data.draw(some_spans())
    with tempfile.TemporaryDirectory() as folder, bench(Path(folder), worlds.settings(), ListPrices()) as one:
        one.send(spans)
        for minutes in sorted(data.draw(st.lists(st.integers(0, 60_000), max_size=4)), reverse=True):
            one.derive(worlds.end() - timedelta(minutes=minutes))
        one.derive(worlds.end())
        assert everything(one) == from_scratch(spans)
