"""Receiving goes before deriving: threads that nobody waits for give way to those that senders wait for.

All of them share the processors. Asked to do so, the system gives a thread of low precedence what the others leave:
everything while they wait, little under load. On Linux each thread has a precedence of its own, and those that it
starts inherit it; elsewhere it belongs to the process, and nothing is changed.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_LOW = 5
"""A third of the share of a thread that takes precedence. Not less: a thread that gives way may hold the interpreter's
lock, and on a busy machine those that wait for it wait for its next turn (at 10, up to a quarter of a second)."""
_SWITCH_SECONDS = 0.001
_YOUNG_OBJECTS = 20_000

T = TypeVar("T")


def give_way() -> None:
    """Lower the precedence of the calling thread for good, and of every thread that it will start."""
    if sys.platform == "linux":
        # 0 is the calling thread there, not the process.
        os.setpriority(os.PRIO_PROCESS, 0, max(_LOW, os.getpriority(os.PRIO_PROCESS, 0)))


def giving_way(begin: Callable[[], T]) -> T:
    """What `begin` returns; the threads that it starts give way, the calling thread does not."""
    with ThreadPoolExecutor(1, thread_name_prefix="begin", initializer=give_way) as pool:
        return pool.submit(begin).result()


def tune_interpreter() -> None:
    """Settings of the whole process for a server whose threads wait for each other; call once all is loaded.

    A thread that runs Python hands over after 1 ms instead of 5: each request needs several turns of the event loop.
    What is loaded by now lives until the end: the garbage collector need not look at it again and again, which
    stopped everybody for 0.1 to 0.25 s. Decoded requests hold no cycles, so young objects may be many.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
