"""The jobs of a campaign: how many there should be, and what they have done."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.processes import job_environment
from tests.faults import training_job
from tests.faults.job import Excuse, Job
from tests.support import forked

MODULE = "tests.faults.training_job"
NUM_SEEDS = 4
"""There are few seeds, since each has a reference run."""
JOBS = 6
PATIENCE_SECONDS = 60.0
"""A job that may go on and says nothing for so long is lost."""


def reference_lines(seed: int, iterations: int) -> list[str]:
    """The lines that the job says alone on stock torch.

    Raises:
        RuntimeError: It ended with an error.
    """
    words = ["-m", MODULE, *training_job.arguments(seed=seed, iterations=iterations)]
    done = forked.run(words, job_environment({"GPUSHARE_DISABLE": "1"}))
    if done.returncode != 0:
        raise RuntimeError(f"the reference run ended with {done.returncode}: {done.stderr}")
    return [line for line in done.stdout.splitlines() if not line.startswith("{")]


@dataclass
class Tally:
    """The sums of what the ended jobs have done."""

    started: int = 0
    completed: int = 0
    killed: int = 0
    refused_memory: int = 0
    ended_by_own_fault: int = 0
    unmanaged: int = 0
    iterations: int = 0
    wrong: int = 0
    longest_silence_seconds: float = 0.0
    """The longest silence of a job that was neither stopped nor paused."""
    totals: dict[str, int] = field(default_factory=dict)
    """Sums of what completed jobs say of themselves at their ends."""


class JobPool:
    """Keeps JOBS jobs running."""

    def __init__(
        self, env: dict[str, str], folder: Path, iterations: int, other_package: Path | None
    ) -> None:
        """Makes the reference runs. `env` are the settings of the jobs."""
        self._envs = [job_environment(env)]
        if other_package is not None:
            # A job starts the coordinator of its own package where there is none.
            env = env | {"GPUSHARE_PACKAGE": str(other_package)}
            self._envs.append(job_environment(env))
        self._folder = folder
        self._iterations = iterations
        self._references = [reference_lines(seed, iterations) for seed in range(NUM_SEEDS)]
        self.jobs: list[Job] = []
        self.excuses: list[Excuse] = []
        """The excuses of all jobs, and of those that start from now on."""
        self.problems: list[str] = []
        self.tally = Tally()

    def start(self, **more: Any) -> Job:
        """Starts one more job."""
        number = self.tally.started
        self.tally.started += 1
        seed = number % NUM_SEEDS
        words = training_job.arguments(
            seed=seed,
            iterations=self._iterations,
            name=f"job-{number}",
            form=training_job.FORMS[number % len(training_job.FORMS)],
            **more,
        )
        words = ["-m", MODULE, *words]
        env = self._envs[number // NUM_SEEDS % len(self._envs)]
        job = Job(f"job-{number}", words, env, self._references[seed], self._folder)
        job.excuses += self.excuses
        self.jobs.append(job)
        return job

    def excuse_all(self, excuse: Excuse) -> None:
        """Gives all jobs this excuse, until `excuse_no_more`."""
        self.excuses.append(excuse)
        for job in self.jobs:
            job.excuses.append(excuse)

    def excuse_no_more(self, excuse: Excuse) -> None:
        """Takes the excuse from all jobs."""
        for excuses in (self.excuses, *(job.excuses for job in self.jobs)):
            if excuse in excuses:
                excuses.remove(excuse)

    def fill(self) -> None:
        """Starts jobs until there are as many as there should be."""
        while len(self.jobs) < JOBS:
            self.start()

    def collect(self) -> None:
        """Judges the jobs that have ended."""
        for job in [job for job in self.jobs if job.has_ended()]:
            self.jobs.remove(job)
            self._judge(job)

    def silent(self) -> Job | None:
        """A job that should have gone on and says nothing; None if there is none."""
        seconds = {job: job.silent_seconds() for job in self.jobs}
        self.tally.longest_silence_seconds = max(
            self.tally.longest_silence_seconds, *seconds.values(), 0.0
        )
        return next((job for job in seconds if seconds[job] > PATIENCE_SECONDS), None)

    def choose(self, rng: random.Random) -> Job | None:
        """One of the jobs that run."""
        running = [job for job in self.jobs if not job.is_killed]
        return rng.choice(running) if running else None

    def by_pid(self, pid: int) -> Job | None:
        """The job of this process."""
        return next((job for job in self.jobs if job.pid == pid and not job.is_killed), None)

    def end(self) -> None:
        """Kills all jobs, whatever they do."""
        for job in self.jobs:
            job.kill()
            with contextlib.suppress(ChildProcessError):
                job.process.wait()

    def _judge(self, job: Job) -> None:
        tally = self.tally
        tally.iterations += job.num_lines
        tally.wrong += bool(job.difference)
        tally.unmanaged += bool(job.unmanaged)
        if job.is_killed:
            tally.killed += 1
        elif job.last.get("done"):
            tally.completed += 1
            for name, value in job.last.items():
                if name != "done":
                    tally.totals[name] = tally.totals.get(name, 0) + value
        elif "out_of_memory" in job.last:
            tally.refused_memory += 1
        else:
            tally.ended_by_own_fault += 1
        if problem := job.problem():
            self.problems.append(f"{job.name} (pid {job.pid}): {problem}\n{job.errors()}")
        else:
            job.forget_errors()
