"""What the detectors know, where it is looked for, and that no text takes longer than its length."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import orjson
import pyarrow as pa
import pytest

from collector.batch import LOG_SCHEMA, SPAN_SCHEMA, Batch, log_table, span_table
from collector.decode import decode
from collector.redaction import detectors
from collector.redaction.policy import RedactionRules
from collector.redaction.redactor import Redactor
from collector.redaction.vendors import FORMS
from tests.collector.requests import span, trace_request

BODY = "4f9Kq2Zx7LmN8pRs3TvW6yBc1DdEe5GhJ0aQwXz9U4iOk2Pl7VbRtY"
HEX = "0f9a3c5e7b1d2f4a6c8e0b1d3f5a7c9e" * 2
WORD = "hunter2x" + "9q"

# put together here, so that this file holds none
KEYS = {
    "groq": "gsk_" + BODY,
    "xai": "xai-" + BODY,
    "replicate": "r8_" + BODY[:37],
    "perplexity": "pplx-" + BODY,
    "tavily": "tvly-" + BODY[:32],
    "tavily dev": "tvly-dev-" + BODY[:32],
    "twilio": "SK" + HEX[:32],
    "notion": "ntn_" + BODY[:46],
    "notion old": "secret_" + BODY[:43],
    "linear": "lin_api_" + BODY[:40],
    "databricks": "dapi" + HEX[:32],
    "pinecone": "pcsk_" + BODY[:5] + "_" + BODY,
    "telegram": "712345678" + "9:" + "AA" + BODY[:33],
    "slack webhook": "hooks.slack.com/services/" + "T0123ABCD/B0123ABCD/" + BODY[:24],
    "discord webhook": "discord.com/api/webhooks/1234567890/" + BODY,
    "azure": "AccountKey=" + base64.b64encode(BODY.encode()).decode(),
    "vault": "hvs." + BODY[:24],
    "age": "AGE-SECRET-KEY-" + "1" + BODY.upper(),
    "google oauth": "ya29." + BODY,
    "google client": "GOCSPX-" + BODY[:28],
    "supabase": "sbp_" + HEX[:40],
    "fireworks": "fw_" + BODY[:24],
    "atlassian": "ATATT3" + BODY + "=1A2B3C4D",
    "mail": "jörg" + "@exämple.de",
}
SPELLINGS = {
    "option": f"psql --password {WORD} -h db",
    "option with quotes": f"tool --api-key '{WORD}'",
    "list as text": f"['tool', '--password', '{WORD}']",
    "export": f"export SECRET_KEY='{WORD}'",
    "curl": f"curl -s -u user:{WORD} https://db.internal",
    "mysql": f"mysql -h db -p{WORD} shop",
    "xml": f"<login><password>{WORD}</password></login>",
    "german": f"Passwort: {WORD}",
    "spanish": f"Contraseña: {WORD}",
    "russian": f"пароль: {WORD}",
    "chinese": f"密码：{WORD}",
    "in another name": f"dbPassword={WORD}",
    "sas": f"https://x.blob.core.windows.net/c?sv=2024&sig={WORD}abcdefghijk%3D",
}


def stored(sent: object) -> str:
    """The attributes of a span as they would be stored."""
    batch = decode("traces", "protobuf", trace_request(span("op", {"a": sent})).SerializeToString()).batch
    spans = Redactor(RedactionRules(), b"k" * 32).batch(batch).spans
    assert spans is not None
    return str(spans.column("attributes")[0].as_py())


@pytest.mark.parametrize("name", KEYS)
def test_keys_are_known_by_their_form(name: str) -> None:
    key = KEYS[name]
    secret = key.partition("=")[2].rstrip("=") if name == "azure" else key
    for text in (key, f"use {key}, please", f"line\n{key}\nline", json.dumps({"note": f"x {key} y"})):
        found = stored(text)
        assert secret not in found, text
        assert detectors.PLACEHOLDER.search(found)


@pytest.mark.parametrize("name", SPELLINGS)
def test_secrets_are_known_by_what_stands_before_them(name: str) -> None:
    for sent in (SPELLINGS[name], json.dumps({"cmd": SPELLINGS[name]})):
        found = stored(sent)
        assert WORD not in found
        assert "<SECRET:" in found or "<SAS:" in found


def test_arguments_of_a_command_and_bytes_are_looked_through() -> None:
    assert WORD not in stored(["tool", "--password", WORD])
    assert WORD not in stored(json.dumps({"argv": ["curl", "-u", f"me:{WORD}"]}))
    request = trace_request(span("op", {}))
    pair = request.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="raw")
    pair.value.bytes_value = f'{{"password": "{WORD}"}}'.encode()
    spans = (
        Redactor(RedactionRules(), b"k" * 32)
        .batch(decode("traces", "protobuf", request.SerializeToString()).batch)
        .spans
    )
    assert spans is not None
    [held] = orjson.loads(spans.column("attributes")[0].as_py()).values()
    assert base64.b64decode(held["base64"]).startswith(b'{"password": "<SECRET:')


def test_numbers_need_more_than_a_shape() -> None:
    text = "orders 300 400 5000, 200-300-4000, 0231 12345, part 078-05-1120"
    assert stored(text) == json.dumps({"a": text}, separators=(",", ":"))
    for number in ("phone 415-555-0132", "1-415-555-0132", "(415) 555-0132", "0231 1234567", "+49 231 12345"):
        assert "<PHONE:" in stored(f"is {number} right"), number
    assert "<SSN:" in stored("her SSN is 078-05-1120")
    assert "<SSN:" not in stored("her SSN is 900-05-1120")


def test_every_string_of_a_row_is_looked_through() -> None:
    secret = KEYS["groq"]
    one = Redactor(RedactionRules(), b"k" * 32)
    for schema, make, ids in (
        (SPAN_SCHEMA, span_table, {"trace_id", "span_id", "parent_span_id"}),
        (LOG_SCHEMA, log_table, {"trace_id", "span_id"}),
    ):
        documents = {"attributes", "resource", "events", "links", "body"}
        row = tuple(
            None
            if field.type != pa.string() or field.name in ids
            else json.dumps({"x": secret})
            if field.name in documents
            else f"shop {secret}"
            for field in schema
        )
        plain = tuple(v if v is None or v.startswith("{") else "shop" for v in row)
        rows: list[Any] = [row, plain]
        table = make(rows)
        batch = Batch(spans=table) if schema is SPAN_SCHEMA else Batch(logs=table)
        clean = one.batch(batch)
        found = clean.spans if schema is SPAN_SCHEMA else clean.logs
        assert found is not None
        assert secret not in repr(found.to_pylist())
        assert found["service"].to_pylist()[1] == "shop"
        assert found["service"].to_pylist()[0].startswith("shop <API_KEY:")


HOSTILE = [
    *("a-", "a_", "password: ", "--password ", "--a-", "<password ", "curl -u a:b ", "mysql -p"),
    *("-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "eyJAAAAAAAA-", "eyJAAAAAAAA.", "bearer aaaaaaaaaaaa"),
    *("://a:", "a@", "ö@ö.", "DE89 3704 ", "4111 ", "+1 (", "200-300-", "sk-A", "SG.aaaaaaaaaaaaaaaa"),
    "9f1c2a4e-5b6d-4c3e-8f90-a1b2c3d4e5f6-",
]


@pytest.mark.parametrize("part", HOSTILE)
def test_a_long_text_of_it_is_looked_through(part: str) -> None:
    """What grows with the square of the length froze the process at a tenth of this: the suite's time limit ends it."""
    text = part * (300_000 // len(part)) + f" password: {WORD}"
    [clean] = Redactor(RedactionRules(), b"k" * 32)._clean([orjson.dumps({"a": text}).decode()])
    assert clean is not None
    assert WORD not in clean
    for detector in detectors.DETECTORS:
        assert isinstance(detector.sub(text, lambda kind, _: f"<{kind}>"), str)


def test_forms_are_bounded_and_told_apart() -> None:
    assert len({(form.issuer, form.prefix) for form in FORMS}) == len(FORMS)
    for form in FORMS:
        assert form.least >= 10
        assert not re.search(r"[*+]", form.prefix), form
