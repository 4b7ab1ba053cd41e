"""How fast memory is spilled and restored, against plain copies of the same bytes.

The programs are benchmarks/cpp/spill_bench and spill_pair_bench, whose heads say what each of
their lines times. A ratio is made of two sides that were timed one after the other; figures are
medians of such ratios.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from benchmarks import native
from benchmarks.processes import ROOT

if TYPE_CHECKING:
    from benchmarks.report import Report

RAM_MIB = 1024
FILE_MIB = 512
GIB_IN_MIB = 1024.0

Times = dict[str, list[float]]
"""Seconds, by the name of what was timed."""


def _run_program(name: str, *arguments: str) -> Times:
    program = native.build(name)
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{name} ended with {done.returncode}: {done.stderr[-2000:]}")
    times: Times = {}
    for line in done.stdout.splitlines():
        what, seconds = line.split()
        times.setdefault(what, []).append(float(seconds))
    return times


def _median_ratio(over: list[float], under: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def _add_bandwidths(report: Report, prefix: str, times: Times, size_mib: int) -> None:
    for what, seconds in times.items():
        speeds = [size_mib / GIB_IN_MIB / one for one in seconds]
        median = report.add_samples(f"{prefix}_{what}_gib_per_second", speeds)
        print(f"  {prefix} {what} {median:.2f} GiB/s", file=sys.stderr, flush=True)


def _measure_tier(report: Report, tier: str, size_mib: int, rounds: int, *folder: str) -> None:
    times = _run_program("spill_bench", str(size_mib), str(rounds), *folder)
    for move in ("spill", "restore"):
        cores = _median_ratio(times.pop(f"{move}_cpu"), times[move])
        report.figures[f"cores_of_{move}_{tier}"] = cores
    _add_bandwidths(report, tier, times, size_mib)
    for move in ("spill", "restore"):
        for copy in ("copy", "cached_copy"):
            if f"{move}_{copy}" in times:
                ratio = _median_ratio(times[f"{move}_{copy}"], times[move])
                report.figures[f"{move}_over_{copy}_{tier}"] = ratio


def _measure_both(report: Report, size_mib: int, rounds: int) -> None:
    times = _run_program("spill_pair_bench", str(size_mib), str(rounds))
    # Two moves in each row but copy_one.
    for what, moved_mib in (("alone", 2), ("both", 2), ("copy_one", 1), ("copy_two", 2)):
        _add_bandwidths(report, "pair", {what: times[what]}, moved_mib * size_mib)
    report.figures["both_over_one"] = _median_ratio(times["alone"], times["both"])
    report.figures["memcpy_two_threads_over_one"] = 2 * _median_ratio(
        times["copy_one"], times["copy_two"]
    )


def measure(report: Report, *, quick: bool) -> None:
    """RAM, a file in this checkout's build folder, and both directions at once."""
    rounds = 3 if quick else 15
    _measure_tier(report, "ram", RAM_MIB // (4 if quick else 1), rounds)
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as folder:
        size_mib = FILE_MIB // (4 if quick else 1)
        _measure_tier(report, "file", size_mib, rounds, folder)
    _measure_both(report, RAM_MIB // (4 if quick else 1), rounds)
    report.notes += [
        "a spill was counted only if the kernel's figure for the range fell by all of its bytes",
        "ram: copies between touched huge pages and a touched memfd, and restore_copy into pages"
        " that are mapped and populated in its time; spilling also gives pages back, a copy not",
        "file: pwrite and pread of 2 MiB past the page cache, as the host tier does, and for the"
        " cached copy through it, so that it met no disk; dirty pages were written back before each"
        " timed side",
    ]
