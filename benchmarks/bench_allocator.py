"""The caching allocator against torch's default: pairs of allocate and free, and training steps.

Each side runs in a process of its own; the sides take turns. No job is registered: this is the
allocator alone.
"""

from __future__ import annotations

import ctypes
import json
import statistics
import sys
from typing import Any

from benchmarks import native
from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

SIZES = {"64B": 64, "4KiB": 4 << 10, "4MiB": 4 << 20}
ALLOCATOR = "--allocator"


def _time_pairs(library: str, *, has_ours: bool) -> dict[str, float]:
    """In a process of its own: median nanoseconds a pair, by size."""
    if has_ours:
        import gpushare  # noqa: F401  # only on the side that is to have it
    import torch  # noqa: F401

    pairs = ctypes.CDLL(library).gs_time_pairs
    pairs.restype = ctypes.c_double
    pairs.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    return {name: pairs(size, 300) for name, size in SIZES.items()}


def _pairs(report: Report, env: dict[str, str], rounds: int) -> list[float]:
    library = str(native.build("allocator_pairs"))
    sides: dict[str, list[dict[str, Any]]] = {"ours": [], "stock": []}
    for _ in range(rounds):
        for side, seen in sides.items():
            with JobProcess(library, side, env=env, module="benchmarks.bench_allocator") as job:
                seen.append(job.say())
    ratios = []
    for size in SIZES:
        median = {
            side: report.add_samples(f"pair_{size}_{side}_ns", [row[size] for row in seen])
            for side, seen in sides.items()
        }
        ratios.append(median["ours"] / median["stock"])
    return ratios


def _steps(
    report: Report, env: dict[str, str], name: str, rounds: int, steps: int
) -> tuple[float, bool]:
    """Ours over stock, and whether both trained to the same bits."""
    digests: set[str] = set()
    sides: dict[str, list[float]] = {"ours": [], "stock": []}
    for _ in range(rounds):
        for side, seen in sides.items():
            flags = [ALLOCATOR] if side == "ours" else []
            with JobProcess("--workload", name, "--steps", str(steps), *flags, env=env) as job:
                result = job.wait_ready().go().result()
            digests.add(result["digest"])
            seen.append(statistics.median(result["iteration_seconds"]))
    medians = {
        side: report.add_samples(f"step_{name}_{side}_seconds", seen)
        for side, seen in sides.items()
    }
    return medians["ours"] / medians["stock"], len(digests) == 1


def run(*, quick: bool) -> Report:
    """Pairs at 64 B, 4 KiB and 4 MiB; steps of the CNN and the transformer."""
    report = Report(name="allocator")
    rounds, steps = (1, 4) if quick else (5, 30)
    with private_coordinator() as env:
        ratios = _pairs(report, env, rounds)
        cnn, is_cnn_equal = _steps(report, env, "cnn", rounds, steps)
        transformer, is_transformer_equal = _steps(report, env, "transformer", rounds, steps)
        report.figures = {
            "pair_over_stock": statistics.geometric_mean(ratios),
            **{f"pair_over_stock_{size}": r for size, r in zip(SIZES, ratios, strict=True)},
            "step_over_stock_cnn": cnn,
            "step_over_stock_transformer": transformer,
            "bit_equal": float(is_cnn_equal and is_transformer_equal),
        }
    return report


if __name__ == "__main__":
    print(json.dumps(_time_pairs(sys.argv[1], has_ours=sys.argv[2] == "ours")))
