"""Equal arguments have one spelling, whatever wraps them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.canonical import canonical, entities, leaves, without

REFUND = '{"amount":500,"order_id":"A-1"}'


@pytest.mark.parametrize(
    "spelling",
    [
        '{"order_id": "A-1", "amount": 500}',
        '{"amount": 500.0, "order_id": " A-1 "}',
        "{'order_id': 'A-1', 'amount': 500}",
        json.dumps('{"order_id": "A-1", "amount": 500}'),
        '{"args": [], "sanitize_inputs_outputs": true, "kwargs": {"order_id": "A-1", "amount": 500}}',
        '{"kwargs": {"order_id": "A-1", "amount": 500}}',
        json.dumps(
            {
                "input_str": "{'order_id': 'A-1', 'amount': 500}",
                "tags": ["seq:step:1"],
                "metadata": {"langgraph_step": 9},
                "inputs": {"order_id": "A-1", "amount": 500},
                "kwargs": {"tool_call_id": "call_1"},
            }
        ),
    ],
)
def test_spellings_of_one_call_are_equal(spelling: str) -> None:
    assert canonical(spelling) == REFUND


def test_different_calls_stay_different() -> None:
    texts = [
        '{"a": 1}',
        '{"a": "1"}',
        '{"a": true}',
        '{"a": null}',
        "{}",
        "[]",
        "A-1",
        '{"args": [1], "kwargs": {"a": 1}}',
    ]
    assert len({canonical(text) for text in texts}) == len(texts)
    assert canonical(None) is None
    assert canonical('{"id": 123456789012345678901234567890}') == '{"id":123456789012345678901234567890}'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_canonical_is_stable_and_is_json(value: object) -> None:
    once = canonical(json.dumps({"value": value}))
    assert once is not None
    assert canonical(once) == once
    assert "value" in json.loads(once)


@given(st.text())
def test_any_text_has_a_canonical_form(text: str) -> None:
    once = canonical(text)
    assert once is not None
    json.loads(once)
    assert leaves(once) == list(dict.fromkeys(leaves(once)))


def test_prose_can_be_left_out_unless_nothing_else_is_there() -> None:
    free = frozenset({"note"})
    assert without('{"id":1,"note":"please"}', free) == '{"id":1}'
    assert without('{"note":"please"}', free) == '{"note":"please"}'
    assert without('"A-1"', free) == '"A-1"'


def test_entities_are_what_the_result_names_and_the_arguments_did_not() -> None:
    assert entities("refunded 500 for A-1", REFUND) == []
    assert entities('{"refund_id": "rf_77", "amount": 500}', REFUND) == ["rf_77"]
