"""A job that answers requests within a deadline, beside one that trains with long iterations.

All jobs are on one core, which is the device: so uncoordinated jobs share it too, as the kernel
has it. Latencies are counted from when a request comes. Alone, beside the other under the policy
`deadline` and under the default one, and beside it without gpushare, by turns in one run.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import Any

from benchmarks.block_job import start
from benchmarks.paced_job import products_of
from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

BLOCKS = 20
BLOCK_SECONDS = 0.020
"""Of one block in a training iteration, about: a third of it in the forward."""
ANSWER_SECONDS = 0.010
GAP_SECONDS = 0.150
"""Between two requests, on average."""
DEADLINE_SECONDS = 0.060
REQUESTS = 200
TRAIN_ITERATIONS = 12
"""Of the training job alone."""

UNCOORDINATED = {"GPUSHARE_DISABLE": "1"}
Intervals = list[list[float]]


def _serve(stack: ExitStack, env: dict[str, str], products: int, requests: int) -> JobProcess:
    return start(
        stack, env, "serve", blocks=2, products=products // 2, iterations=requests,
        gap=GAP_SECONDS, deadline=DEADLINE_SECONDS,
    )  # fmt: skip


def _train(stack: ExitStack, env: dict[str, str], products: int, iterations: int) -> JobProcess:
    return start(
        stack, env, "train", blocks=BLOCKS, products=products, iterations=iterations, trains=True
    )


def _beside(
    env: dict[str, str], answer: int, block: int, requests: int
) -> tuple[Intervals, dict[str, Any]]:
    """Requests, and what the training job says of the time meanwhile."""
    with ExitStack() as stack:
        train = _train(stack, env, block, 0)
        train.wait_ready()
        serve = _serve(stack, env, answer, requests).wait_ready()
        train.go()
        serve.go()
        served: Intervals = serve.outcome()["iterations"]
        train.go()
        return served, train.outcome()


def _alone(job: JobProcess) -> Intervals:
    seen: Intervals = job.wait_ready().go().outcome()["iterations"]
    return seen


def _lengths(seen: Intervals) -> list[float]:
    return [end - begin for begin, end in seen]


def p99(times: list[float]) -> float:
    """The time that 99 of 100 keep within."""
    return sorted(times)[min(len(times) - 1, int(0.99 * len(times)))]


def run(*, quick: bool) -> Report:
    """3 rounds of 200 requests."""
    report = Report(name="deadline")
    answer = products_of(ANSWER_SECONDS)
    block = products_of(BLOCK_SECONDS / 3)
    requests = 20 if quick else REQUESTS
    samples: dict[str, list[float]] = {}
    for _ in range(1 if quick else 3):
        with ExitStack() as stack:
            alone = p99(_lengths(_alone(_serve(stack, UNCOORDINATED, answer, requests))))
        with ExitStack() as stack:
            count = 3 if quick else TRAIN_ITERATIONS
            iteration = statistics.median(
                _lengths(_alone(_train(stack, UNCOORDINATED, block, count)))
            )
        with private_coordinator(policy="deadline") as env:
            shared = _beside(env, answer, block, requests)
        with private_coordinator() as env:
            by_default = _beside(env, answer, block, requests)
        for kind, (served, trained) in {
            "": shared,
            "_default_policy": by_default,
            "_uncoordinated": _beside(UNCOORDINATED, answer, block, requests),
        }.items():
            late = p99(_lengths(served))
            figures = {
                "p99_over_alone": late / alone,
                "excess_blocks": (late - alone) / (iteration / BLOCKS),
                "misses": statistics.mean(t > DEADLINE_SECONDS for t in _lengths(served)),
                "training_over_alone": statistics.mean(_lengths(trained["iterations"])) / iteration,
                "interruptions": trained["interruptions"] / requests,
            }
            for name, value in figures.items():
                samples.setdefault(name + kind, []).append(value)
    report.figures = {name: report.add_samples(name, values) for name, values in samples.items()}
    report.notes.append(
        "excess_blocks: how much longer than alone 99 of 100 requests take at most, in units of a "
        "training iteration over its number of blocks; interruptions: for each request. Python's "
        "garbage collector is frozen in all jobs (`gc.freeze()`)"
    )
    return report
