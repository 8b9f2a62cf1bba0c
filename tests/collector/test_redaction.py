"""Nothing secret reaches the disk, and every verdict comes out as without redaction."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from agent_slo.config import Config
from agent_slo.redaction import redaction_rules
from collector.batch import Batch
from collector.decode import decode
from collector.redaction import detectors
from collector.redaction import redactor as redactor_module
from collector.redaction.key import KEY_VARIABLE, default_key_file, load_key
from collector.redaction.policy import KEEP, Policy, RedactionRules
from collector.redaction.redactor import Redactor
from collector.settings import CollectorError
from collector.store import Store, StoreOptions
from tests.collector.requests import any_value, span, trace_request
from tests.metrics.bench import Bench, bench

KEY = b"a key of the installation, long enough"
CAPTURES = Path(__file__).parent.parent / "captures"

# Made up; each passes its checksum or has the form of its kind. Put together here, so that this file holds none.
SECRETS = {
    "AWS_KEY": "AKIA" + "J7Q2XK4LMN8PRS3T",
    "GITHUB_TOKEN": "ghp_" + "a8Kd92mXz01LqWe7Rt5Yu3Io6Pa4Sd2Fg1Hj",
    "API_KEY": "sk-" + "proj-9aB8cD7eF6gH5iJ4kL3mN2oP",
    "JWT": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLWhlcmU",
    "BEARER": "Bearer " + "x7Yp0QmZ3kV9rT2w",
    "SLACK_TOKEN": "xoxb-" + "2412-99812-abcDEF",
    "CARD": "4111 1111 " + "1111 1111",
    "IBAN": "DE89 3704 " + "0044 0532 0130 00",
    "EMAIL": "maria.lopez" + "@customer-mail.org",
    "PHONE": "+49 176 " + "5550 1234",
    "URL_PASSWORD": "svc:" + "Hunter2pass",
    "PRIVATE_KEY": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow" + "IBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
}
NAMED = "correct-horse" + "-battery-9"


def redactor(policy: Policy = "redact", **rules: Any) -> Redactor:
    return Redactor(RedactionRules(policies=(("*", policy),), **rules), KEY)


def attributes(attributes: dict[str, Any], one: Redactor | None = None) -> dict[str, Any]:
    """Attributes of one span after redaction."""
    batch = decode("traces", "protobuf", trace_request(span("op", attributes)).SerializeToString()).batch
    spans = (one or redactor()).batch(batch).spans
    assert spans is not None
    found: dict[str, Any] = json.loads(spans.column("attributes")[0].as_py())
    return found


def planted(kind: str) -> str:
    value = SECRETS[kind]
    return f"https://{value}@db.internal/x" if kind == "URL_PASSWORD" else value


@pytest.mark.parametrize("kind", SECRETS)
def test_each_kind_is_found_in_texts_json_texts_and_keys(kind: str) -> None:
    value = planted(kind)
    sent = {
        "text": f"before {value} after",
        "json": json.dumps({"deep": [{"note": f"x {value}."}]}),
        "twice": json.dumps({"inner": json.dumps([value])}),
        "messages": json.dumps([{"role": "user", "parts": [{"content": f"line\n{value}\nline"}]}]),
        "list": ["plain", value],
    }
    found = attributes(sent)
    assert SECRETS[kind] not in orjson.dumps(found).decode()
    assert json.dumps(SECRETS[kind])[1:-1] not in orjson.dumps(found).decode()
    assert f"<{kind}:" in found["text"]
    assert found["text"].startswith(("before <", "before https://<"))
    placeholder = detectors.PLACEHOLDER.search(found["text"])
    assert placeholder is not None
    # the same value is the same placeholder wherever it stands
    assert json.dumps(found).count(placeholder[0]) == 5
    # and JSON texts are JSON texts afterwards
    assert json.loads(found["messages"])[0]["role"] == "user"
    assert json.loads(json.loads(found["twice"])["inner"])[0].count("<") == 1


def test_secrets_by_their_key() -> None:
    sent = {
        "db.password": NAMED,
        "arguments": json.dumps({"apiKey": NAMED, "pin": 4711, "amount": 500, "nested": {"secret": [NAMED]}}),
        "config": f"password={NAMED} host=db",
        "customer.phone": "555-0142 99",
        "card": 4111111111111111,
    }
    found = attributes(sent)
    text = json.dumps(found)
    assert NAMED not in text
    assert "4711" not in text
    arguments = json.loads(found["arguments"])
    assert arguments["amount"] == 500
    assert arguments["apiKey"] == found["db.password"] == arguments["nested"]["secret"][0]
    assert found["config"].endswith(" host=db")
    assert found["customer.phone"].startswith("<PHONE:")
    assert found["card"].startswith("<CARD:")


def test_what_the_derivation_reads_is_not_taken_for_a_secret_by_its_key() -> None:
    sent = {
        "gen_ai.usage.input_tokens": 1200,
        "gen_ai.server.time_to_first_token": 979,
        "session.id": "sess-42",
        "gen_ai.tool.call.id": "call_9",
        "agent_slo.action.idempotency_key": "refund-A1-500",
        "shop.refund.token": "refund-A1-501",
        "idempotency_key": "k-1",
        "logprobs": json.dumps([{"token": "the", "logprob": -0.1}]),
        "next": "password: required",
    }
    one = Redactor(
        redaction_rules(
            Config.model_validate(
                {"conventions": {"aliases": {"shop.refund.token": "agent_slo.action.idempotency_key"}}}
            )
        ),
        KEY,
    )
    assert attributes(sent, one) == sent


def test_what_only_looks_like_a_secret_stays() -> None:
    sent = {
        "ip": "10.132.44.201 and 2001:db8::1",
        "order": "order 4000123412341235, 112-4471982-3301833, ORD-555-01",
        "time": "2026-11-29T10:00:00+01:00 1790000000000000000 1790000000123",
        "uuid": "41111111-1111-4111-8111-111111111111",
        "version": "1.2.3.4567890",
        "trace": "4bf92f3577b34da6a3ce929d0e0e4736",
        "words": "the basic understanding of a bearer share; sk-learn-is-a-very-long-name; user@host",
        "code": "AB12 3456 7890 1234 5678",
        "number": 4111111111111112,
        "price": "+12.50 EUR, -3, 100.000.000,00",
    }
    assert attributes(sent) == sent


def test_placeholders_hold_over_restarts_and_differ_by_key() -> None:
    sent = {"to": SECRETS["EMAIL"]}
    assert attributes(sent) == attributes(sent)
    assert attributes(sent) != attributes(sent, Redactor(RedactionRules(), b"another key of another place"))
    # what is redacted already stays: an import of an export changes nothing
    once = attributes({**sent, "password": NAMED})
    assert attributes(once) == once


def test_long_numbers_and_spelling_of_json_texts_survive() -> None:
    spaced = json.dumps({"id": 12345678901234567890123, "to": SECRETS["EMAIL"], "x": 1.0})
    compact = json.dumps({"a": 1, "to": SECRETS["EMAIL"]}, separators=(",", ":"))
    found = attributes({"spaced": spaced, "compact": compact})
    assert found["spaced"].startswith('{"id": 12345678901234567890123, "to": "<EMAIL:')
    assert found["spaced"].endswith('"x": 1.0}')
    assert found["compact"].startswith('{"a":1,"to":"<EMAIL:')


def test_policies_by_service() -> None:
    rules = RedactionRules(policies=(("internal-*", "keep"), ("*", "redact")))
    one = Redactor(rules, KEY)
    requests = [
        trace_request(span("op", {"to": SECRETS["EMAIL"]}), service=s) for s in ("internal-7", "shop", "")
    ]
    kept = [one.batch(decode("traces", "protobuf", r.SerializeToString()).batch).spans for r in requests]
    texts = [t.column("attributes")[0].as_py() for t in kept if t is not None]
    assert [SECRETS["EMAIL"] in text for text in texts] == [True, False, False]
    assert KEEP.policy(None) != "redact"
    assert KEEP.idle


def test_dropped_content_still_shows_equal_calls() -> None:
    rules = replace(redaction_rules(Config()), policies=(("*", "drop-content"),))
    one = Redactor(rules, KEY)

    def call(arguments: str, **more: Any) -> dict[str, Any]:
        return attributes(
            {"gen_ai.tool.name": "issue_refund", "gen_ai.tool.call.arguments": arguments, **more}, one
        )

    first = call('{"order_id": "A-1", "amount": 500}', **{"gen_ai.tool.call.result": "sent to Maria"})
    again = call('{"amount":500.0,"order_id":"A-1"}')
    other = call('{"order_id": "A-2", "amount": 500}')
    assert json.loads(first["gen_ai.tool.call.arguments"]) == json.loads(again["gen_ai.tool.call.arguments"])
    assert first["gen_ai.tool.call.arguments"] != other["gen_ai.tool.call.arguments"]
    assert "A-1" not in json.dumps(first)
    assert first["gen_ai.tool.call.result"] == "<DROPPED>"
    messages = [{"role": "user", "parts": [{"type": "text", "content": "I am Maria, refund me"}]}]
    said = call("{}", **{"gen_ai.input.messages": json.dumps(messages), "crm.note": "Maria is angry"})
    assert "Maria" not in json.dumps(said)
    assert json.loads(said["gen_ai.input.messages"])[0]["role"] == "user"
    assert said["gen_ai.tool.name"] == "issue_refund"


def test_a_document_that_cannot_be_read_is_not_stored_as_it_came(caplog: pytest.LogCaptureFixture) -> None:
    found = attributes({"deep": "[" * 400 + json.dumps(SECRETS["JWT"]) + "]" * 400})
    assert found == {"agent_slo.redaction": "failed"}
    assert SECRETS["JWT"] not in caplog.text


EMAIL = next(d for d in detectors.DETECTORS if d.name == "EMAIL")
texts = st.lists(
    st.sampled_from(
        [
            "a@b.co",
            "x.y+z'@sub.dom-ain.org",
            "@",
            "a",
            ".",
            "-",
            "'",
            " ",
            "<",
            "\\",
            '"',
            "\n",
            "é",
            "com",
            "1",
        ]
    ),
    max_size=12,
).map("".join)


@settings(deadline=None)
@given(texts)
def test_addresses_are_found_the_same_way_quickly(text: str) -> None:
    slow: list[str] = []
    expected = EMAIL.shape.sub(lambda m: slow.append(m[0]) or f"[{len(slow)}]", text)
    quick: list[str] = []
    assert (
        detectors.replace_addresses(text, lambda _, found: quick.append(found) or f"[{len(quick)}]")
        == expected
    )
    assert quick == slow


documents = st.recursive(
    texts | st.integers(-(2**63), 2**63 - 1) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["k", "note", "to@b.co", "gen_ai.x"]), inner, max_size=3)
        | inner.map(json.dumps)
        | inner.map(lambda v: json.dumps(v, ensure_ascii=False, separators=(",", ":")))
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(documents)
def test_a_document_with_addresses_comes_out_as_if_it_were_read(document: Any) -> None:
    text = orjson.dumps({"attribute": document}).decode()
    [quick], [slow] = redactor()._clean([text]), redactor()._documents([text])
    assert quick is not None
    assert slow is not None
    assert unpacked(orjson.loads(quick)) == unpacked(orjson.loads(slow))


remarks = st.sampled_from(["get_order", "support", "", *map(planted, SECRETS), f"password={NAMED}"])


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.lists(st.tuples(remarks, remarks, remarks), min_size=1, max_size=4), min_size=1, max_size=4)
)
def test_many_requests_come_out_as_each_alone(requests: list[list[tuple[str, str, str]]]) -> None:
    """Together or one by one, and whatever was seen before."""
    tables = []
    for sent in requests:
        message = trace_request(
            *(span(name, {"note": note}, trace_state=state) for name, note, state in sent)
        )
        resource = message.resource_spans[0].resource.attributes
        resource.append(KeyValue(key="token", value=any_value(sent[0][0])))
        resource.append(KeyValue(key="note", value=any_value(sent[0][1])))
        tables.append(decode("traces", "protobuf", message.SerializeToString()).batch.spans)
    seasoned = redactor()
    alone = [seasoned.batch(Batch(table)).spans for table in [*tables, *tables]]
    together = redactor().batch(Batch(pa.concat_tables(tables).combine_chunks())).spans
    assert together is not None
    assert pa.concat_tables(alone[: len(tables)]).to_pylist() == together.to_pylist()
    assert pa.concat_tables(alone[len(tables) :]).to_pylist() == together.to_pylist()


def test_words_without_secrets_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redactor_module, "_MOST_WORDS", 3)
    asked: list[list[str]] = []
    match = pc.match_substring_regex

    def watched(found: pa.Array, pattern: str) -> Any:
        asked.append(sorted(found.to_pylist()))
        return match(found, pattern)

    monkeypatch.setattr(pc, "match_substring_regex", watched)
    known = redactor_module._Harmless("@")
    assert known.suspects({"a", "b@", "c"}) == {"b@"}
    assert known.suspects({"a", "b@"}) == {"b@"}  # what hits is looked at again
    assert known.suspects({"a", "c"}) == set()
    assert known.suspects({"d", "e"}) == set()  # one word too many: all are forgotten
    assert known.suspects({"a"}) == set()
    assert asked == [["a", "b@", "c"], ["b@"], ["d", "e"], ["a"]]


def unpacked(value: Any) -> Any:
    """With JSON texts read, since their spelling may differ."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return ["text", unpacked(json.loads(value))]
        except ValueError:
            return value
    if isinstance(value, list):
        return [unpacked(v) for v in value]
    return {k: unpacked(v) for k, v in value.items()} if isinstance(value, dict) else value


def planted_requests() -> list[bytes]:
    everything = "; ".join(planted(kind) for kind in SECRETS)
    sent = span(
        f"mail {SECRETS['EMAIL']}",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "send_mail",
            "gen_ai.tool.call.arguments": json.dumps({"text": everything, "password": NAMED}),
            "note": everything,
        },
    )
    sent.status.code, sent.status.message = 2, f"refused for {SECRETS['EMAIL']}"
    event = sent.events.add()
    event.name = "exception"
    event.attributes.add(key="exception.message").value.string_value = everything
    link = sent.links.add(trace_id=b"1" * 16, span_id=b"2" * 8)
    link.attributes.add(key="why").value.string_value = everything
    request = trace_request(sent)
    request.resource_spans[0].resource.attributes.add(key="owner").value.string_value = everything
    return [request.SerializeToString()]


@pytest.fixture
def collecting(start_collector: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv(KEY_VARIABLE, "a key given by the environment")
    return start_collector()


def test_planted_secrets_are_in_no_file_no_log_and_no_counter(
    collecting: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    import httpx

    caplog.set_level(logging.DEBUG)
    base = f"http://{collecting.http}"
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    logs = ExportLogsServiceRequest()
    record = logs.resource_logs.add().scope_logs.add().log_records.add()
    record.body.string_value = "; ".join(planted(kind) for kind in SECRETS)
    record.attributes.add(key="db.password").value.string_value = NAMED
    with httpx.Client(base_url=base, trust_env=False) as client:
        proto = {"content-type": "application/x-protobuf"}
        for body in planted_requests():
            assert client.post("/v1/traces", content=body, headers=proto).status_code == 200
            gz = {**proto, "content-encoding": "gzip"}
            assert client.post("/v1/traces", content=gzip.compress(body), headers=gz).status_code == 200
        assert client.post("/v1/logs", content=logs.SerializeToString(), headers=proto).status_code == 200
        metrics = client.get("/metrics").text
    data = collecting.settings.data
    needles = [
        *SECRETS.values(),
        *(v.replace("\n", "\\n") for v in SECRETS.values()),
        NAMED,
        "4111111111111111",
    ]

    def leaks() -> list[tuple[str, str]]:
        files = [p for p in data.rglob("*") if p.is_file()]
        assert any(p.suffix == ".wal" or p.suffix == ".duckdb" for p in files)
        return [(p.name, n) for p in files for n in needles if n.encode() in p.read_bytes()]

    assert leaks() == []  # with the log still open
    with collecting.store.reader() as con:
        rows = con.sql("SELECT * FROM spans").fetchall() + con.sql("SELECT * FROM logs").fetchall()
    assert len(rows) == 3
    assert [n for n in needles if n in repr(rows)] == []
    collecting.stop()
    assert leaks() == []  # and with the log folded into the file
    assert [n for n in needles if n in caplog.text or n in metrics] == []
    assert 'agent_slo_collector_redacted_total{type="EMAIL"}' in metrics


def leaf_pairs(before: Any, after: Any, out: list[tuple[Any, Any]]) -> None:
    if isinstance(before, dict):
        for one, two in zip(before.items(), after.items(), strict=True):
            leaf_pairs(one[1], two[1], out)
    elif isinstance(before, list):
        for one, two in zip(before, after, strict=True):
            leaf_pairs(one, two, out)
    else:
        if isinstance(before, str) and before[:1] in ("{", "["):
            try:
                return leaf_pairs(json.loads(before), json.loads(after), out)
            except ValueError:
                pass  # text that begins like JSON
        out.append((before, after))


def test_false_positives_in_the_captures() -> None:
    """No capture holds a secret: every changed value is a mistake, and at most one in a thousand may be."""
    one = Redactor(redaction_rules(Config()), KEY)
    pairs: list[tuple[Any, Any]] = []
    for path in sorted(CAPTURES.glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            batch = decode("traces", "json", line).batch
            for name in ("attributes", "events", "resource"):
                if batch.spans is None:
                    continue
                clean = one.batch(batch).spans
                assert clean is not None
                for a, b in zip(batch.spans[name].to_pylist(), clean[name].to_pylist(), strict=True):
                    if a is not None:
                        leaf_pairs(json.loads(a), json.loads(b), pairs)
    assert len(pairs) > 5000
    changed = [(a, b) for a, b in pairs if a != b]
    assert len(changed) <= len(pairs) / 1000, changed[:20]


SCENARIOS = yaml.safe_load((CAPTURES / "expected.yaml").read_text())["scenarios"]


DROPPED = [
    path
    for emitter in ("agent-framework__native-content", "google-adk__native-content", "pydantic-ai__native")
    for path in sorted(CAPTURES.glob(f"{emitter}__*.jsonl"))
    # ADK tells a person's decision only in a tool's result, which is content: that one is not seen then
    if not path.stem.endswith(".logs") and path.stem != "google-adk__native-content__d_approved"
]


def redacting(one: Bench, policy: Policy) -> Bench:
    rules = replace(redaction_rules(Config()), policies=(("*", policy),))
    one.store.options = replace(one.store.options, redactor=Redactor(rules, KEY))
    return one


def test_captures_hold_no_secret_and_come_out_as_they_were() -> None:
    """So their verdicts, which tests/metrics/test_captures.py checks, are the verdicts after redaction too."""
    one = Redactor(redaction_rules(Config()), KEY)
    changed = []
    for path in sorted(CAPTURES.glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            batch = decode("traces", "json", line).batch
            if batch.spans is not None and not one.batch(batch).spans.equals(batch.spans):  # type: ignore[union-attr]
                changed.append(path.name)
    assert changed == []


@pytest.mark.parametrize("path", DROPPED, ids=lambda p: p.stem)
def test_captures_are_understood_without_content(path: Path, tmp_path: Path) -> None:
    wanted = SCENARIOS[path.stem.split("__")[2]]
    with bench(tmp_path) as one:
        redacting(one, "drop-content").send(path.read_bytes().splitlines()).derive()
        tasks = one.rows("SELECT outcome FROM core.tasks ORDER BY started_at")
        attempts = one.rows("SELECT outcome, duplicate, cause FROM work.attempts WHERE action_id IS NOT NULL")
        interventions = one.rows("SELECT kind, decision FROM core.interventions ORDER BY requested_at")
    assert [t["outcome"] for t in tasks] == wanted["tasks"]
    assert [[i["kind"], i["decision"]] for i in interventions] == wanted.get("interventions", [])
    assert sum(a["outcome"] == "ok" for a in attempts) == wanted["effects"]
    assert [[a["duplicate"], a["cause"]] for a in attempts if a["duplicate"]] == wanted.get("duplicates", [])


def test_a_placeholder_in_a_result_is_no_new_entity(tmp_path: Path) -> None:
    """Two mails that answered the same are two mails, whether or not the address in the answer was redacted."""
    from tests.metrics.bench import request
    from tests.metrics.bench import span as made

    result = f"sent to {SECRETS['EMAIL']}"
    verdicts = []
    for policy in ("keep", "redact"):
        with bench(tmp_path / policy) as one:
            calls = [
                made(
                    "t",
                    f"execute_tool send_mail {n}",
                    1.0 + n,
                    1.5 + n,
                    "agent",
                    gen_ai__operation__name="execute_tool",
                    gen_ai__tool__name="send_mail",
                    gen_ai__tool__call__arguments={"customer": "A-1"},
                    gen_ai__tool__call__result=result,
                )
                for n in range(2)
            ]
            agent = made("t", "agent", 0, 9, id="agent", gen_ai__operation__name="invoke_agent")
            redacting(one, policy).send([request([agent, *calls])]).derive()  # type: ignore[arg-type]
            verdicts.append(one.rows("SELECT duplicate, effect FROM work.attempts ORDER BY start_ns"))
    assert verdicts[0] == verdicts[1]
    assert verdicts[0][1]["duplicate"] == "unprotected"


def test_the_key_is_made_once_outside_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    key = load_key(tmp_path / "data")
    assert default_key_file().stat().st_mode & 0o777 == 0o600
    assert load_key(tmp_path / "other") == key
    inside = tmp_path / "data" / "redaction.key"
    with pytest.raises(CollectorError, match="inside the data folder"):
        load_key(tmp_path / "data", inside)
    short = tmp_path / "short"
    short.write_text("abc")
    with pytest.raises(CollectorError, match="shorter than"):
        load_key(tmp_path / "data", short)
    monkeypatch.setenv(KEY_VARIABLE, "a key given by the environment")
    assert load_key(tmp_path / "data", short) == b"a key given by the environment"


def test_a_store_without_redactor_keeps(tmp_path: Path) -> None:
    store = Store.open(tmp_path, StoreOptions())
    try:
        store.append(decode("traces", "protobuf", planted_requests()[0]).batch)
        with store.reader() as con:
            (name,) = con.execute("SELECT name FROM spans").fetchone() or ("",)
    finally:
        store.close()
    assert SECRETS["EMAIL"] in name
