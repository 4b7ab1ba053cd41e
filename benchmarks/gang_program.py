"""Ranks whose steps are nothing but an all-reduce; each says when its leases began and ended.

Started as `JobProcess` (processes.py), with RANK and WORLD_SIZE where `--init` says how ranks meet;
else it is a single job. The result is a list of leases, as the clock's seconds of the first step's
begin and of the last step's end.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

import torch
import torch.distributed as dist

import gpushare


def main() -> None:
    """Iterates, and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--init", default="", help="how ranks find each other, as of torch")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.init:
        rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        dist.init_process_group("gloo", init_method=given.init, rank=rank, world_size=ranks)
    job = gpushare.register()
    value = torch.ones(1)
    sys.stdout.write('{"ready": true}\n')
    sys.stdout.flush()
    sys.stdin.readline()
    leases: list[list[float]] = []
    num_leases = 0
    for _ in range(given.steps):
        with job.iteration():
            began = time.monotonic()
            if given.init:
                dist.all_reduce(value)
            else:
                value.add_(1)
                time.sleep(0.0005)
        ended = time.monotonic()
        if job.stats().leases != num_leases:
            num_leases = job.stats().leases
            leases.append([began, ended])
        leases[-1][1] = ended
    if given.init:
        dist.barrier()
        dist.destroy_process_group()
    sys.stdout.write(json.dumps({"done": True, "leases": leases}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
