"""A job that names no device, or one, and keeps it for a given time in all.

An iteration sleeps, as one does whose device is at work: so several devices of one CPU are at work
at the same time. The job says ready before it registers, so that nothing has been placed yet. Its
last line has when it began and ended, on CLOCK_MONOTONIC. The process ends then, and with it goes
the memory that others may wait for.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

ITERATION_SECONDS = 0.05


def main() -> None:
    """Runs the job; protocol as in `benchmarks.job`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=float, required=True, help="seconds of all iterations")
    parser.add_argument("--mebibytes", type=int, required=True, help="that it keeps")
    arguments = parser.parse_args()
    import torch

    import gpushare

    torch.set_num_threads(1)
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    begin = time.monotonic()
    iterations = max(1, round(arguments.work / ITERATION_SECONDS))
    job = gpushare.register(name="placed", iterations=iterations)
    with job.iteration():
        kept = torch.zeros(arguments.mebibytes, 1 << 18)
    for _ in range(iterations - 1):
        with job.iteration():
            kept[:, 0] += 1
            time.sleep(ITERATION_SECONDS)
    end = time.monotonic()
    job.close()
    print(json.dumps({"done": True, "begin": begin, "end": end}), flush=True)


if __name__ == "__main__":
    main()
