"""What is usual is measured on the days before, and hangs on what those days hold, never on when it arrived."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from metrics.settings import MetricsSettings
from tests.metrics.bench import PUBLIC, Bench, at, bench, request, span

# Passes over sixty SQL files each: minutes on a busy machine.
pytestmark = pytest.mark.timeout(900)

DAY = 86_400
FEW = MetricsSettings.model_validate(
    {
        "detectors": {
            "hung_multiple": 10,
            "hung_floor": "1s",
            "runaway_multiple": 10,
            "baseline": {"days": 3, "calls": 4, "tasks": 3},
            "retry": {"synchronised_tasks": 3},
        }
    }
)


def task(number: int, day: int, seconds: float, cost: float = 0.01) -> dict[str, Any]:
    """One task of one read and one model call, some seconds into a day."""
    trace, start = f"usual-{number}", day * DAY + number * 600
    return request(
        [
            span(trace, "invoke_agent clerk", start, start + seconds + 3, gen_ai__operation__name="invoke_agent",
                 gen_ai__agent__name="clerk", gen_ai__conversation__id=trace),
            span(trace, "execute_tool find_page", start + 1, start + 1 + seconds, f"invoke_agent clerk@{start}",
                 gen_ai__operation__name="execute_tool", gen_ai__tool__name="find_page",
                 gen_ai__tool__call__arguments={"page": number}, gen_ai__tool__call__result=f"page {number}"),
            span(trace, "chat small", start + 1 + seconds, start + 2 + seconds, f"invoke_agent clerk@{start}",
                 gen_ai__operation__name="chat", gen_ai__request__model="small", gen_ai__usage__input_tokens=10,
                 gen_ai__usage__output_tokens=5, gen_ai__usage__cost=cost,
                 gen_ai__response__finish_reasons=["stop"]),
        ]
    )  # fmt: skip


def retried(number: int, second: float) -> dict[str, Any]:
    """A task whose client tries a refused call again, the second try at a given moment."""
    trace = f"crowd-{number}"
    spans = [
        span(trace, "invoke_agent clerk", 0, second + 9, gen_ai__operation__name="invoke_agent",
             gen_ai__agent__name="clerk", gen_ai__conversation__id=trace)
    ]  # fmt: skip
    for attempt, start, error in ((1, second - 5, "429"), (2, second, None)):
        spans.append(
            span(trace, "execute_tool add_row", start, start + 0.1, "invoke_agent clerk@0", error=error,
                 gen_ai__operation__name="execute_tool", gen_ai__tool__name="add_row",
                 gen_ai__tool__call__id="c1", gen_ai__tool__call__arguments={"row": number},
                 agent_slo__action__attempt=attempt)
        )  # fmt: skip
    return request(spans)


def kinds(one: Bench) -> set[str]:
    return {row["kind"] for row in one.rows("SELECT kind FROM core.findings")}


def everything(one: Bench) -> dict[str, list[tuple[Any, ...]]]:
    return {name: one.view(name, without=("revision", "found_at")) for name in PUBLIC}


def test_a_call_far_above_the_days_before_is_hung_and_the_same_call_on_the_first_day_is_not(
    tmp_path: Path,
) -> None:
    with bench(tmp_path / "first", FEW) as one:
        one.send([task(n, 0, 0.5) for n in range(5)] + [task(9, 0, 60)]).derive(at(9 * DAY))
        assert "hung_call" not in kinds(one)
    with bench(tmp_path / "second", FEW) as one:
        one.send([task(n, 0, 0.5) for n in range(5)] + [task(9, 1, 60)]).derive(at(9 * DAY))
        (found,) = one.rows("SELECT * FROM core.findings WHERE kind = 'hung_call'")
        assert (found["rule"], len(found["evidence"])) == ("time_limit.baseline", 1)


def test_a_task_far_above_the_usual_cost_runs_away(tmp_path: Path) -> None:
    with bench(tmp_path, FEW) as one:
        one.send([task(n, 0, 0.5) for n in range(3)] + [task(9, 1, 0.5, cost=5.0), task(10, 1, 0.5)])
        one.derive(at(9 * DAY))
        (found,) = one.rows("SELECT * FROM core.findings WHERE kind = 'runaway_cost'")
        assert found["rule"] == "cost.above_baseline"
        assert "5.00 USD" in found["detail"]


def test_late_spans_of_an_earlier_day_decide_a_kept_task_again(tmp_path: Path) -> None:
    """The slow call arrives first: there is nothing to hold it against until the day before is known."""
    with bench(tmp_path, FEW) as one:
        one.send([task(9, 1, 60)]).derive(at(9 * DAY))
        assert "hung_call" not in kinds(one)
        one.send([task(n, 0, 0.5) for n in range(5)]).derive(at(9 * DAY))
        assert "hung_call" in kinds(one)


def test_the_last_of_a_crowd_makes_all_of_it_synchronised(tmp_path: Path) -> None:
    with bench(tmp_path, FEW) as one:
        one.send([retried(1, 40.2), retried(2, 40.4)]).derive(at(DAY))
        assert "synchronised" not in kinds(one)
        one.send([retried(3, 40.9), retried(4, 41.1)]).derive(at(DAY))
        rows = one.rows("SELECT task_id FROM core.findings WHERE kind = 'synchronised'")
        assert len(rows) == 3


@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_no_verdict_hangs_on_the_order_of_arrival(data: st.DataObject) -> None:
    seconds = st.sampled_from([40.2, 40.8, 41.5])
    requests = [
        task(n, data.draw(st.integers(0, 5)), data.draw(st.sampled_from([0.2, 0.5, 3.0, 30.0, 70.0])),
             data.draw(st.sampled_from([0.01, 0.02, 1.0])))
        for n in range(data.draw(st.integers(8, 14)))
    ]  # fmt: skip
    requests += [retried(n, data.draw(seconds)) for n in range(data.draw(st.integers(2, 5)))]
    order = data.draw(st.permutations(requests))
    with tempfile.TemporaryDirectory() as folder, bench(Path(folder), FEW) as one:
        while order:
            size = data.draw(st.integers(1, len(order)))
            batch, order = order[:size], order[size:]
            one.send(batch).derive(at(20 * DAY) - timedelta(minutes=data.draw(st.integers(0, 20_000))))
        one.derive(at(20 * DAY))
        got = everything(one)
        one.deriver.rebuild(at(20 * DAY))
        assert everything(one) == got
    with tempfile.TemporaryDirectory() as folder, bench(Path(folder), FEW) as one:
        assert everything(one.send(requests).derive(at(20 * DAY))) == got
