"""The thread beside the collector: what it evaluates, and when."""

from __future__ import annotations

import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

import agent_slo.derivation as derivation
from agent_slo.config import Config
from agent_slo.evaluation import Evaluation
from collector.decode import decode
from collector.store import Store
from metrics.deriver import Deriver
from metrics.openslo import default_objectives
from tests.metrics.bench import request, span


def test_tables_made_anew_are_not_judged_before_they_are_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def watched(self: Evaluation, store: Store, as_of: datetime, *, changed: bool = True) -> None:
        with store.reader() as con:
            seen.append(con.execute("SELECT count(*) FROM tasks").fetchall()[0][0])

    def small(con: Any, store: Store, config: Config) -> Deriver:
        return Deriver(con, config, sources=store.spans_since, pass_spans=1)

    monkeypatch.setattr(Evaluation, "run", watched)
    monkeypatch.setattr(derivation, "_deriver", small)
    monkeypatch.setattr(derivation, "BUSY_STATUS_SECONDS", 0.0)
    store = Store.open(tmp_path)
    try:
        for trace in ("a", "b", "c"):
            root = span(trace, "invoke_agent x", 0, 1, gen_ai__operation__name="invoke_agent")
            store.append(decode("traces", "json", orjson.dumps(request([root]))).batch)
        stop = threading.Event()
        stop.set()
        derivation.Derivation(Config(), default_objectives())(store, stop)
    finally:
        store.close()
    assert seen == [3]


def test_receiving_goes_first_while_senders_press() -> None:
    pressed, calm = derivation.RECEIVING_RATE * 2 + 1, derivation.RECEIVING_RATE * 2
    assert derivation._rest(int(pressed), 2.0) == 2.0
    assert derivation._rest(int(calm), 2.0) == 0.0
    assert derivation._rest(0, 0.0) == 0.0
