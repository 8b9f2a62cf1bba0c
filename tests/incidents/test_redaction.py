"""What is taken out, what stays, and that equal values stay equal."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.redaction.detectors import DETECTORS, is_card, is_iban
from incidents.redaction import Redactor, is_secret_name

PLANTED = {
    "EMAIL": "ada.lovelace+billing@mail.example.co.uk",
    "PHONE": "+49 170 1234567",
    "CARD": "4111 1111 1111 1111",
    "IBAN": "DE89 3704 0044 0532 0130 00",
    "IP": "203.0.113.77",
    "SSN": "078-05-1120",
    "AWS_KEY": "AKIA" + "IOSFODNN7EXAMPLE",
    "GITHUB_TOKEN": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "STRIPE_KEY": "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "API_KEY": "sk-proj-" + "abcdefghijklmnopqrstuvwx0123456789",
    "SLACK_TOKEN": "xoxb-" + "1234567890-abcdefghijkl",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "BEARER": "Bearer abcdef0123456789ABCDEF",
    "GOOGLE_KEY": "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_value_becomes_a_typed_placeholder(kind: str) -> None:
    redactor = Redactor()
    found = redactor.text(f"before {PLANTED[kind]} after")
    assert found == f"before <{kind}_1> after"
    assert redactor.counts == {kind: 1}


def test_a_private_key_is_taken_out_whole() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----"
    assert Redactor().text(f"key: {key} end") == "key: <PRIVATE_KEY_1> end"
    assert Redactor().text("cut -----BEGIN PRIVATE KEY-----\nMIIEow") == "cut <PRIVATE_KEY_1>"


@pytest.mark.parametrize(
    "text",
    [
        "order A-20687 for 323 EUR on 2026-11-06 10:05:17",
        "2026-11-28T14:00:00.123456Z",
        "timestamps 1793959503686520000 and 1793959503",
        "version 1.2.3, build 10.4",
        "task-3f1849d2258ef2e2 and 21169d184728f5ab7dd0e20b73be5c83",
        "password: required",
        "4111 1111 1111 1112",
        "DE89 3704 0044 0532 0130 01",
        "2.400,50 or 2,400.50",
        "tokens: 1180 in, 42 out",
    ],
)
def test_business_values_stay(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize(
    "name",
    ["password", "apiKey", "api_key", "X-Api-Key", "Authorization", "client_secret", "refreshToken", "token"],
)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret_name(name)
    assert Redactor().redact({name: {"deep": ["hunter2", 5, None, True]}}) == {
        name: {"deep": ["<SECRET_1>", "<SECRET_2>", None, True]}
    }


@pytest.mark.parametrize(
    "name",
    ["idempotency_key", "max_tokens", "input_tokens", "order_id", "passenger", "author", "key", "tokens"],
)
def test_a_business_name_is_no_secret(name: str) -> None:
    assert not is_secret_name(name)


def test_one_value_has_one_placeholder_wherever_it_stands() -> None:
    redactor = Redactor()
    case = {
        "when": {"mail": "ada@example.com"},
        "text": "to ada@example.com, copy bob@example.com",
        "ada@example.com": 1,
    }
    assert redactor.redact(case) == {
        "when": {"mail": "<EMAIL_1>"},
        "text": "to <EMAIL_1>, copy <EMAIL_2>",
        "<EMAIL_1>": 1,
    }


def test_a_value_named_secret_once_is_taken_out_of_prose_as_well() -> None:
    redactor = Redactor()
    case = {"said": "I logged in with correct-horse", "password": "correct-horse"}
    redactor.redact(case)
    assert redactor.redact(case) == {"said": "I logged in with <SECRET_1>", "password": "<SECRET_1>"}


def test_secrets_inside_json_text_and_numbers() -> None:
    redactor = Redactor()
    assert redactor.redact(r'{"api_key": "abcd1234"} \"token\": \"zyx98765\"') == (
        r'{"api_key": "<SECRET_1>"} \"token\": \"<SECRET_2>\"'
    )
    assert redactor.redact({"card": 4111111111111111, "amount": 4111111111111112}) == {
        "card": "<CARD_1>",
        "amount": 4111111111111112,
    }


def test_the_schema_of_a_secret_argument_stays() -> None:
    schema = {"password": {"type": "string", "description": "the secret", "default": "hunter2"}}
    assert Redactor().redact(schema) == {
        "password": {"type": "string", "description": "the secret", "default": "<SECRET_1>"}
    }


def test_a_lone_surrogate_is_replaced() -> None:
    assert Redactor().text("a\ud800b") == "a�b"


def test_check_digits() -> None:
    assert is_card("4111-1111-1111-1111")
    assert not is_card("0000000000000000")
    assert is_iban("GB82 WEST 1234 5698 7654 32")
    assert not is_iban("GB82 WEST 1234 5698 7654 33")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=30),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=12,
    )
)
def test_redacting_twice_changes_nothing_more(value: object) -> None:
    redactor = Redactor()
    redactor.redact(value)
    once = redactor.redact(value)
    assert redactor.redact(once) == once
    json.dumps(once).encode()


@given(
    st.text(alphabet=string.printable, max_size=60), st.sampled_from(sorted(PLANTED)), st.text(max_size=60)
)
def test_no_surrounding_text_saves_an_email(before: str, kind: str, after: str) -> None:
    text = f"{before} {PLANTED['EMAIL']} {after}"
    assert PLANTED["EMAIL"] not in Redactor().text(text)


STORED = "<EMAIL:0123456789>"


def test_what_the_collector_replaced_stays_and_equal_values_stay_equal() -> None:
    redactor = Redactor()
    case = {
        "args": {"to": STORED, "password": "<SECRET:89abcdef01>", "phone": "<PHONE:00112233aa>"},
        "said": f"Mail {STORED}, password: <SECRET:89abcdef01>, and ada@example.com",
    }
    assert redactor.redact(case) == {
        "args": case["args"],
        "said": f"Mail {STORED}, password: <SECRET:89abcdef01>, and <EMAIL_1>",
    }
    assert redactor.counts == {"EMAIL": 2, "PHONE": 1, "SECRET": 1}
    assert redactor.found == {"ada@example.com"}


def test_every_detector_of_the_store_works_in_the_export() -> None:
    assert {detector.name for detector in DETECTORS} - {
        "URL_PASSWORD",
        "PRIVATE_KEY",
        "GITLAB_TOKEN",
        "SAS",
    } <= set(PLANTED)
    assert (
        Redactor().text("https://ada:hunter2@db.example.com/x") == "https://<URL_PASSWORD_1>@db.example.com/x"
    )
    assert Redactor().text("glpat-" + "abcdefghij0123456789") == "<GITLAB_TOKEN_1>"


def test_a_short_word_under_a_weak_name_is_no_secret() -> None:
    assert Redactor().redact({"token": "the", "auth": "basic user"}) == {"token": "the", "auth": "basic user"}
    assert Redactor().redact({"token": "x9-77", "mobile": "0170 5551234", "session_id": "abc"}) == {
        "token": "<SECRET_1>",
        "mobile": "<PHONE_1>",
        "session_id": "<SECRET_2>",
    }
