"""A registered job alone on the device, over the same script on stock torch.

Three processes take rounds of a few steps in turn: a registered job, and two on stock torch. A
figure is the median of the ratios of neighbours. `..._stock_over_stock` compares the two processes
on stock torch: the other figures may be as far off by chance as this one is from 1. The model `mlp`
has many small kernels, where the host's side counts. The model `transformer` has large kernels.
"""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks.device.machine import device, size
from benchmarks.device.training import Trainer
from benchmarks.processes import private_coordinator
from benchmarks.report import Report

MODELS = {"mlp": 100, "transformer": 5}
"""The number of steps of a round, by model."""
SIDES = ("registered", "stock", "other_stock")


def measure_ratio(report: Report, model: str, steps: int, rounds: int) -> tuple[float, float]:
    """Returns the medians of registered over stock, and of stock over stock."""
    seen: dict[str, list[float]] = {side: [] for side in SIDES}
    with ExitStack() as stack:
        env = stack.enter_context(device())
        shared = env | stack.enter_context(private_coordinator(require="1"))
        stock = env | {"GPUSHARE_DISABLE": "1"}
        jobs: dict[str, Trainer] = {}
        for side in SIDES:
            flags, side_env = (("--shared",), shared) if side == "registered" else ((), stock)
            jobs[side] = Trainer("--model", model, *flags, env=side_env)
            stack.enter_context(jobs[side])
        for job in jobs.values():
            job.wait_ready()
        if not jobs["registered"].ready["is_managed"]:
            raise RuntimeError(
                f"the registered job has no coordinator: {jobs['registered'].errors()}"
            )
        for turn in range(2 * rounds):
            # Every second turn goes backwards, so that a drift cancels.
            for side in SIDES if turn % 2 == 0 else reversed(SIDES):
                seen[side].append(jobs[side].train(steps) / steps)
    for side, values in seen.items():
        report.add_samples(f"{model}_{side}_step_seconds", values)
    medians = []
    for side, name in (("registered", "over_stock"), ("other_stock", "stock_over_stock")):
        ratios = [a / b for a, b in zip(seen[side], seen["stock"], strict=True)]
        medians.append(report.add_samples(f"{model}_{name}", ratios))
    return medians[0], medians[1]


def run(*, quick: bool) -> Report:
    """Measures both models, in about a minute."""
    report = Report(name="alone")
    rounds = 1 if quick else size(10, 1)
    for model, steps in MODELS.items():
        ratio, of_equals = measure_ratio(report, model, size(steps, 2), rounds)
        report.figures[f"{model}_over_stock"] = ratio
        report.figures[f"{model}_stock_over_stock"] = of_equals
    return report
