"""How long a rebuild takes, and what one pass costs beside everything already derived.

`python -m benchmarks.rebuild [--copies 8] [--beside 1000000] [--touched 120] [--passes 5] [--profile]`

The sample company, many times over: every copy has services, traces, conversations, calls and inputs of its own.
First everything is derived from scratch. Then the spans of some tasks of one more copy arrive, as in a running system,
and one pass takes them: its cost must hang on those tasks, not on all the others. With `--beside`, the derived rows are
copied before that by SQL, under ids and at times of their own, until there are so many tasks. Prints CPU and wall
seconds of this process; on a busy machine only the first can be compared.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import duckdb
import orjson
import pyarrow as pa
import yaml

from benchmarks.derive import Timed
from collector.batch import Batch
from collector.decode import decode
from collector.store import Store, StoreOptions
from metrics.deriver import Deriver
from metrics.settings import MetricsSettings
from sample_traces import replay

_STATED = r'("(?:gen_ai\.conversation\.id|agent_slo\.task\.input_id)":"[^"]*)'
_CALL = r"\b((?:call|toolu)_[a-z0-9]{14})\b"


def company() -> pa.Table:
    """All spans of the sample company."""
    batches = [decode("traces", "json", orjson.dumps(request)).batch for request in replay.load("company")]
    return pa.concat_tables([batch.spans for batch in batches if batch.spans is not None])


def settings() -> MetricsSettings:
    """What the company says of its tools and tasks."""
    stated = yaml.safe_load((Path(replay.__file__).parent / "agent-slo.yaml").read_text(encoding="utf-8"))
    return MetricsSettings.model_validate(
        {key: value for key, value in stated.items() if key in MetricsSettings.model_fields}
    )


def copy(con: duckdb.DuckDBPyConnection, spans: pa.Table, number: int, tasks: int | None = None) -> pa.Table:
    """The spans as if every id in them had been given to this copy alone; `tasks`: only the last so many traces."""
    con.register("copied", spans)
    last = (
        ""
        if tasks is None
        else "SEMI JOIN (SELECT trace_id FROM copied GROUP BY trace_id "
        f"ORDER BY min(start_ns) DESC LIMIT {tasks}) chosen USING (trace_id)"
    )
    again = con.sql(
        f"""
        SELECT * REPLACE (
          md5(trace_id || '+{number}') AS trace_id,
          service || '+{number}' AS service,
          regexp_replace(regexp_replace(attributes, '{_STATED}', '\\1+{number}', 'g'), '{_CALL}', '\\1{number}', 'g')
            AS attributes,
          regexp_replace(events, '{_CALL}', '\\1{number}', 'g') AS events)
        FROM copied {last}
        """
    ).to_arrow_table()
    con.unregister("copied")
    return again.cast(spans.schema)


_MOVED = ("start_ns", "end_ns", "first_ns", "last_ns")


def crowd(con: duckdb.DuckDBPyConnection, tasks: int) -> int:
    """Copy the derived rows until there are so many tasks; return how many there are."""
    (have,) = con.execute("SELECT count(*) FROM core.tasks").fetchone() or (1,)
    copies = -(-tasks // have) - 1
    tables = con.execute(
        "SELECT database_name || '.' || table_name FROM duckdb_columns() "
        "WHERE database_name IN ('core', 'work') AND column_name IN ('task_id', 'trace_id') "
        "AND (database_name, table_name) NOT IN (SELECT (database_name, view_name) FROM duckdb_views()) GROUP BY ALL"
    ).fetchall()
    for (table,) in tables if copies > 0 else ():
        kinds = dict(con.execute(f"SELECT column_name, column_type FROM (DESCRIBE {table})").fetchall())
        # up to a day earlier, so that copies do not all begin in one microsecond
        changed = [
            f"{name} - ((k * 7919) % 86400) * 1000000000 AS {name}" for name in _MOVED if name in kinds
        ]
        changed += [
            f"{name} - to_seconds((k * 7919) % 86400) AS {name}"
            for name, kind in kinds.items()
            if kind == "TIMESTAMP"
        ]
        changed += [
            f"{name} || '~' || k AS {name}"
            for name in kinds
            if name.endswith("_id") and kinds[name] == "VARCHAR"
        ]
        changed += [f"hash(key, k) AS {name}" for name in kinds if name == "key"]
        con.execute(
            f"INSERT INTO {table} SELECT t.* REPLACE ({', '.join(changed)}) "
            f"FROM range(1, {copies + 1}) copies(k), (FROM {table}) t"
        )
    return have * (copies + 1)


def main() -> None:
    """Fill a store, derive it, then measure single passes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=8, help="copies of the company (26,683 spans each)")
    parser.add_argument(
        "--beside", type=int, default=0, help="tasks that are there already when passes are measured"
    )
    parser.add_argument("--touched", type=int, default=120, help="traces that arrive in one pass")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="CPU seconds of each statement")
    chosen = parser.parse_args()
    spans, con = company(), duckdb.connect()
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder), StoreOptions(threads=1))
        try:
            for number in range(chosen.copies):
                store.append(Batch(spans=copy(con, spans, number)))
            derive = store.derivation()
            deriver = Deriver(derive, settings(), sources=store.spans_since)
            deriver.migrate()
            cpu, wall = time.process_time(), time.perf_counter()
            deriver.rebuild()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            total = spans.num_rows * chosen.copies
            tasks = derive.execute("SELECT count(*) FROM core.tasks").fetchall()[0][0]
            print(f"rebuild: {total:,} spans, {tasks:,} tasks in {cpu:.1f} CPU-s, {wall:.1f} s")
            print(
                f"         {total / cpu:,.0f} spans a CPU-second; 1,000,000 spans: {1e6 * cpu / total:,.0f} CPU-s"
            )
            if chosen.beside:
                print(f"copied:  {crowd(derive, chosen.beside):,} tasks are there now")
            timed = Timed(derive)
            if chosen.profile:
                deriver._con = timed  # type: ignore[assignment]
            for number in range(chosen.passes):
                store.append(Batch(spans=copy(con, spans, 10_000 + number, chosen.touched)))
                cpu, wall = time.process_time(), time.perf_counter()
                report = deriver.run()
                cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
                print(f"pass:    {report.tasks} tasks, {report.spans} spans in {cpu:.2f} CPU-s, {wall:.2f} s")
            for name, seconds in timed.seconds.most_common(20) if chosen.profile else ():
                print(f"{1000 * seconds / chosen.passes:8.1f} ms/pass  {name}")
        finally:
            store.close()


if __name__ == "__main__":
    main()
