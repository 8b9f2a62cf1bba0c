from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import MadeOnce
from tests.incidents.folders import fill
from tests.metrics import worlds


@pytest.fixture(scope="session")
def company(made_once: MadeOnce) -> Path:
    """Two tasks of every story of the sample company, derived and grouped. Tests only read it."""

    def derive(folder: Path) -> None:
        requests = [request for spans in worlds.spans_by_trace().values() for request in spans]
        fill(folder, requests, worlds.settings(), worlds.end())

    return made_once("small_company", derive)
