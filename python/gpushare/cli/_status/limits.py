"""The limits that hold on a device, of users and of jobs, as lines of ``gpushare status``."""

from __future__ import annotations

from typing import Any

from gpushare.cli._status.table import shorten
from gpushare.cli.units import format_bytes
from gpushare.printable import printable
from gpushare.users import user_name


def limit_lines(device: dict[str, Any]) -> list[str]:
    """Returns a line for each user of the device that has a limit, then for each such job."""
    # A coordinator of an earlier version does not say all of it.
    lines = [_user_line(user) for user in device.get("users", [])]
    lines += [_line(f"{job['job']} ({shorten(job['name'])})", job) for job in device["jobs"]]
    return [printable(line) for line in lines if line]


def _user_line(user: dict[str, Any]) -> str:
    held = f" (holds {format_bytes(user['memory_bytes'])})"
    return _line(user["name"] or user_name(user["uid"]), user, held)


def _line(who: str, row: dict[str, Any], held: str = "") -> str:
    share, memory = row.get("share_limit", 0.0), row["memory_limit_bytes"]
    limits = []
    if share:
        used_up = " (used up)" if row.get("is_at_share_limit") else ""
        limits.append(f"{share * 100:.3g}% of the time{used_up}")
    if memory:
        limits.append(format_bytes(memory) + held)
    if not limits:
        return ""
    elastic = ", where others want more" if row.get("is_elastic") else ""
    return f"{who} is limited to {' and '.join(limits)}{elastic}"
