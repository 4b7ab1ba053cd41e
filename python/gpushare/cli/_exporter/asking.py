"""Asks all coordinators at once, each for one report, and gives up on those that do not answer.

Prometheus waits 10 s for a scrape. A coordinator that is stopped takes a question and never
answers, so each is asked by a thread of its own, and no longer than ``ANSWER_SECONDS``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from gpushare._coordinator.client import CoordinatorClient, RefusedError
from gpushare.cli._targets.coordinators import DeviceSockets, of_device
from gpushare.errors import CoordinatorUnreachable

ANSWER_SECONDS = 2.0
"""For connecting to a socket, and again for the answer. A device has two sockets at most."""


class Asked(NamedTuple):
    """What came of asking one coordinator."""

    sockets: DeviceSockets
    report: dict[str, Any] | None
    """None: it did not answer."""
    why_not: str = ""
    """A sentence that says why there is no report."""


class Coordinators:
    """The coordinators that are looked for at each scrape."""

    def __init__(self, find: Callable[[], list[DeviceSockets]], *, is_named: bool) -> None:
        """Asks nobody yet.

        Args:
            find: Gives the sockets of each device, whether or not anybody listens there.
            is_named: The user has named the device or the socket, so it is always asked.
        """
        self._find = find
        self._is_named = is_named
        self._known: dict[str, DeviceSockets] = {}
        self._lock = threading.Lock()

    def ask(self) -> list[Asked]:
        """Returns what each coordinator says, in the order of the devices' names.

        A device is asked if it has a socket, or if it had one earlier: a coordinator that ends
        takes its socket away, and that should be seen. If there is none at all, it is the CPU.
        """
        asked = self._to_ask()
        with ThreadPoolExecutor(len(asked)) as threads:
            return list(threads.map(_ask, asked))

    def _to_ask(self) -> list[DeviceSockets]:
        found = self._find()
        with self._lock:
            for sockets in found:
                # Path.exists() would raise where a folder may not be entered.
                if self._is_named or any(map(os.path.exists, sockets.paths)):
                    self._known[sockets.device] = sockets
            return sorted(self._known.values()) or found or [DeviceSockets("", [])]


def _ask(sockets: DeviceSockets) -> Asked:
    try:
        report = CoordinatorClient(sockets.paths, ANSWER_SECONDS).status()
        return Asked(sockets, of_device(report, sockets.device))
    except (CoordinatorUnreachable, RefusedError) as error:
        return Asked(sockets, None, str(error))
