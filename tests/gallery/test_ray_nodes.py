"""Ray over several nodes: runs with a rank on each take turns as gangs, whatever is killed.

The nodes are raylets of one machine. Each has a runtime folder of its own, and so a coordinator of
its own. Ray takes long to start, so all tests here have one cluster, and stand in the order in
which they run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import gpushare_command, job_environment, read_status
from gpushare.cli.exit_code import ExitCode
from tests.e2e.asking import wait_until
from tests.support.ports import free_ports

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.skipif(
        os.environ.get("GALLERY") != "all", reason="Ray starts slowly: make gallery runs it"
    ),
    pytest.mark.timeout(900),
]

PROGRAM = "tests.gallery.ray_nodes_program"
HOOK = "gpushare.integrations.ray_nodes.enable"
STEPS = 300
"""Enough that slow runs last as long as a test waits for anything."""
SETTINGS = {
    # A rank needs 18 MiB.
    "GPUSHARE_CAPACITY": "24MiB",
    "GPUSHARE_REQUIRE": "1",
    "GPUSHARE_LINGER": "2s",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "OMP_NUM_THREADS": "1",
}
PATIENCE_SECONDS = 240
"""Ray starts each rank as a process that imports torch, on whatever else the machine does."""


class Nodes:
    """The cluster, and what users type there."""

    def __init__(self, folder: Path) -> None:
        """Starts it with one node."""
        # Without RAY_TMPDIR, Ray would write where `--address auto` looks on this machine.
        places = {"RAY_TMPDIR": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        self.env = job_environment(SETTINGS | places | {"GPUSHARE_SOCKET": ""})
        self.folder = folder
        self.sockets: list[str] = []
        self._runs: list[subprocess.Popen[str]] = []
        (self.port,) = free_ports(1)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.ray_cluster", str(folder)],
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._read_node()

    def add(self) -> None:
        """Adds a node."""
        self._say("add")
        self._read_node()

    def lose(self) -> None:
        """Ends the last node by force."""
        self._say("lose")

    def end(self) -> None:
        """Stops Ray. Later calls do nothing."""
        if self._process.returncode is None:
            self._process.communicate(timeout=PATIENCE_SECONDS)

    def gpushare(self, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs `gpushare ray COMMAND`."""
        return subprocess.run(
            gpushare_command("ray", command, "--address", self.address, *words),
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )

    def up(self) -> dict[str, Any]:
        """Runs `up`, and returns what `status` says then."""
        ended = self.gpushare("up", "--port", str(self.port))
        assert ended.returncode == 0, ended.stderr
        assert f'ray.init(runtime_env={{"worker_process_setup_hook": "{HOOK}"}})' in ended.stdout
        return self.status()

    def status(self) -> dict[str, Any]:
        """Returns what `status --json` says; nothing has to be well."""
        report: dict[str, Any] = json.loads(self.gpushare("status", "--json").stdout)
        return report

    def start(self, name: str, *hook: str) -> subprocess.Popen[str]:
        """Starts a run with a rank on each node. With a hook it is slow until `outputs`."""
        slow = self.folder / "slow"
        if hook:
            slow.touch()
        run = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, self.address, name, str(STEPS), str(slow), *hook],
            env=self.env,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._runs.append(run)
        return run

    def outputs(self, runs: list[subprocess.Popen[str]]) -> list[str]:
        """Lets the runs go on as fast as they can, and returns what they print."""
        (self.folder / "slow").unlink()
        return [_output(each) for each in runs]

    def end_runs(self) -> None:
        """Ends by force what a test that failed has left, which later tests would meet."""
        while self._runs:
            with self._runs.pop() as run:
                run.kill()

    def coordinator(self, node: int) -> dict[str, Any]:
        """Returns what the coordinator of a node says; empty while there is none."""
        return read_status({"GPUSHARE_SOCKET": self.sockets[node]})

    def jobs(self, node: int) -> list[dict[str, Any]]:
        """Returns the jobs of a node."""
        return [job for each in self.coordinator(node).get("devices", []) for job in each["jobs"]]

    def wait_for_ranks(self, least: int) -> None:
        """Waits until both runs have a rank on each node, which has made so many iterations."""

        ranks: list[dict[str, int]] = []

        def are_there() -> bool:
            ranks[:] = [
                {job["name"]: job["iterations"] for job in self.jobs(node) if job["gang"]}
                for node in (0, 1)
            ]
            return all(
                each.keys() == {"first", "second"} and min(each.values()) >= least for each in ranks
            )

        try:
            wait_until(are_there, PATIENCE_SECONDS)
        except AssertionError as error:
            error.add_note(f"iterations of the ranks of each node: {ranks}, wanted {least}")
            raise

    def _say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def _read_node(self) -> None:
        assert self._process.stdout is not None
        said = json.loads(self._process.stdout.readline())
        self.address: str = said["address"]
        self.sockets.append(f"{said['runtime']}/gpushare/sock")


def _output(process: subprocess.Popen[str]) -> str:
    """Returns the last line. Ray says before it that a worker was killed."""
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    return output.splitlines()[-1]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    # The paths of Ray's sockets are long already.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        nodes = Nodes(Path(folder))
        try:
            yield nodes
        finally:
            nodes.end()


@pytest.fixture(autouse=True)
def _no_runs_left(nodes: Nodes) -> Iterator[None]:
    yield
    nodes.end_runs()


@pytest.fixture(scope="module")
def alone(nodes: Nodes) -> str:
    """What a run computes alone, on stock torch."""
    return _output(nodes.start("alone"))


def test_up_starts_what_is_missing(nodes: Nodes) -> None:
    ended = nodes.gpushare("status")
    assert (ended.returncode, ended.stdout) == (ExitCode.UNREACHABLE, "")
    assert "gpushare ray up" in ended.stderr
    first = nodes.up()
    nodes.add()
    # The new node has no agent yet.
    ended = nodes.gpushare("status")
    assert ended.returncode == ExitCode.ERROR
    assert "no agent" in ended.stdout
    second = nodes.up()
    assert second["arbiter"] == first["arbiter"]
    assert len(second["nodes"]) == 2
    coordinators = [row for each in second["nodes"] for row in each["coordinators"]]
    assert [row["is_own"] for row in coordinators] == [True, True]
    assert [each["is_head"] for each in second["nodes"]] == [True, False]
    assert coordinators[0]["pid"] == first["nodes"][0]["coordinators"][0]["pid"]
    for place in nodes.sockets:
        token = Path(place).parent / "ray.token"
        assert token.stat().st_mode & 0o777 == 0o600
        text = token.read_text()
        for line in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                assert text.encode() not in line.read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue


def test_two_runs_with_a_rank_on_each_node(nodes: Nodes, alone: str) -> None:
    runs = [nodes.start(name, HOOK) for name in ("first", "second")]
    nodes.wait_for_ranks(1)
    ended = nodes.gpushare("down")
    assert ended.returncode == ExitCode.REFUSED
    assert "first, second" in ended.stderr
    assert nodes.outputs(runs) == [alone, alone]
    for node in (0, 1):
        report = nodes.coordinator(node)
        assert report["devices"][0]["switches"] >= 2
        rows = [each["reason"] for each in report["decisions"] if each["what"] == "row"]
        assert any("is open until step " in row for row in rows)


def test_runs_go_on_when_coordinator_arbiter_and_rank_are_killed(nodes: Nodes, alone: str) -> None:
    keeper = nodes.status()["arbiter"]["keeper"]
    runs = [nodes.start(name, HOOK) for name in ("first", "second")]
    nodes.wait_for_ranks(1)
    before = nodes.coordinator(1)["coordinator"]["pid"]
    os.kill(before, signal.SIGKILL)
    nodes.wait_for_ranks(20)
    assert nodes.coordinator(1)["coordinator"]["pid"] != before
    (arbiter,) = _children(keeper)
    os.kill(arbiter, signal.SIGKILL)
    nodes.wait_for_ranks(50)
    assert arbiter not in _children(keeper)
    (rank,) = (job["pid"] for job in nodes.jobs(1) if job["name"] == "first")
    os.kill(rank, signal.SIGKILL)
    assert nodes.outputs(runs) == [alone, alone]


def test_a_killed_keeper_comes_back_with_its_agent(nodes: Nodes) -> None:
    pid = nodes.coordinator(0)["coordinator"]["pid"]
    os.kill(_parent(pid), signal.SIGKILL)
    wait_until(lambda: nodes.coordinator(0).get("coordinator", {"pid": pid})["pid"] != pid)


def test_coordinators_that_ranks_have_started_are_replaced(nodes: Nodes) -> None:
    """They end when they have no jobs, and then the agents start theirs."""

    def are_own() -> bool:
        rows = [row for each in nodes.status()["nodes"] for row in each["coordinators"]]
        return [row["is_own"] for row in rows] == [True, True]

    wait_until(are_own)
    assert nodes.gpushare("status").returncode == 0


def test_down_ends_what_up_has_started_and_nothing_else(nodes: Nodes) -> None:
    ended = nodes.gpushare("down")
    assert ended.returncode == 0, ended.stderr
    assert [nodes.coordinator(node) for node in (0, 1)] == [{}, {}]
    assert nodes.gpushare("status").returncode == ExitCode.UNREACHABLE
    for place in nodes.sockets:
        names = {path.name for path in Path(place).parent.iterdir()}
        assert not any(name.endswith((".token", ".json")) for name in names), names
    # An administrator's coordinator is left alone by both.
    runtime = str(Path(nodes.sockets[1]).parent.parent)
    environment = nodes.env | {"XDG_RUNTIME_DIR": runtime}
    start = gpushare_command("coordinator", "start", "--linger", "never")
    subprocess.run(start, env=environment, check=True)
    pid = nodes.coordinator(1)["coordinator"]["pid"]
    ended = nodes.gpushare("up", "--port", str(nodes.port))
    assert ended.returncode == 0
    assert f"a coordinator answers at {nodes.sockets[1]} already" in ended.stderr
    assert nodes.gpushare("down").returncode == 0
    assert nodes.coordinator(0) == {}
    assert nodes.coordinator(1)["coordinator"]["pid"] == pid
    subprocess.run(gpushare_command("coordinator", "stop"), env=environment, check=True)


def test_the_end_of_a_node_or_of_the_cluster_ends_all_of_it(nodes: Nodes) -> None:
    assert len(nodes.up()["nodes"]) == 2
    nodes.lose()
    wait_until(lambda: nodes.coordinator(1) == {})
    assert nodes.coordinator(0)
    wait_until(lambda: len(nodes.status()["nodes"]) == 1)
    assert len(nodes.up()["nodes"]) == 1
    nodes.end()
    wait_until(lambda: nodes.coordinator(0) == {})
    wait_until(lambda: not (Path(nodes.sockets[0]).parent / "ray_arbiter.token").exists())


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
