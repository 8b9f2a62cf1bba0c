"""Small things that a page must say: why a call ended as it did, what to mend, what an address asks in vain."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dashboard.chrome import raw_csv
from dashboard.definitions import changed, definition, definitions, marked_title, openslo_text
from dashboard.door import answers
from dashboard.queries import query_text
from dashboard.screens.actions import advised
from dashboard.screens.task import error_facts, outcome_why
from dashboard.verdict import findings_note, grave_findings
from metrics.openslo import load_all
from metrics.openslo.model import Slo
from tests.dashboard.conftest import OpenPage, texts
from tests.dashboard.data_folder import write_folder

ENDED = datetime(2026, 11, 20, 9)


def call(**more: Any) -> dict[str, Any]:
    return {"outcome": "unknown", "seen_by": "span", "ended_at": ENDED, **more}


@pytest.mark.parametrize(
    ("row", "step", "said", "words"),
    [
        (
            call(),
            {"error_class": "timeout"},
            {"status": "error"},
            "ended with an error (timeout) after which",
        ),
        (
            call(outcome="refused"),
            {"error_class": "400"},
            {"status": "error"},
            "an error (400) by which nothing",
        ),
        (call(), {"error_class": None}, {"status": "ok"}, "its answer says that it may or may not"),
        (call(ended_at=None), None, None, "Its span has no end"),
        (call(seen_by="messages"), None, None, "cannot be told from the trace."),
        (call(outcome="ok"), {"error_class": None}, {"status": "unset"}, "Ok: it ended without an error."),
    ],
)
def test_a_call_says_why_it_ended_as_it_did(
    row: dict[str, Any], step: dict[str, Any] | None, said: dict[str, Any] | None, words: str
) -> None:
    told = outcome_why(row, step, said)
    assert told is not None
    assert words in told


def test_class_and_message_of_an_error_are_told() -> None:
    said = {"status_message": "", "exception_message": "no answer in 10 s"}
    assert error_facts({"error_class": "ReadTimeout"}, said) == [
        ("error class", "ReadTimeout"),
        ("message", "no answer in 10 s"),
    ]
    assert error_facts(None, {"status_message": None, "exception_message": None}) == []


def test_the_message_of_a_span_is_found_by_its_ids() -> None:
    con = duckdb.connect(":memory:")
    events = json.dumps(
        [{"name": "a", "attributes": {}}, {"name": "exception", "attributes": {"exception.message": "gone"}}]
    )
    con.execute(
        "CREATE TABLE spans AS SELECT 1 AS seq, 't' AS trace_id, 's' AS span_id, 'error' AS status, "
        "'' AS status_message, ? AS events, epoch_ns(TIMESTAMP '2026-11-20 09:00:00') AS start_ns",
        [events],
    )
    asked = {"trace": "t", "span": "s", "at": "2026-11-20 09:00:00"}
    assert con.execute(query_text("attempt_error"), asked).fetchall() == [("error", "", "gone")]
    assert con.execute(query_text("attempt_error"), {**asked, "span": "x"}).fetchall() == []
    con.close()


def findings(*severities: str) -> list[dict[str, str]]:
    return [{"severity": severity} for severity in severities]


def test_grave_findings_are_counted_in_words() -> None:
    assert grave_findings(findings("high", "low", "high")) == "2 high findings"
    assert grave_findings(findings("critical", "high")) == "1 critical and 1 high findings"
    assert grave_findings(findings("medium")) == ""
    assert findings_note({"outcome": "failed"}, findings("high")) == ""


def test_a_completed_task_with_grave_findings_is_not_shown_as_well(
    open_page: OpenPage, tmp_path: Path
) -> None:
    data = write_folder(tmp_path / "data", tasks=6)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute("UPDATE tasks SET outcome = 'completed'")
        con.execute("UPDATE findings SET severity = 'high'")
    test = open_page(data, "screens/task.py", id="task-0000")
    said = texts(test)
    assert "orange-badge" in said
    assert "completed, 1 high finding" in said
    assert "Not all is well: 1 high finding below." in said
    assert "green-badge[:material/check_circle: completed" not in said


def tool(**more: int | str) -> dict[str, Any]:
    return {"key_not_honoured": 0, "keys_differ": 0, "repeats_without_key": 0, "advice": "nothing", **more}


def test_advice_names_both_when_repeats_ask_for_different_things() -> None:
    assert advised(tool(key_not_honoured=5, repeats_without_key=28, advice="key_not_honoured")) == (
        "5 carried a key and were done twice: mend the receiver; 28 carried none: send a key on every call"
    )
    assert advised(tool(key_not_honoured=1, keys_differ=2, advice="key_not_honoured")).startswith(
        "1 carried a key and was done twice: mend the receiver; 2 carried another key"
    )
    assert advised(tool(repeats_without_key=3, advice="needs_key_now")) == (
        "send an idempotency key: it has acted twice"
    )
    assert advised(tool(advice="nothing")) == ""


def test_rows_are_given_raw() -> None:
    rows = [
        {"task": "=1+1", "cost_usd": 0.0123, "at": ENDED, "evidence": ["a", "b"], "n": None, "matching": 9, "ok": True}
    ]  # fmt: skip
    text = raw_csv(rows)
    (read,) = csv.DictReader(io.StringIO(text))
    assert read == {
        "task": "'=1+1", "cost_usd": "0.0123", "at": "2026-11-20T09:00:00", "evidence": "a, b", "n": "", "ok": "True",
    }  # fmt: skip


def test_tables_offer_their_rows_under_their_name(open_page: OpenPage, twelve: Path) -> None:
    for page, name in (("tasks", "tasks.csv"), ("actions", "tools.csv"), ("cost", "dearest.csv")):
        offered = [button.label for button in open_page(twelve, f"screens/{page}.py").get("download_button")]
        assert name in [label.replace("\\", "") for label in offered]


def test_an_address_that_asks_in_vain_is_told(open_page: OpenPage, twelve: Path) -> None:
    def warned(page: str, **asked: str) -> str:
        return " ".join(box.value for box in open_page(twelve, page, **asked).warning).replace("\\", "")

    told = warned("screens/overview.py", environment="prod")
    assert "asks for environment, which this page does not know. Did you mean env?" in told
    assert "It knows range, service, agent, type, env, version, wrong." in told
    assert "Did you mean outcome?" in warned("screens/tasks.py", outcom="lost")
    assert warned("screens/tasks.py", outcome="lost", range="all") == ""
    # Links carry the filters along to pages without them.
    assert warned("screens/objective.py", slo="duplicate-action", range="7d", env="prod") == ""


def test_an_empty_page_names_what_to_set_for_names_and_contents(open_page: OpenPage, nothing: Path) -> None:
    said = texts(open_page(nothing))
    assert "OTEL_SERVICE_NAME=" in said
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true" in said


def test_a_title_says_what_was_changed_within_what_openslo_allows() -> None:
    assert marked_title("In time", "cut 120 s, target 99.95 %") == "In time (cut 120 s, target 99.95 %)"
    long = marked_title("x" * 63, "cut 120 s, target 99.95 %")
    assert len(long) == 63
    assert long.endswith("… (cut 120 s, target 99.95 %)")


def test_a_saved_file_says_its_own_numbers_and_can_hold_the_whole_pack(samples: Path, tmp_path: Path) -> None:
    with answers(samples) as reader:
        row = reader.row("objective_status", slo="latency", objective="within-5-min")
    assert row is not None
    objective = definition(samples, row)
    assert objective is not None
    wanted = changed(objective, Decimal("0.9995"), 28, Decimal("120.000"))
    whole = load_all(_written(tmp_path / "whole.yaml", openslo_text(samples, wanted, whole_pack=True)))
    before = definitions(samples)
    assert len(whole.objectives) == len(before.objectives)
    slo = next(o for o in whole.objects if isinstance(o, Slo) and o.metadata.name == "latency")
    mark = "cut 120 s, target 99.95 %"
    assert slo.metadata.display_name == f"Tasks done within 5 minutes ({mark})"
    assert (slo.spec.description or "").endswith(f"(Changed: {mark}.)")
    # The name of the objective told of the old cut.
    assert "5-min" not in str(slo.spec.objectives[0].display_name)
    others = {(o.slo, o.target, o.cut) for o in before.objectives if o.slo != "latency"}
    assert others == {(o.slo, o.target, o.cut) for o in whole.objectives if o.slo != "latency"}
    # Unchanged, nothing is marked.
    same = openslo_text(samples, changed(objective, objective.target, 28, objective.cut))
    assert "Changed:" not in same
    assert "within-5-min" in same


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
