"""The lines that ``%gpushare`` prints: this process's job, as its coordinator sees it."""

from __future__ import annotations

from typing import Any

from gpushare import _native
from gpushare._coordinator.client import CoordinatorClient
from gpushare.cli._targets.jobs import label
from gpushare.cli.units import format_bytes
from gpushare.errors import GpushareError
from gpushare.report import format_time


def describe(*, had_job: bool) -> str:
    """Returns a line on this process's job, and a line on its device and the other jobs there.

    Args:
        had_job: Whether this process has registered a job, which may have been closed since.
    """
    from gpushare.job import current

    if not _native.is_installed():
        return "gpushare: no job yet. The first cell after `import torch` makes this kernel one"
    job = current()
    if job is None and had_job:
        return "gpushare: the kernel's job was closed. gpushare.register() makes a new one"
    if job is None:
        return "gpushare: no job yet. The next cell with code makes this kernel one"
    if not job.is_managed:
        reason = job.stats().unmanaged_reason or "it found no coordinator"
        return f"gpushare: this kernel is unmanaged: {reason}"
    try:
        report = CoordinatorClient(_native.sockets()).status()
    except GpushareError as error:
        return f"gpushare: {error}"
    for device in report["devices"]:
        for row in device["jobs"]:
            if row["job"] == job.number:
                return f"gpushare: {_job_line(row)}\ngpushare: {_device_line(device, row)}"
    return f"gpushare: the coordinator knows no job {job.number} any more"


def _job_line(row: dict[str, Any]) -> str:
    resident = row["resident_bytes"] + row["lane_bytes"]
    return (
        f"{label(row)}, {row['priority']}: {format_bytes(resident)} on the device, "
        f"{format_bytes(row['spilled_bytes'])} in host memory; {row['iterations']} iterations, "
        f"waited {format_time(row['waited_seconds'])}"
    )


def _device_line(device: dict[str, Any], own: dict[str, Any]) -> str:
    free = f"{format_bytes(device['free_bytes'])} of {format_bytes(device['capacity_bytes'])} free"
    others = [f"{label(row)} {row['state']}" for row in device["jobs"] if row is not own]
    return f"{device['device']}, {free}; {', '.join(others) or 'no other job'}"
