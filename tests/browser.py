"""A real, headless Chromium for tests of what people see. Import the fixtures into a `conftest.py`.

Without a Chromium the tests are skipped with the reason; with AGENT_SLO_REQUIRE_BROWSER=1 they fail instead,
so that a machine that must run them cannot pass by lacking it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Dialog, Error, Page, Request, WebSocket, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = "AGENT_SLO_REQUIRE_BROWSER"
HERE = ("127.0.0.1", "localhost")
# A rule of the browser, not a handler of each request: a handler turns its cache off, and every page loads all anew.
ONLY_HERE = ", ".join(["MAP * ~NOTFOUND", *(f"EXCLUDE {host}" for host in HERE)])


def chromium() -> str:
    """The path of a Chromium; skips the test, or fails it when one is required."""
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return found
    reason = f"no Chromium found ({', '.join(NAMES)}); Debian: apt-get install chromium"
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{reason}, and {REQUIRED}=1 demands one")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a module: as long as it runs, its event loop does, and tests with a loop of their own cannot."""
    path = chromium()
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", f"--host-resolver-rules={ONLY_HERE}"]
        )
        yield running
        running.close()


@dataclass
class Watched:
    """A page, and everything it did that a page of ours must not do."""

    page: Page
    outside: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def open(self, url: str) -> None:
        """Load a page of the dashboard and wait until Streamlit has finished drawing it."""
        self.page.goto(url)
        self.page.wait_for_selector("h1")
        self.settle()

    def settle(self) -> None:
        """Wait until no script runs and no element is stale."""
        self.page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
        self.page.wait_for_load_state("networkidle")

    def says(self, *texts: str) -> None:
        """Wait until the page says each of these; charts, metrics and code blocks are drawn a moment later."""
        for text in texts:
            self.page.wait_for_function(
                """text => document.querySelector('[data-testid="stMain"]').innerText.includes(text)""",
                arg=text,
            )

    def text(self) -> str:
        """What the page says, without its tables (those are canvases)."""
        return self.page.locator('[data-testid="stMain"]').inner_text()


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    """A fresh page at 1280 x 900 whose requests to other hosts are refused and noted."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    seen = Watched(page)

    def note_outside(asked: Request | WebSocket) -> None:
        parts = urlsplit(asked.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in HERE:
            seen.outside.append(asked.url)

    context.on("request", note_outside)
    page.on("websocket", note_outside)

    def dismiss(dialog: Dialog) -> None:
        seen.dialogs.append(dialog.message)
        dialog.dismiss()

    def note(error: Error) -> None:
        seen.errors.append(str(error))

    page.on("dialog", dismiss)
    page.on("pageerror", note)
    page.set_default_timeout(60_000)
    yield seen
    context.close()
