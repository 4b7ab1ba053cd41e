"""What the actors of `gpushare ray` do, in a process that Ray would have started."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import job_environment, read_status
from tests.e2e.asking import wait_until
from tests.support.ports import free_ports

# An arbiter and an agent. It prints what they report for each line, and ends with its stdin.
ACTORS = """
import json, sys
from gpushare.cli.ray.actors import Agent, Arbiter

arbiter = Arbiter(sys.argv[1], "a" * 32)
agent = Agent(sys.argv[1], "a" * 32)
for line in sys.stdin:
    if line == "stop\\n":
        agent.stop()
        arbiter.stop()
    print(json.dumps([arbiter.report(), agent.report()]), flush=True)
"""


class Actors:
    """The process of both."""

    def __init__(self, folder: Path, address: str) -> None:
        """Starts it; `folder` is the node's runtime folder."""
        settings = {"XDG_RUNTIME_DIR": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        settings |= {"GPUSHARE_SOCKET": "", "GPUSHARE_CAPACITY": "64MiB"}
        self.folder = folder / "gpushare"
        self.socket = {"GPUSHARE_SOCKET": str(self.folder / "sock")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", ACTORS, address],
            env=job_environment(settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, word: str = "report") -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """What they report."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        arbiter, agent = json.loads(self.process.stdout.readline())
        return arbiter, agent

    def are_well(self) -> bool:
        """Whether arbiter and coordinator answer."""
        arbiter, agent = self.ask()
        return arbiter["answers"] and all(each["pid"] for each in agent)

    def files(self) -> set[str]:
        """The names of tokens and notice."""
        names = {path.name for path in self.folder.iterdir()}
        return names & {"ray.token", "ray.json", "ray_arbiter.token"}

    def end(self) -> None:
        """Ends the process, and waits until nothing of it is left."""
        self.process.kill()
        self.process.communicate()
        wait_until(lambda: not self.files() and not read_status(self.socket))


@pytest.fixture
def address() -> str:
    """Where an arbiter may listen."""
    return f"tcp:127.0.0.1:{free_ports(1)[0]}"


@pytest.fixture
def actors(address: str) -> Iterator[Actors]:
    # A socket's path is short.
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        actors = Actors(Path(folder), address)
        try:
            yield actors
        finally:
            actors.end()


def test_they_run_a_coordinator_with_its_arbiter_until_they_are_told_to_stop(
    actors: Actors,
) -> None:
    wait_until(actors.are_well)
    _, (agent,) = actors.ask()
    assert agent["is_own"]
    assert agent["socket"] == actors.socket["GPUSHARE_SOCKET"]
    wait_until(lambda: "joins from" in (actors.folder / "ray_arbiter.log").read_text())
    # Other coordinators of this machine may be warned of.
    wait_until(lambda: not any("arbiter" in text for text in actors.ask()[1][0]["warnings"]))
    assert actors.files() == {"ray.token", "ray.json", "ray_arbiter.token"}
    arbiter, (agent,) = actors.ask("stop")
    assert not arbiter["answers"]
    assert (agent["pid"], agent["is_own"]) == (0, False)
    assert actors.files() == set()


def test_a_killed_coordinator_is_started_again(actors: Actors) -> None:
    wait_until(actors.are_well)
    _, (before,) = actors.ask()
    os.kill(before["pid"], signal.SIGKILL)
    wait_until(lambda: actors.are_well() and actors.ask()[1][0]["pid"] != before["pid"])
    assert actors.ask()[1][0]["is_own"]


def test_they_leave_nothing_when_they_are_killed(actors: Actors) -> None:
    wait_until(actors.are_well)
    actors.process.kill()
    wait_until(lambda: not read_status(actors.socket))
    wait_until(lambda: not actors.files())


def test_they_end_when_a_keeper_is_killed(actors: Actors) -> None:
    """Ray starts an actor again whose process has ended."""
    wait_until(actors.are_well)
    os.kill(actors.ask()[0]["keeper"], signal.SIGKILL)
    assert actors.process.wait(20) == -signal.SIGKILL
    (actors.folder / "ray_arbiter.token").unlink()


def test_an_address_that_another_program_has_is_said(address: str) -> None:
    host, _, port = address.removeprefix("tcp:").rpartition(":")
    with (
        socket.create_server((host, int(port)), backlog=100),
        tempfile.TemporaryDirectory(prefix="ray-") as folder,
    ):
        actors = Actors(Path(folder), address)
        try:
            wait_until(lambda: "another program listens there" in actors.ask()[0]["why"])
        finally:
            actors.end()
