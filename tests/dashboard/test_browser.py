"""The pages in a real browser: they say what the command line says, and text from a trace stays text."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import duckdb
import httpx
import pytest

from agent_slo.commands.dashboard import dashboard_environment, streamlit_command
from agent_slo.ports import free_port
from dashboard.format import count, percent
from tests.agent_slo.conftest import answer, command
from tests.agent_slo.waiting import until
from tests.browser import Watched, browser, watched
from tests.dashboard.conftest import Ids
from tests.dashboard.data_folder import Words, write_folder

__all__ = ["browser", "watched"]

pytestmark = pytest.mark.browser

Serve = Callable[[Path], str]

HOSTILE = Words(
    agent="<script>alert('agent')</script>",
    tool="![x](http://attacker.example/tool.png)<img src=http://attacker.example/i.png onerror=alert(2)>",
    arguments='{"note": "<a href=\\"javascript:alert(3)\\">x</a>"}',
    result="[click](javascript:alert(4)) :red[red] $x^2$",
    span="<img src=x onerror=alert(5)>",
    detail="=HYPERLINK(\"http://attacker.example\")",
)  # fmt: skip


PATHS = {
    "overview": "/",
    "objective": "/objective?slo=duplicate-action",
    "tasks": "/tasks",
    "incidents": "/incidents",
    "incident": "/incidents?id=inc-feed",
    "alerts": "/alerts",
    "alert": "/alerts?id=alert-firing",
    "actions": "/actions",
    "humans": "/humans",
    "cost": "/cost",
    "data": "/data",
    "task": "/task?id=task-0000",
}


@contextmanager
def dashboard(data: Path) -> Iterator[str]:
    """The address of a dashboard that runs over a folder."""
    port = free_port()
    process = subprocess.Popen(
        streamlit_command(port),
        env=dashboard_environment(data),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(base_url=address, trust_env=False) as client:
            until(lambda: _healthy(client), process)
        yield address
    finally:
        process.terminate()
        process.wait(20)


def _healthy(client: httpx.Client) -> bool:
    try:
        return client.get("/_stcore/health").is_success
    except httpx.HTTPError:
        return False


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve(data)` starts a dashboard over a folder of the test's own and returns its address."""
    with ExitStack() as running:
        yield lambda data: running.enter_context(dashboard(data))


# A dashboard needs seconds to start: one over each folder that tests only look at.


@pytest.fixture(scope="session")
def samples_address(samples: Path) -> Iterator[str]:
    with dashboard(samples) as address:
        yield address


@pytest.fixture(scope="session")
def odd_clocks_address(odd_clocks: Path) -> Iterator[str]:
    with dashboard(odd_clocks) as address:
        yield address


@pytest.fixture(scope="session")
def twelve_address(twelve: Path) -> Iterator[str]:
    with dashboard(twelve) as address:
        yield address


@pytest.fixture(scope="session")
def nothing_address(nothing: Path) -> Iterator[str]:
    with dashboard(nothing) as address:
        yield address


@pytest.mark.parametrize(
    ("asks", "host"),
    [
        ("<img src='http://attacker.example/p.png'>", "attacker.example"),
        ("<img src='https://192.0.2.1/p.png'>", "192.0.2.1"),
        ("<link rel=stylesheet href='http://attacker.example/s.css'>", "attacker.example"),
        ("<iframe src='http://attacker.example/'></iframe>", "attacker.example"),
        ("<script>new WebSocket('ws://attacker.example/')</script>", "attacker.example"),
    ],
    ids=["image", "bare address", "style", "frame", "socket"],
)
def test_a_request_to_another_host_is_seen_and_goes_nowhere(watched: Watched, asks: str, host: str) -> None:
    """The guard itself, or the tests below would hold whatever a page asks for."""
    failed: list[str | None] = []
    watched.page.on("requestfailed", lambda request: failed.append(request.failure))
    watched.page.on("websocket", lambda socket: socket.on("socketerror", lambda error: failed.append(error)))
    watched.page.set_content(f"<p>here</p>{asks}", wait_until="commit")
    deadline = time.monotonic() + 60
    while not failed and time.monotonic() < deadline:
        watched.page.wait_for_timeout(20)
    assert [urlsplit(url).hostname for url in watched.outside] == [host]
    assert len(failed) == 1
    assert "ERR_NAME_NOT_RESOLVED" in str(failed[0])


def test_the_page_shows_the_numbers_of_the_report(
    twelve: Path, twelve_address: str, watched: Watched
) -> None:
    report = json.loads(answer("report", "--data", twelve, "--format", "json"))
    watched.open(twelve_address + "/")
    assert len(report["slos"]) == 6
    for row in report["slos"]:
        watched.says(row["title"], f"{count(row['good'])} of {count(row['n'])}", percent(row["sli"]))
    watched.says(f"{sum(report['tasks'].values())} tasks")
    assert watched.outside == []
    assert watched.errors == []


def test_an_open_page_follows_what_arrives(serve: Serve, watched: Watched, tmp_path: Path) -> None:
    data = tmp_path / "data"
    samples = files("sample_traces") / "first_light.jsonl.gz"
    arguments = ("--data", data, "--http", "127.0.0.1:0", "--no-grpc")
    collector = subprocess.Popen(command("collect", *arguments), stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: (data / "door.json").exists(), collector)
        watched.open(serve(data) + "/")
        watched.page.get_by_text("Nothing has arrived yet").wait_for()
        answer("import", samples, "--data", data)
        # Nobody touches the page: it redraws itself.
        watched.page.get_by_text("23 tasks ·").wait_for()
        watched.page.get_by_text("Collector running").wait_for()
        report = json.loads(answer("report", "--data", data, "--format", "json"))
    finally:
        collector.terminate()
        collector.communicate(timeout=60)
    with_events = [row for row in report["slos"] if row["n"]]
    assert len(with_events) > 5
    for row in with_events:
        watched.page.get_by_text(f"{count(row['good'])} of {count(row['n'])} ").first.wait_for()
    assert watched.outside == []


def test_an_empty_folder_says_where_to_send(nothing_address: str, watched: Watched) -> None:
    watched.open(nothing_address + "/")
    watched.says("Nothing has arrived yet", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318")
    assert watched.outside == []


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1", "http://127.0.0.1", 101),
        ("attacker.example", None, 403),
        ("127.0.0.1", "http://attacker.example", 403),
    ],
)
def test_other_sites_cannot_talk_to_the_pages(
    nothing_address: str, host: str, origin: str | None, status: int
) -> None:
    address = urlsplit(nothing_address)
    lines = [
        "GET /_stcore/stream HTTP/1.1",
        f"Host: {host}:{address.port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        *([f"Origin: {origin}:{address.port}"] if origin else []),
    ]
    with socket.create_connection(("127.0.0.1", address.port or 0), timeout=30) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = connection.recv(4096).split(b"\r\n")[0]
    assert answer.split()[1] == str(status).encode()


def test_a_click_on_a_row_opens_its_task(serve: Serve, watched: Watched, tmp_path: Path) -> None:
    watched.open(serve(write_folder(tmp_path / "data", tasks=1)) + "/tasks")
    table = watched.page.locator('[data-testid="stDataFrame"]').first
    table.click(position={"x": 60, "y": 50})
    watched.page.wait_for_url("**/task?id=task-0000")
    watched.page.get_by_text("Timeline of all runs and traces").wait_for()
    watched.says("task task-0000")


def test_a_filter_is_kept_in_the_address(twelve_address: str, watched: Watched) -> None:
    watched.open(twelve_address + "/tasks")
    watched.page.get_by_text("Has an unprotected duplicate").click()
    watched.page.wait_for_url("**/tasks?duplicate=true")
    watched.page.get_by_text("3 tasks, newest first").wait_for()
    watched.page.reload()
    watched.page.get_by_text("3 tasks, newest first").wait_for()


def test_text_from_a_trace_stays_text(serve: Serve, watched: Watched, tmp_path: Path) -> None:
    address = serve(write_folder(tmp_path / "data", tasks=1, words=HOSTILE))
    for path in PATHS.values():
        watched.open(address + path)
    watched.page.get_by_text("Raw spans").click()
    watched.page.get_by_text("Read them").click()
    watched.settle()
    _nothing_executed(watched)
    watched.says("<script>alert('agent')</script>")


ADDRESSES = (
    "http://evil.example/p.png https://evil.example www.evil.example mailto:eve@evil.example eve@evil.example"
)
LINKING = Words(
    agent=ADDRESSES,
    tool=f"pay {ADDRESSES}",
    arguments=json.dumps({"note": ADDRESSES}),
    result=ADDRESSES,
    span=ADDRESSES,
    detail=ADDRESSES,
)


def test_an_address_in_a_trace_becomes_no_link(serve: Serve, watched: Watched, tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data", tasks=6, words=LINKING)
    with duckdb.connect(str(data / "core.duckdb")) as con:
        con.execute(
            "UPDATE tasks SET task_type = $1, service = $1, environment = $1, app_version = $1", [ADDRESSES]
        )
        con.execute("UPDATE tasks SET conversation_id = $1", [ADDRESSES])
        con.execute("UPDATE incidents SET note = $1", [ADDRESSES])
    address = serve(data)
    for page, path in PATHS.items():
        watched.open(address + path)
        _no_link_leads_outside(watched, page)
    watched.says("http://evil.example/p.png", "www.evil.example", "eve@evil.example")
    watched.page.get_by_text("Raw spans").click()
    watched.page.get_by_text("Read them").click()
    watched.settle()
    _no_link_leads_outside(watched, "raw spans")
    assert watched.outside == []


def _no_link_leads_outside(watched: Watched, page: str) -> None:
    leads_to = watched.page.evaluate("[...document.querySelectorAll('a[href]')].map(link => link.href)")
    # The pages' own navigation is there, so that the list is known to be read.
    assert leads_to, page
    assert {urlsplit(link).hostname for link in leads_to} == {"127.0.0.1"}, page


# Every page is asked the same by test_odd_clocks.py without a browser; here are those with the most charts.
@pytest.mark.parametrize("page", ["overview", "cost", "incidents"])
def test_spans_of_1970_and_2262_do_not_freeze_a_page(
    odd_clocks_address: str, odd_ids: Ids, watched: Watched, page: str
) -> None:
    path = PATHS[page].replace("inc-feed", odd_ids.incident).replace("task-0000", odd_ids.longest)
    watched.open(odd_clocks_address + path + ("&" if "?" in path else "?") + "range=all")
    charts = watched.page.locator('[data-testid="stPlotlyChart"]')
    # Each is drawn: its axes hold a bounded number of marks.
    for place in range(charts.count()):
        charts.nth(place).locator(".main-svg").first.wait_for(state="attached")
    assert watched.page.locator(".xtick").count() < 60 * max(charts.count(), 1)
    assert "cannot be read" not in watched.text()
    assert "encountered an error" not in watched.text()
    assert watched.errors == []


def _nothing_executed(watched: Watched) -> None:
    assert watched.page.locator("script:has-text('alert')").count() == 0
    assert watched.page.locator("img[src*='attacker']").count() == 0
    assert watched.page.locator("a[href^='javascript']").count() == 0
    assert watched.page.locator("[data-testid='stMain'] svg image").count() == 0
    assert watched.dialogs == []
    assert watched.outside == []


@pytest.mark.parametrize("page", list(PATHS))
def test_every_page_opens_over_samples(
    samples_address: str, sample_ids: Ids, watched: Watched, page: str
) -> None:
    path = PATHS[page].replace("inc-feed", sample_ids.incident).replace("task-0000", sample_ids.newest)
    watched.open(samples_address + path)
    assert "cannot be read" not in watched.text()
    assert "encountered an error" not in watched.text()
    assert watched.outside == []
    assert watched.errors == []


def test_a_link_shows_a_colleague_the_same_filters(twelve_address: str, watched: Watched) -> None:
    watched.open(twelve_address + "/?version=1.1&wrong=true")
    watched.says("6 tasks · 0 running", "Tasks that went wrong")
    watched.page.get_by_text("24h").click()
    watched.page.wait_for_url("**/?*range=24h*")
    watched.says("0 tasks · 0 running")
    watched.page.reload()
    watched.says("0 tasks · 0 running")


def test_a_card_leads_to_its_objective(samples_address: str, watched: Watched) -> None:
    watched.open(samples_address + "/?range=all")
    watched.page.get_by_text("Tasks completed", exact=True).first.click()
    watched.page.wait_for_url("**/objective?*slo=task-completion*")
    watched.says("The formula with these numbers", "Counted events")
    watched.page.get_by_text("Try it over the last 28 days").click()
    watched.says("Save this one alone")
    with watched.page.expect_download() as download:
        watched.page.get_by_text("Save this one alone").click()
    assert "kind: SLO" in Path(download.value.path()).read_text(encoding="utf-8")


def test_an_incident_is_acknowledged_through_the_collector(
    serve: Serve, watched: Watched, collecting: tuple[Path, subprocess.Popen[str]]
) -> None:
    data, _ = collecting
    incident = json.loads(answer("incidents", "--data", data, "--format", "json"))[0]["incident_id"]
    watched.open(serve(data) + f"/incidents?id={incident}")
    watched.page.get_by_label("Note").fill("known <b>fault</b>")
    watched.page.get_by_label("Note").press("Enter")
    watched.page.get_by_role("button", name="Acknowledge").click()
    watched.says("acknowledged", "Note: known <b>fault</b>")
    said = json.loads(answer("incident", incident, "--data", data, "--format", "json"))["incident"]
    watched.page.get_by_text("All incidents").click()
    watched.says("Findings of one structure are one incident")
    assert (said["state"], said["note"]) == ("acknowledged", "known <b>fault</b>")


@pytest.fixture
def collecting(samples: Path, tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A data folder with the small samples, and the collector that runs over it."""
    data = shutil.copytree(samples, tmp_path / "data")
    collector = subprocess.Popen(
        command("collect", "--data", data, "--http", "127.0.0.1:0", "--no-grpc"),
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: (data / "door.json").exists(), collector)
    yield data, collector
    collector.terminate()
    collector.communicate(timeout=60)


def test_a_task_is_labelled_through_the_collector(
    serve: Serve, watched: Watched, collecting: tuple[Path, subprocess.Popen[str]]
) -> None:
    data, _ = collecting
    asked = "SELECT task_id FROM human_labels WHERE asked AND needed IS NULL LIMIT 1"
    (row,) = json.loads(answer("query", asked, "--data", data, "--format", "json"))
    watched.open(serve(data) + f"/task?id={row['task_id']}")
    watched.says("Nobody has said whether this task needed a human.")
    watched.page.get_by_label("Why (optional)").fill("they asked <b>twice</b>")
    watched.page.get_by_label("Why (optional)").press("Enter")
    watched.page.get_by_role("button", name="A human was needed").click()
    watched.says("A human was needed, says", "they asked <b>twice</b>")
    said = f"SELECT needed, note FROM human_labels WHERE task_id = '{row['task_id']}'"
    assert json.loads(answer("query", said, "--data", data, "--format", "json")) == [
        {"needed": True, "note": "they asked <b>twice</b>"}
    ]
    _nothing_executed(watched)


def test_a_dead_collector_is_said_and_the_files_are_read(
    serve: Serve, watched: Watched, collecting: tuple[Path, subprocess.Popen[str]]
) -> None:
    data, collector = collecting
    address = serve(data)
    watched.open(address + "/?range=all")
    watched.says("Collector running", "23 tasks")
    # As a crash leaves it: door.json stays and names a process that is gone. Nobody touches the page.
    collector.kill()
    collector.communicate(timeout=60)
    watched.says("Collector down: reading its files", "23 tasks")
    report = json.loads(answer("report", "--data", data, "--format", "json"))
    counted = [row for row in report["slos"] if row["n"]]
    assert len(counted) > 5
    for row in counted:
        watched.says(f"{count(row['good'])} of {count(row['n'])}")
        # Of too few events no share is shown.
        if row["state"] != "insufficient_data":
            watched.says(percent(row["sli"]))
    incident = json.loads(answer("incidents", "--data", data, "--format", "json"))[0]["incident_id"]
    for page, path in PATHS.items():
        watched.open(address + path.replace("inc-feed", incident))
        assert "cannot be read" not in watched.text(), page
        assert "encountered an error" not in watched.text(), page
        watched.says("Collector down: reading its files")
    watched.open(address + f"/incidents?id={incident}")
    watched.says(f"agent-slo incident {incident} --state resolved")
    watched.open(address + "/data")
    watched.says(f"Start one with: agent-slo up --data {data}")
    assert watched.outside == []


def test_a_figure_of_the_day_and_a_bar_lead_to_their_tasks(twelve_address: str, watched: Watched) -> None:
    watched.open(twelve_address + "/?version=1.1")
    watched.page.get_by_role("button", name="Failed or lost").click()
    watched.page.wait_for_url("**/tasks?*outcome=*")
    watched.settle()
    watched.page.wait_for_url("**/tasks?*range=24h*")
    link = parse_qs(urlsplit(watched.page.url).query)
    assert link == {"version": ["1.1"], "range": ["24h"], "outcome": ["failed", "lost", "dead letter"]}
    watched.open(twelve_address + "/")
    bar = watched.page.locator(".st-key-outcomes .barlayer .point path").first
    bar.scroll_into_view_if_needed()
    bar.click(force=True)
    watched.page.wait_for_url("**/tasks?*outcome=completed*")
    watched.says("tasks, newest first")
    assert parse_qs(urlsplit(watched.page.url).query)["day"] == ["2026-11-20"]


def test_a_figure_brings_its_list_into_view_in_a_narrow_window(twelve_address: str, watched: Watched) -> None:
    watched.page.set_viewport_size({"width": 700, "height": 900})
    watched.open(twelve_address + "/humans?range=all&order=longest+wait+first")
    row = watched.page.locator(".st-key-scope")
    cut_off = row.evaluate("e => [...e.querySelectorAll('*')].some(x => x.scrollWidth > x.clientWidth + 1 && "
                           "getComputedStyle(x).overflowX !== 'visible')")  # fmt: skip
    assert not cut_off
    # A row that was clicked narrows the list; a figure counts whatever its own controls say.
    table = watched.page.locator('[data-testid="stDataFrame"]').first
    table.scroll_into_view_if_needed()
    table.click(position={"x": 60, "y": 50})
    watched.says("3 interventions of approval, longest wait first.")
    watched.page.get_by_role("button", name="Approved").click()
    watched.says("3 interventions (approved), open ones first.")
    watched.page.wait_for_function(
        """() => {
            const top = document.querySelector('.st-key-list_interventions').getBoundingClientRect().top
            return top >= 0 && top < innerHeight
        }"""
    )
    watched.page.wait_for_url("**/humans?*decision=approved*")
    link = parse_qs(urlsplit(watched.page.url).query)
    assert link == {"range": ["all"], "decision": ["approved"]}
    assert watched.errors == []
