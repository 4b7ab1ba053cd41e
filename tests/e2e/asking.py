"""What the coordinator of a test says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from gpushare._coordinator.client import CoordinatorClient
from gpushare.errors import CoordinatorUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.job_process import JobProcess

PATIENCE_SECONDS = 60.0


def status(env: dict[str, str], patience_seconds: float = 10.0) -> dict[str, Any]:
    """Its report; between two coordinators there is nobody to ask for a moment.

    Raises:
        CoordinatorUnreachable: if nobody answers for `patience_seconds`.
    """
    client = CoordinatorClient([env["GPUSHARE_SOCKET"]])
    end = time.monotonic() + patience_seconds
    while True:
        try:
            return client.status()
        except CoordinatorUnreachable:
            if time.monotonic() > end:
                raise
        time.sleep(0.02)


def row_of(env: dict[str, str], job: JobProcess) -> dict[str, Any]:
    """What it says of the job."""
    rows = (row for device in status(env)["devices"] for row in device["jobs"])
    return next(row for row in rows if row["pid"] == job.pid)


def wait_until(is_so: Callable[[], bool], patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Looks again and again.

    Raises:
        AssertionError: if it is not so for `patience_seconds`.
    """
    end = time.monotonic() + patience_seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)
