"""`gpushare dashboard` over HTTP: who may ask, what a page is told, and what it may change."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.python.command_line import gpushare
from tests.python.conftest import PACKAGE
from tests.python.dashboard_kit import Dashboard, dashboard, report_at
from tests.python.fake_coordinator import FakeCoordinator

JOB = {"device": "cpu", "job": 3, "pid": 1003}
STATIC = PACKAGE / "cli" / "dashboard" / "static"


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCoordinator]:
    with FakeCoordinator(tmp_path_factory.mktemp("dashboard") / "sock", report_at(9.0)) as each:
        yield each


@pytest.fixture(scope="module")
def board(fake: FakeCoordinator) -> Iterator[Dashboard]:
    """One that has read once: the job is known."""
    with dashboard(fake.path) as each:
        with each.readings() as readings:
            next(readings)
        yield each


def asked_to_set(fake: FakeCoordinator) -> list[dict[str, Any]]:
    return [request for request in fake.requests if request["type"] == "set"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/events"),
        ("GET", "/api/why?device=cpu&job=3&pid=1003"),
        ("GET", "/api/history"),
        ("POST", "/api/change"),
    ],
)
def test_without_the_token_nothing_is_told_or_changed(
    method: str, path: str, board: Dashboard, fake: FakeCoordinator
) -> None:
    before = asked_to_set(fake)
    body = '{"device": "cpu", "job": 3, "pid": 1003, "what": "pause"}' if method == "POST" else None
    for headers in (
        {},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {board.token[:-1]}"},
        {"Authorization": "Bearer \xe9"},
        {"Cookie": f"token={board.token}"},
    ):
        with board.open(path, method, body=body, **headers) as answer:
            assert answer.status == 401
            assert b"gpushare dashboard has printed" in answer.read()
    with board.open(f"{path}{'&' if '?' in path else '?'}token={board.token}", method) as answer:
        assert answer.status == 401
    assert asked_to_set(fake) == before


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9826", "127.0.0.1.evil.example"])
def test_a_name_that_was_made_to_mean_this_machine_is_refused(host: str, board: Dashboard) -> None:
    for path in ("/", "/api/history"):
        with board.open(path, Host=host, Authorization=f"Bearer {board.token}") as answer:
            assert answer.status == 400


def test_the_page_binds_the_browser_to_this_server(board: Dashboard) -> None:
    with board.open("/", Origin="http://evil.example") as answer:
        assert answer.status == 200
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'; script-src 'self'" in policy
        assert "unsafe" not in policy
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
        assert "Set-Cookie" not in answer.headers
    for path in STATIC.iterdir():  # "https://" alone may stand in no file either
        assert not re.search(r"https?://|innerHTML|outerHTML|insertAdjacent", path.read_text()), (
            path
        )
        with board.open(f"/{path.name}") as answer:
            assert answer.read() == path.read_bytes()


def test_a_reading_has_the_jobs_with_printable_names(board: Dashboard) -> None:
    with board.readings() as readings:
        first, second = next(readings), next(readings)
    assert second["reading"] == first["reading"] + 1
    (device,) = second["devices"]
    (job,) = device["jobs"]
    assert (job["name"], job["state"], job["got"]) == ("?[31m<b>?", "running", "0%")
    assert first["devices"][0]["timeline"]["names"] == {"3": "?[31m<b>?"}
    assert len(device["timeline"]["memory"]) == 1
    assert second["notes"] == []


def test_a_change_is_what_the_command_line_asks_for(
    board: Dashboard, fake: FakeCoordinator
) -> None:
    status, answer = board.ask("/api/change", "POST", {**JOB, "what": "pause"})
    assert (status, answer["said"]) == (
        200, ["job 3 (?[31m<b>?): paused, from its next boundary on"],
    )  # fmt: skip
    assert asked_to_set(fake)[-1] == {"v": 1, "type": "set", "job": 3, "is_paused": True}
    assert board.ask("/api/change", "POST", {**JOB, "what": "resume"})[0] == 200
    assert asked_to_set(fake)[-1]["is_paused"] is False
    changed = {**JOB, "what": "priority", "value": "interactive"}
    assert board.ask("/api/change", "POST", changed)[0] == 200
    assert asked_to_set(fake)[-1]["priority"] == "interactive"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({**JOB, "what": "end"}, 400, "allowed: pause, resume or priority"),
        ({**JOB, "what": "priority", "value": "first"}, 400, "guaranteed, interactive"),
        ({**JOB, "what": "pause", "pid": 77}, 404, "no job 3 of process 77"),
        ({"what": "pause"}, 400, "device, job and pid"),
        ([1], 400, ""),
        ("{", 400, ""),
        ("[" * 4000, 400, ""),
        ("x" * 5000, 400, "at most 4096 bytes"),
    ],
)
def test_what_is_no_change_asks_nobody(
    body: Any, status: int, said: str, board: Dashboard, fake: FakeCoordinator
) -> None:
    before = asked_to_set(fake)
    got, answer = board.ask("/api/change", "POST", body)
    assert got == status
    assert said in answer["error"]
    assert asked_to_set(fake) == before


def test_a_change_is_no_get(board: Dashboard) -> None:
    with board.open("/api/change", Authorization=f"Bearer {board.token}") as answer:
        assert answer.status == 405


def test_a_refusal_is_the_coordinators_own_words(tmp_path: Path) -> None:
    refusal = {"v": 1, "type": "refused", "reason": "job 3 is another user's"}
    with (
        FakeCoordinator(tmp_path / "sock", report_at(9.0), refusal) as fake,
        dashboard(fake.path) as board,
        board.readings() as readings,
    ):
        assert next(readings)["devices"]
        got, answer = board.ask("/api/change", "POST", {**JOB, "what": "pause"})
        assert (got, answer["error"]) == (403, "job 3: job 3 is another user's")
        # The next reading is refused, too, and the page says so.
        assert next(readings)["notes"][0]["text"] == "job 3 is another user's"
        board.process.send_signal(signal.SIGINT)
        assert board.process.wait(10) == 0  # although a page is open
        assert board.process.stderr is not None
        assert board.process.stderr.read() == ""


def test_a_coordinator_that_never_answers_keeps_nobody_waiting(tmp_path: Path) -> None:
    path = str(tmp_path / "sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.bind(path)
        silent.listen()
        with dashboard(path) as board:
            with board.open("/") as answer:
                assert answer.status == 200
            with board.readings() as readings:
                reading = next(readings)
    assert reading["devices"] == []
    assert "did not answer within 2 s" in reading["notes"][0]["text"]


def test_what_is_no_request_leaves_no_line(fake: FakeCoordinator) -> None:
    """Whoever reaches the port could fill the terminal of the dashboard's user."""
    with dashboard(fake.path) as board:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", urlsplit(board.url).port or 0)) as client:
                client.send(b"\x16\x03\x01 no request\r\n\r\n")
                assert client.recv(64).startswith(b"HTTP/1.1 400 ")
        board.process.send_signal(signal.SIGINT)
        assert board.process.communicate()[1] == ""


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        ended = gpushare("dashboard", "--port", port, socket=str(tmp_path / "sock"))
    (line,) = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"cannot listen at 127.0.0.1, port {port}: Address already in use. " in line
