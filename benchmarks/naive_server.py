"""What the collector is compared with: one transaction a request into one default DuckDB file.

Same receiver, same decoder, same table and the same promise (200 after COMMIT); no grouping, no rotation,
DuckDB's own checkpoint policy. `--rows` inserts row by row with executemany instead of one Arrow table.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
from pathlib import Path

import duckdb
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector import views
from collector.decode import decode


def application(database: Path, by_row: bool) -> Starlette:
    """The ASGI application; commits on a thread, one request at a time."""
    con = duckdb.connect(str(database))
    views.create_tables(con, database.stem)
    lock = threading.Lock()

    def store(body: bytes) -> None:
        table = decode("traces", "protobuf", body).batch.spans
        if table is None:
            return
        with lock:
            con.execute("BEGIN TRANSACTION")
            if by_row:
                marks = ", ".join("?" * table.num_columns)
                rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
                con.executemany(f"INSERT INTO spans SELECT 0, now()::TIMESTAMP, {marks}", rows)
            else:
                con.register("incoming", table)
                con.execute("INSERT INTO spans SELECT 0, now()::TIMESTAMP, * FROM incoming")
                con.unregister("incoming")
            con.execute("COMMIT")

    async def export(request: Request) -> Response:
        body = await request.body()
        await asyncio.get_running_loop().run_in_executor(None, store, body)
        return Response(media_type="application/x-protobuf")

    async def ready(request: Request) -> Response:
        return Response()

    return Starlette(routes=[Route("/v1/traces", export, methods=["POST"]), Route("/readyz", ready)])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rows", action="store_true")
    given = parser.parse_args()
    app = application(given.database, given.rows)
    uvicorn.run(app, port=given.port, http="httptools", log_config=None, access_log=False)


if __name__ == "__main__":
    main()
