"""Secrets beside their names as programs, people and documents write them; and what only looks so."""

from __future__ import annotations

import json
import re

import orjson
import pytest

from agent_slo.config import Config
from agent_slo.redaction import redaction_rules
from collector.redaction import named, written
from collector.redaction.redactor import Redactor

# put together here, so that this file holds none
WORD = "hunter5" + "Vq"
LETTERS = "letmein" + "please"
TOKEN = "abcd1234efgh" + "5678ijkl"
HEX = "4c1b9a7d0e2f8c3b" + "9a7d0e2f4c1b9aaa"
BODY = "aB3dE5gH7jK9mN1p" + "Qr2St4Uv6Wx8Yz0c" + "De5F"
CODE = "482" + "113"


def stored(value: object, key: str = "a") -> object:
    """An attribute as it would be stored."""
    one = Redactor(redaction_rules(Config()), b"k" * 32)
    [clean] = one._clean([orjson.dumps({key: value}).decode()])
    assert clean is not None
    return orjson.loads(clean)[key]


WRITTEN = {
    # headers and addresses
    "scheme of few": (f"Authorization: SSWS 00{TOKEN[:12]}", TOKEN[:12]),
    "scheme of nobody": (f"Authorization: Acme {WORD}", WORD),
    "aws": (
        "Authorization: AWS4-HMAC-SHA256 Credential=AKIA"
        + "IOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        f"SignedHeaders=host, Signature={HEX}{HEX}",
        HEX,
    ),
    "aws alone": (f"AWS4-HMAC-SHA256 Credential=x/y, SignedHeaders=host, Signature={HEX}{HEX}", HEX),
    "google signature": (f"https://s.example/x?X-Goog-Signature={HEX}", HEX),
    "azure header": (f"Ocp-Apim-Subscription-Key: {HEX}", HEX),
    "azure query": (f"https://s.example/x?subscription-key={HEX}", HEX),
    "header by index": (f"headers['Authorization']='{WORD}'", WORD),
    # letters only
    "environment": (f"PGPASSWORD={LETTERS}", LETTERS),
    "environment, quoted": (f"DB_PASSWORD='{LETTERS}'", LETTERS),
    "environment, a name": ("DB_PASSWORD=" + "Letmein", "Letmein"),
    "query": (f"a=1&pwd={LETTERS}", LETTERS),
    "flag": (f"tool --password {LETTERS}", LETTERS),
    "flag, joined": (f"tool --password={LETTERS}", LETTERS),
    "sshpass": (f"sshpass -p {LETTERS} ssh db", LETTERS),
    "object in a text": (f'result: {{"password": "{LETTERS}"}}', LETTERS),
    "objects on lines": (f'{{"a":1}}\n{{"password":"{LETTERS}"}}', LETTERS),
    "object of Python": (f"{{'password': '{LETTERS}'}}", LETTERS),
    # names of two words
    **{
        name: (f"{name}: {TOKEN}", TOKEN) for name in ("API key", "secret key", "Private key", "access token")
    },
    "equals": (f"Access key = {TOKEN}", TOKEN),
    "is": (f"the api key is {TOKEN}", TOKEN),
    # documents and code
    "no-break spaces": (f"password\u00a0=\u00a0{WORD}", WORD),
    "bold": (f"**Password:** {WORD}", WORD),
    "bold name": (f"**Password**: {WORD}", WORD),
    "in a list": (f"- **API Key**: `{TOKEN}`", TOKEN),
    "cell": (f"| password | {WORD} |", WORD),
    "by index": (f"os.environ['DB_PASSWORD']='{WORD}'", WORD),
    "arrow": (f"password => {WORD}", WORD),
    "walrus": (f'password := "{WORD}"', WORD),
    "sql": (f"ALTER USER x WITH PASSWORD '{WORD}'", WORD),
    "sql, identified": (f"CREATE USER x IDENTIFIED BY '{LETTERS}'", LETTERS),
    "form": (f'Content-Disposition: form-data; name="password"\r\n\r\n{WORD[-3:]}\r\n--b', WORD[-3:]),
    "percent": (f"%7B%22password%22%3A%22{WORD}%22%7D", WORD),
    "percent twice": (f"password%253D{WORD}", WORD),
    "entities": (f"{{&quot;password&quot;:&quot;{WORD}&quot;}}", WORD),
    "value within": (f'{{"secret":{{"value":"{WORD}"}}}}', WORD),
    # codes
    "one-time": (f"OTP: {CODE}", CODE),
    "verification": (f"verification_code={CODE}", CODE),
    "verification, told": (f"Your verification code is {CODE}", CODE),
    # issuers
    "telegram": (f"https://api.telegram.org/bot7110201543:AAH{BODY[:32]}/sendMessage", BODY[:32]),
    "mailgun": (f"key-{HEX}", HEX),
    "heroku": ("HRKU-12345678-1234-" + "1234-1234-123456789abc", "123456789abc"),
    "airtable": (f"pat{BODY[:14]}.{HEX}{HEX}", HEX),
    "doppler": (f"dp.pt.{BODY}", BODY),
    "pulumi": (f"pul-{HEX}01234567", HEX),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_secrets_are_found_however_they_are_written(name: str) -> None:
    text, secret = WRITTEN[name]
    for sent in (
        text,
        f"line\n{text}\nline",
        json.dumps({"log": text}),
        json.dumps({"b": json.dumps([text])}),
    ):
        assert secret not in json.dumps(stored(sent)), sent


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_replaced_stays_so(name: str) -> None:
    once = stored(f"x {WRITTEN[name][0]} y")
    assert stored(once) == once


@pytest.mark.parametrize(
    "text",
    [
        *(
            "next_token: abc123",
            "page_token=xyz789abc",
            "stop_token=END7",
            "nextToken=abc123",
            "next page token: a1b2",
        ),
        *("PWD=/srv/bob2", "pwd: /srv/bob2", "OLDPWD=/tmp/x1", "pwd=~/x1"),
        *("password=$DB_PASSWORD", "password: ${PASSWORD}", "password: ********", "--password $DB_PASSWORD"),
        *("password = get_password1()", "token = secrets.token_urlsafe(32)", "token := self.token_2"),
        *(
            'results["access_token"] = access_token',
            'headers["Authorization"] = build_authorization_basic(x)',
        ),
        *("pass: 12.5%", "+52.5200066 +13.4049540", "connect(user=user, password=password, cookies=cookies)"),
        "secret_arn: arn:aws:secretsmanager:us-east-1:123456789012:secret:x-AbC123",
        *("the private key: must be kept", "secret santa: monday7", "secret key = required"),
        *(
            "--password PASSWORD  the password",
            "use --password when needed",
            "the --password and --token flags",
        ),
        *("| token | user_id2 |", "| password | string |", "password => bcrypt.hash(x)"),
        *("OTP: required", "security code: see below", "error code: 482113", "verification code: sent"),
        *(
            f"cache-key-{HEX}",
            "pattern.matcher",
            "dp.pt.size",
            "pul-2",
            "HRKU-1",
            "say 'password' or 'token'",
        ),
        *("dedupe_key: a1b2c3d4e5f6g7h8i9", "customer-key=a1b2c3d4e5f6g7h8i9"),
    ],
)
def test_what_stands_beside_a_name_and_is_no_secret_stays(text: str) -> None:
    for sent in (text, f"line\n{text}\nline", json.dumps({"log": text})):
        assert stored(sent) == sent


@pytest.mark.parametrize("first", ["dedupe", "customer", "conversation", "external", "idempotency"])
def test_keys_that_tell_work_apart_stay(first: str) -> None:
    value = "a1b2c3d4e5f6" + "g7h8i9"
    for key in (f"{first}_key", f"{first}Key", f"x.{first}-key"):
        assert stored(value, key) == value
        assert stored(json.dumps({key: value})) == json.dumps({key: value})


def test_keys_of_pages_folders_and_counts() -> None:
    for key, value in (("nextPageToken", "abc123x"), ("page_token", "xyz789abc"), ("PWD", "/srv/bob2")):
        assert stored(value, key) == value
    assert WORD not in json.dumps(stored(WORD, "PWD"))
    card = 4242424242424242
    for key in ("gen_ai.usage.input_tokens", "elapsed_ns", "responseBytes"):
        assert stored(card, key) == card
    assert str(stored(card, "order")).startswith("<CARD:")


def test_a_value_within_an_object_of_a_secret_name() -> None:
    held = stored({"secret": {"value": WORD, "version": "2"}, "token": {"value": "get_order_2"}})
    assert isinstance(held, dict)
    assert held["secret"]["value"].startswith("<SECRET:")
    assert held["secret"]["version"] == "2"
    assert held["token"] == {"value": "get_order_2"}  # a word a model read


def test_every_name_is_gone_to() -> None:
    """The one pass over a text goes from name to name: each word for a password begins a place, in either case."""
    words = named.PASSWORD_WORDS
    for word in (
        *words,
        "api_key",
        "secretKey",
        "client_secret",
        "token",
        "pin",
        "otp",
        "cookie",
        "_key",
        "2fa code",
    ):
        for spelling in (word, word.capitalize(), word.upper()):
            if word == "_key":
                spelling = "openai" + spelling
            assert [m[0] for m in written._PLACES.finditer(f"x {spelling}:")], spelling
    assert re.compile(named.TEXT_CANDIDATE).search(
        f"password\u00a0= {WORD}"
    )  # cases are read by Python's engine
