"""The screen of ``gpushare status``, as plain text: no library to wait for."""

from __future__ import annotations

from typing import Any

from gpushare._settings.devices import label
from gpushare.cli._status.limits import limit_lines
from gpushare.cli._status.table import GAP, align, host_text, shorten
from gpushare.cli.units import format_bytes, format_seconds
from gpushare.printable import printable
from gpushare.users import user_name

_HEADS = (
    "JOB", "USER", "NAME", "STATE", "PRIORITY", "GOT", "IT/S (ALONE)", "RESIDENT", "SPILLED"
)  # fmt: skip


def render_report(report: dict[str, Any]) -> str:
    """Renders a coordinator's report.

    Args:
        report: As ``gpushare status --json`` prints it.
    """
    lines: list[str] = []
    if report["coordinator"]["is_recovering"]:
        lines.append("the coordinator has just restarted and waits for its jobs to come back")
    rows: list[tuple[str, ...]] = [_HEADS]
    for device in report["devices"]:
        lines.append(_device_line(device))
        rows += [_job_row(job) for job in device["jobs"]]
    rows += [_unmanaged_row(process) for process in report["unmanaged"]]
    if len(rows) > 1:
        lines += align(rows)
    else:
        lines.append("no jobs")
    for device in report["devices"]:
        lines += limit_lines(device)
    lines += _waiting_lines(report)
    lines += _loss_lines(report)
    lines += [printable(f"warning: {warning['text']}") for warning in report.get("warnings", [])]
    if report.get("unmanaged_unreadable"):
        lines.append(_unreadable_line(report["unmanaged_unreadable"]))
    if report.get("jobs_left_out"):
        lines.append(f"and {report['jobs_left_out']} jobs more than fit into one answer")
    return "\n".join(lines)


def _device_line(device: dict[str, Any]) -> str:
    parts = [
        f"{label(device['device'])} {format_bytes(device['capacity_bytes'])}",
        f"free {format_bytes(max(device['free_bytes'], 0))}",
    ]
    if len(device["lanes"]) > 1:
        num_held = sum(lane["holder"] != 0 for lane in device["lanes"])
        parts.append(f"{num_held} of {len(device['lanes'])} lanes held")
    pool = sum(lane.get("pool_bytes", 0) for lane in device["lanes"])
    if pool:
        parts.append(f"shared {format_bytes(pool)}")
    if "busy" in device:  # a coordinator of an earlier version does not say
        parts += [f"leased {device['busy']:.0%}", host_text(device)]
    if device["switches"]:
        parts.append(f"switch {format_seconds(_switch_seconds(device))}")
    return (GAP + " ").join([*parts, f"policy {device['policy']}"])


def _switch_seconds(device: dict[str, Any]) -> float:
    """What the last switch took: the lease's way to the next job, and bringing its memory back."""
    holders = {lane["holder"] for lane in device["lanes"]}
    stalls = [job["last_stall_seconds"] for job in device["jobs"] if job["job"] in holders]
    return float(device["last_handover_seconds"]) + max(stalls, default=0.0)


def _job_row(job: dict[str, Any]) -> tuple[str, ...]:
    has_run = job["iterations"] > 0
    # A coordinator of an earlier version says only what it does in a second of work.
    alone = job.get("iterations_per_second_alone", job["iterations_per_busy_second"])
    rate = f"{job['iterations_per_second']:.1f} ({alone:.1f})"
    return (
        str(job["job"]),
        user_name(job["uid"]),
        shorten(job["name"] or f"pid {job['pid']}"),
        job["state"],
        job["priority"],
        f"{job['share']:.0%}" if has_run else "-",
        rate if has_run else "-",
        _resident(job),
        format_bytes(job["spilled_bytes"]),
    )


def _resident(job: dict[str, Any]) -> str:
    """Its own bytes, and with a plus those it shares."""
    own = format_bytes(job["resident_bytes"])
    shared = job.get("lane_bytes", 0)
    return f"{own} +{format_bytes(shared)}" if shared else own


def _unmanaged_row(process: dict[str, Any]) -> tuple[str, ...]:
    return (
        "-",
        user_name(process["uid"]),
        f"pid {process['pid']}",
        "unmanaged",
        "",
        "",
        "",
        format_bytes(process["resident_bytes"]),
        "-",
    )


def _waiting_lines(report: dict[str, Any]) -> list[str]:
    jobs = [job for device in report["devices"] for job in device["jobs"]]
    return [_waiting_line(job["job"], job["explain"]) for job in jobs if job["explain"]]


def _loss_lines(report: dict[str, Any]) -> list[str]:
    return [
        f"switching costs {lane['switch_loss']:.1%} of the time, "
        f"{device['switch_loss_allowed']:.1%} is allowed: "
        "longer leases would make others wait longer than max_wait"
        for device in report["devices"]
        for lane in device["lanes"]
        if lane.get("switch_loss", 0.0) > device.get("switch_loss_allowed", 1.0) * 1.01
    ]


def _unreadable_line(count: int) -> str:
    processes = "1 process" if count == 1 else f"{count} processes"
    return f"{processes} of other users cannot be looked at"


def _waiting_line(number: int, text: str) -> str:
    is_sentence = text.split(" ", 1)[0] in {"waits", "gives", "is"}
    return printable(f"{number} {text}" if is_sentence else f"{number}: {text}")
