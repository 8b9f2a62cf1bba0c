"""How a store behaves."""

from __future__ import annotations

from dataclasses import dataclass

from collector.redaction.redactor import Redactor

_MIB = 1 << 20


@dataclass(frozen=True)
class StoreOptions:
    """How the store behaves; the defaults suit one machine with two cores."""

    rotate_spans: int = 100_000
    """Rows after which the hot file is closed."""
    rotate_seconds: float = 3600.0
    """Age after which a hot file of some size is closed; see Store._is_full."""
    rotate_log_bytes: int = 256 * _MIB
    """Size of the hot file's write-ahead log after which it is closed (few spans, large prompts)."""
    memory_limit: str | None = None
    """DuckDB's memory limit, such as '2GB'; None: a quarter of the machine's memory, 0.5 to 2 GB."""
    threads: int | None = None
    """DuckDB's worker threads; None: one per core."""
    workers_give_way: bool = False
    """Whether DuckDB's worker threads have low precedence (Linux), so that commits go before queries."""
    lock_wait: float = 10.0
    """Seconds to wait for another process to give up the files."""
    commit_rows: int = 50_000
    """Largest number of rows in one transaction."""
    derived_log_bytes: int = 64 * _MIB
    """Size of the write-ahead log of core or work after which it is checkpointed."""
    close_seconds: float = 3.0
    """Time after which a stop begins no further checkpoint; a log that stays is as durable as its file."""
    free_bytes: int = 64 * _MIB
    """Free space on the volume below which nothing more is accepted."""
    merge_rows: int = 2_000_000
    """Largest number of rows of a merged file."""
    merge_files: int = 16
    """Closed files of the running day after which they are merged; those of a past day always are."""
    merge_days: bool = True
    """Whether small files of several days become one; with a retention in days each day keeps its own."""
    tend_seconds: float = 60.0
    """How often the store looks whether files can be merged."""
    retire_seconds: float = 5.0
    """Time a replaced file stays attached, for statements that named it just before."""
    redactor: Redactor | None = None
    """Takes secrets out of everything before it is written; None: stored as it came."""
