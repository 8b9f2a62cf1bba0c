"""Convention files: complete, composable, chosen by scope, open to users, and documented."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from metrics.conventions import BASE, Family, canonical_keys, compile_families, content_setting, shipped
from metrics.settings import MetricsSettings
from tests.metrics.bench import MemoryBench, request, span
from tests.metrics.test_captures import FILES

DOCS = Path(__file__).parent.parent.parent / "docs" / "instrument.md"


def test_every_family_extends_known_ones_and_fills_known_fields() -> None:
    names = {family.family for family in shipped()}
    fields = set(shipped()[0].fields)
    assert shipped()[0].family == BASE
    assert len(names) == len(shipped())
    for family in shipped():
        assert set(family.extends) <= names, family.family
        assert set(family.fields) | set(family.without) <= fields, family.family
        assert content_setting(family.family)


def test_every_family_has_its_section() -> None:
    documented = set(re.findall(r"Family `([^`]+)`", DOCS.read_text(encoding="utf-8")))
    assert documented == {family.family for family in shipped()}


@pytest.fixture
def memory() -> Any:
    with MemoryBench() as one:
        yield one


def test_every_capture_is_read_by_a_family_of_its_own_or_the_base(memory: MemoryBench) -> None:
    """Frameworks listed in docs/instrument.md never fall to the fallback; hand-made application spans do."""
    memory.derive_only([line for path in FILES for line in path.read_bytes().splitlines() if line.strip()])
    fallen = memory.rows("SELECT DISTINCT scope FROM work.steps WHERE emitter = 'genai'")
    assert [row["scope"] for row in fallen] == ["app"]


def test_a_longer_scope_decides() -> None:
    emitter = compile_families(shipped(), {}).emitter
    assert emitter.index("'openinference.instrumentation.smolagents'") < emitter.index("'openinference.*'")


def test_the_sql_for_one_family_reads_fewer_keys_than_that_for_all() -> None:
    every, one = (compile_families(shipped(), {}, None, only) for only in (None, frozenset({"strands"})))
    assert len(one.fields) < len(every.fields) / 3
    assert one.emitter == every.emitter


def test_an_unknown_word_in_a_family_file_is_refused() -> None:
    with pytest.raises(ValueError, match="rolls"):
        Family.model_validate(yaml.safe_load("{family: x, scopes: [x], rolls: {}}"))
    with pytest.raises(ValueError, match="roles"):
        Family.model_validate(yaml.safe_load("{family: x, scopes: [x], roles: {k: {v: robot}}}"))


def test_aliases_stand_for_keys_and_for_fields() -> None:
    assert {"agent_slo.task.id", "gen_ai.conversation.id", "conversation_id"} <= canonical_keys()
    settings = MetricsSettings.model_validate(
        {
            "conventions": {
                "aliases": {"ticket": "agent_slo.task.id", "order.session": "conversation_id"},
                "roles": {"app.kind": {"job": "agent", "run_*": "tool"}},
            }
        }
    )
    spans = [
        span("t", "work", 0, 3, None, id="root", app__kind="job", ticket="T-9", order__session="s-1"),
        span("t", "step", 1, 2, "root", app__kind="run_tool", gen_ai__tool__name="pay_bill"),
    ]
    with MemoryBench(settings) as one:
        one.derive_only([request(spans)])
        (task,) = one.rows("SELECT task_id, conversation_id, tool_calls FROM core.tasks")
    assert task == {"task_id": "T-9", "conversation_id": "s-1", "tool_calls": 1}


def test_plain_names_of_an_unlisted_framework_are_unknown_and_never_completed(memory: MemoryBench) -> None:
    """Broken, half-named and foreign spans derive without an exception; nothing is claimed for them."""
    spans = [
        span("a", "invoke_agent helper", 0, 5, None, id="root", gen_ai__operation__name="invoke_agent"),
        span("a", "execute_tool pay", 1, 2, "root", gen_ai__operation__name="execute_tool", gen_ai__tool__name="pay"),
        span("b", "Chain.run", 0, 5, None, openinference__span__kind="CHAIN", input__value="{broken"),
        span("c", "odd", 0, 5, None, gen_ai__operation__name="dance", gen_ai__usage__input_tokens="many"),
        span("d", "chat m", 0, 5, None, gen_ai__operation__name="chat", gen_ai__input__messages="[{]",
             gen_ai__output__messages="[[1, null], {\"role\": 3}]", gen_ai__usage__input_tokens=-1),
        span("e", "http POST", 0, 5, None, http__method="POST"),
        span("f", "execute_tool", 0, 5, None, gen_ai__operation__name="execute_tool"),
    ]  # fmt: skip
    memory.derive_only([request([one], scope="somebody.else") for one in spans])
    outcomes = memory.rows("SELECT outcome, count(*) AS n FROM core.tasks GROUP BY outcome")
    assert {row["outcome"] for row in outcomes} <= {"unknown"}
    roles = {row["name"]: row["role"] for row in memory.rows("SELECT name, role FROM work.steps")}
    assert roles["invoke_agent helper"] == "agent"
    assert roles["http POST"] == roles["odd"] == "other"


def test_token_parts_outside_the_count_are_added(memory: MemoryBench) -> None:
    usage = {
        "input": 300,
        "output": 50,
        "input_cache_read": 800,
        "input_cache_creation": 100,
        "output_reasoning": 30,
    }
    one = span(
        "t",
        "model",
        0,
        1,
        None,
        langfuse__observation__type="generation",
        langfuse__observation__usage_details=usage,
    )
    memory.derive_only([request([one], scope="langfuse-sdk")])
    (task,) = memory.rows("SELECT input_tokens, output_tokens FROM core.tasks")
    assert task == {"input_tokens": 1200, "output_tokens": 80}
