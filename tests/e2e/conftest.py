"""Fixtures of the end-to-end tests: real processes, a coordinator of their own each test."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.alone import result_alone
from tests.support import forked
from tests.support.coordinators import coordinator, pytest_runtest_makereport

if TYPE_CHECKING:
    from tests.support.job_process import JobProcess

__all__ = ["coordinator", "pytest_runtest_makereport"]  # a fixture, a hook

# A background job of a shell ignores Ctrl-C, and so would what a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Two threads that spin for each other stand still on a busy machine; that is not tested here.
os.environ["OMP_NUM_THREADS"] = "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here starts processes."""
    for item in items:
        item.add_marker(pytest.mark.e2e)


@pytest.fixture
def alone() -> Callable[..., dict[str, Any]]:
    """alone("mlp", "adam", seed, steps) -> the result of the job alone on stock torch."""
    return result_alone


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """A test leaves no child process behind."""
    before = set(_children())
    yield
    left = [pid for pid in _children() if pid not in before]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, f"processes left behind: {left}"


def _children() -> list[int]:
    """Processes that this one started, or had forked for it."""
    zygote = forked.zygote_pid()
    parents = [os.getpid()] if zygote is None else [os.getpid(), zygote]
    tasks = [task for pid in parents for task in Path(f"/proc/{pid}/task").iterdir()]
    children = [child for task in tasks for child in _read(task / "children").split()]
    # A zombie has no command line; its parent reaps it.
    pids = {int(child) for child in children if _read(Path(f"/proc/{child.decode()}/cmdline"))}
    return list(pids.difference([zygote]))


def _read(path: Path) -> bytes:
    """The file's bytes; none when its thread or process ended since it was listed."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def start_all(jobs: list[JobProcess]) -> list[dict[str, Any]]:
    """Waits until all are ready, lets them go, returns their results."""
    for job in jobs:
        job.wait_ready()
    for job in jobs:
        job.go()
    return [job.result() for job in jobs]
