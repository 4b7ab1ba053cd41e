"""A job that sleeps in its iterations, as on a device, and in the gaps between them."""

from __future__ import annotations

import argparse
import json
import sys
import time


def main() -> None:
    """Says how many leases it had."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, required=True, help="of an iteration, and a gap")
    parser.add_argument("--iterations", type=int, required=True)
    arguments = parser.parse_args()
    import gpushare

    job = gpushare.register(name="gaps")
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    for _ in range(arguments.iterations):
        with job.iteration():
            time.sleep(arguments.seconds)
        time.sleep(arguments.seconds)
    leases = job.stats().leases
    job.close()
    print(json.dumps({"done": True, "leases": leases}), flush=True)


if __name__ == "__main__":
    main()
