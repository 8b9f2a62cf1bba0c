"""Every rule id that a SQL file can write has a sentence, and every sentence a rule."""

from __future__ import annotations

import re
from importlib.resources import files

from metrics.manifest import models
from metrics.reasons import reasons, sentence

_FAMILIES = (
    "task", "run", "join", "duplicate", "suspected", "action", "key", "retry", "loop", "approval", "false_success",
    "vanished", "plan", "saga", "time_limit", "cost", "dead_letter", "settled", "compensation",
)  # fmt: skip
_LITERAL = re.compile(r"'((?:" + "|".join(_FAMILIES) + r")\.[a-z_.]*)'")
# What SQL puts together from two parts, and what stands for the second part.
_JOINED = {
    "duplicate.": ["same_key", "same_arguments", "same_but_for_prose"],
    "join.trigger_": ["resume", "retry", "redelivery"],
    "task.": [],
    "task.waiting.": [],
}
_CLASSES = re.compile(r"^(cause|effect|class)\.")


def written() -> set[str]:
    found = {rule for model in models() for rule in _LITERAL.findall(model.sql)}
    joined = {rule for rule in found if rule.endswith((".", "_"))}
    assert joined == set(_JOINED), "a rule id put together in SQL needs its parts in this test"
    return (found - joined) | {start + end for start, ends in _JOINED.items() for end in ends}


def test_rules_and_sentences_are_the_same_set() -> None:
    assert written() == {rule for rule in reasons() if not _CLASSES.match(rule)}


def test_causes_effects_and_classes_have_words() -> None:
    sql = "\n".join(model.sql for model in models())
    for cause in re.findall(
        r"(?:THEN|ELSE) '([a-z_]+)'", sql[sql.index("AS duplicate,") : sql.index("AS cause,")]
    ):
        if cause not in ("unprotected", "protected", "no_op"):
            assert f"cause.{cause}" in reasons(), cause
    for effect in ("proven", "possible", "none"):
        assert f"effect.{effect}" in reasons()
    assert {"class.configured", "class.stated", "class.guessed", "class.unknown"} <= set(reasons())


def test_sentences_are_plain_sentences() -> None:
    for rule, text in reasons().items():
        assert re.fullmatch(r"[A-Z].*\.", text), rule
        assert len(text) <= 140, rule


def test_a_task_that_ended_as_its_run_did_is_told_by_the_run() -> None:
    assert sentence("task.run.failed.root_error") == reasons()["run.failed.root_error"]
    assert sentence("task.waiting.run.paused.deferred_calls") == reasons()["run.paused.deferred_calls"]
    assert sentence("no.such_rule") is None
    assert sentence(None) is None


def test_every_task_rule_of_a_run_is_covered() -> None:
    text = (files("metrics") / "sql" / "run_verdicts.sql").read_text(encoding="utf-8")
    rules = set(re.findall(r"'(run\.[a-z_.]+)'", text))
    assert rules
    assert all(sentence(f"task.{rule}") and sentence(f"task.waiting.{rule}") for rule in rules)
