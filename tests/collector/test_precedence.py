"""Receiving goes before deriving: who gives way, and who does not."""

from __future__ import annotations

import gc
import os
import sys
import threading
from pathlib import Path

import pytest

from collector.precedence import give_way, giving_way
from collector.serve import Collector, CollectorSettings
from collector.store import Store

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere precedence belongs to the process")


def precedence() -> int:
    """Of the calling thread; a higher number is served later."""
    return os.getpriority(os.PRIO_PROCESS, 0)


def tasks() -> dict[int, int]:
    """Every thread of this process with its precedence."""
    return {int(t): os.getpriority(os.PRIO_PROCESS, int(t)) for t in os.listdir("/proc/self/task")}


@linux
def test_threads_begun_while_giving_way_give_way_and_the_caller_does_not() -> None:
    before = precedence()
    found: list[int] = []

    def begin() -> str:
        child = threading.Thread(target=lambda: found.append(precedence()))
        child.start()
        child.join()
        return "begun"

    assert giving_way(begin) == "begun"
    assert found[0] > before
    assert precedence() == before


@linux
def test_who_already_gives_way_more_is_left_alone() -> None:
    found: list[int] = []

    def run() -> None:
        os.setpriority(os.PRIO_PROCESS, 0, 15)
        give_way()
        found.append(precedence())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [15]


def test_what_fails_while_giving_way_fails_for_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        giving_way(lambda: 1 // 0)


@linux
def test_the_derivation_and_the_engine_give_way_to_the_writer(tmp_path: Path) -> None:
    derivation: list[int] = []
    began = threading.Event()

    def background(store: Store, stop: threading.Event) -> None:
        derivation.append(precedence())
        began.set()
        stop.wait()

    settings = CollectorSettings(data=tmp_path, http="127.0.0.1:0", grpc=None)
    own = precedence()
    before = set(tasks())
    with Collector(settings, background=background):
        assert began.wait(30)
        named = {t.name: t.native_id for t in threading.enumerate()}
        held = tasks()
        new = {task: nice for task, nice in held.items() if task not in before}
    assert derivation[0] > own
    assert held[named["checkpoint"] or 0] == derivation[0]
    assert held[named["writer"] or 0] == own
    # the engine's own threads, which Python does not know
    engine = [nice for task, nice in new.items() if task not in named.values()]
    assert derivation[0] in engine


def test_a_server_process_tunes_its_interpreter_and_a_library_does_not(tmp_path: Path) -> None:
    switch, frozen = sys.getswitchinterval(), gc.get_freeze_count()
    with Collector(CollectorSettings(data=tmp_path, http="127.0.0.1:0", grpc=None)):
        assert sys.getswitchinterval() == switch
        assert gc.get_freeze_count() == frozen
