"""What is attached to the store's instance, and the views over it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from collector import views
from collector.gate import Gate
from collector.instance import Instance
from collector.layout import SpanPath
from collector.span_files import SpanFile, remove


@dataclass
class _Retired:
    """A file that nothing new reads: detached once no transaction is left that began before."""

    database: str
    at: float
    turn: int


class Catalogue:
    """The span files of an instance, oldest first, the last one hot; `lock` guards them and whatever is attached."""

    def __init__(self, gate: Gate) -> None:
        self.lock = threading.RLock()
        self.files: list[SpanFile] = []
        self.instance: Instance
        self._gate = gate
        self._retired: list[_Retired] = []

    def begin(self, instance: Instance, places: Sequence[SpanPath]) -> None:
        """Attach the span files of a newly opened instance."""
        self.instance = instance
        self._retired = []
        self.files = [self.attach(place, read_only=place.merged) for place in places]

    def closed(self) -> list[SpanFile]:
        """The files that are not written any more."""
        with self.lock:
            return self.files[:-1]

    def tables_since(self, table: str, seq: int) -> list[str]:
        """Qualified names of this table of the files that hold rows with a seq above `seq`, oldest first."""
        with self.lock:
            return [f"{f.database}.{table}" for f in self.files if f.max_seq > seq]

    def attach(self, place: SpanPath, *, read_only: bool = False) -> SpanFile:
        """Attach a span file, made when it is not there, and count what it holds."""
        opened = place.path.stat().st_mtime if place.path.exists() else time.time()
        file = SpanFile(place, 0, 0, opened)
        root = self.instance.root
        self.instance.attach(place.path, file.database, read_only=read_only)
        if not read_only:
            views.create_tables(root, file.database)
        for table in views.table_names():
            row = root.execute(
                f"SELECT count(*), max(seq), min(received_at), max(received_at) FROM {file.database}.{table}"
            ).fetchone()
            assert row is not None
            file.rows += row[0]
            file.max_seq = max(file.max_seq, row[1] or 0)
            if row[0]:
                file.first_at = min(file.first_at or row[2], row[2])
                file.last_at = max(file.last_at or row[3], row[3])
        return file

    def add(self, place: SpanPath) -> None:
        """Attach a new hot file and show it."""
        with self.lock:
            self.files.append(self.attach(place))
            self.swap_span_views()

    def replace(self, old: list[SpanFile], new: list[SpanFile]) -> None:
        """Show the new files in place of the old ones, whose bytes are gone from the folder at once."""
        gone = {f.database for f in old}
        with self.lock:
            at = next(i for i, f in enumerate(self.files) if f.database in gone)
            left = [f for f in self.files if f.database not in gone]
            self.files = left[:at] + new + left[at:]
            self.swap_span_views()
            turn = self._gate.next_turn()
            self._retired += [_Retired(f.database, time.monotonic(), turn) for f in old]
        for file in old:
            remove(file.path)

    def detach_retired(self, patience: float) -> None:
        """Detach files that were replaced `patience` seconds ago and that no reader can still name."""
        oldest = self._gate.oldest_turn()
        with self.lock:
            ready = [r for r in self._retired if r.turn <= oldest and time.monotonic() - r.at >= patience]
            for retired in ready:
                self.instance.root.cursor().execute(f"DETACH {retired.database}")
                self._retired.remove(retired)

    def swap_span_views(self) -> None:
        """Put `spans` and `logs` over the files as they are now; safe under open readers."""
        cursor = self.instance.root.cursor()
        try:
            cursor.execute("BEGIN TRANSACTION")
            for statement in views.span_views([f.database for f in self.files]):
                cursor.execute(statement)
            cursor.execute("COMMIT")
        finally:
            cursor.close()
