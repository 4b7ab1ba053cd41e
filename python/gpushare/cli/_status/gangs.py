"""One row a gang: the ranks of one program count as one job. ``gpushare ps`` lists each rank."""

from __future__ import annotations

from typing import Any

from gpushare._settings.devices import label
from gpushare.cli._screen.ranks import count_ranks, merge

_SUMS = ("resident_bytes", "spilled_bytes", "lane_bytes", "persistent_bytes", "ephemeral_bytes")
"""What the ranks have together."""
_MOST = ("share", "waited_seconds", "waiting_seconds")
"""They hold their leases together, on devices side by side."""
_LEAST = (
    "iterations",
    "iterations_per_second",
    "iterations_per_second_alone",
    "iterations_per_busy_second",
)
"""The slowest rank has the gang's progress."""


def fold(devices: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Returns a row for each job that is no rank, and one for each gang.

    Args:
        devices: As in ``gpushare status --json``.

    Returns:
        For each the names of its devices, and a job as in the report. A gang stands where its
        first rank stands, with the number of that, and how many ranks are here behind its name.
    """
    gangs: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for device in devices:
        for job in device["jobs"]:
            gangs.setdefault(_gang(job), []).append({**job, "device": device["device"]})
    rows = []
    for ranks in gangs.values():
        names = list(dict.fromkeys(label(rank["device"]) for rank in ranks))
        rows.append((_join(names), _merge(ranks) if len(ranks) > 1 else ranks[0]))
    return rows


def _gang(job: dict[str, Any]) -> tuple[int, str]:
    """Of a job that is no rank the name is one that no gang has."""
    is_rank = job.get("gang") and job.get("ranks", 1) > 1
    return (job["uid"], job["gang"]) if is_rank else (-1, str(job["job"]))


def _merge(ranks: list[dict[str, Any]]) -> dict[str, Any]:
    first = min(ranks, key=lambda rank: int(rank["job"]))
    whole = merge(ranks, first, most=_MOST, least=_LEAST, sums=_SUMS)
    if any(rank["state"] == "running" for rank in ranks):
        whole["state"] = "running"
    whole["name"] = count_ranks(whole["name"] or f"pid {whole['pid']}", ranks)
    # Of ranks on one device only one stands in line, and the others say which.
    texts = [rank["explain"] for rank in ranks if rank["explain"]]
    texts.sort(key=lambda text: "stands in line for" in text)
    whole["explain"] = texts[0] if texts and whole["state"] != "running" else ""
    return whole


def _join(names: list[str]) -> str:
    """Returns ``CPU 0, 1`` of ``CPU 0`` and ``CPU 1``; devices with long names are counted."""
    kinds = {name.partition(" ")[0] for name in names}
    numbers = [name.partition(" ")[2] for name in names]
    if len(names) == 1:
        return names[0]
    if len(kinds) == 1 and all(number.isdigit() for number in numbers):
        return f"{kinds.pop()} {', '.join(sorted(numbers, key=int))}"
    return f"{len(names)} devices"
