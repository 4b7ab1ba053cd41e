"""Jobs that all fit together and spend half of their time in gaps: makespan over the ideal.

Iterations of 5, 20 and 50 ms with equal gaps, two and four jobs, real and simulated, under the
default policy. Ideal is the longer of a job alone and of all iterations one after the other;
serial is one job after the other.
"""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks.paced_job import products_of
from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report
from gpushare.simulate import runs

SECONDS = (0.005, 0.02, 0.05)
"""Of an iteration, and of a gap."""
JOBS = (2, 4)
RUN_SECONDS = 6.0
"""Of a job alone, about."""
SIMULATED_SECONDS = 60.0


def _ideal(jobs: int, iteration: float, gap: float, iterations: int) -> float:
    alone = iteration * iterations + gap * (iterations - 1)
    return max(alone, iteration * iterations * jobs)


def _real(jobs: int, gap: float, products: int, iterations: int) -> tuple[float, float]:
    """Makespan and the mean time of an iteration, in seconds."""
    with private_coordinator() as env, ExitStack() as stack:
        processes = [
            stack.enter_context(
                JobProcess(
                    "--name", f"paced{number}", "--products", str(products), "--gap", str(gap),
                    "--iterations", str(iterations), env=env, module="benchmarks.paced_job",
                )
            )
            for number in range(jobs)
        ]  # fmt: skip
        for process in processes:
            process.wait_ready()
        for process in processes:
            process.go()
        seen = [process.outcome()["iterations"] for process in processes]
    makespan = max(each[-1][1] for each in seen) - min(each[0][0] for each in seen)
    busy = sum(until - since for each in seen for since, until in each)
    return makespan, busy / (jobs * iterations)


def simulated(jobs: int, seconds: float) -> float:
    """Makespan over the ideal."""
    iterations = round(SIMULATED_SECONDS / seconds / 2)
    row = f"0,{iterations},{seconds},{seconds},1,2"
    trace = "\n".join(
        ["submit_s,iterations,iteration_s,gap_s,persistent_gib,peak_gib", *[row] * jobs]
    )
    machine = {"capacity": "80GiB", "interference": "1"}
    report = runs.run(trace, ["fair"], machine)[0]
    return float(report["makespan_seconds"]) / _ideal(jobs, seconds, seconds, iterations)


def run(*, quick: bool) -> Report:
    """3 rounds of each kind, alone and together."""
    report = Report(name="gaps")
    worst: list[float] = []
    halves: list[float] = []
    for seconds in SECONDS:
        products = products_of(seconds)
        iterations = max(10, round((1.0 if quick else RUN_SECONDS) / seconds / 2))
        for jobs in JOBS:
            over_ideal = []
            over_serial = []
            for _ in range(1 if quick else 3):
                alone, busy = _real(1, seconds, products, iterations)
                together, _busy = _real(jobs, seconds, products, iterations)
                over_ideal.append(together / max(alone, busy * iterations * jobs))
                over_serial.append(together / (alone * jobs))
            name = f"{seconds * 1000:g}ms_{jobs}"
            worst.append(report.add_samples(f"over_ideal_{name}", over_ideal))
            if jobs == 2:
                halves.append(report.add_samples(f"over_serial_{name}", over_serial))
            worst.append(report.add_samples(f"simulated_{name}", [simulated(jobs, seconds)]))
    report.figures = {
        "worst_over_ideal": max(worst),
        "two_at_half_over_serial": max(halves),
        "simulated_worst_over_ideal": max(
            max(values) for name, values in report.samples.items() if name.startswith("simulated")
        ),
    }
    report.notes.append("ideal: of the time alone, and of all iterations one after the other")
    return report
