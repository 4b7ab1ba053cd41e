"""Figures: of the job, and of the memory of CPU tensors under torch.cuda's names."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from gpushare.errors import GpushareError

_NOTHING: dict[Any, Any] = {"int": 0, "bool": False, "float": 0.0, "str": ""}
"""By the names of the types of figures."""


@dataclass(frozen=True, kw_only=True)
class JobStats:
    """What this process has done and holds, since it attached to the coordinator."""

    job: int
    """The job's number at its coordinator; 0 if unmanaged."""
    is_managed: bool
    """Whether a coordinator gives this process its room and leases."""
    is_registered: bool
    """Whether it asks for leases."""
    unmanaged_reason: str
    """Why it is unmanaged; "" if it is managed."""
    lease_state: str
    """kIdle, kWanted, kOpenBusy, kOpenGap or kClosing."""
    term: int
    """The number of the last lease."""
    iterations: int
    """Iterations that have ended."""
    optimizer_steps: int
    """Iterations that an optimizer's step has ended."""
    leases: int
    """Leases that were opened."""
    reconnects: int
    """Times that a lost coordinator was found again."""
    interruptions: int
    """Iterations that stopped at a safepoint, for a job that could not wait; each time counts."""
    num_cpus: int
    """CPUs that its threads keep to now, beside other jobs on the CPU; 0 for all."""
    busy_seconds: float
    """Time inside iterations."""
    waited_seconds: float
    """Time in the gate, for a lease."""
    moving_seconds: float
    """Time in the gate with a lease, while memory came back."""
    held_seconds: float
    """Time that a lease was open."""
    room_bytes: int
    """The most device memory it may have backed now."""
    resident_bytes: int
    """Backed bytes now."""
    spilled_bytes: int
    """Bytes in the host tier now."""
    live_bytes: int
    """Bytes of live tensors, resident or spilled."""
    outside_bytes: int
    """Of tensors made while no lease was open: backed, or spilled."""
    lane_bytes: int
    """Bytes shared with other jobs of the lane, which use them while their leases are open."""
    donated_bytes: int
    """Of the backed bytes: shared before, and the job's own since a tensor outlived its iteration
    there."""
    overflow_bytes: int
    """Bytes that were refused room and are used in the host tier."""
    dropped_total_bytes: int
    """Free bytes given up so far, without a copy."""
    spilled_total_bytes: int
    """Live bytes copied to the host tier so far."""
    restored_total_bytes: int
    """Bytes copied back so far."""
    peak_backed_bytes: int
    """Most bytes backed in any iteration."""

    @property
    def memory(self) -> dict[str, int]:
        """The sizes among these figures, in bytes, by their names without ``_bytes``."""
        suffix = "_bytes"
        return {
            name.removesuffix(suffix): size
            for name, size in vars(self).items()
            if name.endswith(suffix)
        }


def job_stats() -> JobStats:
    """Returns the figures of this process.

    All are 0 where gpushare could not be installed, because of a wrong setting for example. A
    program that prints them must go on, as its training does.
    """
    from gpushare import _native

    try:
        return JobStats(**_native.load().job_stats())
    except GpushareError as error:
        nothing: dict[str, Any] = {each.name: _NOTHING[each.type] for each in fields(JobStats)}
        return JobStats(**nothing | {"unmanaged_reason": str(error), "lease_state": "kIdle"})


def memory_stats() -> dict[str, int]:
    """Returns the allocator's figures under the keys of ``torch.cuda.memory_stats``.

    Sizes in bytes. Empty where gpushare's allocator is not installed.
    """
    native = _installed()
    return dict(native.memory_stats()) if native else {}


def memory_snapshot() -> list[dict[str, Any]]:
    """Returns the segments and their blocks, with the keys of ``torch.cuda.memory_snapshot``."""
    native = _installed()
    return list(native.memory_snapshot()) if native else []


def memory_allocated() -> int:
    """Returns the bytes of live CPU tensors that gpushare's allocator made."""
    return memory_stats().get("allocated_bytes.all.current", 0)


def max_memory_allocated() -> int:
    """Returns the most bytes of such tensors since the start or ``reset_peak_memory_stats``."""
    return memory_stats().get("allocated_bytes.all.peak", 0)


def memory_reserved() -> int:
    """Returns the bytes backed by device memory, cached free memory included."""
    return memory_stats().get("reserved_bytes.all.current", 0)


def reset_peak_memory_stats() -> None:
    """Lets the peaks start from the present figures."""
    native = _installed()
    if native:
        native.reset_peak_memory_stats()


def reset_accumulated_memory_stats() -> None:
    """Lets the sums of allocations and frees start at 0."""
    native = _installed()
    if native:
        native.reset_accumulated_memory_stats()


def empty_cache() -> int:
    """Gives free memory back to the device; returns the bytes given back."""
    native = _installed()
    return int(native.empty_cache()) if native else 0


def _installed() -> Any:
    from gpushare import _native

    return _native.load() if _native.is_installed() else None
