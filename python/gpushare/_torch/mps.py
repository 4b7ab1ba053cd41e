"""MPS, NVIDIA's multi-process service: whether it runs here, and a job's part of the SMs under it.

Nothing here imports torch.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from gpushare.errors import say_once

SMS_VARIABLE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
_DEFAULT_FOLDER = "/tmp/nvidia-mps"


def folder(environment: Mapping[str, str]) -> Path:
    """Returns where CUDA looks for MPS's control daemon.

    Args:
        environment: With the variables of MPS that a job would have.
    """
    return Path(environment.get("CUDA_MPS_PIPE_DIRECTORY") or _DEFAULT_FOLDER)


def is_served(environment: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Tells whether there is a control pipe, and a process behind it as far as that can be seen.

    Args:
        environment: As of ``folder``.
        root: What stands before proc; another folder in tests.
    """
    place = folder(environment)
    try:
        if not stat.S_ISFIFO((place / "control").stat().st_mode):
            return False
    except OSError:
        return False
    try:
        pid = (place / "nvidia-cuda-mps-control.pid").read_text().strip()
    except OSError:
        return True  # older daemons write none
    # To open the pipe would show it too, and the daemon would read its end.
    return not pid.isdigit() or (root / "proc" / pid).exists()


def limit_sms(
    share: float, *, is_started: bool, environment: MutableMapping[str, str] | None = None
) -> None:
    """Has CUDA give this process that part of the device's SMs; says once where it cannot.

    Without MPS processes take turns on all SMs, whatever is set. With it CUDA reads the part once,
    when it starts.

    Args:
        share: Of all SMs, above 0 and at most 1; 0: as it is.
        is_started: Whether CUDA has started in this process.
        environment: This process's unless given.
    """
    environment = os.environ if environment is None else environment
    wanted = f"{share * 100:g}"
    if not share or environment.get(SMS_VARIABLE) == wanted:
        return
    if is_started:
        say_once(
            f"GPUSHARE_SM_SHARE={share:g}: no effect, since CUDA has started already, and reads it "
            "then. Import gpushare first, or use gpushare run"
        )
        return
    environment[SMS_VARIABLE] = wanted
    if not is_served(environment):
        say_once(
            f"GPUSHARE_SM_SHARE={share:g}: no effect, unless MPS runs where this process does not "
            f"see it (no control daemon at {folder(environment)}): without it processes take turns "
            "on all SMs. To start it: nvidia-cuda-mps-control -d"
        )
