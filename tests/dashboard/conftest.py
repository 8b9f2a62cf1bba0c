"""A page at a time, run by Streamlit's own test harness over a data folder written by hand."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import dashboard
from dashboard.door import DATA_VARIABLE, _door
from tests.agent_slo.conftest import answer
from tests.dashboard.odd_clocks import odd_traces

APP = Path(dashboard.__file__).parent / "app.py"

OpenPage = Callable[..., AppTest]


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the small samples, derived and evaluated."""
    data = tmp_path_factory.mktemp("samples") / "data"
    answer("import", files("sample_traces") / "first_light.jsonl.gz", "--data", data)
    return data


@pytest.fixture(scope="session")
def odd_clocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with tasks of today, of 1970 and of 2262, and one that lasts from 1970 until today."""
    folder = tmp_path_factory.mktemp("odd_clocks")
    file = folder / "traces.jsonl"
    file.write_text(json.dumps(odd_traces(time.time_ns())), encoding="utf-8")
    answer("import", file, "--data", folder / "data")
    return folder / "data"


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenPage]:
    """`open_page(data, "screens/tasks.py", id="x")` runs one page and returns it."""

    def opened(data: Path, page: str = "screens/overview.py", **parameters: Any) -> AppTest:
        monkeypatch.setenv(DATA_VARIABLE, str(data))
        test = AppTest.from_file(str(APP), default_timeout=60)
        test.switch_page(page)
        for key, value in parameters.items():
            test.query_params[key] = value
        test.run()
        assert not test.exception, test.exception
        return test

    yield opened
    _door.clear()


def texts(test: AppTest) -> str:
    """Everything the page says, as one text."""
    elements = [
        *test.title,
        *test.subheader,
        *test.markdown,
        *test.caption,
        *test.text,
        *test.info,
        *test.warning,
        *test.error,
    ]
    shown = [str(element.value) for element in elements]
    shown += [f"{metric.label} {metric.value}" for metric in test.metric]
    shown += [str(block.value) for block in test.code]
    return "\n".join(shown).replace("\\", "")
