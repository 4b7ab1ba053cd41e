"""What the page says of a device and its jobs: the figures and words of `gpushare status`."""

from __future__ import annotations

import functools
from typing import Any

from gpushare._settings.devices import label
from gpushare.cli._status.table import host_text
from gpushare.cli.set import settings_text
from gpushare.cli.units import format_bytes
from gpushare.printable import printable
from gpushare.users import user_name

# A directory of accounts on the network may be slow, and is not to be asked at each reading.
_known_user_name = functools.lru_cache(maxsize=1024)(user_name)


def device_row(device: dict[str, Any]) -> dict[str, Any]:
    """Returns what the page shows of a device.

    Args:
        device: Its part of a coordinator's report.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: It is no such part.
    """
    facts = [
        f"{format_bytes(device['capacity_bytes'])}, free "
        f"{format_bytes(max(device['free_bytes'], 0))}"
    ]
    if "busy" in device:  # a coordinator of an earlier version does not say
        facts += [f"leased {device['busy']:.0%}", host_text(device)]
    return {
        "device": device["device"],
        "label": label(device["device"]),
        "facts": [*facts, f"policy {device['policy']}"],
        "jobs": [job_row(job) for job in device["jobs"]],
    }


def job_row(job: dict[str, Any]) -> dict[str, Any]:
    """Returns what the page shows of a job, from its row of the report.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: It is no such row.
    """
    has_run = job["iterations"] > 0
    return {
        "job": job["job"],
        "pid": job["pid"],
        "name": job["name"] or f"pid {job['pid']}",
        "user": _known_user_name(job["uid"]),
        "state": job["state"],
        "is_paused": job.get("is_paused", job["state"] == "paused"),
        "priority": job["priority"],
        "settings": settings_text(job),
        "got": f"{job['share']:.0%}" if has_run else "-",
        "rate": f"{job['iterations_per_second']:.1f}" if has_run else "-",
        "iterations": job["iterations"],
        "resident": format_bytes(job["resident_bytes"] + job.get("lane_bytes", 0)),
        "spilled": format_bytes(job["spilled_bytes"]),
        "explain": job["explain"],
    }


def printable_all(value: Any) -> Any:
    """Returns a JSON value whose texts are all printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: printable_all(each) for key, each in value.items()}
    if isinstance(value, list):
        return [printable_all(each) for each in value]
    return value
