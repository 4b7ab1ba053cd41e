"""The caching allocator against torch's default and the known fast ones: pairs, training steps.

A pair is one allocate and free. Beside torch's default stand mimalloc and jemalloc, loaded with
LD_PRELOAD under stock torch, where they are installed. Each side runs in a process of its own; the
sides take turns. No job is registered: this is the allocator alone.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import statistics
import sys
from typing import Any

from benchmarks import native
from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

SIZES = {"64B": 64, "4KiB": 4 << 10, "4MiB": 4 << 20}
THREADS = {"": 1, "_2threads": 2}
"""Threads that allocate at once, by what the rows' names say of it."""
PRELOADED = {"mimalloc": "libmimalloc2.0", "jemalloc": "libjemalloc2"}
"""Allocators of others, with the Debian package of each."""
ALLOCATOR = "--allocator"


def _time_pairs(library: str, *, has_ours: bool) -> dict[str, float]:
    """In a process of its own: median nanoseconds a pair, by size and threads."""
    if has_ours:
        import gpushare  # noqa: F401  # only on the side that is to have it
    import torch  # noqa: F401

    pairs = ctypes.CDLL(library).gs_time_pairs
    pairs.restype = ctypes.c_double
    pairs.argtypes = [ctypes.c_size_t] * 3
    return {
        size + threads: pairs(num_bytes, 300, num_threads)
        for threads, num_threads in THREADS.items()
        for size, num_bytes in SIZES.items()
    }


def _preloads(report: Report) -> dict[str, dict[str, str]]:
    """The environment of each allocator that is installed; a note for each that is not."""
    found: dict[str, dict[str, str]] = {}
    for name, package in PRELOADED.items():
        if library := ctypes.util.find_library(name):
            found[name] = {"LD_PRELOAD": library}
        else:
            report.notes.append(f"{name} is not installed: apt-get install {package}")
    return found


def _pairs(report: Report, env: dict[str, str], rounds: int) -> dict[str, dict[str, float]]:
    """Median nanoseconds a pair, by side, then by size and threads."""
    library = str(native.build("allocator_pairs"))
    preloads = _preloads(report)
    sides: dict[str, list[dict[str, Any]]] = {"ours": [], "stock": []}
    sides |= {name: [] for name in preloads}
    for _ in range(rounds):
        for side, seen in sides.items():
            its_env = env | preloads.get(side, {})
            with JobProcess(library, side, env=its_env, module="benchmarks.bench_allocator") as job:
                seen.append(job.say())
    return {
        side: {
            row: report.add_samples(f"pair_{row}_{side}_ns", [said[row] for said in seen])
            for row in seen[0]
        }
        for side, seen in sides.items()
    }


def _pair_figures(medians: dict[str, dict[str, float]]) -> dict[str, float]:
    """Ours over torch's default in one thread; over the others the worst of all rows."""
    ours = medians["ours"]
    over_stock = {size: ours[size] / medians["stock"][size] for size in SIZES}
    figures = {
        "pair_over_stock": statistics.geometric_mean(over_stock.values()),
        **{f"pair_over_stock_{size}": ratio for size, ratio in over_stock.items()},
    }
    for name in PRELOADED:
        if name in medians:
            figures[f"pair_over_{name}"] = max(ours[row] / medians[name][row] for row in ours)
    return figures


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
    """Pairs at 64 B, 4 KiB and 4 MiB in 1 and 2 threads; steps of the CNN and the transformer."""
    report = Report(name="allocator")
    rounds, steps = (1, 4) if quick else (5, 30)
    with private_coordinator() as env:
        medians = _pairs(report, env, rounds)
        cnn, is_cnn_equal = _steps(report, env, "cnn", rounds, steps)
        transformer, is_transformer_equal = _steps(report, env, "transformer", rounds, steps)
        report.figures = {
            **_pair_figures(medians),
            "step_over_stock_cnn": cnn,
            "step_over_stock_transformer": transformer,
            "bit_equal": float(is_cnn_equal and is_transformer_equal),
        }
    return report


if __name__ == "__main__":
    print(json.dumps(_time_pairs(sys.argv[1], has_ours=sys.argv[2] == "ours")))
