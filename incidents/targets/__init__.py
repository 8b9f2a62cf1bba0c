"""What the cases become for each evaluation tool: files of the bundle, by their path in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files

from incidents.case import Group

Files = dict[str, str]
Target = Callable[[Sequence[Group]], Files]


def template(name: str) -> str:
    """A file of `incidents/targets/templates`, copied as it stands."""
    return (files("incidents.targets") / "templates" / name).read_text(encoding="utf-8")


def _jsonl(groups: Sequence[Group]) -> Files:
    return {"test_cases.py": template("test_cases.py")}


TARGETS: dict[str, Target] = {"jsonl": _jsonl}
HOW_TO: dict[str, list[str]] = {
    "jsonl": [
        "## pytest",
        "",
        "    AGENT_SLO_AGENT=your_module:make_agent python -m pytest test_cases.py",
        "",
        "`make_agent(case)` returns a function that starts your agent; an agent is an object with",
        "`act(messages) -> replay.drive.Act`. See `replay/agents.py` for scripted ones. Without the variable only the",
        "proof of the cases runs.",
        "",
    ],
}
