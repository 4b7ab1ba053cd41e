"""The screen of ``gpushare status --memory``: where each job's bytes are, and what was moved."""

from __future__ import annotations

from typing import Any

from gpushare._settings.devices import label
from gpushare.cli._screen.colours import NOTE, moved_style, state_style
from gpushare.cli._screen.columns import Column, fit_lines, no_style
from gpushare.cli._screen.line import Line, Span, flow, wrap
from gpushare.cli._status.screen import host_part, unmanaged_lines
from gpushare.cli.units import format_bytes
from gpushare.printable import printable
from gpushare.users import user_name, with_user_names

_SIZES = {
    "ROOM": ("room_bytes", 3),
    "RESIDENT": ("resident_bytes", 0),
    "SPILLED": ("spilled_bytes", 0),
    "LIVE": ("live_bytes", 7),
    "OUTSIDE": ("outside_bytes", 10),
    "SHARED": ("lane_bytes", 6),
    "DONATED": ("donated_bytes", 13),
    "OVERFLOW": ("overflow_bytes", 12),
    "NEEDS": ("need_bytes", 1),
    "PERSISTENT": ("persistent_bytes", 4),
    "EPHEMERAL": ("ephemeral_bytes", 5),
    "DROPPED": ("dropped_total_bytes", 11),
    "SPILLED SO FAR": ("spilled_total_bytes", 8),
    "RESTORED": ("restored_total_bytes", 9),
}
"""The field of the report, and how early the column goes where the terminal is narrow."""
_COLUMNS = (
    Column("JOB", is_number=True),
    Column("USER", drop=14, least=8),
    Column("NAME", least=12),
    Column("STATE", drop=2, style=state_style),
    *(
        Column(
            head, drop=drop, is_number=True, style=moved_style if head == "SPILLED" else no_style
        )
        for head, (_, drop) in _SIZES.items()
    ),
)
_FITS = {
    "all": "all of it fits at once",
    "one_ephemeral": "it fits with one job's ephemeral memory at a time",
    "persistent_in_turns": "so persistent memory is spilled in turns",
}
_MOVES = {"revoke", "released", "room", "denied", "host_full"}
_MOST_MOVES = 8


def memory_lines(
    report: dict[str, Any], width: int | None = None, *, with_unmanaged: bool = False
) -> list[Line]:
    """Lays out the bytes in a coordinator's report.

    Args:
        report: As ``gpushare status --json`` prints it.
        width: Places of a line; None for no bound.
        with_unmanaged: List the processes that are no jobs, instead of counting them.
    """
    lines: list[Line] = []
    for device in report["devices"]:
        lines += flow(_device_parts(device), width)
        for text in (*_fit_texts(device), *_plan_texts(device)):
            lines += wrap(text, width)
        lines += _job_lines(device["jobs"], width)
        for text in _held_back_texts(device["jobs"]):
            lines += wrap(text, width)
    lines += unmanaged_lines(report, width, with_unmanaged=with_unmanaged)
    moves = [decision for decision in report["decisions"] if decision["what"] in _MOVES]
    for decision in moves[-_MOST_MOVES:]:
        lines += wrap(_move_text(decision), width, NOTE)
    return lines


def _device_parts(device: dict[str, Any]) -> list[Span]:
    parts = [
        Span(f"{label(device['device'])} {format_bytes(device['capacity_bytes'])}", "bold"),
        Span(f"free {format_bytes(max(device['free_bytes'], 0))}"),
        Span(f"shared {format_bytes(sum(lane['pool_bytes'] for lane in device['lanes']))}"),
        host_part(device),
    ]
    if device.get("transfer_budget_bytes_per_second"):
        budget = format_bytes(device["transfer_budget_bytes_per_second"])
        parts.append(Span(f"transfers {budget}/s"))
    return parts


def _fit_texts(device: dict[str, Any]) -> list[str]:
    """What the jobs need, and how that fits the device."""
    admission = device.get("admission")
    if not device["jobs"] or admission is None:
        return []
    persistent, ephemeral, largest = (
        format_bytes(admission[f"{key}_bytes"])
        for key in ("persistent", "ephemeral", "largest_ephemeral")
    )
    unknown = admission["jobs_unknown"]
    if unknown and not (admission["persistent_bytes"] or admission["ephemeral_bytes"]):
        return ["what the jobs need is not known yet"]
    return [
        f"jobs need {persistent} persistent and {ephemeral} ephemeral memory, at most {largest} "
        f"of one job: {_FITS[admission['fit']]}"
        + (f"; not known yet of {unknown}" if unknown else "")
    ]


def _plan_texts(device: dict[str, Any]) -> list[str]:
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


def _job_lines(jobs: list[dict[str, Any]], width: int | None) -> list[Line]:
    if not jobs:
        return [[Span("no jobs")]]
    rows = [
        (
            str(job["job"]),
            user_name(job["uid"]),
            printable(job["name"] or f"pid {job['pid']}"),
            job["state"],
            *(_size(job.get(key)) for key, _ in _SIZES.values()),
        )
        for job in jobs
    ]
    return fit_lines(_COLUMNS, rows, width)


def _held_back_texts(jobs: list[dict[str, Any]]) -> list[str]:
    """Who copies more slowly than it could, so that another job computes undisturbed."""
    return [
        f"job {job['job']} has bytes to copy that nobody waits for: "
        f"at most {format_bytes(job['transfer_bytes_per_second'])} a second while another computes"
        for job in jobs
        if job.get("is_held_back")
    ]


def _size(size: int | None) -> str:
    return "?" if size is None else format_bytes(size)


def _move_text(decision: dict[str, Any]) -> str:
    text = f"{decision['what']}: {decision['reason']}"
    return printable(
        with_user_names(f"{decision['seconds_ago']:.1f} s ago, job {decision['job']}, {text}")
    )
