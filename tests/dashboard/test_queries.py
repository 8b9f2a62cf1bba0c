"""The pages' SQL: each file is asked for, each name has a file, each states its grain, and each runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import agent_slo
import dashboard
from collector.reader import open_reader
from dashboard.queries import query_text

SQL = Path(dashboard.__file__).parent / "sql"
NAMES = sorted(path.stem for path in SQL.glob("*.sql"))
NOTHING = {
    "since": None,
    "until": None,
    "agents": None,
    "task_types": None,
    "outcomes": None,
    "duplicates": False,
    "interventions": False,
    "text": None,
    "max_rows": 10,
    "skip_rows": 0,
    "id": "task-0000",
    "days": 28,
    "services": None,
    "environments": None,
    "versions": '["1.0"]',
    "slo": "task-completion",
    "objective": "default",
    "sli": "task_completion",
    "slis": '["task_completion"]',
    "op": None,
    "cut": None,
    "bad_only": False,
    "with_tasks": True,
    "kinds": '["unprotected", "approval"]',
    "cause": None,
    "tool": "issue_refund",
    "agent": None,
    "suspected": False,
    "decisions": '["open"]',
    "by": "cost",
    "states": '["open"]',
    "severities": None,
    "fingerprint": "feed",
    "fingerprints": '["feed"]',
    "task_type": None,
}


USES_PAGE_QUERIES = re.compile(
    r"from dashboard\.queries import|from agent_slo\.reading import [^\n]*\brows\b"
)


def asked_for() -> set[str]:
    """Names of queries in the code that asks for them."""
    found: set[str] = set()
    for package in (dashboard, agent_slo):
        for path in Path(str(package.__file__)).parent.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            # Commands also ask tables of their own and the queries of other packages.
            if package is agent_slo and not USES_PAGE_QUERIES.search(text):
                continue
            found |= set(re.findall(r'(?:rows|row|table)\(\s*(?:reader, )?\s*"(\w+)"', text))
            found |= set(re.findall(r'query_text\("(\w+)"\)', text))
            if 'f"task_{name}"' in text:
                found |= {
                    f"task_{name}"
                    for name in re.findall(r'"(\w+)"', text.split("for name in (")[1].split(")")[0])
                }
    return found


def test_no_file_without_a_query_and_no_query_without_a_file() -> None:
    assert asked_for() == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_file_states_grain_and_inputs(name: str) -> None:
    first, second = query_text(name).splitlines()[:2]
    assert re.match(r"-- one row\b", first)
    assert second.startswith("-- inputs: ")


@pytest.mark.parametrize("name", NAMES)
def test_each_file_runs_with_the_parameters_it_names(name: str, samples: Path) -> None:
    text = query_text(name)
    parameters = {key: value for key, value in NOTHING.items() if re.search(rf"\${key}\b", text)}
    if "$since::TIMESTAMP AND" in text:
        parameters |= {"since": "2026-11-20 00:00:00", "until": "2026-11-27 00:00:00"}
    with open_reader(samples) as reader:
        assert reader.sql(text, parameters or None).num_columns > 0
