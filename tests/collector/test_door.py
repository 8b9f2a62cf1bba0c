from __future__ import annotations

import json
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pyarrow as pa
import pytest

from collector.decode import decode
from collector.fence import fence, fenced, resident
from collector.serve import Collector
from tests.collector.conftest import StartCollector
from tests.collector.requests import body


def door_client(collector: Collector) -> httpx.Client:
    door = json.loads(collector.store.folder.door_file.read_text())
    return httpx.Client(
        base_url=door["door"],
        headers={"authorization": f"Bearer {door['token']}"},
        trust_env=False,
        timeout=60,
    )


@pytest.fixture
def door(collector: Collector) -> Iterator[httpx.Client]:
    with door_client(collector) as client:
        yield client


def ask(client: httpx.Client, sql: str, params: Any = None) -> pa.Table:
    answer = client.post("/sql", json={"sql": sql, "params": params})
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_stream(answer.content).read_all()


def test_the_door_file_is_private_and_goes_with_the_collector(
    start_collector: StartCollector, tmp_path: Path
) -> None:
    collector = start_collector(grpc="127.0.0.1:0")
    path = tmp_path / "data" / "door.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = json.loads(path.read_text())
    assert (content["http"], content["grpc"]) == (str(collector.http), str(collector.grpc))
    assert {"door", "token", "pid", "version"} <= set(content)
    collector.stop()
    assert not path.exists()


def test_a_select_with_parameters(door: httpx.Client, collector: Collector) -> None:
    batch = decode("traces", "protobuf", body(3)).batch
    collector.store.append(batch)
    assert ask(door, "SELECT count(*) AS n FROM spans WHERE service = ?", ["bot"]).to_pylist() == [{"n": 3}]
    named = ask(door, "SELECT $a + 1 AS x, $b AS y", {"a": 1, "b": "it's"})
    assert named.to_pylist() == [{"x": 2, "y": "it's"}]
    assert ask(door, "DESCRIBE spans").num_rows == 20
    assert ask(door, "FROM spans LIMIT 0").column_names[:2] == ["seq", "received_at"]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT 1; SELECT 2", "2 statements"),
        ("", "0 statements"),
        ("CREATE TABLE x (a INTEGER)", "only SELECT"),
        ("COPY spans TO 'x.csv'", "only SELECT"),
        ("ATTACH 'x.duckdb'", "only SELECT"),
        ("PRAGMA database_list", "only SELECT"),
        ("SET threads = 1", "only SELECT"),
        ("DELETE FROM spans", "only SELECT"),
        ("CALL pragma_version()", "only SELECT"),
        ("INSERT INTO spans_000001.spans (seq) VALUES (1)", "only SELECT"),
        ("SELECT * FROM read_text('/etc/hostname')", "read_text() is not answered"),
        ("SELECT * FROM '/etc/hostname'", "files are not read"),
        ("SELECT * FROM read_csv('http://127.0.0.1/x')", "read_csv() is not answered"),
        ("SELECT * FROM nonesuch", "nonesuch"),
        ("SELEC 1", "syntax error"),
    ],
)
def test_anything_else_is_refused(door: httpx.Client, sql: str, message: str) -> None:
    answer = door.post("/sql", json={"sql": sql})
    assert answer.status_code == 400
    assert message in answer.json()["error"]


FILE_READERS = [
    "SELECT content FROM read_text('{door}')",
    "SELECT content FROM READ_TEXT(['{door}'])",
    "SELECT content FROM main.read_text('{door}')",
    "SELECT content FROM system.main.\"read_text\"('{door}')",
    "SELECT content FROM read_text($1)",
    "SELECT content::VARCHAR FROM read_blob('{door}')",
    "SELECT * FROM read_csv('{door}', delim = '')",
    "SELECT * FROM read_csv_auto('{door}')",
    "SELECT * FROM read_json('{door}')",
    "SELECT * FROM read_ndjson_objects('{door}')",
    "SELECT * FROM read_parquet('{door}')",
    "SELECT * FROM parquet_metadata('{door}')",
    "SELECT * FROM sniff_csv('{door}')",
    "SELECT * FROM read_duckdb('{door}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM '{door}'",
    'FROM "{door}"',
    "DESCRIBE '{door}'",
    "SUMMARIZE '{door}'",
    "FROM door.json",
    'FROM main."{door}"',
    'FROM spans_000001."{door}"',
    "SELECT (SELECT content FROM read_text('{door}'))",
    "SELECT 1 WHERE EXISTS (FROM read_text('{door}') WHERE content LIKE '%token%')",
    "WITH a AS MATERIALIZED (FROM read_text('{door}')) FROM a",
    "FROM range(1), LATERAL (FROM read_text('{door}'))",
    "SELECT count(*) FILTER (1 IN (SELECT 1 FROM read_text('{door}'))) FROM range(1)",
    "FROM range(1) ORDER BY (SELECT content FROM read_text('{door}'))",
    "FROM range(1) LIMIT (SELECT length(content) FROM read_text('{door}'))",
    "VALUES ((SELECT content FROM read_text('{door}')))",
    "FROM (DESCRIBE FROM read_text('{door}'))",
    "UNPIVOT (FROM read_text('{door}')) ON content",
    "FROM spans AT (VERSION => (SELECT length(content) FROM read_text('{door}')))",
    "FROM query('FROM read_text(''{door}'')')",
    "FROM query_table('{door}')",
    "FROM histogram('{door}', token)",
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "PRAGMA json_execute_serialized_sql('x')",
    "SELECT * FROM pandas_scan(1)",
    "SELECT * FROM arrow_scan(1, 1, 1)",
    "SELECT * FROM python_map_function(1)",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM checkpoint('core')",
    "SELECT * FROM enable_logging()",
    "SELECT * FROM seq_scan('spans')",
    "SELECT getenv('AGENT_SLO_TOKEN')",
    "SELECT current_setting('temp_directory')",
    "SELECT sleep_ms(100000)",
    "SELECT pg_sleep(100)",
    "COPY (FROM read_text('{door}')) TO '/dev/stdout'",
    "ATTACH '{folder}/core.duckdb' AS again",
    "INSTALL httpfs",
    "LOAD '/tmp/x.so'",
    "EXPORT DATABASE '/tmp/x'",
    "EXPLAIN ANALYZE FROM read_text('{door}')",
    "PIVOT (FROM read_text('{door}')) ON size",
    "EXECUTE x",
    "PREPARE x AS FROM read_text('{door}')",
]


@pytest.mark.parametrize("sql", FILE_READERS)
def test_nothing_reaches_a_file(door: httpx.Client, collector: Collector, sql: str) -> None:
    folder = collector.store.folder
    text = sql.format(door=folder.door_file, folder=folder.root)
    answer = door.post("/sql", json={"sql": text, "params": [str(folder.door_file)] if "$1" in sql else None})
    assert answer.status_code == 400
    token = json.loads(folder.door_file.read_text())["token"]
    assert token not in answer.text


def test_the_engine_cannot_open_what_the_check_would_miss(collector: Collector) -> None:
    folder = collector.store.folder
    with collector.store.reader() as con:
        for file in (folder.door_file, folder.format_file, Path("/etc/hostname")):
            with pytest.raises(duckdb.PermissionException):
                con.execute("SELECT * FROM read_text(?)", [str(file)]).fetchall()
            with pytest.raises(duckdb.PermissionException):
                con.execute("SELECT * FROM read_text(?)", [f"{folder.spans}/../{file.name}"]).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name, count(*) FROM spans GROUP BY ALL HAVING count(*) > 0 ORDER BY ALL",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
        "FROM spans_000001.spans LIMIT 1",
        "FROM memory.main.spans LIMIT 1",
        "SELECT s.key FROM spans, json_each(attributes) s LIMIT 1",
        "SELECT unnest([1, 2]), list_transform([1], lambda x: x + 1)",
        "SELECT row_number() OVER (PARTITION BY trace_id ORDER BY start_ns) FROM spans QUALIFY true",
        "SHOW TABLES",
        "SHOW ALL TABLES",
        "DESCRIBE spans",
        "SUMMARIZE spans",
        "VALUES (1, 'a.b/c')",
        "SELECT column_name FROM information_schema.columns LIMIT 1",
        "SELECT * FROM duckdb_columns() LIMIT 1",
        "SELECT 'read_text(''x'')' AS \"a.b\", histogram(start_ns) FROM spans",
        "UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b",
        "SELECT now(), " + " + ".join(["1"] * 100),
    ],
)
def test_honest_questions_are_answered(door: httpx.Client, collector: Collector, sql: str) -> None:
    collector.store.append(decode("traces", "protobuf", body(3)).batch)
    assert ask(door, sql) is not None


def test_python_variables_are_no_tables(collector: Collector) -> None:
    incoming = pa.table({"a": [1]})
    with collector.store.reader() as con, pytest.raises(duckdb.CatalogException, match="incoming"):
        con.sql("FROM incoming").fetchall()
    assert incoming.num_rows == 1


def test_a_statement_that_nests_too_deep_is_refused(door: httpx.Client) -> None:
    answer = door.post("/sql", json={"sql": "SELECT " + "(" * 900 + "1" + ")" * 900})
    assert answer.status_code in (200, 400)
    answer = door.post("/sql", json={"sql": "SELECT " + " + ".join(["a"] * 900) + " FROM (SELECT 1 AS a)"})
    assert answer.status_code == 400


def test_a_select_that_writes_is_refused(door: httpx.Client, collector: Collector) -> None:
    collector.store.append(decode("traces", "protobuf", body(2)).batch)
    sql = "WITH x AS (DELETE FROM spans_000001.spans RETURNING seq) SELECT * FROM x"
    assert door.post("/sql", json={"sql": sql}).status_code == 400
    assert ask(door, "SELECT count(*) AS n FROM spans").to_pylist() == [{"n": 2}]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"sql": 5}', b'{"sql": "SELECT 1", "params": 5}', b"\xff"]
)
def test_malformed_questions(door: httpx.Client, content: bytes) -> None:
    answer = door.post("/sql", content=content)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_a_question_without_end_is_cut_off(door: httpx.Client) -> None:
    pieces = (b"x" * (1 << 20) for _ in range(6))
    assert door.post("/sql", content=pieces).status_code == 413
    assert door.post("/sql", content=b"x" * (5 << 20)).status_code == 413
    assert door.post("/sql", content=b"[" * 100_000).status_code == 400
    assert ask(door, "SELECT 1 AS n").to_pylist() == [{"n": 1}]


def test_no_token_no_answer(door: httpx.Client) -> None:
    for header in ("", "Bearer", "Bearer wrong"):
        answer = door.post("/sql", json={"sql": "SELECT 1"}, headers={"authorization": header})
        assert answer.status_code == 401


def test_limits(start_collector: StartCollector) -> None:
    collector = start_collector(query_seconds=0.5, query_rows=1000, query_bytes=1_000_000)
    with door_client(collector) as door:
        runaway = (
            "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE (a.range * b.range) % 7 = 1"
        )
        answer = door.post("/sql", json={"sql": runaway})
        assert (answer.status_code, "stopped after 0.5 s" in answer.json()["error"]) == (400, True)
        answer = door.post("/sql", json={"sql": "SELECT * FROM range(1001)"})
        assert (answer.status_code, "more than 1000 rows" in answer.json()["error"]) == (400, True)
        answer = door.post("/sql", json={"sql": "SELECT repeat('x', 10000) || range AS t FROM range(500)"})
        assert (answer.status_code, "more than 1000000 bytes" in answer.json()["error"]) == (400, True)
        assert ask(door, "SELECT * FROM range(1000)").num_rows == 1000


GROWING = [
    "SELECT length(repeat('x', 1000000000) || repeat('y', 1000000000))",
    "SELECT len(range(400000000))",
    "SELECT len(range($1, $2))",
    "SELECT len(generate_series(1, 1e9::BIGINT))",
    "SELECT unnest(range(range)) FROM range(1000000000, 1000000001)",
    "SELECT length(repeat('x', 4000000000))",
    "SELECT length('x'.repeat(4000000000))",
    "SELECT system.main.\"REPEAT\"('x', 4000000000)",
    "SELECT repeat(repeat('x', 10000), 10000)",
    "SELECT repeat(s, 10000) FROM (SELECT repeat('x', 10000) AS s)",
    "SELECT repeat('x', range) FROM range(1000000000, 1000000001)",
    "SELECT regexp_replace(repeat('a', 100000000), 'a', 'bbbb', 'g')",
    "SELECT lpad('x', 1000000000, 'y') || rpad('x', 1000000000, 'y')",
    "SELECT list_resize([1], 1000000000), array_resize([1], 1000000000)",
    "SELECT bitstring('1', 1000000000)",
    "SELECT format('{:>1000000000}', 'x')",
    "SELECT format('{:>{}}', 'x', 1000000000)",
    "SELECT printf('%1000000000d', 1)",
    "SELECT reservoir_quantile(range, 0.5, 1000000000) FROM range(10)",
    "SELECT printf('%*d', 1000000000, 1)",
    "SELECT printf('%' || '1000000000d', 1)",
    "SELECT length(list_reduce(range(40)::VARCHAR[], lambda x, y: x || x))",
    "SELECT [[[a for a in [1, 2]] for b in [1, 2]] for c in [1, 2]]",
    "WITH RECURSIVE c(n, s) AS (SELECT 1, 'aa' UNION ALL SELECT n + 1, s || s FROM c WHERE n < 30) "
    "SELECT max(length(s)) FROM c",
    "WITH RECURSIVE c(n, s) AS (SELECT 1, 'aa' UNION ALL SELECT n + 1, replace(s, 'a', 'aa') FROM c WHERE n < 30) "
    "SELECT max(length(s)) FROM c",
    "WITH RECURSIVE c(n, s) AS (SELECT 1, [1] UNION ALL SELECT n + 1, [s, s] FROM c WHERE n < 30) FROM c",
]


@pytest.mark.parametrize("sql", GROWING)
def test_no_value_may_be_as_long_as_the_asker_likes(door: httpx.Client, sql: str) -> None:
    answer = door.post("/sql", json={"sql": sql, "params": [0, 400_000_000] if "$1" in sql else None})
    assert answer.status_code == 400
    assert "here" in answer.json()["error"]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT len(range($1 + 1)) AS v", 6),
        ("SELECT repeat('-', 20) || lpad('7', 3, '0') AS v", "-" * 20 + "007"),
        ("SELECT format('{:>5.1f}', 1.25) || printf('%03d', 7) AS v", "  1.2007"),
        ("SELECT count(*) AS v FROM range(1000000)", 1_000_000),
        (
            "WITH RECURSIVE c(n, s) AS (SELECT 1, 'a' UNION ALL SELECT n + 1, s || '/' || n FROM c WHERE n < 3) "
            "SELECT max(s) AS v FROM c",
            "a/1/2",
        ),
    ],
)
def test_short_values_of_such_functions_are_made(door: httpx.Client, sql: str, value: object) -> None:
    assert ask(door, sql, [5] if "$1" in sql else None).to_pylist() == [{"v": value}]


def _chain(start: str, grow: str, levels: int) -> str:
    query = f"SELECT {start} AS s"
    for _ in range(levels):
        query = f"SELECT {grow} AS s FROM ({query})"
    return f"SELECT length(s) FROM ({query})"


@pytest.mark.skipif(not fenced(), reason="only Linux holds a process to a limit of its data")
@pytest.mark.parametrize(
    "sql",
    [
        _chain("version()", "s || s || s || s || s || s || s || s || s || s", 10),
        _chain("version()", "replace(s, '.', '..........')", 12),
        _chain("version()", "hex(s)", 34),
        "SELECT count(*) FROM (SELECT [range]::INTEGER[1][] AS a, NULL::INTEGER[100000][1000] AS b FROM range(9)) "
        "WHERE b IS DISTINCT FROM [[a[1][1]]]::INTEGER[100000][1000]",
    ],
    ids=["concat", "replace", "hex", "arrays"],
)
def test_a_value_that_grows_by_other_ways_ends_its_query_only(
    start_collector: StartCollector, sql: str
) -> None:
    collector = start_collector(memory_limit="256MB", query_bytes=64 << 20, queue_bytes=64 << 20)
    with door_client(collector) as door:
        before = resident()
        answer = door.post("/sql", json={"sql": sql})
        assert answer.status_code == 400
        assert resident() - before < 1 << 30
        # and the collector goes on, without a limit on its own memory
        collector.store.append(decode("traces", "protobuf", body(2)).batch)
        assert ask(door, "SELECT count(*) AS n FROM spans").to_pylist() == [{"n": 2}]


def test_a_query_that_makes_the_process_grow_is_stopped(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = iter([0])
    monkeypatch.setattr("collector.door.resident", lambda: next(grown, 1 << 50))
    collector = start_collector()
    slow = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE (a.range * b.range) % 7 = 1"
    with door_client(collector) as door:
        answer = door.post("/sql", json={"sql": slow})
    assert (answer.status_code, "more memory" in answer.json()["error"]) == (400, True)


@pytest.mark.skipif(not fenced(), reason="only Linux holds a process to a limit of its data")
def test_the_fence_stands_while_somebody_is_inside() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    with fence(1 << 30):
        with fence(2 << 30):
            assert resource.getrlimit(resource.RLIMIT_DATA) != before
        assert resource.getrlimit(resource.RLIMIT_DATA) != before
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.parametrize("width", [100_000, 10_000])
def test_a_wide_answer_is_refused_with_a_line(start_collector: StartCollector, width: int) -> None:
    collector = start_collector(query_bytes=4 << 20)
    wide = " || ".join(["repeat('x', 10000) || r"] * (width // 10_000))
    with door_client(collector) as door:
        answer = door.post("/sql", json={"sql": f"SELECT r, {wide} AS t FROM range(100000) t(r)"})
        assert answer.status_code == 400
        assert "columns" in answer.json()["error"]


def test_an_error_of_arrow_is_an_answer(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise pa.ArrowInvalid("offset overflow\nat row 5")

    monkeypatch.setattr("collector.door.Door._stream", fail)
    with door_client(collector) as door:
        answer = door.post("/sql", json={"sql": "SELECT 1"})
    assert answer.status_code == 400
    assert "(offset overflow)" in answer.json()["error"]


def test_the_door_answers_its_own_name_only(door: httpx.Client) -> None:
    assert door.get("/healthz").status_code == 200
    assert door.get("/healthz", headers={"host": "localhost"}).status_code == 200
    assert door.get("/healthz", headers={"host": "evil.example"}).status_code == 421


def test_too_many_waiting_queries_are_refused(
    start_collector: StartCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.door._WAITING_PER_SLOT", 0)
    collector = start_collector(query_concurrency=1, query_seconds=3)
    slow = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE (a.range * b.range) % 7 = 1"
    with door_client(collector) as door, door_client(collector) as other:
        first = threading.Thread(target=lambda: door.post("/sql", json={"sql": slow}))
        first.start()
        while first.is_alive() and not _busy(collector):
            time.sleep(0.01)
        answer = other.post("/sql", json={"sql": "SELECT 1"})
        first.join()
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert other.post("/sql", json={"sql": "SELECT 1"}).status_code == 200


def test_memory_pressure_interrupts_queries_and_the_commit_is_tried_again(
    collector: Collector, door: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE (a.range * b.range) % 7 = 1"
    answers: list[httpx.Response] = []
    query = threading.Thread(target=lambda: answers.append(door.post("/sql", json={"sql": slow})))
    store = collector.store
    commit, tries = store._commit, []

    def fail_every_other_time(*parts: Any) -> None:
        tries.append(1)
        if len(tries) % 2:
            raise duckdb.OutOfMemoryException("no memory")
        commit(*parts)

    monkeypatch.setattr(store, "_commit", fail_every_other_time)
    query.start()
    appended = 0
    while query.is_alive():
        # An interrupt that comes before the query has begun to run does nothing: the next one does.
        if _busy(collector):
            appended += 1
            assert store.append(decode("traces", "protobuf", body(1)).batch) == appended
    query.join()
    assert appended
    assert len(tries) == 2 * appended
    assert (answers[0].status_code, "needed the memory" in answers[0].json()["error"]) == (400, True)


def _busy(collector: Collector) -> bool:
    """Whether a query of the door runs."""
    pressure = collector.store.on_memory_pressure
    door = getattr(pressure, "__self__", None)
    return bool(door is not None and door._running)
