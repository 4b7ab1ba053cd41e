"""A Ray cluster of several nodes on this machine, as a process that ends it with its stdin.

    python -m tests.support.ray_cluster FOLDER

Each node has a runtime folder of its own in FOLDER, so the coordinators of two nodes are strangers
to each other, as on two hosts. What it prints, and what it reads:

    {"address": ..., "runtime": FOLDER}    a line for each node that is there, once it is there
    add                                    starts one more
    lose                                   ends the last one by force
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

CPUS = 4
"""What Ray thinks that a node has: a rank and the workers of a restart, of two runs."""


def _add(cluster: Cluster, folder: Path, number: int) -> Any:
    runtime = folder / f"node{number}"
    runtime.mkdir(mode=0o700)
    settings: dict[str, Any] = {"num_cpus": CPUS, "env_vars": {"XDG_RUNTIME_DIR": str(runtime)}}
    if number == 0:
        settings |= {"include_dashboard": False}
    node = cluster.add_node(**settings)
    print(json.dumps({"address": cluster.address, "runtime": str(runtime)}), flush=True)
    return node


def main() -> None:
    """Starts a node, and one more for each line."""
    folder = Path(sys.argv[1])
    cluster = Cluster()
    try:
        nodes = [_add(cluster, folder, 0)]
        for line in sys.stdin:
            if line == "add\n":
                nodes.append(_add(cluster, folder, len(nodes)))
            else:
                cluster.remove_node(nodes.pop(), allow_graceful=False)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
