"""Prometheus text, counters that never fall, and rules with Sloth's names."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal

import duckdb
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.openslo import default_objectives
from metrics.slo.counters import advance, read_counters, write_counters
from metrics.slo.evaluate import evaluate
from metrics.slo.exposition import FAMILIES, exposition
from metrics.slo.objective import SloWindow, UnknownPolicy
from metrics.slo.rules import rule_file
from metrics.slo.windows import parse_duration
from tests.metrics.slo.conftest import AS_OF, EVENTS, TASKS, ago, event, insert, objective

Add = Callable[..., None]
SAMPLE = re.compile(r'^([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*\})? (-?[0-9.e+-]+)$')


def samples(text: str) -> dict[tuple[str, str], float]:
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SAMPLE.match(line)
            assert match, line
            found[match[1], match[2] or ""] = float(match[3])
    return found


def test_text_is_well_formed_and_every_family_is_explained(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    add(
        *[
            event(ago(hours=i + 1), "bad" if i == 3 else "good", agent='a "quoted"\nname\\')
            for i in range(30)
        ],
        *[event(ago(hours=i + 1), "good", agent="b") for i in range(10)],
    )
    given_objectives = [objective(per=("agent",))]
    rows = evaluate(con, given_objectives, AS_OF)
    counters = advance(con, {}, given_objectives, AS_OF)
    text = exposition(rows, counters, AS_OF)
    found = samples(text)
    assert {name for name, _ in found} == set(FAMILIES)
    for name, (kind, words) in FAMILIES.items():
        assert f"# HELP {name} {words}\n# TYPE {name} {kind}\n" in text
    whole = '{slo="completion",objective="o",agent="",task_type=""}'
    assert found["agent_slo_sli_ratio", whole] == 39 / 40
    assert found["agent_slo_events_total", whole[:-1] + ',outcome="bad"}'] == 1
    assert found["agent_slo_burn_rate", whole[:-1] + ',window="period"}'] == 0.25
    assert any('agent="a \\"quoted\\"\\nname\\\\"' in labels for _, labels in found)


def test_the_unknown_has_no_sample(con: duckdb.DuckDBPyConnection) -> None:
    rows = evaluate(con, [objective()], AS_OF)
    names = {name for name, _ in samples(exposition(rows, [], AS_OF))}
    assert names == {
        "agent_slo_objective_ratio",
        "agent_slo_state",
        "agent_slo_slo_info",
        "agent_slo_evaluation_timestamp_seconds",
    }
    assert exposition([], [], None) == ""


def test_counters_survive_in_a_table(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    one = objective()
    add(event(ago(hours=2), "good"), event(ago(hours=1), "bad"))
    write_counters(con, advance(con, read_counters(con), [one], ago(minutes=30)))
    add(event(ago(minutes=10), "good"))
    write_counters(con, advance(con, read_counters(con), [one], AS_OF))
    (row,) = read_counters(con).values()
    assert (row.good, row.bad, row.counted_until) == (2, 1, AS_OF)
    again = advance(con, read_counters(con), [one], ago(minutes=5))
    assert again == [row]


def test_an_unknown_event_counts_again_when_it_turns_bad(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    one = objective(unknown=UnknownPolicy("bad-after", 3600))
    add(event(ago(minutes=90), "unknown"))
    first = advance(con, {}, [one], ago(minutes=60))
    assert (first[0].unknown, first[0].bad) == (1, 0)
    second = advance(con, {r.key: r for r in first}, [one], AS_OF)
    assert (second[0].unknown, second[0].bad) == (1, 1)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 200), st.sampled_from(["good", "bad", "unknown", "excluded"])), max_size=20
    ),
    st.lists(st.integers(1, 60), min_size=1, max_size=4),
)
def test_counters_do_not_depend_on_when_they_are_read(
    events: list[tuple[int, str]], steps: list[int]
) -> None:
    """Advancing in any steps counts what one step counts, and nothing ever falls."""
    con = duckdb.connect(":memory:")
    con.execute(EVENTS)
    con.execute(TASKS)
    start = datetime(2026, 11, 1)
    insert(con, "sli_events", [event(start + timedelta(minutes=m), v) for m, v in events])
    one = objective(
        unknown=UnknownPolicy("bad-after", 1800), window=SloWindow(parse_duration("1d")), settle_s=60
    )
    begin = start - timedelta(minutes=1)
    state = {r.key: r for r in advance(con, {}, [one], begin)}
    now = begin
    for step in steps:
        now += timedelta(minutes=step)
        grown = {r.key: r for r in advance(con, state, [one], now)}
        for key, old in state.items():
            for name in ("good", "bad", "unknown", "excluded"):
                assert getattr(grown[key], name) >= getattr(old, name)
        state = grown
    whole = advance(con, {r.key: r for r in advance(con, {}, [one], begin)}, [one], now)
    assert list(state.values()) == whole
    con.close()


def test_rules_have_the_names_dashboards_made_for_sloth_ask_for() -> None:
    text = rule_file([objective(slo="done", service="refunds", target=Decimal("0.99"))])
    groups = yaml.safe_load(text)["groups"]
    rules = {r["record"]: r for g in groups for r in g["rules"]}
    errors = {f"slo:sli_error:ratio_rate{w}" for w in ("5m", "30m", "1h", "2h", "6h", "1d", "3d", "28d")}
    meta = {
        "slo:objective:ratio",
        "slo:error_budget:ratio",
        "slo:time_period:days",
        "slo:current_burn_rate:ratio",
        "slo:period_burn_rate:ratio",
        "slo:period_error_budget_remaining:ratio",
        "sloth_slo_info",
    }
    assert set(rules) == errors | meta
    identity = {"sloth_id": "refunds-done", "sloth_service": "refunds", "sloth_slo": "done"}
    for name, rule in rules.items():
        assert identity.items() <= rule["labels"].items()
        if name in errors:
            assert rule["labels"]["sloth_window"] == name.removeprefix("slo:sli_error:ratio_rate")
    assert rules["slo:error_budget:ratio"]["expr"] == "vector(0.01)"
    assert rules["slo:sli_error:ratio_rate28d"]["expr"].endswith("* 0.01")


def test_rules_ask_only_for_metrics_we_expose() -> None:
    text = rule_file(default_objectives())
    assert set(re.findall(r"\bagent_slo_[a-z_]+", text)) <= set(FAMILIES)
    groups = yaml.safe_load(text)["groups"]
    assert len({g["name"] for g in groups}) == len(groups)


def test_objectives_of_one_slo_are_told_apart() -> None:
    groups = yaml.safe_load(rule_file([objective(), objective(objective="Other one")]))["groups"]
    assert {r["labels"]["sloth_id"] for g in groups for r in g["rules"]} == {
        "s-completion-o",
        "s-completion-other-one",
    }


def test_parts_are_counted_beside_the_whole(con: duckdb.DuckDBPyConnection, add: Add) -> None:
    one = objective(per=("agent",))
    add(event(ago(hours=2), "good", agent="a"), event(ago(hours=2), "bad", agent="b"))
    first = advance(con, {}, [one], ago(hours=1))
    assert {r.agent: (r.good, r.bad) for r in first} == {None: (1, 1), "a": (1, 0), "b": (0, 1)}
    add(event(ago(minutes=5), "good", agent="a"), event(ago(minutes=5), "unknown", agent="c"))
    second = advance(con, {r.key: r for r in first}, [one], AS_OF)
    assert {r.agent: (r.good, r.bad, r.unknown) for r in second} == {
        None: (2, 1, 1),
        "a": (2, 0, 0),
        "b": (0, 1, 0),
        "c": (0, 0, 1),
    }
    assert {r.counted_until for r in second} == {AS_OF}
    gone = advance(con, {r.key: r for r in second}, [objective(slo="another")], AS_OF)
    assert [r.slo for r in gone] == ["another"]
