"""Which programs of the gallery run: all with GALLERY=all, else some, other ones each day.

The examples of docs/integrations.md run with GALLERY=all alone.
"""

from __future__ import annotations

import datetime
import os
import signal
from typing import TYPE_CHECKING

from tests.gallery import outcome
from tests.support.coordinators import coordinator, pytest_runtest_makereport

if TYPE_CHECKING:
    import pytest

__all__ = ["coordinator", "pytest_runtest_makereport"]  # a fixture, a hook

SOME = 5
"""How many programs run each day."""

signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["OMP_NUM_THREADS"] = "1"


def chosen() -> list[str]:
    """Returns the programs that run today."""
    names = outcome.names()
    if os.environ.get("GALLERY") == "all":
        return names
    names = [name for name in names if not name.startswith("examples/")]
    day = datetime.datetime.now(datetime.timezone.utc).date().toordinal()
    every = -(-len(names) // SOME)
    return names[day % every :: every]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with an argument `program` runs for each."""
    if "program" in metafunc.fixturenames:
        metafunc.parametrize("program", chosen())
