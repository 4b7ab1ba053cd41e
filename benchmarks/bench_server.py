"""A server of small requests beside two jobs that train, under the default policy.

All jobs are on one core, which is the device. Latencies are counted from when a request comes. What
the server is charged is the time that it held leases, waits for memory and the hand-over included.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack

from benchmarks.bench_deadline import p99
from benchmarks.block_job import start
from benchmarks.paced_job import products_of
from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

ANSWER_SECONDS = 0.0012
GAP_SECONDS = 0.2
"""Between two requests, on average."""
DEADLINE_SECONDS = 0.05
REQUESTS = 100
BLOCKS = 20
BLOCK_SECONDS = 0.020
"""Of one block in a training iteration, about: a third of it in the forward."""
MARGIN_SECONDS = 0.005
UNCOORDINATED = {"GPUSHARE_DISABLE": "1"}


def _serve(stack: ExitStack, env: dict[str, str], requests: int) -> JobProcess:
    products = max(1, products_of(ANSWER_SECONDS) // 2)
    return start(
        stack, env, "serve", blocks=2, products=products, iterations=requests,
        gap=GAP_SECONDS, deadline=DEADLINE_SECONDS,
    )  # fmt: skip


def _train(stack: ExitStack, env: dict[str, str], name: str, iterations: int) -> JobProcess:
    products = products_of(BLOCK_SECONDS / 3)
    return start(
        stack, env, name, blocks=BLOCKS, products=products, iterations=iterations, trains=True
    )


def _lengths(job: JobProcess) -> list[float]:
    return [end - begin for begin, end in job.wait_ready().go().outcome()["iterations"]]


def run(*, quick: bool) -> Report:
    """3 rounds of 100 requests: alone, and beside two jobs."""
    report = Report(name="server")
    requests = 10 if quick else REQUESTS
    samples: dict[str, list[float]] = {}
    for _ in range(1 if quick else 3):
        with ExitStack() as stack:
            alone = _lengths(_serve(stack, UNCOORDINATED, requests))
        with ExitStack() as stack:
            iterations = _lengths(_train(stack, UNCOORDINATED, "train", 3 if quick else 12))
        block = statistics.median(iterations) / BLOCKS
        with private_coordinator() as env, ExitStack() as stack:
            trains = [_train(stack, env, name, 0).wait_ready() for name in ("a", "b")]
            serve = _serve(stack, env, requests).wait_ready()
            for job in (*trains, serve):
                job.go()
            served = serve.outcome()
            for job in trains:
                job.go()
                job.outcome()
        times = [end - begin for begin, end in served["iterations"]]
        figures = {
            "p99_over_block_and_margin": p99(times) / (block + MARGIN_SECONDS),
            "misses": statistics.mean(t > DEADLINE_SECONDS for t in times),
            "charged_over_computing": served["held_seconds"] / sum(alone),
            "p99_ms": p99(times) * 1e3,
            "median_ms": statistics.median(times) * 1e3,
            "block_ms": block * 1e3,
        }
        for name, value in figures.items():
            samples.setdefault(name, []).append(value)
    report.figures = {name: report.add_samples(name, values) for name, values in samples.items()}
    report.notes.append(
        "p99_over_block_and_margin: 99 of 100 requests take at most so many times a block of the "
        "training (its iteration over its number of blocks) and 5 ms"
    )
    return report
