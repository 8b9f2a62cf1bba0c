"""How long each page of the dashboard takes over a million tasks.

    python benchmarks/pages.py --from DERIVED_FOLDER --data SCALED_FOLDER [--tasks 1000000] [--spans 30000000]

`--from` is a data folder derived from the sample company (`agent-slo demo --samples company --exit-after-load
--data DERIVED_FOLDER`). Its derived tables are copied by SQL until there are enough tasks, each copy under ids of its
own and up to a day earlier; status, history and incidents stay as they are, as they do not grow with the tasks. Raw
spans are copied as well, without their attributes. A scaled folder that is there already is used again.

Each page is run as Streamlit runs it, first with a new process's caches, then with one filter changed; what is
printed is the time of the whole script on the server, the processor seconds in it (all threads; on a machine that does
other work the time says little), and its slowest queries.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

PAGES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "overview": ({}, {"agent": "*"}),
    "objective": ({"slo": "task-completion"}, {"slo": "latency"}),
    "tasks": ({}, {"agent": "*"}),
    "task": ({"id": "?"}, {"id": "?"}),
    "actions": ({}, {"agent": "*"}),
    "humans": ({}, {"agent": "*"}),
    "cost": ({}, {"agent": "*"}),
    "incidents": ({}, {"agent": "*"}),
    "data": ({}, {}),
}
"""Page -> parameters of the first picture, parameters of the change."""

_AGENTS = ("refund_desk", "scheduling_assistant", "invoice_reminder", "research_analyst", "code_maintainer")
"""Each change of the filter names another one, as answers are remembered."""

_IDS = (
    "task_id",
    "run_id",
    "attempt_id",
    "action_id",
    "intervention_id",
    "finding_id",
    "trace_id",
    "subject_id",
)


def scale(source: Path, target: Path, tasks: int, spans: int) -> None:
    """Write `target`: the derived tables of `source`, copied until there are `tasks` tasks and `spans` spans."""
    (target / "spans").mkdir(parents=True)
    (target / "format.json").write_bytes((source / "format.json").read_bytes())
    con = duckdb.connect()
    con.execute(f"SET temp_directory = '{target}/tmp'")
    for name in ("core", "work"):
        con.execute(f"ATTACH '{source}/{name}.duckdb' AS old_{name} (READ_ONLY)")
        con.execute(f"ATTACH '{target}/{name}.duckdb' AS {name} (STORAGE_VERSION 'v1.5.0')")
    (have,) = con.execute("SELECT count(*) FROM old_core.tasks").fetchone() or (0,)
    copies = -(-tasks // have)
    for name in ("core", "work"):
        tables = con.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = ? ORDER BY 1", [f"old_{name}"]
        ).fetchall()
        for (table,) in tables:
            _copy(con, f"old_{name}.{table}", f"{name}.{table}", copies)
        # The dashboard's views of aggregates read tables, not each other.
        for (text,) in con.execute(
            "SELECT sql FROM duckdb_views() WHERE database_name = ? AND NOT internal", [f"old_{name}"]
        ).fetchall():
            con.execute(
                text.replace("CREATE VIEW ", f"CREATE VIEW {name}.", 1) if f"{name}." not in text else text
            )
    files = sorted((source / "spans").glob("*.duckdb"))
    con.execute(f"ATTACH '{files[0]}' AS old_spans (READ_ONLY)")
    con.execute(f"ATTACH '{target}/spans/{files[0].name}' AS new_spans (STORAGE_VERSION 'v1.5.0')")
    (rows,) = con.execute("SELECT count(*) FROM old_spans.spans").fetchone() or (1,)
    con.execute("CREATE TABLE new_spans.spans AS FROM old_spans.spans LIMIT 0")
    con.execute("CREATE TABLE new_spans.logs AS FROM old_spans.logs")
    con.execute(
        f"""INSERT INTO new_spans.spans
        SELECT s.* REPLACE (s.seq + k * {rows} AS seq, trace_id || '~' || k AS trace_id, '{{}}' AS attributes,
                            NULL AS events)
        FROM range({-(-spans // rows)}) copies(k), old_spans.spans s"""
    )
    con.execute(f"UPDATE core.pipeline SET derived_seq = {-(-spans // rows) * rows + rows}")
    con.close()


def _copy(con: duckdb.DuckDBPyConnection, old: str, new: str, copies: int) -> None:
    columns = dict(con.execute(f"SELECT column_name, column_type FROM (DESCRIBE {old})").fetchall())
    if "task_id" not in columns:
        con.execute(f"CREATE TABLE {new} AS FROM {old}")
        return
    changed = [f"{name} || '~' || k AS {name}" for name in _IDS if name in columns]
    # Up to a day earlier, so that copies do not all begin in one microsecond.
    changed += [
        f'"{name}" - to_seconds((k * 7919) % 86400) AS "{name}"'
        for name, kind in columns.items()
        if kind == "TIMESTAMP"
    ]
    con.execute(f"CREATE TABLE {new} AS FROM {old} LIMIT 0")
    con.execute(
        f"INSERT INTO {new} SELECT t.* REPLACE ({', '.join(changed)}) FROM range({copies}) copies(k), {old} t"
    )


def measure(data: Path, repeats: int, only: list[str]) -> None:
    """Run every page and print its times."""
    os.environ["AGENT_SLO_DATA"] = str(data)
    from streamlit.testing.v1 import AppTest

    import dashboard
    from collector.reader import open_reader
    from dashboard import door

    app = Path(dashboard.__file__).parent / "app.py"
    asked: list[tuple[str, float]] = []
    table = door.Answers.table

    def timed(self: door.Answers, name: str, **parameters: Any) -> Any:
        began = time.perf_counter()
        try:
            return table(self, name, **parameters)
        finally:
            asked.append((name, time.perf_counter() - began))

    door.Answers.table = timed  # type: ignore[method-assign]
    # One reader for all runs, as the running collector's door is: opening the files is not what is measured.
    reader = open_reader(data)
    setattr(door, "open_reader", _kept(reader))  # noqa: B010
    newest = reader.sql("SELECT task_id FROM tasks ORDER BY started_at DESC LIMIT 1").to_pylist()[0][
        "task_id"
    ]
    print(f"{'page':<11}{'first':>8}{'cpu':>8}{'filter':>9}{'cpu':>8}   slowest queries of the first picture")
    for name, (first, change) in PAGES.items():
        if only and name not in only:
            continue
        times: list[float] = []
        used: list[float] = []
        slowest = ""
        changes = [
            {k: _AGENTS[place % len(_AGENTS)] if v == "*" else v for k, v in change.items()}
            for place in range(repeats)
        ]
        for parameters in (first, *changes):
            asked.clear()
            test = AppTest.from_file(str(app), default_timeout=600)
            test.switch_page(f"screens/{name}.py")
            for key, value in parameters.items():
                test.query_params[key] = newest if value == "?" else value
            began, before = time.perf_counter(), time.process_time()
            test.run()
            times.append(time.perf_counter() - began)
            used.append(time.process_time() - before)
            assert not test.exception, test.exception
            assert not test.error, [error.value for error in test.error] + [text.value for text in test.text]
            if len(times) == 1:
                worst = sorted(asked, key=lambda item: -item[1])[:5]
                slowest = f"{sum(s for _, s in asked):.2f} s in {len(asked)}: " + ", ".join(
                    f"{query} {seconds:.2f}" for query, seconds in worst
                )
        change_s, change_cpu = statistics.median(times[1:]), statistics.median(used[1:])
        print(
            f"{name:<11}{times[0]:>7.2f}s{used[0]:>7.2f}s{change_s:>8.2f}s{change_cpu:>7.2f}s   {slowest}",
            flush=True,
        )


def _kept(reader: Any) -> Callable[[Path], Any]:
    reader.close = lambda: None
    return lambda data: reader


def main() -> None:
    """Make the folder if it is not there, then measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", dest="source", type=Path, help="derived folder to scale up")
    parser.add_argument("--data", type=Path, required=True, help="scaled folder, made if it is not there")
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--spans", type=int, default=30_000_000)
    parser.add_argument(
        "--repeats", type=int, default=3, help="runs with the filter changed; the median counts"
    )
    parser.add_argument("--page", action="append", default=[], choices=list(PAGES), help="only this page")
    chosen = parser.parse_args()
    if not chosen.data.exists():
        if chosen.source is None:
            parser.error(f"{chosen.data} is not there: name a derived folder to make it from with --from")
        began = time.perf_counter()
        scale(chosen.source, chosen.data, chosen.tasks, chosen.spans)
        print(
            f"{chosen.tasks:,} tasks and {chosen.spans:,} spans made in {time.perf_counter() - began:.0f} s"
        )
    measure(chosen.data, chosen.repeats, chosen.page)


if __name__ == "__main__":
    main()
