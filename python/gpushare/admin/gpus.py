"""The GPUs of this machine, as ``nvidia-smi`` tells them."""

from __future__ import annotations

import shutil
import subprocess
from typing import NamedTuple

from gpushare.devices import CUDA_PREFIX
from gpushare.errors import GpushareError

_QUERY = "uuid,memory.total,mig.mode.current"


class GpuError(GpushareError):
    """The machine's devices are to be said by hand."""


class Gpu(NamedTuple):
    """One of them."""

    device: str
    """Its name: "cuda:GPU-..."."""
    memory_mib: int


def find_gpus() -> list[Gpu]:
    """Returns the GPUs; none where there is no ``nvidia-smi``.

    Raises:
        GpuError: It does not answer, or a GPU is divided, so that its parts are the devices.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
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
