"""Deciding as if it were another moment, in a temporary folder; the data folder is only read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from agent_slo.derivation import derive_once
from agent_slo.options import Place
from agent_slo.output import words_console
from agent_slo.reading import reading
from collector.batch import LOG_SCHEMA, SPAN_SCHEMA, Batch
from collector.reader import Reader, open_reader
from collector.store import Store
from metrics.slo.objective import Objective

ROWS_A_COPY = 20_000


@contextmanager
def reading_as_of(
    place: Place, as_of: datetime, objectives: Sequence[Objective] | None = None
) -> Iterator[Reader]:
    """Copy the raw spans, derive them as of a moment (naive UTC), and read that.

    `objectives` replace the configured ones.

    Works beside a running collector.
    """
    config = place.config().config
    chosen = place.objectives() if objectives is None else objectives
    with tempfile.TemporaryDirectory(prefix="agent-slo-") as scratch:
        copy = Path(scratch) / "data"
        with words_console().status("deciding as of that moment"):
            store = Store.open(copy)
            try:
                with reading(place.data) as reader:
                    _copy(reader, store)
                derive_once(store, config, chosen, as_of)
            finally:
                store.close()
        with open_reader(copy) as answers:
            yield answers


def _copy(reader: Reader, store: Store) -> None:
    """All raw rows in their order, a part at a time; the door bounds the size of an answer."""
    for view, schema in (("spans", SPAN_SCHEMA), ("logs", LOG_SCHEMA)):
        columns = ", ".join(f'"{name}"' for name in schema.names)
        seq = 0
        while True:
            part = reader.sql(
                f"SELECT seq, {columns} FROM {view} WHERE seq > $seq ORDER BY seq LIMIT {ROWS_A_COPY}",
                {"seq": seq},
            )
            if part.num_rows == 0:
                break
            seq = part.column("seq")[-1].as_py()
            table: pa.Table = part.drop_columns("seq").cast(schema)
            store.append(Batch(spans=table) if view == "spans" else Batch(logs=table))
