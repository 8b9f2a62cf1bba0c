"""The pages' SQL: each file is asked for, each name has a file, each states its grain, and each runs."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

import agent_slo
import dashboard
from collector.reader import open_reader
from dashboard.queries import query_text
from dashboard.screens.actions import ADVICE
from tests.dashboard.data_folder import write_folder

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
    "longest_first": True,
    "with_tasks": True,
    "kinds": '["unprotected", "approval"]',
    "kind": "approval",
    "level": None,
    "cause": None,
    "tool": "issue_refund",
    "agent": None,
    "suspected": False,
    "only": "proven",
    "decisions": '["open"]',
    "by": "cost",
    "states": '["open"]',
    "severities": None,
    "fingerprint": "feed",
    "fingerprints": '["feed"]',
    "task_type": None,
    "trace": "1",
    "span": "2",
    "at": "2026-11-20 00:00:00",
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


def test_interventions_are_narrowed_to_a_kind_with_its_level(tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=12)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute("UPDATE interventions SET level = 'team_lead' WHERE task_id = 'task-0005'")
    names = (
        "days",
        "services",
        "agents",
        "task_types",
        "environments",
        "versions",
        "kinds",
        "decisions",
        "tool",
        "agent",
    )
    parameters = dict.fromkeys(names)
    with open_reader(data) as reader:

        def listed(kind: str | None, level: str | None) -> list[str]:
            asked = {**parameters, "kind": kind, "level": level, "longest_first": False}
            return [str(row["task_id"]) for row in reader.sql(query_text("humans_list"), asked).to_pylist()]

        assert listed(None, None) == ["task-0010", "task-0005", "task-0000"]
        assert listed("approval", "team_lead") == ["task-0005"]
        assert listed("approval", None) == ["task-0010", "task-0000"]
        assert listed("escalation", None) == []


def advice(attempts: list[tuple[str, str, str | None, str | None, str | None]]) -> dict[str, str]:
    """What `actions_tools` advises for each tool; attempts are (action, tool, key, duplicate, rule)."""
    con = duckdb.connect(":memory:")
    con.execute("CREATE TABLE pipeline AS SELECT TIMESTAMP '2026-11-28' AS as_of")
    con.execute(
        "CREATE TABLE tasks AS SELECT 't' AS task_id, TIMESTAMP '2026-11-27' AS started_at, 'a' AS agent, "
        "'s' AS service, 'x' AS task_type, 'prod' AS environment, '1' AS app_version"
    )
    con.execute(
        "CREATE TABLE attempts (action_id VARCHAR, tool VARCHAR, idempotency_key VARCHAR, duplicate VARCHAR, "
        "agent VARCHAR DEFAULT 'a', service VARCHAR DEFAULT 's', task_type VARCHAR DEFAULT 'x', "
        "environment VARCHAR DEFAULT 'prod', app_version VARCHAR DEFAULT '1', "
        "task_started_at TIMESTAMP DEFAULT '2026-11-27', "
        "rule VARCHAR, task_id VARCHAR DEFAULT 't', effect_class VARCHAR DEFAULT 'write', "
        "class_source VARCHAR DEFAULT 'configured', effect VARCHAR DEFAULT 'proven', "
        "compensated BOOLEAN DEFAULT false, suspected BOOLEAN DEFAULT false, "
        "outcome VARCHAR DEFAULT 'ok', disposition VARCHAR DEFAULT 'executed')"
    )
    con.executemany(
        "INSERT INTO attempts (action_id, tool, idempotency_key, duplicate, rule) VALUES (?, ?, ?, ?, ?)",
        attempts,
    )
    text = query_text("actions_tools")
    names = dict.fromkeys(("days", "services", "agents", "task_types", "environments", "versions"))
    found = con.execute(text, names)
    columns = [column[0] for column in found.description or ()]
    rows = [dict(zip(columns, row, strict=True)) for row in found.fetchall()]
    con.close()
    assert set(ADVICE) >= {row["advice"] for row in rows}
    assert rows[0]["whole"]
    return {row["tool"]: row["advice"] for row in rows[1:]}


def test_only_a_receiver_that_broke_its_key_is_to_be_mended() -> None:
    same, again = "duplicate.same_arguments", "unprotected"
    assert advice(
        [
            ("1", "broken", "k", None, None),
            ("1", "broken", "k", again, "duplicate.key_not_honoured"),
            ("2", "new_keys", "k1", None, None),
            ("2", "new_keys", "k2", again, same),
            ("3", "key_came_late", None, None, None),
            ("3", "key_came_late", "k", again, same),
            ("4", "forgotten", "k", None, None),
            ("4", "forgotten", "k", again, "duplicate.key_expired"),
            ("5", "no_key", None, None, None),
            ("5", "no_key", None, again, same),
            ("6", "well", "k1", None, None),
            ("7", "well", "k2", None, None),
        ]
    ) == {
        "broken": "key_not_honoured",
        "new_keys": "keys_differ",
        "key_came_late": "key_missing_sometimes",
        "forgotten": "repeats",
        "no_key": "needs_key_now",
        "well": "nothing",
    }
