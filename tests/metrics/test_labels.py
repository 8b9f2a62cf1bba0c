"""Was a human needed? Labels from configuration, trace and people, and what objectives make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from metrics.labels import add_label
from metrics.settings import MetricsSettings
from metrics.slo.confidence import wilson
from tests.metrics.bench import Bench, at, bench, request, span

Span = dict[str, Any]
LATER = at(86_400)
TOOLS = {"pay": {"effect": "write"}, "ask_boss": {"effect": "escalate"}}


def settings(**policies: Any) -> MetricsSettings:
    return MetricsSettings.model_validate({"tools": TOOLS, "policies": policies})


def task(name: str, *, asks: bool = False, amount: int = 10, **on_root: Any) -> list[Span]:
    """One finished task in a trace of its own; `asks`: it calls the tool that asks a human."""
    root = span(
        name, "invoke_agent clerk", 0, 60, id="root", gen_ai__operation__name="invoke_agent",
        gen_ai__agent__name="clerk", agent_slo__task__id=name, agent_slo__task__outcome="completed", **on_root,
    )  # fmt: skip
    tool: dict[str, Any] = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__call__result": "done"}
    pay = span(
        name, "execute_tool pay", 1, 2, "root", gen_ai__tool__name="pay",
        gen_ai__tool__call__arguments=f'{{"amount": {amount}, "to": "{name}"}}', **tool,
    )  # fmt: skip
    ask = span(name, "execute_tool ask_boss", 3, 9, "root", gen_ai__tool__name="ask_boss", **tool)
    return [root, pay, *([ask] if asks else [])]


def later(one: Span, seconds: int) -> Span:
    """Start and end of a span, moved."""
    return {k: str(int(one[k]) + seconds * 10**9) for k in ("startTimeUnixNano", "endTimeUnixNano")}


def look(one: Bench, sql: str) -> list[dict[str, Any]]:
    """Rows of views, on a connection of its own: the deriver's has the rows of its last pass under the same names."""
    con = one.store.derivation()
    try:
        found = con.execute(sql)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    finally:
        con.close()


def verdicts(one: Bench) -> dict[str, tuple[str, str | None]]:
    return {r["task_id"]: (r["verdict"], r["source"]) for r in look(one, "SELECT * FROM core.human_labels")}


def events(one: Bench) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {"escalation_precision": {}, "escalation_recall": {}}
    for row in one.rows("SELECT * FROM core.sli_events WHERE sli LIKE 'escalation_%'"):
        found[row["sli"]][row["task_id"]] = row["verdict"]
    return found


def label(one: Bench, task_id: str, needed: bool | None, **more: str) -> None:
    add_label(one.con, at(100_000), task_id=task_id, needed=needed, **more)


def test_without_a_label_whether_a_human_was_needed_is_unknown(tmp_path: Path) -> None:
    with bench(tmp_path, settings()) as one:
        one.send([request([*task("asked", asks=True), *task("alone")])]).derive(LATER)
        assert verdicts(one) == {"asked": ("unknown", None)}
        assert events(one) == {"escalation_precision": {"asked": "unknown"}, "escalation_recall": {}}
        (row,) = look(one, "SELECT * FROM core.escalation_quality WHERE days = 28")
    assert (row["tasks"], row["asked"], row["labelled"], row["label_coverage"]) == (2, 1, 0, 0)
    assert row["asked_coverage"] == 0
    assert row["precision"] is row["precision_lower"] is row["recall"] is row["recall_upper"] is None


def test_the_configuration_says_who_needs_a_human(tmp_path: Path) -> None:
    rules = [
        {"tool": "pay", "above": {"amount": 500}},
        {"task_type": "chat*", "needed": False},
    ]
    sent = [
        *task("large_alone", amount=900),
        *task("large_asked", asks=True, amount=900),
        *task("small_asked", asks=True),
        *task("chat_asked", asks=True, agent_slo__task__type="chatter"),
        # the first rule that fits decides
        *task("chat_large", amount=900, agent_slo__task__type="chatter"),
    ]
    with bench(tmp_path, settings(escalations=rules)) as one:
        one.send([request(sent)]).derive(LATER)
        assert verdicts(one) == {
            "large_alone": ("missed", "configured"),
            "large_asked": ("needed", "configured"),
            "small_asked": ("unknown", None),
            "chat_asked": ("not_needed", "configured"),
            "chat_large": ("missed", "configured"),
        }
        assert events(one)["escalation_precision"] == {
            "large_asked": "good",
            "small_asked": "unknown",
            "chat_asked": "bad",
        }
        assert events(one)["escalation_recall"] == {
            "large_alone": "bad",
            "large_asked": "good",
            "chat_large": "bad",
        }
        (row,) = look(one, "SELECT note FROM core.human_labels WHERE task_id = 'large_alone'")
    assert row["note"] == "pay: amount 900 is above 500.0"


def test_what_needs_an_approval_needs_a_human(tmp_path: Path) -> None:
    policy = settings(approvals=[{"tool": "pay", "above": {"amount": 500}}])
    with bench(tmp_path, policy) as one:
        one.send([request([*task("large", amount=501), *task("small")])]).derive(LATER)
        assert verdicts(one) == {"large": ("missed", "configured")}


def test_the_trace_states_it_before_the_configuration(tmp_path: Path) -> None:
    rules = settings(escalations=[{"agent": "clerk", "needed": False}])
    sent = [
        *task("asked_the_boss", asks=True, agent_slo__human__required_level="boss"),
        *task("should_have_asked", agent_slo__human__required_level="boss"),
        *task("need_not_have", asks=True, agent_slo__human__required_level="None"),
        *task("left", asks=True),
    ]
    with bench(tmp_path, rules) as one:
        one.send([request(sent)]).derive(LATER)
        assert verdicts(one) == {
            "asked_the_boss": ("needed", "stated"),
            "should_have_asked": ("missed", "stated"),
            "need_not_have": ("not_needed", "stated"),
            "left": ("not_needed", "configured"),
        }


def test_a_persons_last_word_stands_and_survives_a_rebuild(tmp_path: Path) -> None:
    with bench(tmp_path, settings(escalations=[{"agent": "clerk", "needed": False}])) as one:
        one.send([request([*task("a", asks=True), *task("b")])]).derive(LATER)
        assert events(one)["escalation_precision"] == {"a": "bad"}
        label(one, "a", False, note="first look")
        label(one, "a", True, note="the order was not his", said_by="reviewer")
        label(one, "b", None)
        # shown before the next pass, counted by it
        assert verdicts(one) == {"a": ("needed", "person"), "b": ("unknown", "person")}
        assert events(one)["escalation_precision"] == {"a": "bad"}
        one.derive(at(100_001))
        assert events(one) == {"escalation_precision": {"a": "good"}, "escalation_recall": {"a": "good"}}
        before = look(one, "SELECT * FROM core.human_labels ORDER BY task_id")
        assert [r["note"] for r in look(one, "SELECT note FROM core.human_labels WHERE task_id = 'a'")] == [
            "the order was not his"
        ]
        (kept,) = one.rows("SELECT count(*) AS n FROM core.label_log")
        assert kept["n"] == 3
        one.deriver.rebuild(at(100_002))
        assert look(one, "SELECT * FROM core.human_labels ORDER BY task_id") == before
        assert events(one) == {"escalation_precision": {"a": "good"}, "escalation_recall": {"a": "good"}}


def test_a_verdict_that_a_label_changed_says_so(tmp_path: Path) -> None:
    with bench(tmp_path, settings(escalations=[{"agent": "clerk", "needed": False}])) as one:
        one.send([request(task("a", asks=True))]).derive(LATER)
        (passed,) = one.rows("SELECT last_pass_at FROM core.pipeline")
        add_label(one.con, passed["last_pass_at"], task_id="a", needed=True)
        one.derive(at(100_001))
        changed = one.rows("SELECT sli, from_verdict, to_verdict, cause FROM core.revisions")
    assert changed == [
        {"sli": "escalation_precision", "from_verdict": "bad", "to_verdict": "good", "cause": "label"}
    ]


def test_a_pass_decides_by_every_label_once(tmp_path: Path) -> None:
    with bench(tmp_path, settings()) as one:
        one.send([request([*task("a", asks=True), *task("b", asks=True)])]).derive(LATER)
        label(one, "a", True)
        assert one.deriver.run(at(100_001)).tasks == 1
        assert one.deriver.run(at(100_002)).tasks == 0
        label(one, "b", False)
        assert one.deriver.run(at(100_003)).tasks == 1
        assert events(one)["escalation_precision"] == {"a": "good", "b": "bad"}


def test_precision_and_recall_with_their_coverage_and_intervals(tmp_path: Path) -> None:
    sent: list[Span] = []
    for i in range(20):
        sent += task(f"asked-{i}", asks=True)
    for i in range(10):
        sent += task(f"alone-{i}")
    with bench(tmp_path, settings()) as one:
        one.send([request(sent)]).derive(LATER)
        for i in range(10):
            label(one, f"asked-{i}", i < 7)
        for i in range(3):
            label(one, f"alone-{i}", i < 2)
        one.derive(at(100_001))
        (row,) = look(one, "SELECT * FROM core.escalation_quality WHERE days = 7")
    assert (row["tasks"], row["asked"], row["labelled"], row["labelled_asked"]) == (30, 20, 13, 10)
    assert (row["label_coverage"], row["asked_coverage"]) == (pytest.approx(13 / 30), 0.5)
    assert (row["needed"], row["needed_asked"], row["missed"]) == (9, 7, 2)
    assert (row["precision"], row["recall"]) == (pytest.approx(0.7), pytest.approx(7 / 9))
    assert (row["precision_lower"], row["precision_upper"]) == pytest.approx(wilson(7, 10))
    assert (row["recall_lower"], row["recall_upper"]) == pytest.approx(wilson(7, 9))


def test_a_longer_window_holds_the_shorter_ones(tmp_path: Path) -> None:
    old = [{**s, **later(s, -10 * 86_400)} for s in task("old", asks=True)]
    with bench(tmp_path, settings()) as one:
        one.send([request([*old, *task("new", asks=True)])]).derive(LATER)
        rows = look(one, "SELECT days, tasks, asked FROM core.escalation_quality ORDER BY days")
    assert [(r["days"], r["tasks"], r["asked"]) for r in rows] == [(7, 1, 1), (28, 2, 2), (90, 2, 2)]


@pytest.mark.parametrize(("needed", "n"), [(0, 6), (6, 6), (1, 1), (0, 1)])
def test_intervals_stay_between_nothing_and_all(tmp_path: Path, needed: int, n: int) -> None:
    with bench(tmp_path, settings()) as one:
        one.send([request([s for i in range(n) for s in task(f"t{i}", asks=True)])]).derive(LATER)
        for i in range(n):
            label(one, f"t{i}", i < needed)
        one.derive(at(100_001))
        (row,) = look(
            one, "SELECT precision_lower, precision_upper FROM core.escalation_quality WHERE days = 7"
        )
    assert (row["precision_lower"], row["precision_upper"]) == pytest.approx(wilson(needed, n))


def test_a_label_of_no_task_is_refused(tmp_path: Path) -> None:
    with bench(tmp_path, settings()) as one:
        with pytest.raises(ValueError, match="no task 'x' is derived"):
            add_label(one.con, LATER, task_id="x", needed=True)
        assert one.rows("SELECT * FROM core.label_log") == []


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({}, "says of no task"),
        ({"agent": "a", "above": {"amount": 5}}, "thresholds are for the arguments of a tool"),
        ({"agent": "a", "need": True}, "Extra inputs"),
    ],
)
def test_rules_that_say_nothing_are_refused(rule: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        settings(escalations=[rule])
