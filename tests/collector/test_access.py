"""Tokens with roles, on every way in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from collector.access import Access, Token, TokenError, read_tokens
from tests.collector.conftest import StartCollector
from tests.collector.requests import body, span, trace_request

PROTOBUF = {"content-type": "application/x-protobuf"}
TOKENS = (Token("ingest", "in-token-1"), Token("read", "read-token-1"), Token("admin", "admin-token-1"))


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.fixture
def guarded(start_collector: StartCollector) -> Iterator[Any]:
    return start_collector(grpc="127.0.0.1:0", tokens=TOKENS)


@pytest.mark.parametrize(
    ("secret", "traces", "sql", "metrics"),
    [
        ("in-token-1", 200, 403, 403),
        ("read-token-1", 403, 200, 200),
        ("admin-token-1", 200, 200, 200),
        ("in-token-12", 401, 401, 401),
        ("nobody", 401, 401, 401),
    ],
)
def test_each_role_opens_its_own_doors(
    guarded: Any, secret: str, traces: int, sql: int, metrics: int
) -> None:
    with httpx.Client(base_url=f"http://{guarded.http}", trust_env=False, headers=bearer(secret)) as http:
        assert http.post("/v1/traces", content=body(), headers=PROTOBUF).status_code == traces
        assert http.get("/metrics").status_code == metrics
        assert http.get("/healthz").status_code == 200
    with httpx.Client(base_url=f"http://{guarded.door}", trust_env=False, headers=bearer(secret)) as door:
        assert door.post("/sql", content=json.dumps({"sql": "SELECT 1"})).status_code == sql
    with grpc.insecure_channel(str(guarded.grpc)) as channel:
        call = TraceServiceStub(channel).Export
        metadata = [("authorization", f"Bearer {secret}")]
        if traces == 200:
            call(trace_request(span()), metadata=metadata, timeout=10)
        else:
            with pytest.raises(grpc.RpcError) as refused:
                call(trace_request(span()), metadata=metadata, timeout=10)
            wanted = grpc.StatusCode.UNAUTHENTICATED if traces == 401 else grpc.StatusCode.PERMISSION_DENIED
            assert refused.value.code() == wanted


def test_the_local_token_of_the_door_file_may_do_everything(guarded: Any) -> None:
    token = json.loads((guarded.settings.data / "door.json").read_text())["token"]
    answer = httpx.post(
        f"http://{guarded.door}/sql", json={"sql": "SELECT 1"}, headers=bearer(token), trust_env=False
    )
    assert answer.status_code == 200


def test_without_tokens_only_the_door_asks_for_one(start_collector: StartCollector) -> None:
    collector = start_collector()
    with httpx.Client(base_url=f"http://{collector.http}", trust_env=False) as http:
        assert http.post("/v1/traces", content=body(), headers=PROTOBUF).status_code == 200
        assert http.get("/metrics").status_code == 200
    assert (
        httpx.post(f"http://{collector.door}/sql", json={"sql": "SELECT 1"}, trust_env=False).status_code
        == 401
    )


def test_tokens_are_in_no_repr() -> None:
    assert "admin-token-1" not in repr(TOKENS)


def test_token_files(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# our tokens\n\ningest abc-1\nadmin def-2\n")
    assert read_tokens(file) == (Token("ingest", "abc-1"), Token("admin", "def-2"))
    file.write_text("  # ours\nadmin def#2 # of the office\t# and more\n")
    assert read_tokens(file) == (Token("admin", "def#2"),)
    file.write_text("bare-token # for senders\n")
    assert read_tokens(file) == (Token("ingest", "bare-token"),)
    file.write_text("bare-token\n")
    assert read_tokens(file) == (Token("ingest", "bare-token"),)
    for text, words in (
        ("\n", "empty"),
        ("owner abc\n", ":1: write ROLE TOKEN"),
        ("a\nb\n", ":1: write ROLE"),
        ("# senders\ningest \n", ":2: the role ingest without a token"),
        ("ingest abc-1\nread\n", ":2: the role read without a token"),
        ("ingest admin\n", ":1: .*'admin' is the name of a role"),
    ):
        file.write_text(text)
        with pytest.raises(TokenError, match=words):
            read_tokens(file)


def test_the_scheme_may_be_of_any_case_everywhere(guarded: Any) -> None:
    for scheme in ("bearer", "BEARER", "Bearer "):
        shown = {"authorization": f"{scheme} admin-token-1"}
        assert (
            httpx.post(
                f"http://{guarded.http}/v1/traces", content=body(), headers=PROTOBUF | shown, trust_env=False
            ).status_code
            == 200
        )
        assert (
            httpx.post(
                f"http://{guarded.door}/sql", json={"sql": "SELECT 1"}, headers=shown, trust_env=False
            ).status_code
            == 200
        )
        with grpc.insecure_channel(str(guarded.grpc)) as channel:
            answer = TraceServiceStub(channel).Export(
                trace_request(span()), metadata=list(shown.items()), timeout=10
            )
            assert answer.partial_success.rejected_spans == 0


def test_odd_headers_are_unknown() -> None:
    access = Access(TOKENS)
    for header in (
        "",
        "Bearer",
        "bearerin-token-1",
        "bearer\tin-token-1",
        "bearer IN-TOKEN-1",
        "Basic in-token-1",
        "Bearer in-token-1 ",
        "Bearer \u20ac",
    ):
        assert access.allows(header, "ingest") == "unknown"
    assert Access(()).needed("ingest") is False
