"""How people and programs write a secret down, and what is written like one."""

from __future__ import annotations

import json
import random
import string

import orjson
import pytest

from collector.decode import decode
from collector.redaction import detectors
from collector.redaction.policy import RedactionRules
from collector.redaction.redactor import Redactor
from tests.collector.requests import span, trace_request

# put together here, so that this file holds none
LETTERS = "hTxQbWzRkLpYvNcMdJgS" + "fKqXwZrBtPnHmVjL"
WORD = "hunter2x" + "9q"
TOKEN = "9f8e7d6c5b4a3928" + "1706f5e4d3c2b1kX"
DIGEST = "64b8bd1bf401d868" + "853da6d7a222f3d0"


def stored(sent: object, key: str = "a") -> str:
    """The attributes of a span as they would be stored."""
    batch = decode("traces", "protobuf", trace_request(span("op", {key: sent})).SerializeToString()).batch
    spans = Redactor(RedactionRules(), b"k" * 32).batch(batch).spans
    assert spans is not None
    return str(spans.column("attributes")[0].as_py())


@pytest.mark.parametrize("prefix", ["hf_", "sk-", "npm_", "gsk_"])
@pytest.mark.parametrize("letters", [LETTERS[:34], LETTERS[:34].lower()])
def test_an_issuers_key_needs_no_digit(prefix: str, letters: str) -> None:
    for text in (prefix + letters, f"use {prefix}{letters}, please", json.dumps({"note": prefix + letters})):
        assert letters not in stored(text)


HEADERS = {
    "bare": (f"Authorization: {TOKEN}", TOKEN),
    "lower case": (f"authorization: token {TOKEN}", TOKEN),
    "letters": (f"Authorization: {LETTERS}", LETTERS),
    "api key": (f"Authorization: ApiKey {TOKEN}", TOKEN),
    "unknown scheme": (f"Authorization: Acme {TOKEN}", TOKEN),
    "digest": (f'Authorization: Digest username="bob", response="{TOKEN}", nc=1', TOKEN),
    "signed": (
        f"Authorization: AWS4-HMAC-SHA256 Credential=x/y, SignedHeaders=host, Signature={TOKEN}",
        TOKEN,
    ),
    "in a command": (f"curl -H 'Authorization: token {TOKEN}' https://shop.example", TOKEN),
    "in an object": (f"sent {{'Authorization': 'token {TOKEN}'}} to it", TOKEN),
    "proxy": (f"Proxy-Authorization: {TOKEN}", TOKEN),
    "cookie": (f"Cookie: theme=dark; session={LETTERS[:12]}", LETTERS[:12]),
    "set-cookie": (f"set-cookie: sid={TOKEN}; HttpOnly; Path=/", TOKEN),
}


@pytest.mark.parametrize("name", HEADERS)
def test_credentials_in_headers(name: str) -> None:
    text, secret = HEADERS[name]
    for sent in (
        text,
        f"line\n{text}\nline",
        json.dumps({"log": text}),
        json.dumps({"b": json.dumps([text])}),
    ):
        assert secret not in stored(sent), sent


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgres://bob:ab" + "@" + "cdEF@db/x", "cdEF"),
        ("postgres://bob@corp:ab" + "@" + "cdEF@db.internal:5432/x", "cdEF"),
        ("redis://:R3disPassQQ" + "@cache:6379/0", "R3disPassQQ"),
    ],
)
def test_a_password_in_an_address_ends_before_the_host(text: str, secret: str) -> None:
    found = stored(f"to {text} now")
    assert secret not in found
    assert "<URL_PASSWORD:" in found
    assert "@db" in found or "@cache" in found


NAMED = [
    *(
        f"DB_PASS={WORD}",
        f"REDIS_PASS: {WORD}",
        f"MAIL_PASS={WORD}/x",
        f'SMTP_PASS="{WORD}"',
        f"user_pass={WORD}",
        f"pass={WORD}",
    ),
    *(
        f"user: bob, pass: {WORD}",
        f"pwd: {WORD}",
        f"passwd is {WORD}",
        f"passphrase={WORD}",
        f"dbPass={WORD}",
    ),
    *(f"export OPENAI_KEY={TOKEN}", f"MISTRAL_KEY: {TOKEN}", f"openaiKey={TOKEN}", f"api.key={WORD}"),
    *(f"password%3D{WORD}", f"x?a=1&password%3d{WORD}", f"MYSQL_PWD={WORD}", f"password={LETTERS[:14]}"),
    *('Error: {"password": "@@"}', 'Error: {"password": {"value": "@@"}}'),
    *('sent {"DB_PASS":"@@"}', 'sent {"cookie":"sid=@@"}', '{"DB_PASS":"@@"}'),
    *('{"passwords": ["a1b2c3", "@@"]}', 'got {"passwords": ["a1b2c3", "@@"]}'),
    *('{"cookie":"sid=@@"}', 'got {"cookies": {"sid": "@@"}} back'),
    *('[{"name":"DB_PASSWORD","value":"@@"}]', f"AZURE_KEY={DIGEST}"),
    *('env [{"name":"DB_PASSWORD","value":"@@"}]', f"- name: DB_PASSWORD\n  value: {WORD}"),
    *('{"key":"api_key","value":"@@"}', '["x-api-key","@@"]', f"('x-api-key', '{WORD}')"),
    *(
        '{"headers":[["x-api-key","@@"],["cookie","a=@@"]]}',
        f"x?X-Amz-Signature={TOKEN}{WORD}",
    ),
]


@pytest.mark.parametrize("text", [text.replace("@@", WORD) for text in NAMED])
def test_secrets_named_in_texts(text: str) -> None:
    secret = next(s for s in (WORD, TOKEN, DIGEST, LETTERS[:14]) if s in text)
    for sent in (
        text,
        f"answer: {text} end",
        json.dumps({"out": text}),
        json.dumps({"b": json.dumps([text])}),
    ):
        assert secret not in stored(sent), sent


@pytest.mark.parametrize(
    "key",
    [
        *(
            "pw",
            "api.key",
            "openai_key",
            "openaiKey",
            "bearer",
            "mfa_code",
            "mfaCode",
            "passwords",
            "db_pass",
        ),
        *("smtp.pass", "PASS_WORD", "x-acme-key", "cookies"),
    ],
)
def test_names_of_keys_that_hold_secrets(key: str) -> None:
    value = "kv" + TOKEN[:14]
    assert value not in stored(value, key)
    assert value not in stored(json.dumps({key: value}))
    assert value not in stored(json.dumps({"all": [{key: [value, value]}]})) or key not in (
        "passwords",
        "cookies",
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(
            ("stop_token", "<end9>"),
            ("eos_token", "<|im_end|>"),
            ("has_password", "false9"),
            ("max_tokens", 4096),
        ),
        *(("has_password", True), ("password", True), ("passwords", 3), ("cookies", 12), ("pw", 7)),
        *(
            ("idempotency_key", TOKEN),
            ("idempotencyKey", TOKEN),
            ("cache_key", TOKEN),
            ("key_fields", "a,b9"),
        ),
        *(
            ("sort_key", TOKEN),
            ("order.key", "o-99"),
            ("password_reset_requested", "true9"),
            ("password", "true"),
        ),
        *(
            ("acme_key", "550e8400-e29b-41d4-a716-446655440000"),
            ("token_type", "Bearer9"),
            ("keyboard", TOKEN),
        ),
        *(
            ("acme_key", "main"),
            ("acme_key", DIGEST),
            ("compass", TOKEN),
            ("needs_auth", "yes-2"),
            ("requires_api_key", "no-2"),
        ),
    ],
)
def test_names_of_keys_that_hold_none(key: str, value: object) -> None:
    assert json.loads(stored(value, key)) == {key: value}
    assert json.loads(json.loads(stored(json.dumps({key: value})))["a"]) == {key: value}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "git@github.com:org/repo.git",
            "clone git@github.com:org/repo.git now",
            "ssh://git@example.org/a/b",
        ),
        *("invoice no. 0170 1234567 8", "order 4111.111111111111", "4.111111111111111", "10.20.30.40"),
        *(
            "Authorization: required",
            "authorization: see the docs",
            "Authorization=granted user=bob1234 id=7",
        ),
        *("Authorization: Bearer token", "the Authorization: header says who calls", "cookie: accept all"),
        *(
            "PASS: test_login_2",
            "--- PASS: TestLogin2 (0.01s)",
            "tests pass: 34 passed",
            "first_pass: 120000",
        ),
        *(
            "bypass=true1",
            "compass=n45",
            "sort_key=created_at_2026_11_29",
            f"cache_key={TOKEN}",
            "pass is 12345",
        ),
        *(
            f"idempotency_key: {TOKEN}",
            "primary_key=id9",
            "password: str = Field(...)",
            "password: PasswordHash",
        ),
        *(
            '{"required": ["password", "user_id"]}',
            'given ["token", "user_id", "x2"] or ["password", "mail"]',
        ),
        *(
            'schema {"password": {"type": "string", "description": "of the user"}}',
            "sk-learn-is-a-very-long-name",
        ),
    ],
)
def test_what_is_written_like_a_secret_stays(text: str) -> None:
    assert json.loads(stored(text)) == {"a": text}
    assert json.loads(json.loads(stored(json.dumps({"out": text})))["a"]) == json.loads(
        json.dumps({"out": text})
    )


@pytest.mark.parametrize(
    ("kind", "text", "rest"),
    [
        ("CARD", "4242" + ".4242.4242.4242", "4242.4242"),
        ("CARD", "4012" + "\u00a08888\u00a08888\u00a01881", "8888"),
        ("IBAN", "de44" + "500105175407324931", "5001051754"),
        ("IBAN", "es91 2100 " + "0418 4502 0005 1332 from", "0418 4502"),
        ("IBAN", "FR14\u00a02004" + "\u00a01010\u00a00505\u00a00001\u00a03M02\u00a0606", "0505"),
        ("EMAIL", "https://x.io/?u=zed.quux" + "%40example-corp.io", "zed.quux"),
        ("EMAIL", "mail git" + "@github.com, please", "git@"),
        ("PHONE", "call 0170 1234567" + " 0171 1234568", "1234567"),
    ],
)
def test_personal_data_in_other_spellings(kind: str, text: str, rest: str) -> None:
    for sent in (text, f"x {text}, y", json.dumps({"t": text}), json.dumps({"t": text}, ensure_ascii=False)):
        found = stored(sent)
        assert rest not in found
        assert f"<{kind}:" in found


def test_a_pair_is_known_in_either_order() -> None:
    for pair in ({"name": "DB_PASSWORD", "value": WORD}, {"value": WORD, "name": "DB_PASSWORD"}):
        assert WORD not in stored(json.dumps([pair]))
        assert WORD not in stored(json.dumps({"env": json.dumps([pair])}))
    assert DIGEST not in stored(json.dumps({"AZURE_KEY": DIGEST}))


def test_a_placeholder_is_no_secret_of_its_own_name() -> None:
    """`<API_KEY:3f1a...>` beside a named secret, and what is read again."""
    once = stored(f"key sk-{TOKEN}, and password={WORD}")
    assert len(detectors.PLACEHOLDER.findall(once)) == once.count("<") == 2
    assert json.loads(stored(json.loads(once)["a"])) == json.loads(once)


def test_letters_in_no_order_are_told_from_words_written_together() -> None:
    draw = random.Random(7)
    made = ["".join(draw.choices(string.ascii_letters, k=24)) for _ in range(300)]
    assert sum(made_up in stored(f"password={made_up}") for made_up in made) <= 3
    for word in ("PasswordHash", "getPasswordFromUser", "APIKeyAuth", "SecretStrType", "JSONWebToken"):
        assert word in stored(f"password={word}")


HOSTILE = [
    *(
        "authorization: ",
        "authorization: a ",
        'authorization: a b="c", ',
        "authorization: digest a=b,",
        "cookie: ",
    ),
    *(
        "cookie: a=b; ",
        "a=b; ",
        "password: [",
        "password: {",
        "password: [a, ",
        '"password", "',
        "_key=",
        "a_key=",
    ),
    *(
        "DB_PASS=",
        "password\n value",
        "a%40",
        "a%40b.",
        "://a:b@",
        "://a@b:c@",
        "de44 5001 ",
        "git@github.com:",
    ),
    *("4242.4242.", "0170 1234567 8 ", "password%3D", "is_", "aB", "\\\\", "https://a:b@c@"),
    *(
        "| password | ",
        "**Password:** ",
        "`token` ",
        "secret key: ",
        "password := ",
        "os.environ['TOKEN']=",
        "OTP: ",
    ),
    *("%22password%22%3A%22", "&quot;password&quot;:&quot;", "password '", "identified by '"),
    *(
        'name="password"\r\n\r\n',
        "{'password': '",
        "&Signature=",
        "[, Signature=",
        "password(",
        "$pass=$a",
        "PASSWORD=a",
    ),
    *(
        "arn:aws:secretsmanager:a:1:secret:",
        "<SECRET:",
        "<SECRET:0123456789>",
        "sshpass -p a ",
        "authorization: a a=b<A:",
        "authorization:a=",
        "a.pwd=/",
    ),
]


@pytest.mark.parametrize("part", HOSTILE)
def test_a_long_text_of_it_is_looked_through(part: str) -> None:
    """What grows with the square of the length froze the process at a tenth of this: the suite's time limit ends it."""
    text = part * (300_000 // len(part)) + f" password: {WORD}"
    [clean] = Redactor(RedactionRules(), b"k" * 32)._clean(
        [orjson.dumps({"a": text, part * 9: text}).decode()]
    )
    assert clean is not None
    assert WORD not in clean
