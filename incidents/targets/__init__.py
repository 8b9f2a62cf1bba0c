"""What the cases become for each evaluation tool: files of the bundle, by their path in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files

from incidents.case import Group
from incidents.targets import records

Files = dict[str, str]
Target = Callable[[Sequence[Group]], Files]


def template(name: str) -> str:
    """A file of `incidents/targets/templates`, copied as it stands."""
    return (files("incidents.targets") / "templates" / name).read_text(encoding="utf-8")


def _jsonl(groups: Sequence[Group]) -> Files:
    return {"test_cases.py": template("test_cases.py")}


def _inspect(groups: Sequence[Group]) -> Files:
    return {
        "targets/inspect/incidents.jsonl": records.lines(map(records.inspect, records.proven(groups))),
        "targets/inspect/incident_replay.py": template("incident_replay.py"),
    }


def _promptfoo(groups: Sequence[Group]) -> Files:
    found = {
        f"targets/promptfoo/{name}": template(name)
        for name in ("provider.py", "check.py", "promptfooconfig.yaml")
    }
    return found | {
        "targets/promptfoo/tests.jsonl": records.lines(map(records.promptfoo, records.proven(groups)))
    }


def _pydantic_evals(groups: Sequence[Group]) -> Files:
    return {
        "targets/pydantic_evals/cases.json": records.pydantic_evals(records.proven(groups)),
        "targets/pydantic_evals/evaluate.py": template("evaluate.py"),
    }


def _rows(groups: Sequence[Group]) -> Files:
    return {
        "targets/rows/rows.jsonl": records.lines(map(records.row, records.proven(groups))),
        "targets/rows/loaders.py": template("loaders.py"),
    }


TARGETS: dict[str, Target] = {
    "jsonl": _jsonl,
    "inspect": _inspect,
    "promptfoo": _promptfoo,
    "pydantic-evals": _pydantic_evals,
    "rows": _rows,
}
HOW_TO: dict[str, list[str]] = {
    "jsonl": [
        "## pytest",
        "",
        "    AGENT_SLO_AGENT=your_module:factory python -m pytest test_cases.py",
        "",
        "`factory(case)` returns a function that starts your agent; an agent is an object with",
        "`act(messages) -> replay.drive.Act`. `replay/agents.py` has scripted ones, known by their names (`careful`,",
        "`recorded`). Without the variable only the proof of the cases runs.",
        "",
    ],
    "inspect": [
        "## Inspect AI",
        "",
        "    cd targets/inspect && inspect eval incident_replay.py --model provider/model",
        "",
        "The model is the agent: Inspect's `react` loop with the tools of the case.",
        "",
    ],
    "promptfoo": [
        "## promptfoo",
        "",
        "    cd targets/promptfoo && AGENT_SLO_AGENT=your_module:factory promptfoo eval -c promptfooconfig.yaml",
        "",
        "It exits with 100 when a check fails.",
        "",
    ],
    "pydantic-evals": [
        "## pydantic-evals",
        "",
        "    cd targets/pydantic_evals && AGENT_SLO_AGENT=your_module:factory python evaluate.py",
        "",
    ],
    "rows": [
        "## Other tools",
        "",
        "`targets/rows/rows.jsonl` holds `id`, `input`, `expected` and `metadata`; `loaders.py` makes records for",
        "Langfuse, Phoenix, LangSmith, MLflow, Braintrust and deepeval of them and shows the call for each.",
        "",
    ],
}
