"""The pages' SQL files. SQL decides, pages show."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from metrics.manifest import views

SCOPE = "{scope}"
"""Stands in a file for the tasks that pass the page's filters: `sql/scope.sql`."""
PARTS = re.compile(r"\{scope of (.+?)\}")
"""Stands for the rows of a table, such as `{scope of attempts}`, whose tasks pass them: such rows say themselves of
which agent, type, service, environment, version and time their task is, so that nothing has to be joined."""

VIEW = re.compile(r"\{view (\w+)\}")
"""Stands for what a view of `metrics/sql/views` says, such as `{view waste_weekly}`, of the tasks that pass them alone:
its own text over `{scope}` and `{scope of ...}`, so that no page reckons anew what the view reckons."""

PASS = "-- remembered: until the next pass"
"""A file with this line among its first ones reads derived tables only, which change with a pass alone."""
SAID = "-- not remembered: people change it"
"""A file over the tasks in scope that also reads what people say."""


def _file(name: str) -> str:
    return (resources.files("dashboard") / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def _view(found: re.Match[str]) -> str:
    """The text of a view over the tasks in scope; what is no part of a task, the pipeline, is as it is."""
    text = re.sub(r"(?m)^\s*--.*\n", "", dict(views())[found[1]])  # they name the tables as well
    text = text.replace("core.pipeline", "pipeline").replace("core.tasks", f"({SCOPE})")
    return re.sub(r"\bcore\.(\w+)", r"({scope of \1})", text)


@cache
def changes_with_a_pass(name: str) -> bool:
    """Whether the answer stays the same until the next pass: files that say so, or that read the tasks in scope."""
    text = VIEW.sub(SCOPE, _file(name))
    return (SCOPE in text or PARTS.search(text) is not None or PASS in text) and SAID not in text


@cache
def query_text(name: str) -> str:
    """The text of `dashboard/sql/<name>.sql`. Raises `FileNotFoundError` for a name without a file."""
    text = _file(name)
    if name == "scope":
        return text
    text = VIEW.sub(_view, text)
    scope = query_text("scope")
    return PARTS.sub(
        lambda parts: scope.replace("FROM tasks\n", f"FROM {parts[1]}\n").replace(
            "OR started_at", "OR task_started_at"
        ),
        text.replace(SCOPE, scope),
    )
