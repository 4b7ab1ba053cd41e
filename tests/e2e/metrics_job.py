"""A job that trains with its own memory, and then does what the next line on stdin says.

After some iterations it parks and says so. At "hold" it begins an iteration and stays inside until
there is one more line, at "train" it does one as soon as it gets a lease. Then it ends.
"""

from __future__ import annotations

import argparse
import json
import sys


def main() -> None:
    """--mib of memory that lives as long as the job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--mib", type=int, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    arguments = parser.parse_args()
    import torch

    import gpushare

    torch.set_num_threads(1)
    job = gpushare.register(name=arguments.name)
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    tensor = None
    for _ in range(arguments.iterations):
        with job.iteration():
            if tensor is None:
                tensor = torch.zeros(arguments.mib << 18)
            tensor += 1
    job.park()
    print(json.dumps({"trained": arguments.iterations}), flush=True)
    wish = sys.stdin.readline().strip()
    with job.iteration():
        if wish == "hold":
            print(json.dumps({"holds": True}), flush=True)
            sys.stdin.readline()
    job.close()
    print(json.dumps({"done": True}), flush=True)


if __name__ == "__main__":
    main()
