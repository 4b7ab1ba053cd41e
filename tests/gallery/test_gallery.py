"""Ordinary programs under gpushare print what they print on stock torch, and leave the same files.

Alone, with all memory moved out and back at each boundary, two at once in less than they need
together, and stopped and continued.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.gallery import outcome

Coordinator = Callable[..., dict[str, str]]


def _check(program: str, run: outcome.Run) -> str:
    """Compares it with stock's; returns what it wrote to stderr."""
    found, errors = run.end()
    assert found == outcome.stock(program), errors[-4000:]
    return errors


def test_alone_and_two_at_once(program: str, coordinator: Coordinator) -> None:
    errors = _check(program, outcome.start(program, coordinator(report="1")))
    capacity = outcome.tight_capacity(errors)
    env = coordinator(capacity=str(capacity), report="0")
    for run in [outcome.start(program, env) for _ in range(2)]:
        _check(program, run)


def test_with_all_memory_moved_at_each_boundary(program: str, coordinator: Coordinator) -> None:
    if program.endswith("_threads"):
        pytest.skip("GPUSHARE_FORCE_SPILL is for one thread that trains")
    env = coordinator(report="0", force_spill="1")
    _check(program, outcome.start(program, env))


def test_stopped_and_continued(program: str, coordinator: Coordinator) -> None:
    run = outcome.start(program, coordinator(report="0"))
    time.sleep(0.3)
    run.stop_for(0.3)
    _check(program, run)
