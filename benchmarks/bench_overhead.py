"""Overhead of a registered job that is alone.

`iteration_over_unregistered`: one process, the same model, rounds of a few iterations with and
without registration in turn, gpushare's allocator in both; the median over neighbours in time.
`hooks_us`: what registration adds to an iteration of a tiny model whose caches are emptied before
each call, as compute leaves them: about what the ratio before is made of. `iteration_over_stock`:
processes in turn, a registered job against the same script on stock torch. `boundary_us`: an empty
iteration, one begin and one end.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

_STEPS = 5


def _pairs(rounds: int) -> list[tuple[float, float]]:
    """Seconds a step, registered and not, in rounds of a few steps that follow each other."""
    import gpushare
    from benchmarks import workloads

    workload = workloads.build("mlp")
    for number in range(5):
        workload.step(number)
    seen: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(2 * rounds):
        registers = turn % 2 == (turn // 2) % 2  # on off off on on off ...: a drift cancels
        job = gpushare.register(workload.model, workload.optimizer) if registers else None
        workload.step(0)
        seconds = []
        for number in range(_STEPS):
            begun = time.perf_counter()
            workload.step(number)
            seconds.append(time.perf_counter() - begun)
        seen[registers].append(statistics.median(seconds))
        if job is not None:
            job.close()
    return list(zip(seen[True], seen[False], strict=True))


def _cold_step_us(rounds: int) -> dict[bool, list[float]]:
    """Microseconds a step of a tiny model, with cold caches at each call, registered and not."""
    import torch

    import gpushare

    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(4, 8)
    cache_sweep = torch.zeros(16 << 20)

    def timed(call: Callable[[], Any]) -> tuple[Any, float]:
        cache_sweep.add_(1)
        begun = time.perf_counter()
        result = call()
        return result, time.perf_counter() - begun

    seen: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(2 * rounds):
        job = gpushare.register(model, optimizer) if turn % 2 else None
        for _ in range(_STEPS):
            optimizer.zero_grad()
            loss, forward = timed(lambda: model(batch).sum())
            _, backward = timed(loss.backward)
            _, step = timed(optimizer.step)
            seen[turn % 2 == 1].append((forward + backward + step) * 1e6)
        if job is not None:
            job.close()
    return seen


def _boundaries_us() -> list[float]:
    """Microseconds of an empty iteration."""
    import torch

    import gpushare

    job = gpushare.register(torch.nn.Linear(8, 8))
    seen: list[float] = []
    for _ in range(50):
        begun = time.perf_counter()
        for _ in range(200):
            with job.iteration():
                pass
        seen.append((time.perf_counter() - begun) / 200 * 1e6)
    job.close()
    return seen


def run(*, quick: bool) -> Report:
    """MLP (784-1024-1024-10, batch 256), Adam: the shortest iterations of our workloads."""
    report = Report(name="overhead")
    rounds, steps = (4, 5) if quick else (300, 20)
    with private_coordinator() as env:
        with JobProcess(str(rounds), env=env, module="benchmarks.bench_overhead") as job:
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
    on, off = zip(*seen["pairs"], strict=True)
    report.add_samples("registered_iteration_seconds", on)
    report.add_samples("unregistered_iteration_seconds", off)
    registered_us = report.add_samples("registered_cold_step_us", seen["cold_on"])
    unregistered_us = report.add_samples("unregistered_cold_step_us", seen["cold_off"])
    report.add_samples("shared_process_median_seconds", shared)
    report.add_samples("stock_process_median_seconds", stock)
    report.figures = {
        "iteration_over_unregistered": report.add_samples(
            "iteration_over_unregistered", [a / b for a, b in seen["pairs"]]
        ),
        "hooks_us": registered_us - unregistered_us,
        "iteration_over_stock": report.add_samples("iteration_over_stock", ratios),
        "bit_equal": float(len(digests) == 1),
        "boundary_us": report.add_samples("boundary_us", seen["boundaries"]),
    }
    return report


if __name__ == "__main__":
    num_rounds = int(sys.argv[1])
    cold = _cold_step_us(num_rounds)
    print(
        json.dumps(
            {
                "pairs": _pairs(num_rounds),
                "cold_on": cold[True],
                "cold_off": cold[False],
                "boundaries": _boundaries_us(),
            }
        )
    )
