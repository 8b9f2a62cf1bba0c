"""How fast spans are derived: the captures of every framework, side by side, many times over, on one core.

`python -m benchmarks.derive [--times 200] [--profile]`

Every repetition has its own traces, conversations, calls and services, so that a task stays what it is. The store is
a real one in a temporary folder. DuckDB gets one thread, and the number is spans a CPU-second of this process: what one
core does, whatever else the machine does meanwhile.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa

from collector.batch import Batch
from collector.decode import decode
from collector.store import Store, StoreOptions
from metrics.deriver import Deriver, PassReport

CAPTURES = Path(__file__).parent.parent / "tests" / "captures"
FILES = sorted(path for path in CAPTURES.glob("*.jsonl") if not path.name.endswith(".logs.jsonl"))
SHARED_IDS = (
    r"(conv-42|thread-42|thread-1\b|sess-1\b|[a-z]+(?:-[a-z]+)*-refund-desk|refund-bot|unknown_service|"
    r"(?:call|fc|tooluse|pyd_ai)_[0-9a-f]+(?:_[0-9])?\b|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
)


def corpus() -> pa.Table:
    """The spans of all captures, each file apart from the others."""
    con = duckdb.connect()
    tables = [
        _apart(con, decode("traces", "json", line).batch.spans, f"-{number}")
        for number, path in enumerate(FILES)
        for line in path.read_bytes().splitlines()
        if line.strip()
    ]
    return pa.concat_tables(tables)


def _apart(con: duckdb.DuckDBPyConnection, spans: pa.Table | None, mark: str) -> pa.Table:
    """The same spans as if every id in them had been given to this copy alone."""
    assert spans is not None
    con.register("copied", spans)
    told = ", ".join(
        f"regexp_replace({column}, ?, '\\1' || ?, 'g') AS {column}"
        for column in ("attributes", "events", "resource", "service")
    )
    again = con.sql(
        f"SELECT * REPLACE (md5(trace_id || ?) AS trace_id, {told}) FROM copied",
        params=[mark, *[SHARED_IDS, mark] * 4],
    ).to_arrow_table()
    con.unregister("copied")
    return again.cast(spans.schema)


class Timed:
    """A connection that keeps the CPU time of each model's statement."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self.seconds: Counter[str] = Counter()

    def execute(self, sql: str, *parameters: object) -> duckdb.DuckDBPyConnection:
        before = time.process_time()
        found = self._con.execute(sql, *parameters)
        words = [word for line in sql.splitlines() if not line.startswith("--") for word in line.split()]
        self.seconds[" ".join(words[:6])[:70]] += time.process_time() - before
        return found

    def __getattr__(self, name: str) -> object:
        return getattr(self._con, name)


def main() -> None:
    """Fill a store, derive it, and print the speed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200, help="copies of the corpus")
    parser.add_argument("--profile", action="store_true", help="CPU seconds of each statement")
    chosen = parser.parse_args()
    spans = corpus()
    con = duckdb.connect()
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder), StoreOptions(threads=1))
        try:
            for copy in range(chosen.times):
                store.append(Batch(spans=_apart(con, spans, f"+{copy}")))
            derive = store.derivation()
            deriver = Deriver(derive, sources=store.spans_since)
            deriver.migrate()
            timed = Timed(derive)
            if chosen.profile:
                deriver._con = timed  # type: ignore[assignment]
            passes: list[PassReport] = []
            cpu, wall = time.process_time(), time.perf_counter()
            deriver.catch_up(progress=passes.append)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        finally:
            store.close()
    total = spans.num_rows * chosen.times
    tasks = sum(report.tasks for report in passes)
    print(f"{total:,} spans ({len(FILES)} files x {chosen.times}), {tasks:,} tasks, {len(passes)} passes")
    print(f"{total / cpu:,.0f} spans/s on one core ({cpu:.1f} CPU-s, {wall:.1f} s)")
    for name, seconds in timed.seconds.most_common(25) if chosen.profile else ():
        print(f"{seconds / total * 1e6:8.1f} us/span  {name}")


if __name__ == "__main__":
    main()
