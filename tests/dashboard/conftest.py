"""A page at a time, run by Streamlit's own test harness over a data folder written by hand."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import dashboard
from dashboard.door import DATA_VARIABLE, _door
from tests.agent_slo.conftest import answer
from tests.conftest import MadeOnce
from tests.dashboard.data_folder import write_folder
from tests.dashboard.odd_clocks import odd_traces

APP = Path(dashboard.__file__).parent / "app.py"

OpenPage = Callable[..., AppTest]


@pytest.fixture(scope="session")
def samples(made_once: MadeOnce) -> Path:
    """A data folder with the small samples, derived and evaluated. Tests only read it."""

    def imported(data: Path) -> None:
        answer("import", files("sample_traces") / "first_light.jsonl.gz", "--data", data)

    return made_once("unstated_samples", imported)


@pytest.fixture(scope="session")
def odd_clocks(made_once: MadeOnce, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with tasks of today, of 1970 and of 2262, and one that lasts from 1970 until today."""

    def imported(data: Path) -> None:
        file = tmp_path_factory.mktemp("odd_clocks") / "traces.jsonl"
        file.write_text(json.dumps(odd_traces(time.time_ns())), encoding="utf-8")
        answer("import", file, "--data", data)

    return made_once("odd_clocks", imported)


@dataclass(frozen=True)
class Ids:
    """What a folder's command line lists: its first incident, its newest task and the one that lasts longest."""

    incident: str
    newest: str
    longest: str


def ids_in(data: Path) -> Ids:
    incidents = json.loads(answer("incidents", "--data", data, "--format", "json"))
    tasks = json.loads(answer("tasks", "--data", data, "--format", "json"))
    longest = max(tasks, key=lambda task: task["wall_s"] or 0)
    return Ids(incidents[0]["incident_id"], tasks[0]["task_id"], longest["task_id"])


@pytest.fixture(scope="session")
def sample_ids(samples: Path) -> Ids:
    return ids_in(samples)


@pytest.fixture(scope="session")
def odd_ids(odd_clocks: Path) -> Ids:
    return ids_in(odd_clocks)


@pytest.fixture(scope="session")
def twelve(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with twelve tasks written by hand. Tests only read it."""
    return write_folder(tmp_path_factory.mktemp("twelve") / "data", tasks=12)


@pytest.fixture(scope="session")
def one_task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with one task written by hand. Tests only read it."""
    return write_folder(tmp_path_factory.mktemp("one_task") / "data", tasks=1)


@pytest.fixture(scope="session")
def without_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose tables are derived and empty. Tests only read it."""
    return write_folder(tmp_path_factory.mktemp("without_tasks") / "data", tasks=0)


@pytest.fixture(scope="session")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder to which nothing was ever sent. Tests only read it."""
    return write_folder(tmp_path_factory.mktemp("nothing") / "data", derived=False)


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
