"""A limit on the memory of the whole process while queries of others run.

DuckDB's memory_limit counts blocks, not the heap of long strings and lists that one expression builds, and an
interrupt acts only between two vectors. So while a query of the door runs, the kernel is asked to refuse what goes
past the fence: the allocation fails, DuckDB ends that query with an error, and the collector goes on.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections.abc import Iterator

import duckdb
import psutil

MIB = 1 << 20
_HEADROOM = 256 * MIB
"""A query may always allocate this much, however much address space earlier ones left behind."""
_UNITS = {"bytes": 1, "byte": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_UNITS |= {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}

_lock = threading.Lock()
_inside = 0
_first = 0
_before: tuple[int, int] = (-1, -1)


def memory_limit(con: duckdb.DuckDBPyConnection) -> int:
    """DuckDB's memory limit in bytes. Raises ValueError for a text that is no size."""
    ((text,),) = con.execute("SELECT current_setting('memory_limit')").fetchall()
    found = re.fullmatch(r"([\d.]+)\s*(\w+)", str(text).strip())
    if found is None or found[2] not in _UNITS:
        raise ValueError(f"memory limit {text!r}: not a size")
    return int(float(found[1]) * _UNITS[found[2]])


def resident() -> int:
    """Bytes of the process in memory."""
    return int(psutil.Process().memory_info().rss)


def fenced() -> bool:
    """Whether this system can hold a process to a limit of its data; elsewhere only the watch on RSS is there."""
    return sys.platform == "linux"


@contextlib.contextmanager
def fence(allowance: int) -> Iterator[None]:
    """Within the block the process can grow `allowance` bytes past what it had when the block began.

    Blocks may overlap: those that begin within another's count from where the first of them began, so that queries at
    once do not add up, and the last to leave takes the fence down. What the derivation takes meanwhile is in the
    allowance: it stays within DuckDB's own limit, which the allowance holds.
    """
    if sys.platform != "linux":
        yield
        return
    import resource

    global _inside, _first, _before
    with _lock:
        now = int(psutil.Process().memory_info().data)
        if _inside == 0:
            _first = now
            _before = resource.getrlimit(resource.RLIMIT_DATA)
        _inside += 1
        soft, hard = _before
        limits = [max(_first + allowance, now + _HEADROOM)]
        limits += [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                resource.setrlimit(resource.RLIMIT_DATA, _before)
