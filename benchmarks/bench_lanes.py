"""Four jobs of one lane with small persistent (P) and large ephemeral (E) memory.

`physical_over_bound`: what the kernel says that all jobs' device memory occupies, at most, in the
steady state, over the sum of P and the largest E, as each job needs them alone;
`private_over_bound` the same with lanes off.

`switch_bytes`: bytes dropped, spilled and restored a switch of the lease from one job to another.
`switch_map_calls`: a member's mmap, munmap, mremap, madvise, mprotect and fallocate calls on its
segments a turn; null where strace cannot be used. Both in the steady state.

`bit_equal`: 1 if every loss has the bits it has on stock torch, alone.

`iteration_over_private`: time of an iteration over that with lanes off: memory of a file may lack
the huge pages that private memory has.

`strict_over_default`: time that the four jobs take for as many iterations, with the default turns,
if access to the lane's memory between two leases is a fault, over the time if it is not.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.kernel_books import KernelBooks
from benchmarks.processes import (
    JobProcess,
    private_coordinator,
    read_status,
)
from benchmarks.report import Report

MIB = 1 << 20
ROWS = (65536, 57344, 49152, 65536)
"""Of the jobs: an activation of 16, 14, 12 and 16 MiB."""
SETTINGS = {
    "capacity": "1GiB",
    "policy": "rr",
    "min_quantum": "0",
    "max_wait": "0.2s",
    "switch_loss": "0.5",
}
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
_CALLS = "mmap,munmap,mremap,madvise,mprotect,fallocate"
_CALL = re.compile(r"(mmap|munmap|mremap|madvise|mprotect|fallocate)\((0x[0-9a-f]+|NULL|\d+)")


@dataclass(kw_only=True)
class Together:
    """What was seen of the jobs while they shared."""

    results: list[dict[str, Any]] = field(default_factory=list)
    physical_bytes: list[int] = field(default_factory=list)
    moved_bytes: int = 0
    switches: int = 0
    map_calls: float | None = None
    busy_seconds: float = 0.0
    """An iteration, on the mean, in the steady state."""
    notes: list[str] = field(default_factory=list)


def run(*, quick: bool) -> Report:
    """All of it: about two minutes."""
    report = Report(name="lanes")
    seconds = 6.0 if quick else 15.0
    needs = [_needs(rows) for rows in ROWS]
    shared = _together("on", seconds)
    private = _together("off", seconds)
    bound = sum(live for live, _ in needs) + max(peak - live for live, peak in needs)
    report.notes += shared.notes
    report.figures["physical_over_bound"] = max(shared.physical_bytes) / bound
    report.figures["private_over_bound"] = max(private.physical_bytes) / bound
    report.figures["switch_bytes"] = shared.moved_bytes / max(shared.switches, 1)
    report.figures["switch_map_calls"] = shared.map_calls
    report.figures["bit_equal"] = float(_are_as_alone(shared.results))
    report.figures["iteration_over_private"] = shared.busy_seconds / private.busy_seconds
    rates = [(_rate("1", seconds / 2), _rate("0", seconds / 2)) for _ in range(1 if quick else 5)]
    over = [default / strict for strict, default in rates]
    report.figures["strict_over_default"] = report.add_samples("strict_over_default", over)
    report.add_samples("physical_bytes", shared.physical_bytes)
    report.add_samples("private_physical_bytes", private.physical_bytes)
    report.notes.append(
        f"bound {bound / MIB:.0f} MiB; {shared.switches} switches in the steady state"
    )
    return report


def _needs(rows: int) -> tuple[int, int]:
    """Live bytes at a boundary and most bytes backed, of the job alone."""
    with private_coordinator(**SETTINGS, lanes="off") as env, ExitStack() as stack:
        job = _job(stack, env, rows, 0, "--shared", "--iterations", "4")
        stats = job.wait_ready().go().result()["stats"]
        return stats["live_bytes"], stats["peak_backed_bytes"]


def _job(
    stack: ExitStack, env: dict[str, str], rows: int, seed: int, *arguments: str
) -> JobProcess:
    return stack.enter_context(
        JobProcess(
            *("--rows", str(rows), "--seed", str(seed), *arguments),
            env=env | ONE_THREAD,
            module="benchmarks.lane_job",
        )
    )


def _are_as_alone(results: list[dict[str, Any]]) -> bool:
    for seed, (rows, result) in enumerate(zip(ROWS, results, strict=True)):
        count = len(result["losses"])
        with ExitStack() as stack:
            job = _job(stack, {}, rows, seed, "--iterations", str(count))
            if job.wait_ready().go().result()["losses"] != result["losses"]:
                return False
    return True


def _together(lanes: str, seconds: float) -> Together:
    seen = Together()
    with private_coordinator(**SETTINGS, lanes=lanes) as env, ExitStack() as stack:
        jobs = [
            _job(stack, env, rows, seed, "--shared", "--until-told")
            for seed, rows in enumerate(ROWS)
        ]
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        _wait_until_steady(env, is_shared=lanes == "on")
        before = _status(env)
        books = KernelBooks(jobs, every_seconds=0.3)
        books.start()
        time.sleep(seconds / 2)
        seen.physical_bytes = books.stop()
        if lanes == "on":
            seen.map_calls = _count_map_calls(env, jobs[1], seconds / 2, seen.notes)
        after = _status(env)
        seen.moved_bytes = _moved(after) - _moved(before)
        seen.switches = after["switches"] - before["switches"]
        seen.busy_seconds = _busy(before, after)
        for job in jobs:
            job.go()
        seen.results = [job.result() for job in jobs]
    return seen


def _rate(strict: str, seconds: float) -> float:
    """Iterations a second of all jobs in the steady state, with the default turns."""
    with (
        private_coordinator(capacity=SETTINGS["capacity"], lanes="on") as env,
        ExitStack() as stack,
    ):
        flag = {"GPUSHARE_LANE_STRICT": strict}
        jobs = [
            _job(stack, env | flag, rows, seed, "--shared", "--until-told")
            for seed, rows in enumerate(ROWS)
        ]
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        _wait_until_steady(env, is_shared=True)
        started, before = time.monotonic(), _status(env)
        time.sleep(seconds)
        after, ended = _status(env), time.monotonic()
        for job in jobs:
            job.go()
        for job in jobs:
            job.result()
    made = sum(job["iterations"] for job in after["jobs"])
    return float(made - sum(job["iterations"] for job in before["jobs"])) / (ended - started)


def _status(env: dict[str, str]) -> dict[str, Any]:
    """The device as the coordinator has it."""
    device: dict[str, Any] = read_status(env)["devices"][0]
    return device


def _wait_until_steady(env: dict[str, str], *, is_shared: bool) -> None:
    """Until nothing about the lane has changed for ten turns of each job."""
    last: tuple[int, ...] = ()
    since = 0
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        device = _status(env)
        jobs = device["jobs"]
        figures = tuple(job["lane_bytes"] + job["donated_bytes"] for job in jobs)
        is_ready = all(figures) if is_shared else min(job["leases"] for job in jobs) > 3
        if not is_ready or figures != last:
            last, since = figures, min(job["leases"] for job in jobs)
        elif min(job["leases"] for job in jobs) >= since + 10:
            return
        time.sleep(0.2)
    raise RuntimeError(f"the lane does not come to rest: {last}")


def _moved(device: dict[str, Any]) -> int:
    kinds = ("dropped_total_bytes", "spilled_total_bytes", "restored_total_bytes")
    return sum(int(job[kind]) for job in device["jobs"] for kind in kinds)


def _busy(before: dict[str, Any], after: dict[str, Any]) -> float:
    def total(device: dict[str, Any], key: str) -> float:
        return sum(float(job[key]) for job in device["jobs"])

    seconds = total(after, "busy_seconds") - total(before, "busy_seconds")
    return seconds / (total(after, "iterations") - total(before, "iterations"))


def _count_map_calls(
    env: dict[str, str], job: JobProcess, seconds: float, notes: list[str]
) -> float | None:
    """Calls on the job's segments for each of its leases; None where strace cannot tell."""
    strace = shutil.which("strace")
    if strace is None:
        notes.append("switch_map_calls: strace is not installed")
        return None
    leases = _leases(env, job)
    with _tracing(strace, job) as lines:
        time.sleep(seconds)
        turns = _leases(env, job) - leases
    if turns < 3:
        notes.append(f"switch_map_calls: only {turns} turns under strace")
        return None
    notes.append(f"switch_map_calls: of {turns} turns; strace saw {len(lines)} lines in all")
    base, size = job.ready["range"]
    return sum(_is_on_range(line, base, base + size) for line in lines) / turns


def _leases(env: dict[str, str], job: JobProcess) -> int:
    leases: int = next(row["leases"] for row in _status(env)["jobs"] if row["pid"] == job.pid)
    return leases


@contextmanager
def _tracing(strace: str, job: JobProcess) -> Iterator[list[str]]:
    """The job's calls meanwhile, once it has ended."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="gpushare-") as folder:
        trace = Path(folder) / "trace"
        command = [strace, "-f", "-e", f"trace={_CALLS}", "-o", str(trace), "-p", str(job.pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(0.5)  # until all threads are attached
            try:
                yield lines
            finally:
                process.terminate()
                process.wait(60)
        lines += trace.read_text().splitlines()


def _is_on_range(line: str, base: int, end: int) -> bool:
    found = _CALL.search(line)
    if found is None:
        return False
    call, first = found.groups()
    if call == "fallocate":
        return True
    return first.startswith("0x") and base <= int(first, 16) < end
