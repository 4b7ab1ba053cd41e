"""Measures the latency that a training job adds to an inference job, which has few requests.

A request is one forward pass, and requests are some tens of milliseconds apart. The inference job
first has the device to itself, then shares it with a job that trains all the time. Both jobs fit,
so nothing is transferred. A request may have to wait for the end of the trainer's iteration, so the
length of an iteration is a figure too.
"""

from __future__ import annotations

import statistics

from benchmarks.device.machine import device, size
from benchmarks.device.training import Trainer
from benchmarks.processes import private_coordinator
from benchmarks.report import Report, quantile

EVERY_SECONDS = 0.05


def _latencies(job: Trainer, requests: int) -> list[float]:
    job.order(requests=requests, every=EVERY_SECONDS)
    return [1e3 * each for each in job.say()["latencies"]]


def run(*, quick: bool) -> Report:
    """Measures the latencies, in about a quarter of a minute."""
    report = Report(name="inference")
    requests = 5 if quick else size(100, 5)
    with device() as env, private_coordinator(require="1") as more:
        flags = ("--model", "inference", "--shared", "--priority", "interactive")
        with (
            Trainer(*flags, env=env | more) as server,
            Trainer("--model", "mlp", "--shared", env=env | more) as trainer,
        ):
            # Each job gives the lease back, so that the other one can begin.
            for job in (server, trainer):
                job.wait_ready()
                job.order(park=True)
                job.say()
            alone = _latencies(server, requests)
            server.order(park=True)
            server.say()
            steps = size(40, 5)
            iteration = trainer.train(steps) / steps
            busy = 4 * requests * EVERY_SECONDS
            trainer.order(steps=max(steps, int(busy / iteration)))
            beside = _latencies(server, requests)
    report.figures = {
        "added_ms": report.add_samples("beside_training_ms", beside)
        - report.add_samples("alone_ms", alone),
        "added_p95_ms": quantile(beside, 0.95) - quantile(alone, 0.95),
        "training_iteration_ms": 1e3 * iteration,
        "beside_over_alone": statistics.median(beside) / statistics.median(alone),
    }
    return report
