"""Leaves torch's process group so that the process may end.

A thread of gloo may still hold the last collective when the interpreter goes down. It then waits
for the interpreter's lock, which ends it, and with it the process: "terminate called without an
active exception". Stock torch does so on a loaded machine
(https://github.com/pytorch/pytorch/issues/190489).
"""

from __future__ import annotations

import time
from pathlib import Path

import torch.distributed as dist

_THREAD = "pt_gloo_runloop"


def leave_group() -> None:
    """Destroys the process group, and returns once gloo's threads hold nothing of it."""
    dist.destroy_process_group()
    while True:
        # Whoever waits for the interpreter's lock gets it meanwhile, and runs.
        time.sleep(0.01)
        if all(state == "S" for state in _thread_states()):
            return


def _thread_states() -> list[str]:
    """State letters of gloo's threads as in /proc, such as "S" for one that sleeps."""
    found = [path.read_text() for path in Path("/proc/self/task").glob("*/stat")]
    return [text.rpartition(")")[2].split()[0] for text in found if f"({_THREAD})" in text]
