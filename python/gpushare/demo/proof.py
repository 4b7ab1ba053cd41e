"""What the demo proves, as against what it times: the exit code is about these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpushare.cli.units import format_bytes

if TYPE_CHECKING:
    from gpushare.demo.scene import SceneResult


@dataclass(frozen=True)
class Proof:
    """One claim and whether it held."""

    claim: str
    """What is claimed."""
    holds: bool
    """Whether it is true of this run."""
    evidence: str
    """The figures."""


def prove(reference: SceneResult, managed: Sequence[SceneResult], budget_bytes: int) -> list[Proof]:
    """Checks all claims.

    Args:
        reference: Each job alone.
        managed: The scenes under gpushare; in the last one a job was killed.
        budget_bytes: What they may use together.
    """
    return [
        *(_same_bits(scene, reference) for scene in managed),
        _spilled(managed),
        *(_within_budget(scene, budget_bytes) for scene in managed),
        _one_at_a_time(managed),
    ]


def _same_bits(scene: SceneResult, reference: SceneResult) -> Proof:
    different = [job.name for job in scene.jobs if not job.has_same_bits(reference.job(job.name))]
    num_losses = sum(len(job.losses or ()) for job in scene.jobs)
    return Proof(
        f"{scene.title}: all losses and parameters equal those alone",
        not different,
        f"different: {', '.join(different)}" if different else f"{num_losses} losses compared",
    )


def _spilled(managed: Sequence[SceneResult]) -> Proof:
    spilled = [scene.total("spilled_total_bytes") for scene in managed]
    restored = [scene.total("restored_total_bytes") for scene in managed]
    return Proof(
        "living memory was spilled and restored",
        all(spilled) and all(restored),
        f"spilled {format_bytes(sum(spilled))}, restored {format_bytes(sum(restored))}",
    )


def _within_budget(scene: SceneResult, budget_bytes: int) -> Proof:
    return Proof(
        f"{scene.title}: device memory never exceeded the budget",
        0 < scene.peak_bytes <= budget_bytes,
        f"at most {format_bytes(scene.peak_bytes)} of {format_bytes(budget_bytes)} by the kernel's "
        f"books, {scene.num_samples} samples",
    )


def _one_at_a_time(managed: Sequence[SceneResult]) -> Proof:
    overlaps = sum(scene.timeline.num_overlaps for scene in managed if scene.timeline)
    switches = sum(scene.timeline.num_switches for scene in managed if scene.timeline)
    return Proof(
        "no two jobs computed at once, and they took turns",
        overlaps == 0 and switches > 0,
        f"{switches} switches, {overlaps} overlapping iterations",
    )
