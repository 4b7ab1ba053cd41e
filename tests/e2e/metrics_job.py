"""A job that trains with its own memory until a line on stdin says what comes next.

At "hold" it begins one more iteration and stays inside until there is one more line; at anything
else it closes its part. Its process goes on until stdin is closed.
"""

from __future__ import annotations

import argparse
import json
import select
import sys
from contextlib import nullcontext


def main() -> None:
    """--mib of memory that lives as long as the job; --profile FILE for torch.profiler's trace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--mib", type=int, required=True)
    parser.add_argument("--profile")
    arguments = parser.parse_args()
    import torch
    from torch import profiler

    import gpushare

    torch.set_num_threads(1)
    job = gpushare.register(name=arguments.name)
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    tensor = None
    profile = profiler.profile() if arguments.profile else None
    with profile or nullcontext():
        # The other side writes a line when all lines before it were read: nothing is buffered here.
        while not select.select([sys.stdin], [], [], 0)[0]:
            with job.iteration():
                if tensor is None:
                    tensor = torch.zeros(arguments.mib << 18)
                tensor += 1
    if profile:
        profile.export_chrome_trace(arguments.profile)
    if sys.stdin.readline().strip() == "hold":
        with job.iteration():
            print(json.dumps({"holds": True}), flush=True)
            sys.stdin.readline()
    job.close()
    print(json.dumps({"done": True}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
