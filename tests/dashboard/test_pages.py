"""Each page over an empty folder, one task, many tasks, and texts that want to be more than text."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.cards import grid
from dashboard.door import DATA_VARIABLE, answers
from dashboard.format import size
from dashboard.verdict import verdict_notes
from tests.agent_slo.conftest import answer
from tests.dashboard.conftest import APP, OpenPage, texts
from tests.dashboard.data_folder import Words, write_folder

HOSTILE = Words(
    agent="<script>alert('agent')</script>",
    tool="![x](http://attacker.example/tool.png)",
    arguments='{"note": "=HYPERLINK(\\"http://attacker.example\\")"}',
    result="<img src=x onerror=alert(1)> :red[red] $x^2$",
    detail="=cmd|' /C calc'!A0",
)


PAGES: dict[str, dict[str, str]] = {
    "screens/overview.py": {},
    "screens/incidents.py": {"id": "inc-feed"},
    "screens/alerts.py": {"id": "alert-firing"},
    "screens/actions.py": {},
    "screens/humans.py": {},
    "screens/cost.py": {},
    "screens/data.py": {},
    "screens/objective.py": {"slo": "duplicate-action"},
    "screens/tasks.py": {},
    "screens/task.py": {"id": "task-0000"},
}


@pytest.mark.parametrize("page", list(PAGES))
def test_an_empty_folder_says_how_to_point_an_exporter_here(
    open_page: OpenPage, tmp_path: Path, page: str
) -> None:
    said = texts(open_page(write_folder(tmp_path / "data", derived=False), page))
    assert "Nothing has arrived yet" in said
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318" in said
    assert "agent-slo demo" in said
    # Nothing listens there: that comes first.
    assert f"agent-slo collect --data {tmp_path / 'data'}" in said


@pytest.mark.parametrize("page", list(PAGES))
def test_derived_tables_without_tasks_are_empty_too(open_page: OpenPage, tmp_path: Path, page: str) -> None:
    said = texts(open_page(write_folder(tmp_path / "data", tasks=0), page))
    assert "Nothing has arrived yet" in said


def test_a_missing_folder_is_one_clear_line(open_page: OpenPage, tmp_path: Path) -> None:
    said = texts(open_page(tmp_path / "nowhere"))
    assert "there is none" in said
    assert "agent-slo demo" in said


def test_the_real_address_is_shown_when_a_collector_wrote_it(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=0)
    # A dead process's door: the address is still the best answer to "where was I to send?".
    (data / "door.json").write_text('{"pid": 0, "http": "127.0.0.1:14318", "grpc": "127.0.0.1:14317"}')
    assert "http://127.0.0.1:14318" in texts(open_page(data))


def test_overview_shows_each_objective_in_words(open_page: OpenPage, tmp_path: Path) -> None:
    test = open_page(write_folder(tmp_path / "data", tasks=12))
    said = texts(test)
    cards = [metric for metric in test.metric if re.match(r"[\d,]+ of ", metric.label)]
    assert [metric.label for metric in cards][:2] == ["431 of 440 actions", "272 of 300 tasks"]
    assert cards[0].value.replace("\\", "") == "98.0%"
    assert "Target 99% · 95% interval 96.0–99.2%" in said
    assert "Burn 1h — · 6h 0.4× · 3d 1.2×" in said
    assert (
        "3 unknown: between 97.3–98.0% · 2 excluded (of environment test) · 34% of outcomes inferred" in said
    )
    assert "Page alert:" in said
    assert "12 tasks · 0 running · 1 waiting for a human" in said
    for word in ("Budget spent", "At risk", "On target", "Too few events"):
        assert word in said
    assert "Collector down: reading its files" in said
    assert "nan" not in said.lower()
    assert "None" not in said


def test_overview_begins_with_what_fires(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    test = open_page(data)
    assert [title.value for title in test.subheader][:3] == ["Alerts", "Since yesterday", "Objectives"]
    firing = test.dataframe[0].value
    assert list(firing["State"]) == ["firing", "frozen"]
    assert list(firing["Severity"]) == ["page", "ticket"]
    assert list(firing["Silenced"]) == ["", "silenced"]
    assert "1 alert firing · 1 frozen" in texts(test)


def test_a_page_says_how_to_start_a_collector_that_is_down(open_page: OpenPage, tmp_path: Path) -> None:
    said = texts(open_page(write_folder(tmp_path / "data", tasks=1)))
    assert f"until it runs: agent-slo collect --data {tmp_path / 'data'}" in said


def test_overview_lists_the_newest_duplicates(open_page: OpenPage, tmp_path: Path) -> None:
    test = open_page(write_folder(tmp_path / "data", tasks=12))
    frame = next(block.value for block in test.dataframe if "Second effect" in block.value.columns)
    assert list(frame["Task"]) == ["task-0010", "task-0005", "task-0000"]
    assert "3 unprotected duplicates · 0 protected by a key" in texts(test)


def test_the_filters_of_the_overview_are_in_the_address(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=12)
    assert "12 tasks · 0 running" in texts(open_page(data))
    assert "6 tasks · 0 running" in texts(open_page(data, version="1.1"))
    assert "6 tasks · 0 running" in texts(open_page(data, version="1.1", env="production", service="shop"))
    assert "12 tasks · 0 running" in texts(open_page(data, range="all"))
    # The last pass was nine days after the first task.
    assert "0 tasks · 0 running" in texts(open_page(data, range="24h"))
    assert "No objective is held against this agent" in texts(open_page(data, agent="refund_agent"))


def test_only_what_went_wrong_can_be_looked_at(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=12)

    def outcomes(**parameters: str) -> list[str]:
        shown = json.loads(open_page(data, **parameters).get("plotly_chart")[-1].proto.spec)
        return [trace["name"] for trace in shown["data"]]

    assert outcomes() == ["completed", "waiting for a human", "unknown", "failed", "lost"]
    assert outcomes(wrong="true") == ["unknown", "failed", "lost"]


def test_overview_names_the_open_incidents_in_words(open_page: OpenPage, tmp_path: Path) -> None:
    test = open_page(write_folder(tmp_path / "data", tasks=12))
    frame = next(block.value for block in test.dataframe if "What happened" in block.value.columns)
    assert list(frame["What happened"]) == ["issue_refund was done again when the run was resumed"]
    assert "1 incident open, 0 of them new since yesterday" in texts(test)


def test_cards_leave_no_hole() -> None:
    assert [grid(n) for n in range(12)] == [
        [], [1], [2], [3], [2, 2], [3, 2], [3, 3], [3, 2, 2], [3, 3, 2], [3, 3, 3], [3, 3, 2, 2], [3, 3, 3, 2],
    ]  # fmt: skip


def test_objective_shows_burn_pairs_and_the_formula(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=12)
    test = open_page(data, "screens/objective.py", slo="duplicate-action", objective="default")
    said = texts(test)
    assert "SLI        good / (good + bad)  =  431 / (431 + 9)  =  97.955%" in said
    assert "budget     allowed x actions  =  1.000% x 440  =  4.4 bad actions allowed" in said
    assert "No alert pair page 13.44x over 1h: can never fire" in said
    assert "The budget is already spent." in said
    pairs = next(block.value for block in test.dataframe if "Why this pair" in block.value.columns)
    assert list(pairs["Why this pair"]) == ["spends 5 % of the budget in 6h"]
    # The rows are not what any objective file says, so nothing is made up from a file.
    assert "The definition of this objective is not known here" in said


def test_the_formula_can_be_checked_with_a_calculator(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute("UPDATE slo_status SET bad = 67, budget_events = 4.05, remaining = 1 - 67 / 4.05")
    said = texts(open_page(data, "screens/objective.py", slo="duplicate-action"))
    assert f"left       1 - bad / budget  =  1 - 67 / 4.05  =  -{(67 / 4.05 - 1) * 100:.1f}%" in said.replace(
        "−", "-"
    )


def test_an_unknown_objective_is_said(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=2)
    assert "There is no objective of this name" in texts(open_page(data, "screens/objective.py", slo="nope"))


def test_tasks_are_narrowed_by_the_address(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=12)
    assert len(open_page(data, "screens/tasks.py").dataframe[0].value) == 12
    only = open_page(data, "screens/tasks.py", outcome="lost")
    assert list(only.dataframe[0].value["Task"]) == ["task-0005"]
    assert "1 task, newest first" in texts(only)
    assert list(open_page(data, "screens/tasks.py", duplicate="true").dataframe[0].value["Task"]) == [
        "task-0010", "task-0005", "task-0000",
    ]  # fmt: skip
    assert list(open_page(data, "screens/tasks.py", q="CONV-7").dataframe[0].value["Task"]) == ["task-0007"]
    assert len(open_page(data, "screens/tasks.py", version="1.1").dataframe[0].value) == 6
    assert len(open_page(data, "screens/tasks.py", env="production", service="shop").dataframe[0].value) == 12
    day = open_page(data, "screens/tasks.py", day=["2026-11-21", "2026-11-21"])
    assert len(day.dataframe[0].value) == 7


@pytest.mark.parametrize("text", ["'", '"', "%", ";", "'; DROP TABLE tasks; --", "read_csv('/etc/passwd')"])
def test_filter_text_is_data(open_page: OpenPage, tmp_path: Path, text: str) -> None:
    test = open_page(write_folder(tmp_path / "data", tasks=3), "screens/tasks.py", q=text)
    assert "No task passes these filters." in texts(test)


def test_unknown_values_read_as_a_dash(open_page: OpenPage, tmp_path: Path) -> None:
    frame = open_page(write_folder(tmp_path / "data", tasks=4), "screens/tasks.py").dataframe[0].value
    unpriced = frame[frame["Task"] == "task-0003"].iloc[0]
    assert unpriced["Cost"] == "—"
    assert unpriced["Duplicates"] == ""
    assert frame[frame["Task"] == "task-0000"].iloc[0]["Cost"] == "$0.0123"


def test_what_a_table_does_not_know_is_a_dash_in_its_cell(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=12)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute("UPDATE interventions SET level = 'team_lead' WHERE task_id = 'task-0000'")
    listed = frame_with(open_page(data, "screens/humans.py"), "Requested")
    assert list(listed["Level"]) == ["—", "—", "team_lead"]


def test_task_tells_the_verdict_with_rule_and_evidence(open_page: OpenPage, tmp_path: Path) -> None:
    test = open_page(write_folder(tmp_path / "data", tasks=6), "screens/task.py", id="task-0005")
    said = texts(test)
    assert (
        "Outcome: lost, inferred from the trace. No run had come to an end when the deadline passed. "
        "[task.lost.no_terminal_run] See span 00000000000001f5." in said
    )
    assert "run 1: paused. The last model call asked for a tool call" in said
    assert "[run.paused.call_left_open] See span 0000000000000006." in said
    assert "run 2: ended" in said
    attempts = next(f.value for f in test.dataframe if "Duplicate" in f.value.columns)
    assert list(attempts["Duplicate"]) == ["", "unprotected duplicate"]
    assert list(attempts["Action"]) == ["#1", "#1"]
    assert "Human wait 11 min 40 s" in said


def test_an_unknown_task_is_said_and_not_rendered(open_page: OpenPage, tmp_path: Path) -> None:
    test = open_page(write_folder(tmp_path / "data", tasks=1), "screens/task.py", id="<b>x</b>")
    assert "No task has this id" in texts(test)
    assert test.text[-1].value == "<b>x</b>"


def test_hostile_text_never_reaches_markdown_unescaped(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=1, words=HOSTILE)
    for page, parameters in PAGES.items():
        test = open_page(data, page, **parameters)
        rendered = [str(e.value) for e in (*test.markdown, *test.caption, *test.title, *test.info)]
        rendered += [f"{metric.label} {metric.value} {metric.help}" for metric in test.metric]
        # The page's own style sheet is a constant and the only HTML there is.
        for text in rendered:
            assert not re.search(r"(?<!\\)<|(?<!\\)!\[|(?<!\\)\]\(|(?<!\\)\$", text), text
        for block in test.dataframe:
            for column in block.value.columns:
                for cell in block.value[column]:
                    assert not str(cell).startswith(("=", "+", "@"))


def frame_with(test: AppTest, column: str) -> pd.DataFrame:
    """The first table that has this column."""
    found: pd.DataFrame = next(block.value for block in test.dataframe if column in block.value.columns)
    return found


@pytest.mark.parametrize("page", list(PAGES))
def test_every_page_opens_over_samples(open_page: OpenPage, samples: Path, page: str) -> None:
    test = open_page(samples, page, range="all")
    said = texts(test)
    assert "cannot be read" not in said
    assert "nan" not in re.findall(r"\b[a-z]+\b", said)
    assert not re.search(r"None(?![.:])", said)


def test_actions_name_the_tools_to_fix_first(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=12)
    test = open_page(data, "screens/actions.py")
    tools = frame_with(test, "What to do")
    assert list(tools["Tool"]) == ["issue_refund"]
    assert list(tools["What to do"]) == ["send an idempotency key: it has acted twice"]
    assert list(tools["With a key"]) == [0.0]
    causes = frame_with(test, "Cause")
    assert list(causes["Cause"]) == ["run again after a resume"]
    assert list(frame_with(test, "Second effect")["Task"]) == ["task-0010", "task-0005", "task-0000"]
    assert "Executed side effects 15" in texts(test)
    assert "None." in texts(open_page(data, "screens/actions.py", kind="suspected"))
    assert "No tool with a side effect" in texts(open_page(data, "screens/actions.py", range="24h"))


def test_humans_are_counted_by_decision_and_wait(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=12)
    test = open_page(data, "screens/humans.py")
    said = texts(test)
    assert "Interventions 3" in said
    assert "Tasks with one 3 of 12" in said
    assert "Approved 3\nEdited 0\nRejected 0\nShare rejected 0%" in said
    assert "Waiting, median 11 min 46 s" in said
    assert list(frame_with(test, "Requested")["Task"]) == ["task-0010", "task-0005", "task-0000"]
    assert "No human took part" in texts(open_page(data, "screens/humans.py", agent="nobody", range="24h"))


def test_labelled_tasks_have_precision_and_recall(open_page: OpenPage, tmp_path: Path) -> None:
    test = open_page(write_folder(tmp_path / "data", tasks=16), "screens/humans.py")
    assert frame_with(test, "Precision").iloc[0].to_dict() == {
        "Agent": "refund_agent",
        "Task type": "refund",
        "Tasks labelled": "4 of 16 (25%)",
        "Of those that asked": "2 of 3",
        "Precision": "50.0% (1 of 2; 9.5–90.5%)",
        "Recall": "33.3% (1 of 3; 6.1–79.2%)",
        "Missed": "2",
        "Perhaps missed": "1",
        "At the right level": "1 of 2",
    }
    said = texts(test)
    # The newest unlabelled one is asked about; no collector runs, so how to say it is told instead of buttons.
    assert "Was a human needed for task-0015?" in said
    assert "3 tasks of this time without a label" in said
    assert "agent-slo label task-0015 --needed yes" in said


def test_a_task_says_who_labelled_it(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    said = texts(open_page(data, "screens/task.py", id="task-0000"))
    assert "A human was needed, says refund_agent (2026-11-20 09:00 UTC): issue_refund ran twice" in said
    assert "Nobody has said whether this task needed a human." in texts(
        open_page(data, "screens/task.py", id="task-0005")
    )


def test_alerts_are_listed_by_state(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    test = open_page(data, "screens/alerts.py")
    assert "1 firing · 1 frozen · 1 pending · 1 ended within a week · 1 silenced" in texts(test)
    listed = frame_with(test, "Bad of all")
    assert list(listed["State"]) == ["firing", "frozen, silenced", "pending"]
    assert set(listed["Bad of all"]) == {"9 bad of 440 in 28 d"}
    assert list(frame_with(test, "Silence")["Silence"]) == ["silence-1"]
    assert frame_with(test, "Given up").iloc[0].to_dict()["Given up"] == "1"
    assert list(frame_with(test, "Tries")["Why"]) == ["issue_refund ran twice with equal arguments"]
    ended = open_page(data, "screens/alerts.py", state="resolved", severity="ticket")
    assert list(frame_with(ended, "Bad of all")["State"]) == ["resolved"]
    assert "No alert passes these filters." in texts(
        open_page(data, "screens/alerts.py", state="resolved", severity="page")
    )


def test_an_alert_tells_what_is_said_and_which_tasks(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    test = open_page(data, "screens/alerts.py", id="alert-firing")
    said = frame_with(test, "Value")
    assert list(said["What"])[:2] == ["Why", "Bad of all"]
    assert list(frame_with(test, "When, or by how much")["Task"]) == ["task-0000"]
    assert "Read-only: no collector runs" in texts(test)
    assert "There is no alert with this id" in texts(open_page(data, "screens/alerts.py", id="x"))


def test_a_derivation_that_stands_still_is_said(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    for page in ("screens/overview.py", "screens/data.py"):
        assert "leave something out" not in texts(open_page(data, page))
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute("UPDATE core.pipeline SET derived_seq = 3")
        con.execute("INSERT INTO core.parked_traces VALUES ('t', 'broken <b>', TIMESTAMP '2026-11-20')")
    for page in ("screens/overview.py", "screens/data.py"):
        test = open_page(data, page)
        (warned,) = test.warning
        told = warned.value.replace("\\", "")
        assert re.search(
            r"the numbers leave something out: \d+ spans received up to .* ago are not derived yet", told
        )
        assert "1 trace could not be derived and is set aside (broken <b>)" in told


def test_the_data_page_says_what_takes_the_room(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    parts = json.loads(answer("storage", "--data", data, "--format", "json"))
    test = open_page(data, "screens/data.py")
    shown = frame_with(test, "Size")
    assert list(shown["What"]) == [part["what"] for part in parts["parts"]]
    assert f"On disk {size(parts['bytes'])}" in texts(test)


def test_cost_shows_unpriced_as_unknown(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=12)
    test = open_page(data, "screens/cost.py", measure="Cost")
    said = texts(test)
    assert (
        "2 tasks with a model call whose cost is unknown. What is shown is the least that the 12 tasks"
        in said
    )
    assert "The dearest tasks" in said
    dearest = frame_with(test, "Model / tool calls")
    assert len(dearest) == 10
    assert dearest.iloc[0]["Task"] == "task-0011"


def test_incidents_are_a_queue_and_a_story(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=12)
    queue = open_page(data, "screens/incidents.py")
    assert "1 incident, 1 open." in texts(queue)
    assert list(frame_with(queue, "What happened")["Tasks"]) == ["3"]
    assert "No incident passes these filters" in texts(
        open_page(data, "screens/incidents.py", severity="low")
    )
    one = open_page(data, "screens/incidents.py", id="inc-feed")
    assert "issue_refund was done again when the run was resumed" in texts(one)
    assert list(frame_with(one, "Finding")["Task"]) == ["task-0010", "task-0005", "task-0000"]
    # No collector runs here, so the page says what would do it instead of offering buttons that cannot.
    assert "agent-slo incident inc-feed --state resolved" in texts(one)
    assert "There is no incident with this id" in texts(open_page(data, "screens/incidents.py", id="<b>"))


def test_an_incident_tells_its_story_and_becomes_a_case(open_page: OpenPage, samples: Path) -> None:
    with answers(samples) as reader:
        incident = reader.rows(
            "incidents_list", days=None, agents=None, states=None, severities=None, kinds=None
        )[0]
    test = open_page(samples, "screens/incidents.py", id=incident["incident_id"])
    assert next(iter(frame_with(test, "What")["What"])) == "the task began"
    test.checkbox(key="draft").check()
    test.button(key="export").click().run()
    assert not test.exception
    offered = [button.label.replace("\\", "") for button in test.get("download_button")]
    assert offered == ["tasks.csv", "Download the bundle"]


def test_data_says_what_senders_lack(open_page: OpenPage, samples: Path) -> None:
    test = open_page(samples, "screens/data.py")
    said = texts(test)
    assert "Not derived yet 0" in said
    assert len(frame_with(test, "Read as")) > 0
    lacks = frame_with(test, "What supplies it")
    assert all(lacks["For"])
    assert not any("{setting}" in str(text) for text in lacks["What supplies it"])


def test_a_card_forecasts_nothing_of_a_budget_that_is_spent(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    assert "spent in" in texts(open_page(data))
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute(
            "UPDATE core.slo_status SET state = 'insufficient_data', remaining = -4, "
            "exhaustion = '{\"rolling_s\": 3600}'"
        )
    overspent = texts(open_page(data))
    assert "Burn" in overspent
    assert "spent in" not in overspent
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute("UPDATE core.slo_status SET remaining = 0.5, exhaustion = '{\"rolling_s\": 0}'")
    assert "spent in" not in texts(open_page(data))


def test_each_forecast_says_its_rate_and_horizon(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute(
            "UPDATE core.slo_status SET remaining = 0.5, exhaustion = "
            '\'{"from_now_s": 2851200, "naive_s": 5702400, "never": true, "window": "1d"}\''
        )
    said = texts(open_page(data, "screens/objective.py", slo="task-completion"))
    rate = "At the rate of the last 1d"
    assert f"{rate}, as old events leave the window, the budget is never spent" in said
    assert f"{rate}, if nothing left the window, what is left would be spent in 33 d" in said
    assert f"{rate}, a whole budget, with nothing leaving the window, would last 66 d" in said


def test_the_head_says_when_the_objectives_were_evaluated(open_page: OpenPage, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute("UPDATE core.pipeline SET as_of = TIMESTAMP '2026-12-24 10:00:00'")
        con.execute("UPDATE core.slo_status SET window_end = TIMESTAMP '2026-12-31 00:00:00'")
        con.execute("UPDATE core.slo_status SET evaluated_at = TIMESTAMP '2026-12-24 09:58:00'")
    assert "Decided as of 2026-12-24 09:58" in texts(open_page(data))
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute("ALTER TABLE core.slo_status DROP COLUMN evaluated_at")
    assert "Decided as of 2026-12-24 10:00" in texts(open_page(data))


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (datetime(2026, 11, 27), "Will be looked at again 2026-11-28 00:00:00 UTC."),
        (datetime(2026, 11, 29), "Was to be looked at again 2026-11-28 00:00:00 UTC; the next pass does."),
    ],
)
def test_when_a_task_is_looked_at_again(now: datetime, said: str) -> None:
    task = {
        "claimed": None,
        "excluded_reason": None,
        "eligible": True,
        "next_due_at": datetime(2026, 11, 28),
        "frozen": False,
        "telemetry_duplicates": 0,
    }
    assert verdict_notes(task, now) == [said]


def test_filters_brought_to_a_page_get_into_its_address_though_streamlit_did_not_know_its_controls(
    monkeypatch: pytest.MonkeyPatch, twelve: Path
) -> None:
    """As when the timer of the page that was left went off between the click and this page."""
    monkeypatch.setenv(DATA_VARIABLE, str(twelve))

    def left_by_a_click() -> AppTest:
        fresh = AppTest.from_file(str(APP), default_timeout=60)
        fresh.session_state["brought"] = {"range": "7d", "version": ["1.1"], "env": []}
        fresh.switch_page("screens/tasks.py")
        return fresh.run()

    page = left_by_a_click()
    assert page.session_state["range"] == "7d"
    assert "range" not in page.query_params
    # The page's timer asks for this.
    page.run()
    assert page.query_params == {"range": "7d", "version": "1.1"}
    assert "unsaid" not in page.session_state

    # What somebody chose in between stays chosen.
    page = left_by_a_click()
    page.multiselect(key="version").set_value(["1.0"]).run()
    assert page.session_state["version"] == ["1.0"]
    assert page.session_state["range"] == "7d"
