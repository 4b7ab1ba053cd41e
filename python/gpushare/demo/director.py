"""Runs the whole demo: probe, scenes, probe; then judges."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpushare.demo import scenes
from gpushare.demo.budget import choose_budget
from gpushare.demo.kill_scene import run_kill_scene
from gpushare.demo.private_coordinator import private_coordinator
from gpushare.demo.probe import NUM_PROBE_ITERATIONS, Probe, run_probe
from gpushare.demo.progress import SceneProgress
from gpushare.demo.proof import prove
from gpushare.demo.report import DemoReport
from gpushare.demo.scene_runner import SceneRunner, SceneSetup
from gpushare.demo.workload import FULL, QUICK

if TYPE_CHECKING:
    from rich.console import Console

    from gpushare.demo.scene import SceneResult

_MIN_QUANTUM_SECONDS = 0.1
"""Below an iteration of the full demo, so that turns are as short as switching's cost allows."""


def run_demo(console: Console, *, is_quick: bool) -> DemoReport:
    """Runs all scenes.

    Args:
        console: Where progress is shown.
        is_quick: Run the small jobs.

    Raises:
        DemoError: A job or the coordinator failed in a way that no scene shows.
    """
    begin = time.monotonic()
    workloads = QUICK if is_quick else FULL
    with (
        tempfile.TemporaryDirectory(prefix="gpushare-demo-") as folder,
        SceneProgress(console, workloads) as progress,
    ):
        director = _Director(Path(folder), progress, is_quick=is_quick)
        before = director.probe("serial probe")
        budget_bytes = choose_budget(before)
        results = director.run_unshared(budget_bytes)
        managed = director.run_shared(budget_bytes)
        after = director.probe("serial probe once more")
    return DemoReport(
        reference=results[0],
        scenes=[*results, *managed],
        proofs=prove(results[0], managed, budget_bytes),
        before=before,
        after=after,
        budget_bytes=budget_bytes,
        seconds=time.monotonic() - begin,
    )


class _Director:
    """What all scenes have in common."""

    def __init__(self, folder: Path, progress: SceneProgress, *, is_quick: bool) -> None:
        self._folder = folder
        self._progress = progress
        self._workloads = QUICK if is_quick else FULL
        self._runner = SceneRunner(folder, is_quick=is_quick, on_iteration=progress.on_iteration)

    def probe(self, title: str) -> Probe:
        """Runs each job alone, briefly."""
        self._progress.begin_scene(title, NUM_PROBE_ITERATIONS)
        return run_probe(self._runner, self._workloads)

    def run_unshared(self, budget_bytes: int) -> list[SceneResult]:
        """Runs the scenes without gpushare's turns."""
        serial = self._run(scenes.SERIAL)
        assert serial.seconds is not None
        return [
            serial,
            self._run(scenes.fixed_share(budget_bytes, len(self._workloads))),
            self._run(scenes.side_by_side(serial.seconds)),
            self._run(scenes.one_thread_each(serial.seconds)),
        ]

    def run_shared(self, budget_bytes: int) -> list[SceneResult]:
        """Runs the scenes with turns, on a coordinator each."""
        with private_coordinator(self._folder, budget_bytes, _MIN_QUANTUM_SECONDS) as coordinator:
            shared = self._run(scenes.shared(coordinator.job_settings(), budget_bytes))
        with private_coordinator(self._folder, budget_bytes, _MIN_QUANTUM_SECONDS) as coordinator:
            setup = scenes.shared_with_a_kill(coordinator.job_settings(), budget_bytes)
            self._progress.begin_scene(setup.title)
            killed = run_kill_scene(self._runner, setup, self._workloads, coordinator.client)
        return [shared, killed]

    def _run(self, setup: SceneSetup) -> SceneResult:
        self._progress.begin_scene(setup.title)
        return self._runner.run(setup, self._workloads)
