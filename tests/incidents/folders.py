"""Data folders for tests of the export: real requests through the real store, derivation and grouping."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from collector.decode import decode
from collector.redaction.redactor import Redactor
from collector.store import Store
from incidents import grouping
from metrics.deriver import Deriver
from metrics.settings import MetricsSettings
from tests.metrics.bench import begin

Request = dict[str, Any]


def fill(
    folder: Path,
    requests: Iterable[Request],
    settings: MetricsSettings,
    as_of: datetime,
    redactor: Redactor | None = None,
) -> Path:
    """Store (through a redactor, as a collector would), derive and group; the folder is closed again."""
    begin(folder)
    store = Store.open(folder)
    try:
        for request in requests:
            batch = decode("traces", "json", orjson.dumps(request)).batch
            store.append(redactor.batch(batch) if redactor else batch)
        con = store.derivation()
        deriver = Deriver(con, settings, sources=store.spans_since)
        deriver.migrate()
        deriver.catch_up(as_of)
        con.close()
        store.refresh_views()
        group(store)
    finally:
        store.close()
    return folder


def group(store: Store) -> bool:
    """Group the incidents of an open store, on a connection of its own. Return whether columns changed."""
    con = store.derivation()
    try:
        changed = grouping.refresh(con)
    finally:
        con.close()
    store.refresh_views()
    return changed
