"""The functions live as long as the instance that calls them, not as the connection that brought them."""

from __future__ import annotations

import gc

import duckdb

from metrics import functions


def test_functions_outlive_the_connection_that_registered_them() -> None:
    root = duckdb.connect()
    first = root.cursor()
    functions.register(first)
    first.close()
    gc.collect()
    second = root.cursor()
    functions.register(second)
    told = second.sql(
        'SELECT without_free_text(\'{"id":1,"note":"x"}\'), canonical_arguments(\'{"b": 1.0}\') FROM range(5000)'
    ).fetchall()
    assert set(told) == {('{"id":1}', '{"b":1}')}
    registered = {
        name for (name,) in second.execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
    }
    assert {name for name, *_ in functions._FUNCTIONS} <= registered
