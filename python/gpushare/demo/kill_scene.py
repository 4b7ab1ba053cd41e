"""The scene in which a fourth job is killed with SIGKILL while it holds its lease."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpushare.demo.errors import DemoError
from gpushare.demo.memory_sampler import MemorySampler
from gpushare.demo.scene import SceneResult
from gpushare.demo.scene_runner import SceneRunner, SceneSetup, result_of
from gpushare.demo.timeline import read_timeline
from gpushare.demo.workload import Workload, find_workload

if TYPE_CHECKING:
    from gpushare._coordinator.client import CoordinatorClient
    from gpushare.demo.job_process import JobProcess


_LEAST_ITERATIONS = 2
"""Of the victim before it dies: its optimizer's state exists by then."""

_POLL_SECONDS = 0.05
_TIMEOUT_SECONDS = 120.0


def run_kill_scene(
    runner: SceneRunner,
    setup: SceneSetup,
    workloads: Sequence[Workload],
    client: CoordinatorClient,
) -> SceneResult:
    """Runs the jobs and one more, kills that one in its lease, and lets the others end.

    Args:
        runner: Starts the jobs.
        setup: The scene.
        workloads: The jobs that survive.
        client: Tells who holds the lease.

    Raises:
        DemoError: A survivor failed, or the victim never held its lease when looked at.
    """
    victim_workload = find_workload("victim", is_quick=runner.is_quick)
    with runner.started(setup, [*workloads, victim_workload]) as processes:
        *survivors, victim = processes
        runner.wait_until_ready(processes)
        with MemorySampler(processes, setup.sample_seconds, setup.capacity_bytes) as sampler:
            for process in processes:
                process.go()
            term = _kill_in_lease(runner, victim, client)
            runner.wait_until_trained(survivors)
        jobs = [result_of(process) for process in survivors]
        peak = sampler.peak()
        return SceneResult(
            title=setup.title,
            jobs=jobs,
            seconds=None,
            peak_bytes=peak.peak_bytes,
            num_samples=peak.num_samples,
            # The victim's turns are unknown, so what lies between two others' is no hand-over.
            timeline=replace(
                read_timeline({job.name: job.spans_ns for job in jobs}), median_handover_ns=None
            ),
            notes=[
                f"the fourth job was killed in its lease (term {term}) after "
                f"{victim.num_iterations} iterations"
            ],
        )


def _kill_in_lease(runner: SceneRunner, victim: JobProcess, client: CoordinatorClient) -> int:
    """Kills the victim while it holds the lease; returns the lease's term.

    It is stopped first: a stopped process cannot give its lease back, so what the coordinator says
    then is still true when the process dies.
    """
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        runner.next_event(_POLL_SECONDS)
        if victim.num_iterations < _LEAST_ITERATIONS or not held_term(client.status(), victim.pid):
            continue
        with victim.paused():
            term = held_term(client.status(), victim.pid)
            if term is not None:
                victim.kill()
                return term
    raise DemoError(f"the job to kill held no lease within {_TIMEOUT_SECONDS:g} s")


def held_term(report: dict[str, Any], pid: int) -> int | None:
    """Returns the term of the lease that a process holds; None if it holds none."""
    for device in report["devices"]:
        holders = {lane["holder"] for lane in device["lanes"]}
        for job in device["jobs"]:
            if job["pid"] == pid and job["state"] == "running" and job["job"] in holders:
                return int(job["term"])
    return None
