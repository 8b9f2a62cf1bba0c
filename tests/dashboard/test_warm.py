"""What is asked when the dashboard starts is what first pictures ask, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import streamlit as st

from dashboard import door
from dashboard.door import answers
from dashboard.queries import changes_with_a_pass, query_text
from dashboard.warm import FIRST, ask, load
from tests.dashboard.conftest import OpenPage

Asked = set[tuple[str, str]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Names and parameters of the remembered questions that are asked from here on."""
    found: Asked = set()
    answer = door.Answers._answer

    def noted(self: door.Answers, name: str, parameters: str) -> pa.Table:
        if changes_with_a_pass(name):
            found.add((name, parameters))
        return answer(self, name, parameters)

    monkeypatch.setattr(door.Answers, "_answer", noted)
    return found


def questions(page: str) -> Asked:
    return {(name, json.dumps(dict(p), sort_keys=True)) for name, p in FIRST.get(page, ())}


@pytest.mark.parametrize(
    "page", ["overview", "tasks", "actions", "humans", "cost", "data", "incidents", "alerts"]
)
def test_the_first_picture_of_a_page_asks_what_was_asked_at_the_start(
    open_page: OpenPage, samples: Path, asked: Asked, page: str
) -> None:
    open_page(samples, f"screens/{page}.py")
    choices = {("filter_choices", "{}")}
    assert asked - choices == questions(page) - choices
    assert choices <= questions("overview")


def test_an_answer_is_kept_until_the_next_pass(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    st.cache_resource.clear()
    texts: list[str] = []
    send = door.Answers._ask

    def noted(self: door.Answers, sql: str, parameters: dict[str, Any]) -> pa.Table:
        texts.append(sql)
        return send(self, sql, parameters)

    monkeypatch.setattr(door.Answers, "_ask", noted)
    for _ in range(2):
        with answers(samples) as reader:
            ask(reader, FIRST["cost"])
    marks = [text for text in texts if text == query_text("mark")]
    assert len(marks) == 2
    assert len(texts) == len(FIRST["cost"]) + 2


def test_questions_asked_ahead_are_answered_once(samples: Path, asked: Asked) -> None:
    scope = dict(FIRST["actions"])["actions_tools"]
    with answers(samples) as reader:
        reader.ahead("actions_tools", "actions_by", **scope)
        assert reader.rows("actions_tools", **scope)[0]["whole"]
        assert reader.rows("actions_by", **scope)
        # One that is asked ahead and never needed must not outlive the reader.
        reader.ahead("actions_tools", **scope)
    assert {name for name, _ in asked} == {"actions_tools", "actions_by"}


def test_what_pages_import_can_be_loaded_before_they_are() -> None:
    load()
