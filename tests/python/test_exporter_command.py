"""``gpushare exporter`` as a command: where it listens, what it says, and what is wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from gpushare.cli._exporter import asking
from gpushare.cli._exporter.asking import Coordinators
from gpushare.cli._targets.coordinators import DeviceSockets
from tests.python.command_line import gpushare
from tests.python.conftest import clean_environment
from tests.python.exporter_kit import series_of, value
from tests.python.fake_coordinator import FakeCoordinator, make_report


@contextmanager
def exporter(
    *arguments: str, socket: str, stderr: TextIO | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command on a free port, and the address that it says."""
    words = [sys.executable, "-m", "gpushare", "exporter", "--port", "0", *arguments]
    env = clean_environment(socket=socket, config=os.devnull)
    out = subprocess.PIPE
    with subprocess.Popen(words, env=env, stdout=out, stderr=stderr, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()[-1]
        finally:
            process.kill()


def test_serves_until_ctrl_c(tmp_path: Path) -> None:
    with (
        FakeCoordinator(tmp_path / "sock", make_report()) as fake,
        exporter(socket=fake.path) as (process, url),
    ):
        assert url.startswith("http://127.0.0.1:")
        assert fake.requests == []  # before anybody has scraped
        with urllib.request.urlopen(url) as answer:
            series = series_of(answer.read().decode())
        assert len(fake.requests) == 1
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    assert value(series, "gpushare_job_share_ratio", job_name="gpt") == 0.34


def test_requests_that_break_off_or_ask_for_what_is_not_leave_no_line(tmp_path: Path) -> None:
    """Whoever reaches the port could fill the log with a stack for each."""
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        errors = tmp_path / "errors"
        with errors.open("w") as file, exporter(socket=fake.path, stderr=file) as (process, url):
            address = ("127.0.0.1", int(url.split(":")[-1].split("/")[0]))
            for _ in range(5):
                connection = socket.create_connection(address)
                connection.send(b"GET /metrics HTTP/1.1\r\n")
                # Closing resets the connection, so that reading from it fails.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
            strange = {"Accept": "application/openmetrics-text;version=2"}
            for headers in ({}, strange):
                with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
                    assert b"gpushare_up" in answer.read()
            process.send_signal(signal.SIGINT)
            assert process.wait() == 0
    assert errors.read_text() == ""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ("--port", "TAKEN"),
            1,
            "cannot listen at 127.0.0.1, port TAKEN: Address already in use. ",
        ),
        (("--address", "a..b"), 2, "--address a..b: no address of a machine"),
        (("--address", "192.0.2.1"), 1, "cannot listen at 192.0.2.1, port 9825: Cannot assign"),
        (("--port", "70000"), 2, "Invalid value for '--port'"),
        (("--device", "cuda:1"), 2, "--device cuda:1: a command does not know which device"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    arguments: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        words = [word.replace("TAKEN", port) for word in arguments]
        ended = gpushare("exporter", *words, socket=str(tmp_path / "sock"))
    (line,) = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout) == (code, "")
    assert said.replace("TAKEN", port) in line


def test_the_board_is_printed_as_it_is(tmp_path: Path) -> None:
    ended = gpushare("exporter", "--dashboard", socket=str(tmp_path / "sock"))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["title"] == "gpushare"


def test_a_device_is_asked_from_its_first_socket_on(tmp_path: Path) -> None:
    sockets = [DeviceSockets(name, [str(tmp_path / name)]) for name in ("cpu", "cuda:GPU-1")]
    coordinators = Coordinators(lambda: sockets[:count], is_named=False)

    def devices() -> list[str]:
        return [each.sockets.device for each in coordinators.ask()]

    count = 1
    assert devices() == ["cpu"]  # somebody has to be said not to answer
    count = 2
    (tmp_path / "cuda:GPU-1").touch()
    assert devices() == ["cuda:GPU-1"]
    (tmp_path / "cuda:GPU-1").unlink()
    count = 1
    assert devices() == ["cuda:GPU-1"]
    (tmp_path / "cpu").touch()
    assert devices() == ["cpu", "cuda:GPU-1"]


def test_with_no_device_at_all_nobody_answers() -> None:
    (asked,) = Coordinators(list, is_named=True).ask()
    assert asked.report is None
    assert asked.why_not.startswith("no coordinator answers")
    assert asking.ANSWER_SECONDS * 3 < 10  # connecting twice, and an answer: within a scrape
