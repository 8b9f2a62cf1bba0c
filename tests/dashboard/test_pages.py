"""Each page over an empty folder, one task, many tasks, and texts that want to be more than text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.dashboard.conftest import OpenPage, texts
from tests.dashboard.data_folder import Words, write_folder

HOSTILE = Words(
    agent="<script>alert('agent')</script>",
    tool="![x](http://attacker.example/tool.png)",
    arguments='{"note": "=HYPERLINK(\\"http://attacker.example\\")"}',
    result="<img src=x onerror=alert(1)> :red[red] $x^2$",
    detail="=cmd|' /C calc'!A0",
)


@pytest.mark.parametrize("page", ["screens/overview.py", "screens/tasks.py", "screens/task.py"])
def test_an_empty_folder_says_how_to_point_an_exporter_here(
    open_page: OpenPage, tmp_path: Path, page: str
) -> None:
    said = texts(open_page(write_folder(tmp_path / "data", derived=False), page))
    assert "Nothing has arrived yet" in said
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318" in said
    assert "agent-slo demo" in said


@pytest.mark.parametrize("page", ["screens/overview.py", "screens/tasks.py", "screens/task.py"])
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
    assert [metric.label for metric in test.metric][:2] == ["431 of 440 actions", "272 of 300 tasks"]
    assert test.metric[0].value.replace("\\", "") == "98.0%"
    assert "Target 99% · 95% interval 96.0–99.2%" in said
    assert "Burn 1h — · 6h 0.4× · 3d 1.2×" in said
    assert "3 unknown: between 97.3–98.0% · 2 excluded · 34% of outcomes inferred" in said
    assert "Page alert:" in said
    assert "12 tasks · 0 running · 1 waiting for a human" in said
    for word in ("Budget spent", "At risk", "On target", "Too few events"):
        assert word in said
    assert "Collector down: reading its files" in said
    assert "nan" not in said.lower()
    assert "None" not in said


def test_overview_lists_the_newest_duplicates(open_page: OpenPage, tmp_path: Path) -> None:
    test = open_page(write_folder(tmp_path / "data", tasks=12))
    frame = test.dataframe[0].value
    assert list(frame["Task"]) == ["task-0010", "task-0005", "task-0000"]
    assert "3 unprotected duplicates in 3 tasks" in texts(test)


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


def test_task_tells_the_verdict_with_rule_and_evidence(open_page: OpenPage, tmp_path: Path) -> None:
    test = open_page(write_folder(tmp_path / "data", tasks=6), "screens/task.py", id="task-0005")
    said = texts(test)
    assert "Outcome: lost, inferred from the trace (rule stated_outcome); see span 00000000000001f5." in said
    assert "run 1: paused by rule root_ended; see span 0000000000000006" in said
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
    for page, parameters in (
        ("screens/overview.py", {}),
        ("screens/tasks.py", {}),
        ("screens/task.py", {"id": "task-0000"}),
    ):
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
