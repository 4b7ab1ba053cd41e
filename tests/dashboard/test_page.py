"""What a user sees and does on the page."""

from __future__ import annotations

import http.client
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.asking import row_of, wait_until
from tests.python.dashboard_kit import dashboard, report_at
from tests.python.exporter_kit import full_job
from tests.python.fake_coordinator import FakeCoordinator
from tests.support.job_process import JobProcess

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

Coordinator = Callable[..., dict[str, str]]
OpenPage = Callable[..., "Page"]
MARKUP = "<b>two</b>"
NOBODY = 65534


def job(name: str, env: dict[str, str]) -> JobProcess:
    # The tests in tests/python keep their own process from being a job, and a part of them is used.
    env = env | {"GPUSHARE_DISABLE": "0"}
    return JobProcess("--name", name, "--mib", "8", env=env, module="tests.e2e.metrics_job")


def row(page: Page, name: str) -> Locator:
    return page.locator(".jobs tbody tr").filter(has=page.get_by_role("rowheader", name=name))


def wait_for_state(row: Locator, *states: str) -> None:
    wait_until(lambda: row.locator(".state").text_content() in states)


def test_a_job_appears_waits_is_paused_and_resumed(
    coordinator: Coordinator, open_page: OpenPage
) -> None:
    env = coordinator(capacity="12MiB", policy="rr", lanes="off")
    with (
        dashboard(env["GPUSHARE_SOCKET"], XDG_STATE_HOME=env["XDG_STATE_HOME"]) as board,
        job("one", env) as one,
    ):
        page = open_page(board.url)
        one.wait_ready().go()
        wait_for_state(row(page, "one"), "running")
        assert one.process.stdin is not None
        one.process.stdin.write("hold\n")
        one.process.stdin.flush()
        while not one.say().get("holds"):
            pass
        with job(MARKUP, env) as two:
            two.wait_ready().go()
            waiting = row(page, MARKUP)
            wait_for_state(waiting, "waiting")
            assert page.locator("b").count() == 0  # the name is text
            assert "waits for" in (waiting.locator(".explain").text_content() or "")
            waiting.get_by_role("button", name="Why").click()
            reason = waiting.locator("xpath=following-sibling::tr[1]//pre")
            wait_until(lambda: "last decision about it:" in (reason.text_content() or ""))
            waiting.get_by_role("button", name="Pause").focus()
            page.keyboard.press("Enter")
            wait_for_state(waiting, "paused")
            assert row_of(env, two)["state"] == "paused"
            assert f"({MARKUP}): paused" in (page.locator("#message").text_content() or "")
            waiting.get_by_role("button", name="Resume").click()
            # It may wait for the lease again, or hold the lease and wait for memory.
            wait_for_state(waiting, "waiting", "running")
            waiting.get_by_role("combobox").select_option("interactive")
            wait_until(lambda: row_of(env, two)["priority"] == "interactive")
        wait_until(lambda: waiting.count() == 0)

        def is_in_history() -> bool:
            page.locator("#show-history").click()
            return page.locator("#history-table td").filter(has_text=MARKUP).count() == 1

        wait_until(is_in_history)


def status_for(uid: int, url: str, headers: dict[str, str]) -> int:
    """The HTTP status that another user's process gets for the history."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setuid(uid)
            connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
            connection.request("GET", "/api/history", headers=headers)
            os.write(write, str(connection.getresponse().status).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read) as answer:
        return int(answer.read())


def test_another_user_needs_the_token(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can be another user")
    with (
        FakeCoordinator(tmp_path / "sock", report_at(9.0)) as fake,
        dashboard(fake.path) as board,
    ):
        assert status_for(NOBODY, board.url, {}) == 401
        assert status_for(NOBODY, board.url, {"Authorization": f"Bearer {board.token}"}) == 200


def test_without_the_token_the_page_says_what_to_open(tmp_path: Path, open_page: OpenPage) -> None:
    with FakeCoordinator(tmp_path / "sock", report_at(9.0)) as fake, dashboard(fake.path) as board:
        page = open_page(board.url.split("#")[0])
        said = page.locator("#connection")
        wait_until(lambda: "gpushare dashboard has printed" in (said.text_content() or ""))
        assert page.locator("#devices section").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("num_jobs", [4, 50])
def test_the_page_fits_the_screen(  # noqa: PLR0917 - each is a fixture or a case
    num_jobs: int, width: int, scheme: str, tmp_path: Path, pictures: Path, open_page: OpenPage
) -> None:
    with (
        FakeCoordinator(tmp_path / "sock", many_jobs(num_jobs)) as fake,
        dashboard(fake.path) as board,
    ):
        page = open_page(board.url, color_scheme=scheme, viewport={"width": width, "height": 900})
        rows = page.locator(".jobs tbody tr:visible")
        wait_until(lambda: rows.count() == num_jobs)
        page.wait_for_timeout(1500)
        page.screenshot(path=pictures / f"{num_jobs}_{width}_{scheme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        charts, table = (page.locator(part).bounding_box() for part in (".charts", "table.jobs"))
        assert charts is not None
        assert table is not None
        assert charts["y"] + charts["height"] <= table["y"]
        assert table["y"] < 900, "the first jobs are on the first screen"
        for button in page.get_by_role("button").all()[:4]:
            box = button.bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= width


def many_jobs(count: int) -> dict[str, Any]:
    """A report with jobs in several states, and a lease for every second one."""
    report = report_at(
        100.0,
        *(
            {"job": 1 + 2 * n, "what": "grant", "reason": "first", "seconds_ago": 40.0 - n}
            for n in range(count // 2)
        ),
    )
    report["devices"][0]["jobs"] = [
        full_job(
            number,
            f"job-{number}" + "-with-a-long-name" * (number % 7 == 2),
            lane=0,
            pid=2000 + number,
            state="running" if number == 1 else "waiting",
            waiting_seconds=0.0 if number == 1 else 60.0 - number,
            resident_bytes=(7 << 20) * number,
            spilled_bytes=(3 << 20) * number,
            explain="" if number == 1 else "waits for 1 (job-1)'s boundary, asked for it 0.1 s ago",
        )
        for number in range(1, count + 1)
    ]
    return report
