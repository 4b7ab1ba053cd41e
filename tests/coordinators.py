"""A coordinator of its own for each test that starts jobs: the fixture of all end-to-end tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from benchmarks.processes import private_coordinator


@pytest.fixture
def coordinator() -> Iterator[Callable[..., dict[str, str]]]:
    """coordinator(capacity="64MiB", ...) -> the environment of jobs that meet there."""
    with ExitStack() as stack:

        def open_one(**settings: str) -> dict[str, str]:
            return stack.enter_context(private_coordinator(**settings))

        yield open_one
