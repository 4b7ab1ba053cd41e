"""The dashboard's page in a real Chromium, beside real jobs. `make test-dashboard` runs this."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag

import pytest

from tests.support.coordinators import coordinator, pytest_runtest_makereport

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["coordinator", "pytest_runtest_makereport"]  # a fixture, a hook

signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["OMP_NUM_THREADS"] = "1"
LIMIT_MS = 30_000.0


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    sync_api = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    # A process of root has no sandbox.
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with (
        sync_api.sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=arguments) as each,
    ):
        yield each


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """open_page(url, ...) opens a page that asks no other origin, and whose scripts do not fail."""
    pages: list[tuple[Any, str, list[str], list[str]]] = []

    def make(url: str, **options: Any) -> Page:
        context = browser.new_context(**options)
        page = context.new_page()
        page.set_default_timeout(LIMIT_MS)
        requests: list[str] = []
        failures: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on(
            "console",
            lambda said: failures.append(said.text) if "Content Security" in said.text else None,
        )
        page.goto(url)
        pages.append((context, urldefrag(url).url, requests, failures))
        return page

    yield make
    for context, origin, requests, failures in pages:
        context.close()
        assert requests
        assert [url for url in requests if not url.startswith(origin)] == []
        assert failures == []


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where pictures of the page go: $DASHBOARD_PICTURES, or a folder that pytest removes later."""
    folder = Path(os.environ.get("DASHBOARD_PICTURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
