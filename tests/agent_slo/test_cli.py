"""Reading commands over the small sample set, and errors as one line."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from agent_slo.cli import COMMANDS
from tests.agent_slo.conftest import AS_OF, Run


def test_version_names_what_it_stands_on(run: Run) -> None:
    assert json.loads(run("version", "--format", "json").stdout)["agent-slo"] == "0.1.0"
    assert run("version").stdout.startswith("agent-slo 0.1.0")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Usage: agent-slo" in result.stdout


def test_a_misspelt_command_names_the_nearest(run: Run) -> None:
    result = run("reprot")
    assert (result.exit_code, result.stderr) == (
        2,
        "agent-slo: no command 'reprot'; did you mean 'report'?\n",
    )


@pytest.mark.parametrize(
    "command", [("report",), ("tasks",), ("task", "x"), ("query", "SELECT 1"), ("rederive",)]
)
def test_a_missing_folder_is_one_line(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    result = run(*command, "--data", tmp_path / "none")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert "--data" in result.stderr


def test_data_of_a_newer_version_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "format.json").write_text('{"version": 99, "created_by": "9.9"}')
    for command in (("report",), ("query", "SELECT 1"), ("rederive",)):
        result = run(*command, "--data", tmp_path)
        assert result.exit_code == 2
        assert "99" in result.stderr or "newer" in result.stderr


def test_query_answers_in_every_form(run: Run, sample_data: Path) -> None:
    sql = "SELECT outcome, count(*) AS n FROM tasks GROUP BY outcome ORDER BY n DESC, outcome LIMIT 2"
    as_json = json.loads(run("query", sql, "--data", sample_data, "--format", "json").stdout)
    assert [set(row) for row in as_json] == [{"outcome", "n"}] * 2
    as_csv = list(
        csv.DictReader(io.StringIO(run("query", sql, "--data", sample_data, "--format", "csv").stdout))
    )
    assert [(row["outcome"], int(row["n"])) for row in as_csv] == [
        (row["outcome"], row["n"]) for row in as_json
    ]
    raw = run("query", sql, "--data", sample_data, "--format", "arrow").stdout_bytes
    assert pa.ipc.open_stream(raw).read_all().to_pylist() == as_json
    table = run("query", sql, "--data", sample_data).stdout.splitlines()
    assert table[0].split() == ["outcome", "n"]
    assert len(table) == 3


def test_a_table_in_a_pipe_is_never_folded(run: Run, sample_data: Path) -> None:
    lines = run(
        "query", "SELECT * FROM tasks ORDER BY started_at LIMIT 3", "--data", sample_data
    ).stdout.splitlines()
    assert len(lines) == 4
    assert lines[0].split()[:3] == ["task_id", "task_type", "agent"]


def test_a_table_too_wide_for_the_terminal_is_written_value_by_value(
    run: Run, sample_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_slo.output.PIPE_WIDTH", 80)
    said = run("query", "SELECT * FROM tasks ORDER BY started_at LIMIT 2", "--data", sample_data).stdout
    assert said.count("-- row ") == 2
    assert re.search(r"^outcome +completed$", said, re.MULTILINE)


def test_query_reads_stdin(run: Run, sample_data: Path) -> None:
    result = run("query", "-", "--data", sample_data, "--format", "csv", stdin="SELECT 1 AS one")
    assert result.stdout == "one\n1\n"


def test_query_keeps_both_columns_of_one_name(run: Run, sample_data: Path) -> None:
    assert (
        run("query", "SELECT 1 AS a, 2 AS a", "--data", sample_data, "--format", "csv").stdout == "a,a\n1,2\n"
    )


@pytest.mark.parametrize(
    "sql", ["DELETE FROM tasks", "SELECT 1; SELECT 2", "COPY tasks TO 'x'", "SELEC 1", ""]
)
def test_query_refuses_all_but_one_select(run: Run, sample_data: Path, sql: str) -> None:
    result = run("query", sql, "--data", sample_data)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr


def test_an_error_of_sql_shows_its_place_indented(run: Run, sample_data: Path) -> None:
    result = run("query", "SELECT 1\nFROM taks", "--data", sample_data)
    first, *rest = result.stderr.splitlines()
    assert first.startswith("agent-slo: ")
    assert "taks" in first
    assert rest
    assert all(line.startswith("  ") and line.strip() for line in rest)


@pytest.mark.parametrize("command", [("incidents",), ("incidents", "--accuracy"), ("cases", "list")])
def test_a_kind_that_no_finding_has_is_refused(run: Run, sample_data: Path, command: tuple[str, ...]) -> None:
    result = run(*command, "--kind", "duplicate_acton", "--data", sample_data)
    assert result.exit_code == 2
    assert result.stderr == (
        "agent-slo: --kind: 'duplicate_acton' is no kind of finding; did you mean 'duplicate_action'?\n"
    )


def test_csv_cells_that_a_spreadsheet_would_run_get_a_quote(run: Run, sample_data: Path) -> None:
    sql = "SELECT '=1+1' AS a, '@x' AS b, -5 AS c, 'plain' AS d, NULL AS e"
    assert (
        run("query", sql, "--data", sample_data, "--format", "csv").stdout
        == "a,b,c,d,e\n'=1+1,'@x,-5,plain,\n"
    )


def test_json_writes_times_numbers_and_unknowns_plainly(run: Run, sample_data: Path) -> None:
    sql = """SELECT TIMESTAMP '2026-11-27 15:00:00' AS t, 'nan'::DOUBLE AS n, 9007199254740993 AS i,
             NULL AS u, sum(i)::HUGEINT AS h, ['a'] AS l FROM range(3) r(i)"""
    [row] = json.loads(run("query", sql, "--data", sample_data, "--format", "json").stdout)
    assert row == {
        "t": "2026-11-27T15:00:00Z",
        "n": None,
        "i": 9007199254740993,
        "u": None,
        "h": 3,
        "l": ["a"],
    }


def test_report_for_machines(run: Run, sample_data: Path) -> None:
    report = json.loads(run("report", "--data", sample_data, "--format", "json").stdout)
    assert set(report) == {"as_of", "warning", "slos", "tasks", "waste", "findings", "duplicates"}
    assert report["as_of"] == AS_OF
    assert sum(report["tasks"].values()) == 23
    once = next(row for row in report["slos"] if row["sli_name"] == "duplicate_action")
    assert (once["good"], once["n"]) == (28, 32)
    assert isinstance(once["burn"], dict)
    assert isinstance(once["firing"], list)


def test_report_says_when_the_objectives_were_evaluated(run: Run, sample_data: Path, tmp_path: Path) -> None:
    data = shutil.copytree(sample_data, tmp_path / "data")
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute("UPDATE pipeline SET as_of = as_of + INTERVAL 5 MINUTE")
        # Such a window ends in the future.
        con.execute("UPDATE slo_status SET window_end = window_end + INTERVAL 10 DAY WHERE sli_name = 'cost'")
    assert json.loads(run("report", "--data", data, "--format", "json").stdout)["as_of"] == AS_OF
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute("ALTER TABLE slo_status DROP COLUMN evaluated_at")
    older = run("report", "--data", data, "--format", "json")
    assert json.loads(older.stdout)["as_of"] == AS_OF.replace("15:00:", "15:05:")


def test_report_refuses_a_broken_configuration(run: Run, sample_data: Path, tmp_path: Path) -> None:
    data = shutil.copytree(sample_data, tmp_path / "data")
    (data / "agent-slo.yaml").write_text("collector: {htp: 1}\n")
    result = run("report", "--data", data)
    assert result.exit_code == 2
    assert "agent-slo.yaml:1: unknown key 'collector.htp'; did you mean 'http'?" in result.stderr
    assert result.stdout == ""


def test_report_for_people(run: Run, sample_data: Path) -> None:
    result = run("report", "--data", sample_data)
    assert "28 of 32" in result.stdout
    assert "Budget spent" in result.stdout
    assert "the model asked again" in result.stdout
    assert "\x1b" not in result.stdout


def test_report_of_another_moment_changes_nothing(run: Run, sample_data: Path) -> None:
    before = run("report", "--data", sample_data, "--format", "json").stdout
    earlier = run("report", "--data", sample_data, "--format", "json", "--as-of", "2026-11-27T11:00:00Z")
    report = json.loads(earlier.stdout)
    assert report["as_of"] == "2026-11-27T11:00:00Z"
    assert report["slos"] != json.loads(before)["slos"]
    assert run("report", "--data", sample_data, "--format", "json").stdout == before


def test_tasks_and_one_task_in_words(run: Run, sample_data: Path) -> None:
    found = json.loads(run("tasks", "--data", sample_data, "--duplicate", "--format", "json").stdout)
    assert len(found) == 4
    told = run("task", found[0]["task_id"], "--data", sample_data)
    assert told.exit_code == 0, told.output
    assert "Outcome: " in told.stdout
    assert "rule " in told.stdout
    assert "unprotected duplicate" in told.stdout
    parts = json.loads(run("task", found[0]["task_id"], "--data", sample_data, "--format", "json").stdout)
    assert {"task", "runs", "attempts", "actions", "interventions", "findings", "revisions"} == set(parts)
    assert parts["task"]["task_id"] == found[0]["task_id"]


def test_tasks_are_narrowed(run: Run, sample_data: Path) -> None:
    lost = json.loads(run("tasks", "--data", sample_data, "--outcome", "lost", "--format", "json").stdout)
    assert [row["outcome"] for row in lost] == ["lost"]
    none = run("tasks", "--data", sample_data, "--agent", "nobody")
    assert (none.exit_code, none.stdout) == (0, "")
    assert "no task passes" in none.stderr
    shown = run("tasks", "--data", sample_data, "--limit", "2")
    assert "2 of 23 tasks" in shown.stderr


def test_an_unknown_task_is_named(run: Run, sample_data: Path) -> None:
    result = run("task", "nope", "--data", sample_data)
    assert result.exit_code == 2
    assert "no task 'nope'" in result.stderr


def test_options_may_stand_before_the_command(run: Run, sample_data: Path) -> None:
    assert run("--data", sample_data, "query", "SELECT 1 AS x", "--format", "csv").stdout == "x\n1\n"


def test_a_faulty_configuration_is_named_before_anything_runs(
    run: Run, tmp_path: Path, samples: Path
) -> None:
    config = tmp_path / "agent-slo.yaml"
    config.write_text("tasks: {default: {deadlin: 1h}}\n")
    result = run("import", samples, "--data", tmp_path / "data", "--config", config)
    assert result.exit_code == 2
    assert f"{config}:1: unknown key 'tasks.default.deadlin'; did you mean 'deadline'?" in result.stderr
    assert not (tmp_path / "data").exists()


def test_rederive_gives_the_same_again(
    run: Run, tmp_path: Path, sample_data: Path, sample_settings: Path
) -> None:
    data = shutil.copytree(sample_data, tmp_path / "data")
    before = run("report", "--data", data, "--format", "json").stdout
    result = run("rederive", "--data", data, "--config", sample_settings, "--as-of", AS_OF)
    assert result.exit_code == 0, result.output
    assert "gave 23 tasks" in result.stderr
    assert run("report", "--data", data, "--format", "json").stdout == before
    # The raw spans are what everything is derived from, so they stay as they were.
    con = duckdb.connect(str(next((data / "spans").glob("*.duckdb"))), read_only=True)
    assert con.execute("SELECT count(*) FROM spans").fetchall() == [(211,)]
    con.close()
