"""Names of persons: the hook into redaction, and the real Presidio with a recogniser of three names."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from agent_slo.config import Config
from agent_slo.redaction import redaction_rules
from collector.decode import decode
from collector.redaction import names as names_module
from collector.redaction.names import FindNames, NameRules, analyzed, name_finder
from collector.redaction.policy import RedactionRules
from collector.redaction.redactor import Redactor
from collector.settings import CollectorError
from tests.collector.requests import log_request, span, trace_request

KEY = b"a key of the installation, long enough"
PEOPLE = ("Maria Lopez", "Ravi", "Ana Lima")


def find(text: str) -> list[tuple[int, int]]:
    """A model that knows three people."""
    return sorted((text.index(p), text.index(p) + len(p)) for p in PEOPLE if p in text)


def redacted(attributes: dict[str, Any], finder: FindNames = find, **rules: Any) -> dict[str, Any]:
    one = Redactor(RedactionRules(find_names=finder, **rules), KEY)
    sent = span("mail Maria Lopez now", attributes)
    sent.status.message = "no answer of Maria Lopez"
    spans = one.batch(decode("traces", "protobuf", trace_request(sent).SerializeToString()).batch).spans
    assert spans is not None
    row = spans.to_pylist()[0]
    found: dict[str, Any] = json.loads(row["attributes"])
    assert "Maria Lopez" not in row["status_message"]
    return found


def test_names_are_replaced_wherever_text_may_be() -> None:
    messages = [
        {
            "role": "user",
            "parts": [{"type": "text", "content": "Maria Lopez asks; write m@x.org and Ravi now"}],
        }
    ]
    found = redacted(
        {"gen_ai.input.messages": json.dumps(messages), "note": "call Maria Lopez", "list": ["for Ana Lima"]},
        mapped=frozenset({"gen_ai.input.messages"}),
        content=frozenset({"gen_ai.input.messages"}),
    )
    text = json.loads(found["gen_ai.input.messages"])[0]["parts"][0]["content"]
    assert "Maria Lopez" not in text
    assert "Ravi" not in text
    assert text.endswith(" now")
    assert text.count("<PERSON:") == 2
    assert text.count("<EMAIL:") == 1
    # the same name is the same placeholder
    assert found["note"].removeprefix("call ") == text.split(" asks")[0]
    assert found["list"][0].startswith("for <PERSON:")


def test_ids_and_names_of_things_are_left_alone() -> None:
    stated = {
        "gen_ai.agent.name": "Maria Lopez desk",
        "agent_slo.task.id": "task of Ravi",
        "tool": "Ravi",
        "count": 3,
    }
    assert redacted(stated, mapped=frozenset({"gen_ai.agent.name"})) == stated


def test_a_placeholder_is_no_name() -> None:
    whole = redacted({"note": "key is sk-proj-9aB8cD7eF6gH5iJ4kL3mN2oP here"}, lambda text: [(0, len(text))])
    assert whole["note"].count("<API_KEY:") == 1
    assert "<PERSON:" not in whole["note"]


def test_what_a_model_fails_on_is_not_stored(caplog: pytest.LogCaptureFixture) -> None:
    def broken(text: str) -> list[tuple[int, int]]:
        raise RuntimeError(f"cannot read {text}")

    found = redacted({"note": "call Maria Lopez"}, broken)
    assert found["note"].startswith("<TEXT:")
    assert "Maria" not in caplog.text
    assert "RuntimeError" in caplog.text


def test_log_bodies_are_searched_too() -> None:
    one = Redactor(RedactionRules(find_names=find), KEY)
    logs = one.batch(decode("logs", "protobuf", log_request("Maria Lopez called")).batch).logs
    assert logs is not None
    assert logs.column("body").to_pylist()[0].startswith('"<PERSON:')


def test_a_text_is_read_once() -> None:
    read: list[str] = []
    one = Redactor(RedactionRules(find_names=lambda text: read.append(text) or find(text)), KEY)
    for _ in range(3):
        one.batch(
            decode(
                "traces", "protobuf", trace_request(span("op", {"a": "to Ravi"})).SerializeToString()
            ).batch
        )
    assert read == ["to Ravi"]
    assert one.counts == {"PERSON": 3}


def test_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[NameRules] = []
    monkeypatch.setattr("agent_slo.redaction.name_finder", lambda rules: asked.append(rules) or find)
    assert redaction_rules(Config()).find_names is None
    assert (
        redaction_rules(Config.model_validate({"collector": {"redaction_names": False}})).find_names is None
    )
    assert asked == []
    for stated in (True, {"language": "de", "model": "de_core_news_sm", "least_score": 0.8}):
        rules = redaction_rules(Config.model_validate({"collector": {"redaction_names": stated}}))
        assert rules.find_names is find
    assert asked == [NameRules(), NameRules("de", "de_core_news_sm", 0.8)]


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(names_module, "import_module", missing)
    with pytest.raises(
        CollectorError, match=r"presidio_analyzer is not installed; `pip install 'agent-slo\[pii\]'`"
    ):
        name_finder(NameRules())


def test_nothing_is_loaded_unless_asked_for() -> None:
    code = (
        "import sys; from agent_slo.config import Config; from agent_slo.redaction import redaction_rules; "
        "redaction_rules(Config()); print([m for m in ('presidio_analyzer', 'spacy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_model_is_named_and_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("presidio_analyzer")
    with pytest.raises(CollectorError, match="python -m spacy download xx_nonesuch_sm"):
        name_finder(NameRules(model="xx_nonesuch_sm"))


def test_with_the_real_analyzer(caplog: pytest.LogCaptureFixture) -> None:
    presidio = pytest.importorskip("presidio_analyzer")
    spacy = pytest.importorskip("spacy")
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    class Blank(SpacyNlpEngine):  # type: ignore[misc]
        """An engine without a trained model: it only cuts texts into words."""

        def load(self) -> None:
            self.nlp = {"en": spacy.blank("en")}

    caplog.set_level(logging.ERROR)
    people = presidio.PatternRecognizer(supported_entity="PERSON", deny_list=list(PEOPLE))
    engine = Blank()
    engine.load()
    analyzer = presidio.AnalyzerEngine(
        registry=presidio.RecognizerRegistry([people]), nlp_engine=engine, supported_languages=["en"]
    )
    finder = analyzed(analyzer, NameRules())
    assert finder("Maria Lopez and Ravi met") == [(0, 11), (16, 20)]
    found = redacted(
        {"note": "call Maria Lopez", "args": json.dumps({"to": "Ana Lima", "order_id": "A-1"})}, finder
    )
    assert found["note"].startswith("call <PERSON:")
    assert json.loads(found["args"])["to"].startswith("<PERSON:")
    assert json.loads(found["args"])["order_id"] == "A-1"
