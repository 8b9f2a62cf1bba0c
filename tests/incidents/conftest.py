from __future__ import annotations

from pathlib import Path

import pytest

from tests.incidents.folders import fill
from tests.metrics import worlds


@pytest.fixture(scope="session")
def company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks of every story of the sample company, derived and grouped."""
    requests = [request for spans in worlds.spans_by_trace().values() for request in spans]
    return fill(tmp_path_factory.mktemp("company") / "data", requests, worlds.settings(), worlds.end())
