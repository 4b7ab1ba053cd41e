"""A job of the GPU tests: `benchmarks.job`, whose results are the same bits each time."""

from __future__ import annotations

import torch

from benchmarks import job
from benchmarks.device import machine

if __name__ == "__main__":
    # Not an error where there is none: what our models use has no order that could differ.
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    machine.start()
    job.main()
