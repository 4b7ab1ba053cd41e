"""The actors of ``gpushare ray``: an agent for each node, and one that runs the arbiter.

Ray starts an actor again that has ended, with the arguments that it was made with. Actors ask no
other actor for anything, so that each comes back by itself. Nothing here imports ray.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpushare._coordinator.client import CoordinatorClient
from gpushare._settings import config
from gpushare._settings.devices import CPU
from gpushare.admin.gpus import find_gpus
from gpushare.cli.coordinator import log_path
from gpushare.cli.k8s.supervisor import device_arguments
from gpushare.cli.ray.keeper import KeeperPlan, Program
from gpushare.errors import CoordinatorUnreachable, GpushareError
from gpushare.integrations.ray_nodes import ARBITER, TOKEN_FILE, notice_path

_ANSWER_SECONDS = 2.0
_CONNECT_SECONDS = 1.0
_END_SECONDS = 20.0
_STEADY_SECONDS = 0.3
_OF_JOB = ("device", "job", "name", "state", "gang")
"""What a report says of each job."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the coordinator of a device of this node is, or is to be."""

    device: str
    """"" where the settings name a socket: then they also say which devices it is for."""
    socket: str
    options: list[str]
    """The daemon's, for this device."""
    is_of_system: bool = False
    """An administrator's coordinator has its socket there, which jobs try first."""


def places(settings: config.Config) -> list[Place]:
    """Returns where this node's coordinators are: one for each GPU, else one for the CPU.

    Args:
        settings: Of the node.

    Raises:
        GpushareError: The settings say that there is to be none, or the GPUs cannot be listed.
    """
    if settings.socket == "none":
        raise GpushareError('the settings of this node say socket = "none"')
    if settings.socket:
        return [Place(device="", socket=settings.socket, options=[])]
    found = []
    for device, options in device_arguments([], find_gpus()).items():
        paths = config.own_socket_paths(settings, device)
        # A CPU's coordinator finds in the settings whether it has several devices.
        own = [] if device == CPU else options
        found.append(
            Place(device=device, socket=paths[0], options=own, is_of_system=len(paths) > 1)
        )
    return found


class _Keeper:
    """The process of ``keeper.py`` that belongs to this process."""

    def __init__(self, plan: KeeperPlan) -> None:
        """Starts it. If it ends by itself, this process ends too, and Ray starts both again."""
        self._is_stopped = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gpushare.cli.ray.keeper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(plan)).encode() + b"\n")
        self._process.stdin.flush()
        self.pid = int(self._process.stdout.readline() or 0)
        self._process.wait()  # the keeper itself is a child of this one
        if not self.pid:
            raise GpushareError("the keeper of the coordinators did not start")
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """Returns when it has ended, with all that it has started."""
        self._is_stopped = True
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._watcher.join(_END_SECONDS)

    def has_started(self, pid: int) -> bool:
        """Whether a process is one of those that it keeps."""
        return str(pid) in self._children()

    def is_steady(self) -> bool:
        """Whether a program of it runs, and goes on to run: one that cannot listen ends at once."""
        before = self._children()
        time.sleep(_STEADY_SECONDS)
        return before != [] and self._children() == before

    def _children(self) -> list[str]:
        try:
            return Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except OSError:
            return []

    def _watch(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.read()  # it writes nothing more, so this waits for its end
        if not self._is_stopped:
            os.kill(os.getpid(), signal.SIGKILL)


class Agent:
    """Runs the coordinators of one node."""

    def __init__(self, arbiter: str, token: str) -> None:
        """Starts them, but for those that administrators have started.

        Args:
            arbiter: Where it listens, as the setting has it.
            token: That this node and the arbiter have in common.

        Raises:
            GpushareError: The settings of this node are wrong, or gpushared is not installed.
        """
        self._places = places(config.load())
        _, folder = config.socket_folders()
        token_file = f"{folder}/ray.token"
        common = [_program(), "--linger-s", "never"]
        common += ["--arbiter-address", arbiter, "--token-file", token_file]
        programs = [
            Program(
                argv=[*common, "--socket", each.socket, *each.options, *_log_to(each.socket)],
                socket=each.socket,
            )
            for each in self._places
            if not each.is_of_system
        ]
        # Jobs find the arbiter of an administrator's coordinator in the administrator's settings.
        is_left_alone = any(each.is_of_system for each in self._places)
        plan = KeeperPlan(
            folder=folder,
            token=token,
            token_file=token_file,
            notice_file="" if is_left_alone else notice_path(),
            environment={ARBITER: arbiter, TOKEN_FILE: token_file},
            programs=programs,
        )
        self._keeper = _Keeper(plan)

    def report(self) -> list[dict[str, Any]]:
        """Returns what the coordinators of this node say, one row each."""
        return [self._report_of(each) for each in self._places]

    def stop(self) -> None:
        """Ends the coordinators that this agent has started."""
        self._keeper.stop()

    def _report_of(self, place: Place) -> dict[str, Any]:
        row = {"socket": place.socket, "device": place.device, "pid": 0, "is_own": False}
        row |= {"is_of_system": place.is_of_system, "jobs": [], "warnings": []}
        try:
            report = CoordinatorClient([place.socket], _ANSWER_SECONDS).status()
        except CoordinatorUnreachable:
            return row
        devices = report["devices"]
        pid = report["coordinator"]["pid"]
        jobs = [{"device": each["device"], **job} for each in devices for job in each["jobs"]]
        return row | {
            "device": ",".join(each["device"] for each in devices),
            "pid": pid,
            "is_own": self._keeper.has_started(pid),
            "jobs": [{key: job.get(key) for key in _OF_JOB} for job in jobs],
            "warnings": [each["text"] for each in report.get("warnings", [])],
        }


class Arbiter:
    """Runs the arbiter of all nodes."""

    def __init__(self, address: str, token: str) -> None:
        """Starts it.

        Args:
            address: Where it listens; the same after each restart of this actor.
            token: That it has in common with the nodes.

        Raises:
            GpushareError: gpushared is not installed.
        """
        self._address, self._token = address, token
        _, folder = config.socket_folders()
        token_file = f"{folder}/ray_arbiter.token"
        argv = [_program(), "--arbiter", "--listen", address, "--token-file", token_file]
        argv += ["--log-file", f"{folder}/ray_arbiter.log"]
        plan = KeeperPlan(
            folder=folder, token=token, token_file=token_file, programs=[Program(argv=argv)]
        )
        self._keeper = _Keeper(plan)

    def settings(self) -> tuple[str, str]:
        """Returns address and token, for the agent of a node that was added later."""
        return self._address, self._token

    def report(self) -> dict[str, Any]:
        """Returns where it listens, and whether it answers there."""
        host, _, port = self._address.removeprefix("tcp:").rpartition(":")
        row = {"address": self._address, "keeper": self._keeper.pid, "answers": True, "why": ""}
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except OSError as error:
            return row | {"answers": False, "why": error.strerror or str(error)}
        if not self._keeper.is_steady():
            why = "another program listens there. gpushare ray up --port NUMBER, after down"
            return row | {"answers": False, "why": why}
        return row

    def stop(self) -> None:
        """Ends the arbiter."""
        self._keeper.stop()


def _program() -> str:
    program = config.daemon_path()
    if not program:
        raise GpushareError("gpushared is neither in this package nor on PATH")
    return program


def _log_to(socket_path: str) -> list[str]:
    return ["--log-file", str(log_path(socket_path))]
