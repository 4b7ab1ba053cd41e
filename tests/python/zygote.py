"""Runs scripts in processes forked from one that has imported torch, which costs a second or two.

Reads one JSON object a line: {"script", "out", "env"}; answers with the exit status as waitpid
gives it. A script sees stock torch, loaded, as after `import torch`; it gets an ordinary end.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import sys

import torch


def main() -> str:
    """Serves until stdin ends; in a child, the script to run instead."""
    # The first step of any optimizer imports a great deal more.
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1).step()
    # Else each child's end walks, and so copies, all of torch's objects: a second of its own.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(request)
            return str(request["script"])
        _, status = os.waitpid(pid, 0)
        print(status, flush=True)
    return ""


def _become(request: dict[str, object]) -> None:
    os.environ.clear()
    os.environ.update(request["env"])
    for stream, name in ((1, "stdout"), (2, "stderr")):
        path = f"{request['out']}.{name}"
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.path[:0] = [os.environ["PYTHONPATH"]]
    sys.argv[:] = [request["script"]]


if __name__ == "__main__":
    script = main()
    if script:
        runpy.run_path(script, run_name="__main__")
