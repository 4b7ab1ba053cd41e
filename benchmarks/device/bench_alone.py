"""A registered job alone on the device, over the same script on stock torch.

Two processes that both are ready take rounds in turn, a few steps each; a figure is the median of
the ratios of neighbours. `mlp`: many small kernels, where the host's side counts. `transformer`:
large ones.
"""

from __future__ import annotations

from benchmarks.device.machine import device, size
from benchmarks.device.training import Trainer
from benchmarks.processes import private_coordinator
from benchmarks.report import Report

MODELS = {"mlp": 100, "transformer": 5}
"""Steps a round."""


def measure_ratio(report: Report, model: str, steps: int, rounds: int) -> float:
    """Median of registered over stock."""
    sides: dict[bool, list[float]] = {True: [], False: []}
    with (
        device() as env,
        private_coordinator(require="1") as gpushare_env,
        Trainer("--model", model, "--shared", env=env | gpushare_env) as shared,
        Trainer("--model", model, env=env | {"GPUSHARE_DISABLE": "1"}) as stock,
    ):
        for job in (shared, stock):
            job.wait_ready()
        if not shared.ready["is_managed"]:
            raise RuntimeError(f"the registered job has no coordinator: {shared.errors()}")
        for turn in range(2 * rounds):
            is_shared = turn % 2 == (turn // 2) % 2  # on off off on: a drift cancels
            seconds = (shared if is_shared else stock).train(steps)
            sides[is_shared].append(seconds / steps)
    for is_shared, name in ((True, "registered"), (False, "stock")):
        report.add_samples(f"{model}_{name}_step_seconds", sides[is_shared])
    ratios = [a / b for a, b in zip(sides[True], sides[False], strict=True)]
    return report.add_samples(f"{model}_over_stock", ratios)


def run(*, quick: bool) -> Report:
    """Both models: about half a minute."""
    report = Report(name="alone")
    rounds = 2 if quick else size(20, 2)
    for model, steps in MODELS.items():
        ratio = measure_ratio(report, model, size(steps, 2), rounds)
        report.figures[f"{model}_over_stock"] = ratio
    return report
