"""The results of a campaign, as figures and as a table."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.faults.campaign import Campaign, Kind


def figures_of(campaign: Campaign, kinds: list[Kind]) -> dict[str, Any]:
    """All figures; `lost` is how many things were lost, harmed or left behind."""
    faults = {kind.name: campaign.done[kind.name] for kind in kinds if kind.is_fault}
    requests = {kind.name: campaign.done[kind.name] for kind in kinds if not kind.is_fault}
    return {
        "seed": campaign.seed,
        "settings": campaign.varied,
        "seconds": round(campaign.seconds, 1),
        "fault_seconds": round(campaign.fault_seconds, 1),
        "faults": faults,
        "requests": requests,
        "num_faults": sum(faults.values()),
        "jobs": asdict(campaign.pool.tally),
        "coordinators": Counter(campaign.coordinator.programs.values()),
        "coordinator_most_descriptors": campaign.coordinator.most_descriptors,
        "coordinator_most_resident_bytes": campaign.coordinator.most_resident_bytes,
        "left_out": campaign.left_out,
        "problems": campaign.problems,
        "left_behind": campaign.left,
        "lost": len(campaign.problems) + len(campaign.left),
    }


def table_of(figures: dict[str, Any]) -> str:
    """The figures as a table for people, without the texts of the problems."""
    jobs = figures["jobs"]
    totals = jobs["totals"]
    per_hour = 3600 * figures["num_faults"] / max(figures["fault_seconds"], 1.0)
    rows: list[tuple[str, object]] = [*figures["faults"].items()]
    rows += [("faults", figures["num_faults"]), ("faults an hour", round(per_hour)), ("", "")]
    rows += [*figures["requests"].items(), ("", "")] if figures["requests"] else []
    rows += [
        ("jobs started", jobs["started"]),
        ("jobs completed", jobs["completed"]),
        ("jobs killed", jobs["killed"]),
        ("jobs out of memory, as the disk was full", jobs["refused_memory"]),
        ("jobs ended by a fault of their own", jobs["ended_by_own_fault"]),
        ("jobs that went on unmanaged, excused", jobs["unmanaged"]),
        ("iterations compared", jobs["iterations"]),
        ("longest wait for a line of a job, in s", f"{jobs['longest_silence_seconds']:.1f}"),
        ("reconnects of completed jobs", totals.get("reconnects", 0)),
        ("MiB that these spilled", totals.get("spilled_total_bytes", 0) >> 20),
        *((f"coordinators: {name}", n) for name, n in figures["coordinators"].items()),
        ("most descriptors of a coordinator", figures["coordinator_most_descriptors"]),
        ("most MiB resident of one", figures["coordinator_most_resident_bytes"] >> 20),
        ("", ""),
        ("jobs with wrong results", jobs["wrong"]),
        ("lost or harmed", len(figures["problems"])),
        ("left behind", len(figures["left_behind"])),
        ("seconds", figures["seconds"]),
    ]
    settings = ", ".join(f"{name} {value}" for name, value in figures["settings"].items())
    lines = [f"seed {figures['seed']}: {settings}"]
    lines += [f"{name:42} {value:>10}" for name, value in rows]
    lines += [f"left out: {text}" for text in figures["left_out"]]
    lines += [f"left behind: {text}" for text in figures["left_behind"]]
    lines += [f"lost: {text.splitlines()[0]}" for text in figures["problems"]]
    return "\n".join(lines)
