"""What all tests share: a state folder that is nobody's own, and folders that a run makes once for all its workers."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes is the machine's business: no test may depend on a stopwatch.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

MadeOnce = Callable[[str, Callable[[Path], object]], Path]


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """`-n auto` starts one worker more than there are cores: a third of a run is waiting for pages and processes."""
    return (yield) + 1


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state folder (the redaction key lies there) for this run and for the processes it starts."""
    folder = tmp_path_factory.mktemp("state")
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


@pytest.fixture(scope="session")
def made_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """`made_once("company", make)` is a folder that `make(folder)` filled, once in a run whatever its workers.

    The first worker that asks makes it while the others wait; each gets a copy of its own, because a data base
    that one process has open for writing is closed to all others. What was not finished is made again.
    """
    own = tmp_path_factory.getbasetemp()
    # Workers of one run lie side by side; beside a run without workers lie other runs.
    run = own.parent if hasattr(request.config, "workerinput") else own

    def copy(name: str, make: Callable[[Path], object]) -> Path:
        made, begun = run / "made_once" / name, run / "made_once" / f"{name}.begun"
        made.parent.mkdir(exist_ok=True)
        with (made.parent / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                shutil.rmtree(begun, ignore_errors=True)
                begun.mkdir()
                make(begun)
                begun.rename(made)
        return shutil.copytree(made, tmp_path_factory.mktemp(name) / "data")

    return copy
