"""An older folder is upgraded with a copy kept; a crash in the middle begins it again."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from collector.layout import FORMAT_VERSION, DataFolder, StoreError
from collector.migrations import MIGRATIONS, Migration, upgrade
from collector.store import Store


def old_folder(root: Path) -> DataFolder:
    Store.open(root).close()
    folder = DataFolder(root)
    folder.write_format(1, "0.0.1")
    return folder


def test_there_is_a_way_from_every_older_format() -> None:
    assert [m.origin for m in MIGRATIONS] == list(range(1, FORMAT_VERSION))


def test_an_older_folder_is_upgraded_at_the_start(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    Store.open(tmp_path).close()
    assert folder.check_format() == FORMAT_VERSION
    kept = json.loads((tmp_path / "before-format-2" / "format.json").read_text())
    assert kept == {"version": 1, "created_by": "0.0.1"}


def test_what_changes_is_copied_first_and_a_crash_begins_again(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    con = duckdb.connect(":memory:")
    con.execute(f"ATTACH '{folder.core}' AS core")
    con.execute("CREATE TABLE core.words AS SELECT 'old' AS word")

    def half(con: duckdb.DuckDBPyConnection) -> None:
        con.execute("UPDATE core.words SET word = 'half'")
        raise InterruptedError

    def whole(con: duckdb.DuckDBPyConnection) -> None:
        con.execute("UPDATE core.words SET word = 'new'")

    with pytest.raises(InterruptedError):
        upgrade(folder, con, "x", [Migration(1, "a test", ("core",), half)], target=2)
    assert folder.check_format() == 1
    assert upgrade(folder, con, "x", [Migration(1, "a test", ("core",), whole)], target=2) == [1]
    assert con.execute("FROM core.words").fetchall() == [("new",)]
    con.close()
    copy = duckdb.connect(str(tmp_path / "before-format-2" / "core.duckdb"), read_only=True)
    assert copy.execute("FROM words").fetchall() == [("old",)]
    copy.close()
    assert folder.check_format() == 2


def test_odd_versions_are_refused(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    for version in (0, FORMAT_VERSION + 1):
        folder.write_format(version, "x")
        with pytest.raises(StoreError, match=f"written in format {version}"):
            Store.open(tmp_path)
