"""What the first visitor would wait for, done before anybody comes: modules loaded, dear questions asked once.

Streamlit loads a page's modules when the page is first opened, and a fresh process has nothing in its caches.
"""

from __future__ import annotations

import ast
import logging
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from collector.reader import ReaderError
from dashboard.door import Answers, answers, door_file
from dashboard.filters import EVERYTHING, RANGES, USUAL_RANGE

log = logging.getLogger("agent_slo.dashboard")

WAIT_SECONDS = 60.0
"""How long the door is waited for; `agent-slo up` starts collector and dashboard at once."""
_POLL_SECONDS = 0.5

_USUAL = {**EVERYTHING, "days": RANGES[USUAL_RANGE]}
FIRST: Mapping[str, tuple[tuple[str, Mapping[str, Any]], ...]] = {
    "overview": (
        ("as_of", {}),
        ("filter_choices", {}),
        ("overview_since_yesterday", {**_USUAL, "days": 2}),
        ("overview_new_versions", {}),
        ("waste_weeks", EVERYTHING),
        ("overview_totals", _USUAL),
        ("overview_outcomes", _USUAL),
        ("overview_repeats", _USUAL),
        ("overview_health", _USUAL),
    ),
    "tasks": (("task_filters", {}),),
    "actions": (
        ("as_of", {}),
        ("actions_tools", _USUAL),
        ("actions_by", _USUAL),
        (
            "actions_repeats",
            {
                **_USUAL,
                "cause": None,
                "tool": None,
                "agent": None,
                "suspected": False,
                "only": None,
                "kinds": '["unprotected"]',
            },
        ),
    ),
    "humans": (
        ("as_of", {}),
        ("humans_totals", _USUAL),
        ("humans_daily", _USUAL),
        ("humans_waits", _USUAL),
        ("humans_by", _USUAL),
        (
            "humans_list",
            {
                **_USUAL,
                "kind": None,
                "level": None,
                "tool": None,
                "agent": None,
                "kinds": None,
                "decisions": None,
                "longest_first": False,
            },
        ),
    ),
    "cost": (
        ("as_of", {}),
        ("cost_totals", _USUAL),
        ("cost_daily", {**_USUAL, "by": "active"}),
        ("cost_distribution", {**_USUAL, "by": "active"}),
        ("cost_by", _USUAL),
        ("cost_models", _USUAL),
        ("cost_times", _USUAL),
        ("waste_weeks", EVERYTHING),
        ("cost_waste", _USUAL),
        ("cost_tasks", {**_USUAL, "by": "active"}),
    ),
    "data": (
        ("data_senders", {}),
        ("data_unknown", {}),
        ("data_unpriced", {}),
        ("cost_unknown", EVERYTHING),
        ("data_guessed", {}),
        ("data_excluded", {}),
        ("data_revisions", {}),
    ),
}
"""Page -> the questions of its first picture whose answers are kept until the next pass."""


def warm(data: Path) -> None:
    """Load what the pages import, then ask the questions of their first pictures. For a thread of its own."""
    load()
    # Files are left alone: an open one would keep the collector from starting.
    if not _door_opens(data):
        return
    try:
        with answers(data) as reader:
            if reader.source == "door" and "tasks" in reader.views():
                for questions in FIRST.values():
                    ask(reader, questions)
    except ReaderError as error:
        log.warning("the pages start cold: %s", error)


def load() -> None:
    """Import what the pages import, and draw a figure that nobody sees."""
    for name in sorted(set(_imports())):
        import_module(name)
    _draw_once()


def ask(reader: Answers, questions: tuple[tuple[str, Mapping[str, Any]], ...]) -> None:
    """Ask each once. One that cannot be answered yet, as its view is not there, is left to its page."""
    for name, parameters in questions:
        try:
            reader.table(name, **parameters)
        except ReaderError as error:
            log.info("%s is not answered yet: %s", name, error)


def _imports() -> Iterator[str]:
    """Names of the modules the pages import: they are scripts and cannot be imported themselves."""
    for path in (Path(__file__).parent / "screens").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module


def _draw_once() -> None:
    """plotly loads most of itself with the first figure of a kind."""
    import plotly.graph_objects as go

    figure = go.Figure([go.Scatter(x=[0], y=[0]), go.Bar(x=[0], y=[0])], {"title": {"text": ""}})
    figure.add_hline(y=0)
    figure.to_dict()


def _door_opens(data: Path) -> bool:
    deadline = time.monotonic() + WAIT_SECONDS
    while not door_file(data).exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
