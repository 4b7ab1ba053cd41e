"""The CUDA device: whether this process shares one, what has to be so, and when we come in.

torch keeps its own caching allocator there; the compiled module supplies its segments. It comes in
when torch initialises CUDA, and not before: a process that starts the driver cannot fork children
that use CUDA, and many scripts do just that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gpushare._settings.devices import ANY, AUTO, CUDA, is_cpu, shown_wish
from gpushare._torch import mps
from gpushare.errors import GpushareError, say_once

if TYPE_CHECKING:
    from gpushare._settings.config import Config

TESTED_TORCH = ("2.9", "2.10", "2.11", "2.12", "2.13", "2.14")
"""The versions of torch with which the CUDA part was tested."""
_ANY_TORCH = "GPUSHARE_ANY_TORCH"
_CONF_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
_NCCL_REGISTERS = "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK"
_TRUE = {"1", "y", "yes", "t", "true"}
"""As torch reads it."""
_RELEASE_LOCK = "release_lock_on_cudamalloc"
_EXPANDABLE = "expandable_segments"


def is_wanted(config: Config) -> bool:
    """Tells whether this process shares a CUDA device; torch is loaded, and CUDA not started.

    Raises:
        GpushareError: CUDA is asked for, and this torch has none.
    """
    import torch

    if is_cpu(config.device):
        return False
    is_asked = config.device not in {AUTO, ANY}
    if torch.version.cuda is None:
        if is_asked:
            raise GpushareError(
                f"{shown_wish(config.device)}: torch {torch.__version__} was built without CUDA"
            )
        return False
    # By NVML where that can be had, so that the driver is not started.
    return is_asked or torch.cuda.device_count() > 0


def index(config: Config) -> int:
    """Returns the number, in torch's order, of the device that this process shares.

    The one that is named; else, of a program that torchrun started, its local rank's; else the
    first, which is the one that the coordinator has chosen where it was asked.
    """
    name = (
        "" if config.device in {AUTO, ANY} else config.device.removeprefix(CUDA).removeprefix(":")
    )
    if name and not name.isdigit():
        return _index_of(name, shown_wish(config.device))
    import torch

    if name:
        num_devices = torch.cuda.device_count()
        if int(name) >= num_devices:
            raise GpushareError(
                f"{shown_wish(config.device)}: torch sees {num_devices} CUDA devices, from 0"
            )
        return int(name)
    rank = os.environ.get("LOCAL_RANK", "")
    is_rank = rank.isdigit() and int(rank) < torch.cuda.device_count()
    return int(rank) if is_rank else 0


def _index_of(uuid: str, shown: str) -> int:
    import torch

    from gpushare import _native

    native = _native.load()
    found = [native.cuda_device_info(i) for i in range(torch.cuda.device_count())]
    for device in found:
        if device["uuid"] == uuid:
            return int(device["index"])
    known = ", ".join(str(device["uuid"]) for device in found) or "no device"
    raise GpushareError(f"{shown} is not here; torch sees {known}")


def when_started(callback: Callable[[], None]) -> None:
    """Calls back once torch has initialised CUDA, before anything is allocated there."""
    import torch

    torch.cuda._lazy_call(callback)  # type: ignore[no-untyped-call]


def is_started() -> bool:
    """Tells whether torch has initialised CUDA."""
    import torch

    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def limit_sms(config: Config) -> None:
    """Has CUDA give this process its part of the SMs, where there is one and CUDA can."""
    import torch

    mps.limit_sms(config.sm_share, is_started=torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def start() -> None:
    """Has torch initialise CUDA, if it has not yet; what ``when_started`` was told comes first.

    Raises:
        GpushareError: torch cannot, and says why; or what it called back raised this.
    """
    import torch

    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except (RuntimeError, AssertionError, torch.cuda.DeferredCudaCallError) as error:
        if isinstance(error.__cause__, GpushareError):
            raise error.__cause__ from None
        reason = str(error).partition("\n")[0]
        raise GpushareError(f"torch cannot start CUDA: {reason}") from error


def prepare() -> None:
    """Sets what torch's allocator needs, and refuses what cannot be; before anything is allocated.

    Raises:
        GpushareError: This torch, or how it is set up, cannot be served; the text says why.
    """
    import torch

    _refuse_untested(torch.__version__)
    for variable in _CONF_VARIABLES:
        refuse_settings(os.environ.get(variable, ""), variable)
    _adjust_settings()
    backend = torch.cuda.get_allocator_backend()
    if backend != "native":
        raise GpushareError(
            f"torch's CUDA allocator is {backend}: gpushare supplies the segments of the native "
            "one. Remove backend: from PYTORCH_ALLOC_CONF, and change_current_allocator"
        )


def refuse_settings(conf: str, where: str) -> None:
    """Refuses a setting of torch's allocator that bypasses cudaMalloc.

    Args:
        conf: As in PYTORCH_ALLOC_CONF: "key:value,key:value".
        where: What to name in the error.

    Raises:
        GpushareError: One of them does.
    """
    if "backend:cudamallocasync" in _plain(conf).lower():
        raise GpushareError(
            f"{where} sets backend:cudaMallocAsync, which takes its memory past cudaMalloc, so "
            "gpushare cannot move it. Remove it"
        )


def say_without_effect(config: Config, *, can_reach: bool) -> None:
    """Says once which settings of this process change nothing on a CUDA device, if any do.

    Args:
        config: The settings.
        can_reach: Whether the device can use the host tier in place, and may.
    """
    if config.overflow and not can_reach:
        say_once(
            "GPUSHARE_OVERFLOW: no effect, since this CUDA device cannot use memory of the host in "
            "place, or GPUSHARE_REACHABLE=off forbids it"
        )
    without = {
        "GPUSHARE_LANES": config.lanes == "on",
        "GPUSHARE_LANE_SCRUB": config.lane_scrub,
        "GPUSHARE_LANE_STRICT": config.lane_strict,
    }
    names = ", ".join(name for name, is_set in without.items() if is_set)
    if names:
        say_once(
            f"{names}: no effect on a CUDA device, where no memory is shared between iterations"
        )


def is_passed_through(config: Config) -> bool:
    """Returns whether torch's CUDA memory stays the runtime's own; says so once if it does.

    Memory that NCCL has registered (`TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK`) is known to
    network cards and to other GPUs by where it is, so it may not move.
    """
    reason = ""
    if config.passthrough == "on":
        reason = "GPUSHARE_PASSTHROUGH=on"
    elif config.passthrough == "auto" and os.environ.get(_NCCL_REGISTERS, "").lower() in _TRUE:
        reason = f"{_NCCL_REGISTERS} is set"
    if reason:
        say_once(f"{reason}: this job takes turns, and its CUDA memory never moves")
    return bool(reason)


def _plain(conf: str) -> str:
    """Without blanks, which torch allows around keys and values."""
    return re.sub(r"\s", "", conf)


def _refuse_untested(version: str) -> None:
    found = ".".join(version.split(".")[:2])
    if found not in TESTED_TORCH and os.environ.get(_ANY_TORCH) != "1":
        raise GpushareError(
            f"torch {version} was not tested with gpushare on CUDA (tested: "
            f"{', '.join(TESTED_TORCH)}); {_ANY_TORCH}=1 tries it all the same"
        )


def _adjust_settings() -> None:
    """Sets two settings of torch's allocator; nothing has been allocated yet.

    torch lets go of the allocator's lock while a segment is asked for: whoever waits for room would
    stop every other thread of the process else, and with it what makes room. And expandable
    segments are switched off, with a line: torch maps their memory past cudaMalloc.
    """
    variables, set_settings = _torchs_settings()
    present = [os.environ[name] for name in variables if os.environ.get(name)]
    text = _plain(present[-1]) if present else ""
    if _RELEASE_LOCK in text and f"{_RELEASE_LOCK}:true" not in text.lower():
        raise GpushareError(f"{_RELEASE_LOCK} is off in PYTORCH_ALLOC_CONF: gpushare needs it on")
    parts = [text, f"{_RELEASE_LOCK}:True"]
    # torch may have read it from the variable that it reads first.
    for name in _CONF_VARIABLES:
        if f"{_EXPANDABLE}:true" in _plain(os.environ.get(name, "")).lower():
            say_once(
                f"{_EXPANDABLE}:True of {name} is switched off: gpushare could not move such "
                "memory. gpushare's own does not fragment when it moves"
            )
            left = re.sub(rf"{_EXPANDABLE}:true,?", "", text, flags=re.IGNORECASE)
            parts[0] = left.strip(",")
            parts[2:] = [f"{_EXPANDABLE}:False"]
    set_settings(",".join(part for part in parts if part))


def _torchs_settings() -> tuple[Sequence[str], Callable[[str], None]]:
    """Returns the variables that this torch's CUDA allocator reads, and what sets it later."""
    import torch

    name = "_accelerator_setAllocatorSettings"
    if hasattr(torch._C, name):
        return _CONF_VARIABLES, getattr(torch._C, name)
    # Torch 2.9 has settings of CUDA's allocator alone.
    older = "_cuda_cudaCachingAllocator_set_allocator_settings"
    return _CONF_VARIABLES[1:], getattr(torch._C, older)
