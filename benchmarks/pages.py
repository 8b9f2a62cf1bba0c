"""How long each page of the dashboard takes over a million tasks.

    python benchmarks/pages.py --from DERIVED_FOLDER --data SCALED_FOLDER [--tasks 1000000] [--spans 30000000]

`--from` is a data folder derived from the sample company (`agent-slo demo --samples company --exit-after-load
--data DERIVED_FOLDER`). Its derived tables are copied by SQL until there are enough tasks, each copy under ids of its
own and up to a day earlier; status, history and incidents stay as they are, as they do not grow with the tasks. Raw
spans are copied as well, without their attributes. A scaled folder that is there already is used again.

Each page is run as Streamlit runs it: `cold` with the modules loaded, as the server does when it starts, and no answer
known; `first` as a visitor finds it, when the questions of first pictures were asked at the start; `filter` with one
filter changed, so with nothing known again. What is printed is the time of the whole script on the server, the
processor seconds in it (all threads; on a machine that does other work the time says little), and the slowest queries
of the cold run.

With `--queries` every question of every page (first picture and changed filter) is asked alone instead, one at a time,
and its least time and the processor's are printed, the slowest first: pages ask several at once, which makes each look
slower than it is.

With `--browser` the pages are opened in a headless Chromium instead, in a fresh session each, over a running collector
and dashboard: the time until the first number is there, until the page is done, and the processor seconds of both.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import duckdb
import httpx

from collector.reader import Reader
from dashboard.queries import query_text

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

_SQL = Path(__file__).parent.parent / "dashboard" / "sql"
_NAMES = {query_text(path.stem): path.stem for path in _SQL.glob("*.sql")}

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
        # Views are written with the names of their own database, and some read others.
        con.execute(f"USE {name}")
        waiting = con.execute(
            "SELECT sql FROM duckdb_views() WHERE database_name = ? AND NOT internal", [f"old_{name}"]
        ).fetchall()
        while waiting:
            left = [text for (text,) in waiting if not _made(con, text)]
            if len(left) == len(waiting):
                raise RuntimeError(f"these views of {name} cannot be made: {left}")
            waiting = [(text,) for text in left]
        con.execute("USE memory")
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


def _made(con: duckdb.DuckDBPyConnection, view: str) -> bool:
    """Whether the view could be made; not before those it reads."""
    try:
        con.execute(view)
    except duckdb.CatalogException:
        return False
    return True


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


def measure(data: Path, repeats: int, only: list[str], *, alone: bool = False) -> None:
    """Run every page and print its times; with `alone`, those of its questions, each asked by itself."""
    os.environ["AGENT_SLO_DATA"] = str(data)
    logging.getLogger("streamlit").setLevel(logging.ERROR)
    import streamlit as st
    from streamlit.testing.v1 import AppTest

    import dashboard
    from collector.reader import open_reader
    from dashboard import door
    from dashboard.warm import FIRST, ask, load

    app = Path(dashboard.__file__).parent / "app.py"
    asked: list[tuple[str, float]] = []
    questions: dict[tuple[str, str], dict[str, Any]] = {}
    answer = door.Answers._ask

    def timed(self: door.Answers, sql: str, parameters: dict[str, Any]) -> Any:
        began = time.perf_counter()
        try:
            return answer(self, sql, parameters)
        finally:
            asked.append((_NAMES.get(sql, "?"), time.perf_counter() - began))
            questions[sql, json.dumps(parameters, sort_keys=True, default=str)] = parameters

    door.Answers._ask = timed  # type: ignore[method-assign]
    # One reader for all runs, as the running collector's door is: opening the files is not what is measured.
    reader = open_reader(data)
    setattr(door, "open_reader", _kept(reader))  # noqa: B010
    newest = reader.sql("SELECT task_id FROM tasks ORDER BY started_at DESC LIMIT 1").to_pylist()[0][
        "task_id"
    ]
    load()

    def run(name: str, parameters: dict[str, str]) -> tuple[float, float]:
        asked.clear()
        test = AppTest.from_file(str(app), default_timeout=600)
        test.switch_page(f"screens/{name}.py")
        for key, value in parameters.items():
            test.query_params[key] = newest if value == "?" else value
        began, before = time.perf_counter(), time.process_time()
        test.run()
        used = time.perf_counter() - began, time.process_time() - before
        assert not test.exception, test.exception
        assert not test.error, [error.value for error in test.error] + [text.value for text in test.text]
        return used

    run("incidents", {})  # What Streamlit itself does once.
    if alone:
        for name, (first, change) in PAGES.items():
            if not only or name in only:
                run(name, first)
                run(name, {k: _AGENTS[0] if v == "*" else v for k, v in change.items()})
        _alone(reader, questions, repeats)
        return
    heads = "".join(f"{head:>8}{'cpu':>7}" for head in ("cold", "first", "filter"))
    print(f"{'page':<10}{heads}   queries of the cold run, added up, and the slowest")
    for name, (first, change) in PAGES.items():
        if only and name not in only:
            continue
        st.cache_resource.clear()
        st.cache_data.clear()
        cold = run(name, first)
        slow = sorted(asked, key=lambda item: -item[1])[:5]
        told = f"{sum(seconds for _, seconds in asked):.2f} s in {len(asked)}: " + ", ".join(
            f"{query} {seconds:.2f}" for query, seconds in slow
        )
        with door.answers(data) as answers:
            ask(answers, FIRST.get(name, ()))
        warm = [run(name, first) for _ in range(repeats)]
        changes = [
            run(name, {k: _AGENTS[place % len(_AGENTS)] if v == "*" else v for k, v in change.items()})
            for place in range(repeats)
        ]
        columns = (cold, _median(warm), _median(changes))
        print(
            f"{name:<10}" + "".join(f"{s:>7.2f}s{cpu:>6.2f}s" for s, cpu in columns) + f"   {told}",
            flush=True,
        )


def _alone(reader: Reader, questions: dict[tuple[str, str], dict[str, Any]], repeats: int) -> None:
    """Print the least time of each question, asked by itself, and the processor's; the slowest first."""
    lines = []
    for (sql, _), parameters in questions.items():
        times, cpu = [], []
        for _ in range(repeats):
            began, before = time.perf_counter(), time.process_time()
            reader.sql(sql, parameters or None)
            times.append(time.perf_counter() - began)
            cpu.append(time.process_time() - before)
        stated = {key: value for key, value in parameters.items() if value not in (None, False)}
        lines.append((min(cpu), min(times), _NAMES.get(sql, " ".join(sql.split())[:60]), stated))
    print(f"{'least':>7}     {'cpu':>5}")
    for used, seconds, name, stated in sorted(lines, key=lambda line: -line[0]):
        print(
            f"{seconds * 1000:>7.0f} ms {used * 1000:>5.0f} ms  {name:<26} {json.dumps(stated, default=str)[:100]}",
            flush=True,
        )
    print(f"{sum(seconds for _, seconds, *_ in lines):.2f} s for {len(lines)} questions")


def _median(times: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(s for s, _ in times), statistics.median(cpu for _, cpu in times)


def measure_in_browser(data: Path, repeats: int, only: list[str]) -> None:
    """Open every page in a browser and print its times. Copies `data`, as a collector writes to its folder."""
    from playwright.sync_api import sync_playwright

    from agent_slo.commands.dashboard import dashboard_environment, streamlit_command
    from agent_slo.ports import free_port
    from collector.reader import open_reader

    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agent-slo-pages-"))) / "data"
        shutil.copytree(data, folder)
        with open_reader(folder) as reader:
            newest = reader.sql("SELECT task_id FROM tasks ORDER BY started_at DESC LIMIT 1").to_pylist()[0][
                "task_id"
            ]
        # The collector alone: what would be derived from copies without attributes is not what is shown.
        listening = ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
        collector = _child(
            stack, [sys.executable, "-m", "collector", "--data", str(folder), *listening], None
        )
        _until(lambda: (folder / "door.json").exists())
        port = free_port()
        pages = _child(stack, streamlit_command(port), dashboard_environment(folder))
        _until(lambda: _answers(f"http://127.0.0.1:{port}/_stcore/health"))
        time.sleep(20)  # The questions of first pictures are asked meanwhile.
        playwright = stack.enter_context(sync_playwright())
        found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        heads = "".join(f"{head:>8}" for head in ("first", "done", "cpu", "filter", "done", "cpu"))
        print(f"{'page':<10}{heads}   (cpu: dashboard and collector)")
        for name, (first, change) in PAGES.items():
            if only and name not in only:
                continue
            columns = []
            for parameters in (first, change):
                visits = []
                for place in range(repeats):
                    asked = {
                        k: newest if v == "?" else _AGENTS[place % len(_AGENTS)] if v == "*" else v
                        for k, v in parameters.items()
                    }
                    visits.append(_visit(browser, port, name, asked, (collector.pid, pages.pid)))
                columns += [statistics.median(column) for column in zip(*visits, strict=True)]
            print(f"{name:<10}" + "".join(f"{value:>7.2f}s" for value in columns), flush=True)


def _visit(
    browser: Any, port: int, name: str, parameters: dict[str, str], pids: tuple[int, int]
) -> tuple[float, float, float]:
    """Seconds until the first number, until the page is done, and processor seconds of the two processes."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        page = context.new_page()
        path = "" if name == "overview" else name
        before, began = sum(map(_used, pids)), time.perf_counter()
        page.goto(f"http://127.0.0.1:{port}/{path}?{urlencode(parameters)}")
        page.wait_for_selector('[data-testid="stMetric"], [data-testid="stDataFrame"]')
        first = time.perf_counter() - began
        page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
        return first, time.perf_counter() - began, sum(map(_used, pids)) - before
    finally:
        context.close()


def _used(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _child(stack: contextlib.ExitStack, command: list[str], environment: dict[str, str] | None) -> Any:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(process.wait, 60)
    stack.callback(process.terminate)
    return process


def _until(ready: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not ready within {seconds:g} s")
        time.sleep(0.1)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.HTTPError:
        return False


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
    parser.add_argument("--queries", action="store_true", help="every question alone, the slowest first")
    parser.add_argument("--browser", action="store_true", help="in a Chromium, over a running collector")
    chosen = parser.parse_args()
    if not chosen.data.exists():
        if chosen.source is None:
            parser.error(f"{chosen.data} is not there: name a derived folder to make it from with --from")
        began = time.perf_counter()
        scale(chosen.source, chosen.data, chosen.tasks, chosen.spans)
        print(
            f"{chosen.tasks:,} tasks and {chosen.spans:,} spans made in {time.perf_counter() - began:.0f} s"
        )
    if chosen.browser:
        measure_in_browser(chosen.data, chosen.repeats, chosen.page)
    else:
        measure(chosen.data, chosen.repeats, chosen.page, alone=chosen.queries)


if __name__ == "__main__":
    main()
