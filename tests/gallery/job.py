"""Runs a program as `gpushare run -- python PROGRAM` does, in a forked process.

Without GPUSHARE_RUN=1 it runs on stock torch.
"""

from __future__ import annotations

import os
import runpy
import sys

if __name__ == "__main__":
    program = sys.argv[1]
    sys.argv[:] = [program]
    if os.environ.get("GPUSHARE_RUN"):
        from gpushare import auto

        auto.enable()
    runpy.run_path(program, run_name="__main__")
