"""Ordinary programs under gpushare print what they print on stock torch, and leave the same files.

Alone, with all memory moved out and back at each boundary, two at once in less than they need
together, and stopped and continued.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from benchmarks.processes import read_status
from tests.gallery import outcome

Coordinator = Callable[..., dict[str, str]]

KILLED_AT_ITS_END = "frameworks/notebook"
"""Its kernel is, so no report of it comes."""
EXAMPLES_PART = 0.601
"""The most of what two of an example need together that they run in."""
KERNEL_PEAKS = [2.0 * outcome.CHUNK_BYTES]


def _check(program: str, run: outcome.Run) -> str:
    """Compares it with stock's; returns what it wrote to stderr."""
    found, errors = run.end()
    assert found == outcome.stock(program), errors[-4000:]
    return errors


def _grants(env: dict[str, str]) -> int:
    return len([each for each in read_status(env).get("decisions", []) if each["what"] == "grant"])


def test_alone_and_two_at_once(program: str, coordinator: Coordinator) -> None:
    env = coordinator(report="1", linger="60s")
    peaks = outcome.peaks(_check(program, outcome.start(program, env)))
    assert _grants(env) > 0, "it ran, and not under gpushare"
    if program == KILLED_AT_ITS_END:
        peaks = KERNEL_PEAKS
    assert peaks, "no report says what it needed"
    capacity = outcome.tight_capacity(peaks)
    part = capacity / sum(2 * peaks)
    print(f"{program}: peaks {peaks}; two of it in {capacity} bytes, {part:.0%} of the sum")
    assert part < EXAMPLES_PART or not program.startswith("examples/"), "the documents promise it"
    env = coordinator(capacity=str(capacity), report="0")
    for run in [outcome.start(program, env) for _ in range(2)]:
        _check(program, run)


def test_with_all_memory_moved_at_each_boundary(program: str, coordinator: Coordinator) -> None:
    if program.endswith("_threads"):
        pytest.skip("GPUSHARE_FORCE_SPILL is for one thread that trains")
    env = coordinator(report="1", force_spill="1")
    errors = _check(program, outcome.start(program, env))
    moved = re.findall(r"moved ([0-9.]+ [A-Z]*i?B) out", errors)
    assert program == KILLED_AT_ITS_END or moved
    assert "0 B" not in moved


def test_stopped_and_continued(program: str, coordinator: Coordinator) -> None:
    env = coordinator(report="0")
    run = outcome.start(program, env)
    while _grants(env) == 0 and run.process.poll() is None:
        time.sleep(0.005)
    run.stop_for(0.3)
    _check(program, run)
