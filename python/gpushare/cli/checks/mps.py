"""Does CUDA start under MPS here, and what does that mean for jobs?"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

from gpushare.cli.checks.finding import Finding

_DEFAULT_FOLDER = "/tmp/nvidia-mps"
_THREADS = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
_MEMORY = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"


def check_mps(environment: Mapping[str, str], root: Path = Path("/")) -> list[Finding]:
    """Looks for the control daemon that CUDA would find; says nothing where there is none.

    Args:
        environment: With the variables of MPS that a job here would have.
        root: What stands before proc; another folder in tests.
    """
    folder = Path(environment.get("CUDA_MPS_PIPE_DIRECTORY") or _DEFAULT_FOLDER)
    if not _is_served(folder, root):
        return []
    losses = ["a process that faults on the device ends all others under it"]
    advice = "To keep jobs apart end it: echo quit | nvidia-cuda-mps-control"
    if percentage := environment.get(_THREADS):
        losses.append(f"a job alone there has a part of its cores ({_THREADS}={percentage})")
    if limit := environment.get(_MEMORY):
        losses.append(f"the driver may not say how much memory is free ({_MEMORY}={limit})")
    if len(losses) > 1:
        advice += "; or unset what limits jobs, for which there is GPUSHARE_CAPACITY"
    return [Finding("mps", "warn", f"jobs run under it ({folder}): " + "; ".join(losses), advice)]


def _is_served(folder: Path, root: Path) -> bool:
    """Whether there is a control pipe, and a process behind it as far as that can be seen."""
    try:
        if not stat.S_ISFIFO((folder / "control").stat().st_mode):
            return False
    except OSError:
        return False
    try:
        pid = (folder / "nvidia-cuda-mps-control.pid").read_text().strip()
    except OSError:
        return True  # older daemons write none
    # To open the pipe would show it too, and the daemon would read its end.
    return not pid.isdigit() or (root / "proc" / pid).exists()
