"""Overhead of a registered job that is alone.

`iteration_over_unregistered`: one process, the same model, rounds with and without registration
in turn, gpushare's allocator in both. `iteration_over_stock`: processes in turn, a registered
job against the same script on stock torch. `boundary_us`: an empty iteration, one begin and one
end.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report


def _measure(rounds: int, steps: int) -> dict[str, Any]:
    """In the job's process: seconds a step, with and without registration."""
    import gpushare
    from benchmarks import workloads

    workload = workloads.build("mlp")
    for number in range(5):
        workload.step(number)
    on: list[float] = []
    off: list[float] = []
    for turn in range(2 * rounds):
        registers = turn % 2 == (turn // 2) % 2  # on off off on on off ...: a drift cancels
        job = gpushare.register(workload.model, workload.optimizer) if registers else None
        workload.step(0)
        for number in range(steps):
            begun = time.perf_counter()
            workload.step(number)
            (on if registers else off).append(time.perf_counter() - begun)
        if job is not None:
            job.close()
    job = gpushare.register(workload.model, workload.optimizer)
    boundaries: list[float] = []
    for _ in range(50):
        begun = time.perf_counter()
        for _ in range(200):
            with job.iteration():
                pass
        boundaries.append((time.perf_counter() - begun) / 200 * 1e6)
    job.close()
    return {"on": on, "off": off, "boundaries": boundaries}


def run(*, quick: bool) -> Report:
    """MLP (784-1024-1024-10, batch 256), Adam: the shortest iterations of our workloads."""
    report = Report(name="overhead")
    rounds, steps = (4, 5) if quick else (40, 20)
    with private_coordinator() as env:
        with JobProcess(
            str(rounds), str(steps), env=env, module="benchmarks.bench_overhead"
        ) as job:
            seen = job.say()
        shared: list[float] = []
        stock: list[float] = []
        ratios: list[float] = []
        digests: set[str] = set()
        for _ in range(2 if quick else 7):
            pair = []
            for flags, into in ((["--shared"], shared), ([], stock)):
                with JobProcess(
                    "--workload", "mlp", "--steps", str(6 * steps), *flags, env=env
                ) as job:
                    result = job.wait_ready().go().result()
                digests.add(result["digest"])
                into.append(statistics.median(result["iteration_seconds"]))
                pair.append(into[-1])
            ratios.append(pair[0] / pair[1])
    on = report.add_samples("registered_iteration_seconds", seen["on"])
    off = report.add_samples("unregistered_iteration_seconds", seen["off"])
    report.add_samples("shared_process_median_seconds", shared)
    report.add_samples("stock_process_median_seconds", stock)
    report.figures = {
        "iteration_over_unregistered": on / off,
        "iteration_over_stock": report.add_samples("iteration_over_stock", ratios),
        "bit_equal": float(len(digests) == 1),
        "boundary_us": report.add_samples("boundary_us", seen["boundaries"]),
    }
    return report


if __name__ == "__main__":
    print(json.dumps(_measure(int(sys.argv[1]), int(sys.argv[2]))))
