"""Does CUDA start under MPS here, and what does that mean for jobs?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gpushare._torch.mps import SMS_VARIABLE, folder, is_served
from gpushare.cli.checks.finding import Finding

_MEMORY = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"


def check_mps(environment: Mapping[str, str], root: Path = Path("/")) -> list[Finding]:
    """Looks for the control daemon that CUDA would find; says nothing where there is none.

    Args:
        environment: With the variables of MPS that a job here would have.
        root: What stands before proc; another folder in tests.
    """
    if not is_served(environment, root):
        return []
    losses = ["a process that faults on the device ends all others under it"]
    advice = "To keep jobs apart end it: echo quit | nvidia-cuda-mps-control"
    if percentage := environment.get(SMS_VARIABLE):
        losses.append(f"a job alone there has a part of its cores ({SMS_VARIABLE}={percentage})")
    if limit := environment.get(_MEMORY):
        losses.append(f"the driver may not say how much memory is free ({_MEMORY}={limit})")
    if len(losses) > 1:
        advice += "; or unset what limits jobs, for which there is GPUSHARE_CAPACITY"
    text = f"jobs run under it ({folder(environment)}): " + "; ".join(losses)
    return [Finding("mps", "warn", text, advice)]
