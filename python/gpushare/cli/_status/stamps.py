"""What ``gpushare status --json`` adds to the coordinators' words: times of day, and ids that last.

A coordinator counts its jobs from 1, so a job has another number after a restart. Its id is that of
the accounts (``gpushare history``, docs/accounts.md): made of the process's number, its start and
the boot, as ``host_job_id`` in ``csrc/daemon/files/account.cpp`` makes it.
"""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from typing import Any

_HASH_START, _HASH_PRIME, _HASH_BITS = 0xCBF29CE484222325, 0x100000001B3, 64


def with_stamps(report: dict[str, Any]) -> dict[str, Any]:
    """Returns a coordinator's report with ``time``, and with ids and times in its rows.

    A job's id and start are None where the coordinator numbers processes in another way than this
    one, as from within a container, or where the process has just ended.
    """
    now = time.time()
    coordinator = report["coordinator"]
    is_comparable = _program_of(coordinator["pid"]) == "gpushared"
    uptime = coordinator.get("uptime_seconds")
    devices = [
        {
            **device,
            "jobs": [
                {**job, **(_job_stamps(job["pid"]) if is_comparable else _NO_STAMPS)}
                for job in device["jobs"]
            ],
        }
        for device in report["devices"]
    ]
    return {
        **report,
        "time": utc_text(now),
        "coordinator": {
            **coordinator, "started": None if uptime is None else utc_text(now - uptime)
        },
        "devices": devices,
        "decisions": [
            {**each, "time": utc_text(now - each["seconds_ago"])} for each in report["decisions"]
        ],
    }  # fmt: skip


def utc_text(unix_seconds: float) -> str:
    """Returns a time as "2026-11-20T12:00:00.250Z"."""
    moment = datetime.fromtimestamp(unix_seconds, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def host_job_id(pid: int, start_ticks: int, boot: str) -> str:
    """Returns the id of a process on this host.

    Args:
        pid: Its number.
        start_ticks: When it started, as /proc/PID/stat has it.
        boot: The id of the boot.
    """
    number = _HASH_START
    for byte in f"{pid} {start_ticks} {boot}".encode():
        number = (number ^ byte) * _HASH_PRIME % (1 << _HASH_BITS)
    return f"{number >> 16:012x}"


_NO_STAMPS: dict[str, str | None] = {"id": None, "started": None}


def _job_stamps(pid: int) -> dict[str, str | None]:
    try:
        # The program's name stands in brackets, and may have spaces and brackets itself.
        after_name = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        ticks = int(after_name[19])
    except (OSError, IndexError, ValueError):
        return _NO_STAMPS
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    started = datetime.fromtimestamp(round(time.time() - since_boot), timezone.utc)
    boot = _read("/proc/sys/kernel/random/boot_id").strip()
    return {
        "id": host_job_id(pid, ticks, boot),
        "started": started.isoformat().replace("+00:00", "Z"),
    }


def _program_of(pid: int) -> str:
    try:
        return _read(f"/proc/{pid}/comm").strip()
    except OSError:
        return ""


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - start-up time
        return file.read()
