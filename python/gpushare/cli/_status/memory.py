"""The screen of ``gpushare status --memory``: where each job's bytes are, and what was moved."""

from __future__ import annotations

from typing import Any

from gpushare._settings.devices import label
from gpushare.cli._status.table import GAP, align, host_text, shorten
from gpushare.cli.units import format_bytes
from gpushare.printable import printable
from gpushare.users import user_name

_COLUMNS = {
    "ROOM": "room_bytes",
    "RESIDENT": "resident_bytes",
    "SPILLED": "spilled_bytes",
    "LIVE": "live_bytes",
    "OUTSIDE": "outside_bytes",
    "SHARED": "lane_bytes",
    "DONATED": "donated_bytes",
    "OVERFLOW": "overflow_bytes",
    "NEEDS": "need_bytes",
    "PERSISTENT": "persistent_bytes",
    "EPHEMERAL": "ephemeral_bytes",
    "DROPPED": "dropped_total_bytes",
    "SPILLED SO FAR": "spilled_total_bytes",
    "RESTORED": "restored_total_bytes",
}
_FITS = {
    "all": "all of it fits at once",
    "one_ephemeral": "it fits with one job's ephemeral memory at a time",
    "persistent_in_turns": "so persistent memory is spilled in turns",
}
_MOVES = {"revoke", "released", "room", "denied", "host_full"}
_MOST_MOVES = 8


def render_memory(report: dict[str, Any]) -> str:
    """Renders the bytes in a coordinator's report.

    Args:
        report: As ``gpushare status --json`` prints it.
    """
    lines: list[str] = []
    for device in report["devices"]:
        lines += [
            _device_line(device),
            *_fit_lines(device),
            *_plan_lines(device),
            *_job_lines(device["jobs"]),
            *_held_back_lines(device["jobs"]),
        ]
    lines += [
        f"pid {process['pid']} of {user_name(process['uid'])} is unmanaged and holds "
        f"{format_bytes(process['resident_bytes'])}"
        for process in report["unmanaged"]
    ]
    moves = [decision for decision in report["decisions"] if decision["what"] in _MOVES]
    lines += [_move_line(decision) for decision in moves[-_MOST_MOVES:]]
    return "\n".join(lines)


def _device_line(device: dict[str, Any]) -> str:
    parts = [
        f"{label(device['device'])} {format_bytes(device['capacity_bytes'])}",
        f"free {format_bytes(max(device['free_bytes'], 0))}",
        f"shared {format_bytes(sum(lane['pool_bytes'] for lane in device['lanes']))}",
        host_text(device),
    ]
    if device.get("transfer_budget_bytes_per_second"):
        parts.append(f"transfers {format_bytes(device['transfer_budget_bytes_per_second'])}/s")
    return (GAP + " ").join(parts)


def _fit_lines(device: dict[str, Any]) -> list[str]:
    """What the jobs need, and how that fits the device."""
    admission = device.get("admission")
    if not device["jobs"] or admission is None:
        return []
    persistent, ephemeral, largest = (
        format_bytes(admission[f"{key}_bytes"])
        for key in ("persistent", "ephemeral", "largest_ephemeral")
    )
    unknown = admission["jobs_unknown"]
    return [
        f"jobs need {persistent} persistent and {ephemeral} ephemeral memory, at most {largest} "
        f"of one job: {_FITS[admission['fit']]}"
        + (f"; not known yet of {unknown}" if unknown else "")
    ]


def _plan_lines(device: dict[str, Any]) -> list[str]:
    """What was to be moved between jobs, and what was."""
    if not device.get("asked_total_bytes"):
        return []
    asked, planned, dropped, spilled = (
        format_bytes(device[f"{key}_total_bytes"])
        for key in ("asked", "planned_spill", "dropped", "spilled")
    )
    return [
        f"asked of jobs so far {asked}: {planned} of it by spilling as planned, "
        f"{spilled} spilled and {dropped} dropped in fact"
    ]


def _job_lines(jobs: list[dict[str, Any]]) -> list[str]:
    if not jobs:
        return ["no jobs"]
    heads = ("JOB", "USER", "NAME", "STATE", *_COLUMNS)
    rows = [
        (
            str(job["job"]),
            user_name(job["uid"]),
            shorten(job["name"] or f"pid {job['pid']}"),
            job["state"],
            *(_size(job.get(key)) for key in _COLUMNS.values()),
        )
        for job in jobs
    ]
    return align([heads, *rows])


def _held_back_lines(jobs: list[dict[str, Any]]) -> list[str]:
    """Who copies more slowly than it could, so that another job computes undisturbed."""
    return [
        f"job {job['job']} has bytes to copy that nobody waits for: "
        f"at most {format_bytes(job['transfer_bytes_per_second'])} a second while another computes"
        for job in jobs
        if job.get("is_held_back")
    ]


def _size(size: int | None) -> str:
    return "?" if size is None else format_bytes(size)


def _move_line(decision: dict[str, Any]) -> str:
    text = f"{decision['what']}: {decision['reason']}"
    return printable(f"{decision['seconds_ago']:.1f} s ago, job {decision['job']}, {text}")
