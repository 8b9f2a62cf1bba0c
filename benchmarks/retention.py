"""What it costs to write `work.duckdb` anew after a day of it was deleted, while spans arrive and questions are asked.

    python -m benchmarks.retention --gb 1

The cost grows with the size of the file, so it is told a gigabyte. Texts are random hex, which zstd halves.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from benchmarks.agent_requests import request
from collector.decode import decode
from collector.store import Store, StoreOptions

_GB = 10**9
_ROWS_A_GB = 550_000
_DAYS = 30
_ROWS = """
INSERT INTO work.steps
SELECT i, i * {days} // {rows}, string_agg(md5((i * 64 + j)::VARCHAR || random()::VARCHAR), '')
FROM range({start}, {end}) a(i), range(100) b(j)
GROUP BY i ORDER BY i
"""


class Repeated(threading.Thread):
    """Does something every 50 ms and remembers how long it took."""

    def __init__(self, what: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.what, self.took, self.ended = what, list[float](), threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.05):
            began = time.monotonic()
            self.what()
            self.took.append(time.monotonic() - began)

    def worst_ms(self) -> float:
        return round(max(self.took, default=0.0) * 1000, 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.retention", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=None)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="agent-slo-retention-"))
    try:
        with contextlib.closing(Store.open(folder, StoreOptions(threads=given.threads))) as store:
            print(json.dumps(measure(store, int(given.gb * _ROWS_A_GB)), indent=1))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(store: Store, rows: int) -> dict[str, float]:
    """Fill, delete the oldest of thirty days, write anew."""
    con = store.derivation()
    con.execute("CREATE TABLE work.steps (id BIGINT, day INTEGER, arguments VARCHAR USING COMPRESSION zstd)")
    for start in range(0, rows, 50_000):
        con.execute(_ROWS.format(rows=rows, days=_DAYS, start=start, end=min(rows, start + 50_000)))
        con.execute("CHECKPOINT work")
    store.owe_rewrite("work")
    con.execute("DELETE FROM work.steps WHERE day = 0")
    con.execute("CHECKPOINT work")
    con.close()
    store.refresh_views()
    before = store.folder.size(store.folder.work)
    batch = decode("traces", "protobuf", request()).batch

    def ask() -> None:
        with store.reader() as reader:
            reader.execute("SELECT count(*) FROM steps WHERE id % 1000 = 0").fetchall()

    beside = Repeated(lambda: store.append(batch)), Repeated(ask)
    process, peak = psutil.Process(), [0]
    watch = Repeated(lambda: peak.__setitem__(0, max(peak[0], process.memory_info().rss)))
    for thread in (*beside, watch):
        thread.start()
    cpu, began = time.process_time(), time.monotonic()
    written = store.rewrite_owed()
    took, cpu = time.monotonic() - began, time.process_time() - cpu
    for thread in (*beside, watch):
        thread.ended.set()
        thread.join()
    after = store.folder.size(store.folder.work)
    if not written:
        raise SystemExit("the file was not written anew")
    return {
        "gb_before": round(before / _GB, 2),
        "gb_after": round(after / _GB, 2),
        "seconds": round(took, 1),
        "seconds_a_gb": round(took / before * _GB, 1),
        "cpu_seconds_a_gb": round(cpu / before * _GB, 1),
        "worst_commit_ms": beside[0].worst_ms(),
        "worst_query_ms": beside[1].worst_ms(),
        "commits": float(len(beside[0].took)),
        "peak_rss_mib": float(peak[0] >> 20),
    }


if __name__ == "__main__":
    main()
