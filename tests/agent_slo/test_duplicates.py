"""How many spans came again: counted by the derivation, shown on /metrics."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import httpx

from agent_slo.config import Config
from agent_slo.derivation import Derivation, derive_once
from collector.decode import decode
from collector.serve import Collector, CollectorSettings
from collector.store import Store
from metrics.deriver import Deriver
from tests.collector.requests import body, span, trace_request


def test_what_comes_again_is_counted_once(tmp_path: Path) -> None:
    first, second = trace_request(span("a"), span("b")), trace_request(span("c"))
    again = [decode("traces", "protobuf", r.SerializeToString()).batch for r in (first, first, second)]
    store = Store.open(tmp_path)
    try:
        con = store.derivation()
        deriver = Deriver(con, Config(), sources=store.spans_since)
        deriver.migrate()
        # twice before it is derived, again after, and one of them a fourth time beside a new span of its trace
        store.append(again[0])
        store.append(again[1])
        deriver.catch_up()
        assert deriver.redelivered() == 2
        store.append(again[0])
        deriver.catch_up()
        assert deriver.redelivered() == 4
        store.append(again[2])
        deriver.catch_up()
        assert deriver.redelivered() == 4
        sibling = span("d", trace_id=first.resource_spans[0].scope_spans[0].spans[0].trace_id)
        mixed = trace_request(first.resource_spans[0].scope_spans[0].spans[0], sibling).SerializeToString()
        store.append(decode("traces", "protobuf", mixed).batch)
        deriver.catch_up()
        assert deriver.redelivered() == 5
        deriver.rebuild()
        assert deriver.redelivered() == 5
        con.close()
        derive_once(store, Config(), [], datetime(2030, 1, 1), again=True)
        with store.reader() as reader:
            assert reader.execute("SELECT redelivered FROM pipeline").fetchall() == [(5,)]
    finally:
        store.close()


def test_a_folder_from_before_is_counted_from_now_on(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    try:
        con = store.derivation()
        con.execute(
            "CREATE TABLE core.pipeline (derived_seq BIGINT, as_of TIMESTAMP, last_pass_at TIMESTAMP)"
        )
        content = decode("traces", "protobuf", body(2)).batch
        store.append(content)
        store.append(content)
        con.execute("INSERT INTO core.pipeline VALUES (4, NULL, NULL)")
        deriver = Deriver(con, Config(), sources=store.spans_since)
        deriver.migrate()
        deriver.catch_up()
        assert deriver.redelivered() == 0
        store.append(content)
        deriver.catch_up()
        assert deriver.redelivered() == 2
        con.close()
    finally:
        store.close()


def test_a_running_collector_counts(tmp_path: Path) -> None:
    derivation = Derivation(Config(), [])
    settings = CollectorSettings(data=tmp_path, http="127.0.0.1:0", grpc=None)
    with (
        Collector(settings, background=derivation) as collector,
        httpx.Client(base_url=f"http://{collector.http}", trust_env=False) as client,
    ):
        content = body(3)
        for _ in range(3):
            answer = client.post(
                "/v1/traces", content=content, headers={"content-type": "application/x-protobuf"}
            )
            assert answer.status_code == 200
        deadline = time.monotonic() + 60
        while derivation.redelivered < 6 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert derivation.redelivered == 6
