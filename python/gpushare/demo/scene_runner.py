"""Runs the jobs of one scene, one after the other or side by side, and collects what they did."""

from __future__ import annotations

import contextlib
import os
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gpushare.demo.errors import DemoError
from gpushare.demo.interrupts import interrupts_deferred
from gpushare.demo.job_process import JobEvent, JobProcess
from gpushare.demo.memory_sampler import MemorySampler
from gpushare.demo.scene import JobResult, SceneResult
from gpushare.demo.timeline import read_timeline

if TYPE_CHECKING:
    from gpushare.demo.workload import Workload


_READY_TIMEOUT_SECONDS = 120.0
_POLL_SECONDS = 0.05

OnIteration = Callable[[str, int], None]
"""Told a job's name and how many iterations it has done."""


@dataclass(frozen=True)
class SceneSetup:
    """How a scene's jobs are started."""

    title: str
    """As the table says it."""
    mode: str
    """Of ``gpushare.demo.job``."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to this process's environment."""
    is_serial: bool = False
    """One job after the other, instead of all at once."""
    limit_seconds: float | None = None
    """End the scene when it takes longer."""
    ends_at_out_of_memory: bool = False
    """End the scene when the first job is out of memory."""
    sample_seconds: float = 0.05
    """Time between two looks at memory."""
    capacity_bytes: int | None = None
    """What the jobs may use together."""


class SceneRunner:
    """Starts jobs and waits for them. What it started has ended when a call returns or raises."""

    def __init__(self, folder: Path, *, is_quick: bool, on_iteration: OnIteration) -> None:
        """Remembers where to work.

        Args:
            folder: For what jobs write to standard error.
            is_quick: Whether jobs are the small ones.
            on_iteration: Told about progress.
        """
        self.is_quick = is_quick
        self._folder = folder
        self._on_iteration = on_iteration
        self.events: queue.Queue[JobEvent] = queue.Queue()

    def run(self, setup: SceneSetup, workloads: Sequence[Workload]) -> SceneResult:
        """Runs one scene from start to end.

        Raises:
            DemoError: A job failed in a way that the scene does not show.
        """
        with self.started(setup, workloads) as processes:
            self.wait_until_ready(processes)
            with MemorySampler(processes, setup.sample_seconds, setup.capacity_bytes) as sampler:
                is_stopped = self._train(processes, setup)
            return _collect(setup, processes, sampler, is_stopped)

    @contextlib.contextmanager
    def started(
        self, setup: SceneSetup, workloads: Sequence[Workload]
    ) -> Iterator[list[JobProcess]]:
        """Starts a process a workload, and ends all of them when the block is left."""
        processes: list[JobProcess] = []
        try:
            for workload in workloads:
                with interrupts_deferred():
                    processes.append(self.start(setup, workload))
            yield processes
        finally:
            for process in processes:
                process.kill()

    def start(self, setup: SceneSetup, workload: Workload) -> JobProcess:
        """Starts one process, which waits for ``go``."""
        arguments = [setup.mode, "--iterations", str(workload.num_iterations)]
        if self.is_quick:
            arguments.append("--quick")
        return JobProcess(
            workload.name,
            arguments,
            job_environment(setup.environment),
            self._folder / f"{workload.name}.stderr",
            self.events,
        )

    def wait_until_ready(self, processes: Sequence[JobProcess]) -> None:
        """Waits until all jobs have imported torch and warmed up.

        Raises:
            DemoError: One ended, or it took too long.
        """
        waiting = {process.pid for process in processes}
        deadline = time.monotonic() + _READY_TIMEOUT_SECONDS
        while waiting:
            event = self.next_event(deadline - time.monotonic())
            if event is None:
                raise DemoError(f"jobs were not ready within {_READY_TIMEOUT_SECONDS:g} s")
            if event.kind == "ready":
                waiting.discard(event.process.pid)

    def next_event(self, timeout_seconds: float) -> JobEvent | None:
        """Returns the next thing that a job said, its process having noted it; None at the timeout.

        Raises:
            DemoError: A job ended without a result.
        """
        try:
            event = self.events.get(timeout=max(0.0, timeout_seconds))
        except queue.Empty:
            return None
        event.process.take(event)
        if event.kind == "iteration":
            self._on_iteration(event.process.name, event.process.num_iterations)
        return event

    def wait_until_trained(
        self, processes: Sequence[JobProcess], should_stop: Callable[[], bool] = lambda: False
    ) -> bool:
        """Waits until no job trains any more. Returns whether it was told to stop before."""
        while not all(process.result or process.has_ended for process in processes):
            self.next_event(_POLL_SECONDS)
            if should_stop():
                return True
        return False

    def _train(self, processes: Sequence[JobProcess], setup: SceneSetup) -> bool:
        """Lets the jobs train to their ends. Returns whether they were stopped before."""
        begin = time.monotonic()

        def should_stop() -> bool:
            is_training = any(process.result is None for process in processes)
            has_failed = any(process.out_of_memory for process in processes)
            has_time = setup.limit_seconds is None or time.monotonic() - begin < setup.limit_seconds
            return (is_training and not has_time) or (setup.ends_at_out_of_memory and has_failed)

        groups = [[process] for process in processes] if setup.is_serial else [processes]
        for group in groups:
            for process in group:
                process.go()
            if self.wait_until_trained(group, should_stop):
                return True
            if setup.is_serial:
                # Its memory goes with it, as it would if the next were started after its end.
                for process in group:
                    process.kill()
        return False


def job_environment(additions: Mapping[str, str]) -> dict[str, str]:
    """Returns this process's environment with a scene's settings instead of the user's own."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("GPUSHARE_")
    }
    own = {"GPUSHARE_CONFIG": os.devnull, "GPUSHARE_REPORT": "0", "GPUSHARE_DEVICE": "cpu"}
    return {**environment, **own, **additions}


def result_of(process: JobProcess) -> JobResult:
    """Returns what a job has said so far."""
    result = JobResult(process.name, out_of_memory=process.out_of_memory)
    result.stats = process.figures
    if process.result is not None:
        result.losses = process.result["losses"]
        result.parameters_hash = process.result["parameters_hash"]
        result.spans_ns = [(begin, end) for begin, end in process.result["spans_ns"]]
    return result


def _collect(
    setup: SceneSetup, processes: Sequence[JobProcess], sampler: MemorySampler, is_stopped: bool
) -> SceneResult:
    jobs = [result_of(process) for process in processes]
    peak = sampler.peak()
    has_finished = all(job.is_finished for job in jobs)
    return SceneResult(
        title=setup.title,
        jobs=jobs,
        seconds=measured_seconds(processes, is_serial=setup.is_serial) if has_finished else None,
        peak_bytes=max(peak.peak_bytes, _reported_bytes(jobs)),
        num_samples=peak.num_samples,
        is_stopped=is_stopped,
        timeline=read_timeline({job.name: job.spans_ns for job in jobs}),
    )


def measured_seconds(processes: Sequence[JobProcess], *, is_serial: bool) -> float:
    """Returns the time from the go until the last iteration's end; the ends of processes not."""
    lengths: list[tuple[int, int]] = []
    for process in processes:
        assert process.result is not None
        lengths.append((process.go_ns, process.result["spans_ns"][-1][1]))
    if is_serial:
        return sum(end - go for go, end in lengths) / 1e9
    return (max(end for _, end in lengths) - min(go for go, _ in lengths)) / 1e9


def _reported_bytes(jobs: Sequence[JobResult]) -> int:
    """Returns what jobs that ran out of memory had: they may be gone before a sample is taken."""
    return sum(job.stats["peak_reserved_bytes"] for job in jobs if job.out_of_memory)
