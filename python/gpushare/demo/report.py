"""All that the demo found, as figures."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gpushare.demo.probe import MOST_DRIFT, Probe
from gpushare.demo.timeline import median_iteration_ns

if TYPE_CHECKING:
    from gpushare.demo.proof import Proof
    from gpushare.demo.scene import SceneResult

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class DemoReport:
    """The scenes, the proofs, and whether the timings count."""

    reference: SceneResult
    """One after the other."""
    scenes: list[SceneResult]
    """All scenes in order, the reference first."""
    proofs: list[Proof]
    """What was claimed."""
    before: Probe
    """The machine before the scenes."""
    after: Probe
    """The machine after them."""
    budget_bytes: int
    """What the jobs of the scenes in a budget may use together."""
    seconds: float
    """The whole demo."""

    @property
    def drift(self) -> float:
        """By which part the machine's speed changed, between the probes."""
        return self.before.drift_to(self.after)

    @property
    def are_timings_valid(self) -> bool:
        """Whether the machine was the same throughout."""
        return self.drift <= MOST_DRIFT

    @property
    def is_proven(self) -> bool:
        """Whether each claim holds."""
        return all(proof.holds for proof in self.proofs)

    def ratio(self, scene: SceneResult) -> float | None:
        """Returns a scene's time over that of one after the other; None if it was not timed."""
        if scene.seconds is None or self.reference.seconds is None:
            return None
        return scene.seconds / self.reference.seconds

    def slice_ratio(self, scene: SceneResult) -> float | None:
        """Returns how long an iteration took in a scene, over alone on the same allocator.

        The mean over the jobs of the ratios of medians; alone is the mean of both probes. None
        where jobs take no turns, and where the scene is not timed.
        """
        if not scene.is_managed or scene.seconds is None:
            return None
        ratios = []
        for job in scene.jobs:
            alone = (self.before.iteration_ns[job.name] + self.after.iteration_ns[job.name]) / 2
            ratios.append(median_iteration_ns(job.spans_ns) / alone)
        return statistics.mean(ratios)

    def sum_of_peaks(self) -> int:
        """Returns what the jobs need together if none ever gives anything up."""
        return sum(self.before.peak_bytes.values())

    def to_json(self) -> dict[str, Any]:
        """Returns what ``--json`` prints."""
        return {
            "schema_version": SCHEMA_VERSION,
            "is_proven": self.is_proven,
            "are_timings_valid": self.are_timings_valid,
            "drift": self.drift,
            "seconds": self.seconds,
            "budget_bytes": self.budget_bytes,
            "sum_of_peaks_bytes": self.sum_of_peaks(),
            "probes": [asdict(self.before), asdict(self.after)],
            "proofs": [asdict(proof) for proof in self.proofs],
            "scenes": [self._scene_to_json(scene) for scene in self.scenes],
        }

    def _scene_to_json(self, scene: SceneResult) -> dict[str, Any]:
        turns = asdict(scene.timeline) if scene.is_managed and scene.timeline else {}
        moved = {
            counter: scene.total(f"{counter}_total_bytes") if scene.is_managed else None
            for counter in ("dropped", "spilled", "restored")
        }
        return {
            "title": scene.title,
            "seconds": scene.seconds,
            "over_serial": self.ratio(scene),
            "peak_bytes": scene.peak_bytes,
            "num_memory_samples": scene.num_samples,
            "result": scene.verdict(self.reference),
            "num_switches": turns.get("num_switches"),
            "median_handover_ns": turns.get("median_handover_ns"),
            **{f"{counter}_bytes": size for counter, size in moved.items()},
            "slice_iteration_over_alone": self.slice_ratio(scene),
            "notes": scene.notes,
            "jobs": [asdict(job) for job in scene.jobs],
        }
