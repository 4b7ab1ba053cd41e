"""Hosts of a test that are apart: network namespaces of this machine.

Two hosts reach each other by one network, and a third place, where an arbiter runs, by another. So
the test can cut a host from the arbiter and from nothing else.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess

ARBITER_ADDRESS = "10.77.9.9"
_NAMESPACE = "GS_TEST_NAMESPACE"
_CLONE_NEWNET = 0x40000000


def why_not() -> str:
    """Why there can be no network namespaces here; "": there can."""
    if os.geteuid() != 0:
        return "network namespaces are for root"
    if not (ip := shutil.which("ip")):
        return "there is no program `ip` (iproute2)"
    name = f"gs-try-{os.getpid()}"
    tried = subprocess.run([ip, "netns", "add", name], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        return f"`ip netns add` is refused: {tried.stderr.strip()}"
    _run("netns", "del", name)
    return ""


class NetHosts:
    """Two hosts, 0 and 1, and the place of the arbiter, as a context manager."""

    def __init__(self) -> None:
        """Makes them. What is left of an attempt that fails is removed."""
        self._names = [f"gs{os.getpid()}{part}" for part in "abc"]
        try:
            self._make()
        except subprocess.CalledProcessError:
            self._remove()
            raise

    def _make(self) -> None:
        first, second, middle = self._names
        for name in self._names:
            _run("netns", "add", name)
            _run("-n", name, "link", "set", "lo", "up")
        _run("-n", middle, "addr", "add", f"{ARBITER_ADDRESS}/32", "dev", "lo")
        self._join(first, second, "data", "10.77.0")
        for index, host in enumerate([first, second], start=1):
            self._join(middle, host, f"ctl{index}", f"10.77.{index}")
            _run("-n", host, "route", "add", ARBITER_ADDRESS, "via", f"10.77.{index}.1")

    @staticmethod
    def _join(one: str, other: str, link: str, network: str) -> None:
        """Gives the two an interface of this name each, with the addresses .1 and .2."""
        _run("-n", one, "link", "add", link, "type", "veth", "peer", "name", link, "netns", other)
        for number, name in enumerate([one, other], start=1):
            _run("-n", name, "addr", "add", f"{network}.{number}/24", "dev", link)
            _run("-n", name, "link", "set", link, "up")

    def on_host(self, index: int) -> tuple[str, ...]:
        """Returns the beginning of a command that runs on a host."""
        return ("ip", "netns", "exec", self._names[index])

    def beside_arbiter(self) -> tuple[str, ...]:
        """Returns the beginning of a command that runs where the arbiter does."""
        return ("ip", "netns", "exec", self._names[2])

    def program_environment(self, index: int) -> dict[str, str]:
        """Returns what a rank on the host needs: where it is, and how the ranks find each other.

        A process that is started on the host already does not look where it is.
        """
        found = {"MASTER_ADDR": "10.77.0.1", "GLOO_SOCKET_IFNAME": "data"}
        return found | {_NAMESPACE: f"/run/netns/{self._names[index]}"}

    def set_reaches_arbiter(self, index: int, *, reaches: bool) -> None:
        """Cuts the host from the arbiter, or joins it again."""
        link = f"ctl{index + 1}"
        _run("-n", self._names[2], "link", "set", link, "up" if reaches else "down")

    def _remove(self) -> None:
        for name in self._names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def __enter__(self) -> NetHosts:
        """Returns the hosts, which are there already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Removes them, with their interfaces."""
        self._remove()


def enter_namespace() -> None:
    """Puts this thread, and what it starts, on the host that the environment names, if it does.

    For a process that was forked from another one, so that it need not import torch.

    Raises:
        OSError: The kernel refuses.
    """
    if not (path := os.environ.get(_NAMESPACE)):
        return
    with open(path, "rb") as file:  # noqa: PTH123  # its descriptor counts
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {path}")


def _run(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, text=True, check=True)
