"""What the coordinator of a test says."""

from __future__ import annotations

import time
from typing import Any

from gpushare.coordinator_client import CoordinatorClient
from gpushare.errors import CoordinatorUnreachable


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
