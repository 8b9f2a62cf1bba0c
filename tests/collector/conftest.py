"""Collectors on free ports over a fresh data folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from collector.serve import Collector, CollectorSettings

StartCollector = Callable[..., Collector]


@pytest.fixture
def start_collector(tmp_path: Path) -> Iterator[StartCollector]:
    """Start collectors in this process: `start_collector(**settings)`; stopped at the end of the test."""
    running: list[Collector] = []

    def start(background: Any = None, **settings: Any) -> Collector:
        values = {"data": tmp_path / "data", "http": "127.0.0.1:0", "grpc": None, **settings}
        collector = Collector(CollectorSettings(**values), background=background)
        collector.start()
        running.append(collector)
        return collector

    yield start
    for collector in running:
        collector.stop()


@pytest.fixture
def collector(start_collector: StartCollector) -> Collector:
    return start_collector()


@pytest.fixture
def client(collector: Collector) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://{collector.http}", trust_env=False, timeout=30) as c:
        yield c


def rows(collector: Collector, sql: str) -> list[dict[str, Any]]:
    """Rows of a SELECT over the running collector's store."""
    with collector.store.reader() as con:
        result: list[dict[str, Any]] = con.sql(sql).to_arrow_table().to_pylist()
    return result
