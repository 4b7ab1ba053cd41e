"""The GPUs of this machine, as ``nvidia-smi`` tells them."""

from __future__ import annotations

import shutil
import subprocess
from typing import NamedTuple

from gpushare._settings.devices import CUDA_PREFIX
from gpushare.errors import GpushareError

_QUERY = "uuid,memory.total,mig.mode.current"
_NO_DEVICES = 6
"""The exit code of ``nvidia-smi`` where the driver runs and there is no GPU."""
_PATIENCE_SECONDS = 60.0
"""A driver that is not kept loaded needs several seconds for each GPU."""


class GpuError(GpushareError):
    """``nvidia-smi`` did not say which devices there are."""


class Gpu(NamedTuple):
    """One of them."""

    device: str
    """Its name: "cuda:GPU-..."."""
    memory_mib: int


def find_gpus() -> list[Gpu]:
    """Returns the GPUs; none where there is no ``nvidia-smi``, or where it finds none.

    Raises:
        GpuError: It does not answer, or a GPU is divided, so that its parts are the devices.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise GpuError(
            f"nvidia-smi did not answer within {_PATIENCE_SECONDS:g} s: say the devices with "
            "--device, and --capacity"
        ) from error
    if ended.returncode == _NO_DEVICES:
        return []
    if ended.returncode != 0:
        said = (ended.stderr or ended.stdout).strip()
        raise GpuError(f"nvidia-smi does not answer ({said}): say the devices with --device")
    return [_parse(line) for line in ended.stdout.splitlines() if line.strip()]


def _parse(line: str) -> Gpu:
    fields = [text.strip() for text in line.split(",")]
    if len(fields) != 3 or not fields[1].isdigit():
        raise GpuError(f"nvidia-smi says {line!r}: say the devices and --capacity by hand")
    uuid, memory_mib, mig = fields
    if mig == "Enabled":
        raise GpuError(
            f"{uuid} is divided (MIG): say its parts as nvidia-smi -L names them, each with "
            f"--device {CUDA_PREFIX}MIG-..., and --capacity"
        )
    return Gpu(CUDA_PREFIX + uuid, int(memory_mib))
