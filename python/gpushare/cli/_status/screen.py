"""The screen of ``gpushare status``: devices, jobs, and what they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpushare._settings.devices import label
from gpushare.cli._screen.colours import NOTE, WARNING, moved_style, pressure_style, state_style
from gpushare.cli._screen.columns import NOTHING, Column, fit_lines
from gpushare.cli._screen.line import Line, Span, flow, wrap
from gpushare.cli._status.gangs import fold
from gpushare.cli._status.limits import limit_lines
from gpushare.cli._status.table import host_text
from gpushare.cli.units import format_bytes, format_seconds, format_span
from gpushare.printable import printable
from gpushare.users import user_name, with_user_names

_COLUMNS = (
    Column("JOB", is_number=True),
    Column("DEVICE", least=5),
    Column("USER", drop=4, least=8),
    Column("NAME", least=12),
    Column("STATE", style=state_style),
    Column("PRIORITY", drop=5),
    Column("GOT", drop=1, is_number=True),
    Column("IT/S", drop=3, is_number=True),
    Column("(ALONE)", drop=7, is_number=True),
    Column("RESIDENT", is_number=True),
    Column("SHARED", drop=6, is_number=True),
    Column("SPILLED", is_number=True, style=moved_style),
    Column("GROUP", drop=2, least=8),
    Column("WAITED", is_number=True, is_extra=True),
    Column("ITERATIONS", is_number=True, is_extra=True),
    Column("PERSISTENT", is_number=True, is_extra=True),
    Column("EPHEMERAL", is_number=True, is_extra=True),
    Column("COMMAND", least=16, is_extra=True),
)
"""Whoever looks wants to know who runs, who waits, and who holds the memory: that stays."""
_UNMANAGED = (
    Column("UNMANAGED", is_number=True),
    Column("USER", drop=1, least=8),
    Column("HOLDS", is_number=True),
    Column("COMMAND", least=16, most=60),
)
_OPTIONAL = {"DEVICE", "SHARED", "GROUP"}
"""Columns that are there only if a job has something in them. Of one device none has its name."""


def status_lines(
    report: dict[str, Any], width: int | None = None, *, with_unmanaged: bool = False
) -> list[Line]:
    """Lays out a coordinator's report.

    Args:
        report: As ``gpushare status --json`` prints it.
        width: Places of a line; None for no bound.
        with_unmanaged: List the processes that are no jobs, instead of counting them.
    """
    lines: list[Line] = []
    if report["coordinator"]["is_recovering"]:
        text = "the coordinator has just restarted and waits for its jobs to come back"
        lines += wrap(text, width, WARNING)
    for device in report["devices"]:
        lines += flow(_device_parts(device), width)
    rows = fold(report["devices"])
    with_device = len(report["devices"]) > 1
    lines += _job_lines(rows, width, with_device=with_device) if rows else [[Span("no jobs")]]
    for text, style in _sentences(report, [job for _, job in rows]):
        lines += wrap(printable(with_user_names(text)), width, style)
    return lines + unmanaged_lines(report, width, with_unmanaged=with_unmanaged)


def _job_lines(
    jobs: list[tuple[str, dict[str, Any]]], width: int | None, *, with_device: bool
) -> list[Line]:
    rows = [_job_row(job, device if with_device else NOTHING) for device, job in jobs]
    shown = [
        i
        for i, column in enumerate(_COLUMNS)
        if column.head not in _OPTIONAL or any(row[i] != NOTHING for row in rows)
    ]
    return fit_lines([_COLUMNS[i] for i in shown], [[row[i] for i in shown] for row in rows], width)


def _sentences(report: dict[str, Any], jobs: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """What is said below the table, each text with its style."""
    for device in report["devices"]:
        yield from ((text, "") for text in limit_lines(device))
    yield from ((_waiting_text(job["job"], job["explain"]), "") for job in jobs if job["explain"])
    yield from ((text, WARNING) for text in _loss_texts(report))
    yield from ((f"warning: {each['text']}", WARNING) for each in report.get("warnings", []))
    if report.get("jobs_left_out"):
        yield f"and {report['jobs_left_out']} jobs more than fit into one answer", WARNING


def _device_parts(device: dict[str, Any]) -> list[Span]:
    parts = [
        Span(f"{label(device['device'])} {format_bytes(device['capacity_bytes'])}", "bold"),
        Span(f"free {format_bytes(max(device['free_bytes'], 0))}"),
    ]
    if len(device["lanes"]) > 1:
        num_held = sum(lane["holder"] != 0 for lane in device["lanes"])
        parts.append(Span(f"{num_held} of {len(device['lanes'])} lanes held"))
    pool = sum(lane.get("pool_bytes", 0) for lane in device["lanes"])
    if pool:
        parts.append(Span(f"shared {format_bytes(pool)}"))
    if "busy" in device:  # a coordinator of an earlier version does not say
        parts += [Span(f"leased {device['busy']:.0%}"), host_part(device)]
    if device["switches"]:
        parts.append(Span(f"switch {format_seconds(_switch_seconds(device))}"))
    return [*parts, Span(f"policy {device['policy']}")]


def host_part(device: dict[str, Any]) -> Span:
    """Returns what is used of the host tier; coloured where it is nearly full."""
    pressure = pressure_style(device["host_used_bytes"], device["host_budget_bytes"])
    return Span(host_text(device), pressure)


def _switch_seconds(device: dict[str, Any]) -> float:
    """What the last switch took: the lease's way to the next job, and bringing its memory back."""
    holders = {lane["holder"] for lane in device["lanes"]}
    stalls = [job["last_stall_seconds"] for job in device["jobs"] if job["job"] in holders]
    return float(device["last_handover_seconds"]) + max(stalls, default=0.0)


def _job_row(job: dict[str, Any], device: str) -> tuple[str, ...]:
    has_run = job["iterations"] > 0
    # A coordinator of an earlier version says only what it does in a second of work.
    alone = job.get("iterations_per_second_alone", job["iterations_per_busy_second"])
    shared = job.get("lane_bytes", 0)
    group = job.get("group", "")
    return (
        str(job["job"]),
        device,
        user_name(job["uid"]),
        printable(job["name"] or f"pid {job['pid']}"),
        job["state"],
        job["priority"],
        f"{job['share']:.0%}" if has_run else NOTHING,
        f"{job['iterations_per_second']:.1f}" if has_run else NOTHING,
        f"({alone:.1f})" if has_run else NOTHING,
        format_bytes(job["resident_bytes"]),
        f"+{format_bytes(shared)}" if shared else NOTHING,
        format_bytes(job["spilled_bytes"]),
        f"@{printable(group)}" if group else NOTHING,
        format_span(job["waited_seconds"]) if "waited_seconds" in job else NOTHING,
        _iterations(job),
        *(
            NOTHING if job.get(key) is None else format_bytes(job[key])
            for key in ("persistent_bytes", "ephemeral_bytes")
        ),
        printable(job.get("command") or NOTHING),
    )


def _iterations(job: dict[str, Any]) -> str:
    total = job.get("iterations_total", 0)
    return f"{job['iterations']}/{total}" if total else str(job["iterations"])


def unmanaged_lines(
    report: dict[str, Any], width: int | None, *, with_unmanaged: bool
) -> list[Line]:
    """Says what processes that are no jobs hold: of all together, or of each."""
    rows = report["unmanaged"]
    lines: list[Line] = []
    if rows and with_unmanaged:
        cells = [
            (
                str(row["pid"]),
                user_name(row["uid"]),
                format_bytes(row["resident_bytes"]),
                printable(row["command"]),
            )
            for row in rows
        ]
        lines += fit_lines(_UNMANAGED, cells, width)
    elif rows:
        held = format_bytes(sum(row["resident_bytes"] for row in rows))
        who = "1 unmanaged process holds"
        if len(rows) > 1:
            who = f"{len(rows)} unmanaged processes hold"
        lines += wrap(f"{who} {held}; gpushare status --unmanaged lists them", width, NOTE)
    unreadable = report.get("unmanaged_unreadable")
    if unreadable:
        processes = "1 process" if unreadable == 1 else f"{unreadable} processes"
        lines += wrap(f"{processes} of other users cannot be looked at", width, NOTE)
    return lines


def _loss_texts(report: dict[str, Any]) -> list[str]:
    return [
        f"switching costs {lane['switch_loss']:.1%} of the time, "
        f"{device['switch_loss_allowed']:.1%} is allowed: "
        "longer leases would make others wait longer than max_wait"
        for device in report["devices"]
        for lane in device["lanes"]
        if lane.get("switch_loss", 0.0) > device.get("switch_loss_allowed", 1.0) * 1.01
    ]


def _waiting_text(number: int, text: str) -> str:
    is_sentence = text.split(" ", 1)[0] in {"waits", "gives", "is"}
    return f"{number} {text}" if is_sentence else f"{number}: {text}"
