"""The campaign: draws faults, does them, undoes them, and sees that nobody is harmed.

The sequence of faults follows from the seed alone: which kind, for how long, in which order. Which
job a fault meets also follows from what the jobs do at that moment.
"""

from __future__ import annotations

import heapq
import itertools
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults import cleanliness
from tests.faults.commands import Commands
from tests.faults.coordinator import Coordinator
from tests.faults.job_pool import JobPool
from tests.faults.small_disk import SmallDisk

if TYPE_CHECKING:
    from tests.faults.job import Excuse, Job

SETTINGS = {
    "capacity": "40MiB",
    "min_quantum": "0.05s",
    "max_wait": "2s",
    "memory_wait": "20s",
    "host_budget": "1GiB",
    "linger": "600s",
    "log": "info",
}
"""The settings of each campaign. Three of the six jobs fit into this capacity."""
VARIED = {
    "num_lanes": ("1", "2"),
    "lanes": ("on", "on", "off"),
    "host_ram_budget": ("0", "16MiB", "1GiB"),
    "idle_spill": ("10s", "0.2s"),
    "devices": ("", "", "cpu:0=24MiB,cpu:1=24MiB"),
}
"""Settings that are drawn once a campaign."""
GRACE_SECONDS = 25.0
"""A fault may show so long after its end: a little longer than `memory_wait`."""
MOST_DESCRIPTORS = 160
MOST_RESIDENT_BYTES = 64 << 20
"""Bounds on what the coordinator holds. Six jobs cost it 30 descriptors, visitors 64."""
_EXCUSE = "an excuse"
_TICK_SECONDS = 0.02
_RETRY_SECONDS = 0.2
_MEASURE_SECONDS = 1.0
_UNDO_PATIENCE_SECONDS = 60.0

Undo = Callable[[], bool]
"""Ends a fault. It returns true when that is done, and is called again until then."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault."""

    name: str
    weight: float
    act: Callable[[Campaign, random.Random], str | None]
    """Does the fault, and names the process that it met; None where it met nobody."""
    is_fault: bool = True
    """False for what a user may ask for, which is done for the coverage."""
    missing: Callable[[Campaign], str] = lambda _: ""
    """Why the fault cannot be done on this machine; "" if it can."""


class Campaign:
    """Jobs, their coordinator, their disk, and the faults that are in force."""

    def __init__(
        self,
        seed: int,
        iterations: int,
        say: Callable[[str], None],
        other_package: Path | None = None,
    ) -> None:
        """Makes the reference runs.

        Args:
            seed: The sequence of faults follows from it.
            iterations: How many each job does.
            say: Gets a line for each fault.
            other_package: A folder with gpushare of another version, which every other job uses.
        """
        self._say = say
        self._own_memory = cleanliness.own_memory()
        self.seed = seed
        # A socket's path must be short, so this is not below a folder with a long name.
        self.folder = Path(tempfile.mkdtemp(prefix="gpushare-"))
        self.runtime = self.folder / "run"
        self.runtime.mkdir(mode=0o700)
        self.disk = SmallDisk(self.folder / "disk")
        self.coordinator = Coordinator(self.runtime / "sock")
        settings = {"socket": str(self.coordinator.path), "spill_dir": str(self.disk.folder)}
        settings |= SETTINGS
        rng = random.Random(seed)
        self.varied = {name: rng.choice(values) for name, values in VARIED.items()}
        settings |= self.varied
        self.env = {f"GPUSHARE_{name.upper()}": value for name, value in settings.items()}
        self.pool = JobPool(self.env, self.folder, iterations, other_package)
        self.done: Counter[str] = Counter()
        self.problems = self.pool.problems
        self._undo: list[tuple[float, int, float, str, Undo]] = []
        self._numbers = itertools.count()
        self.commands = Commands(self.env)
        self._measured = 0.0
        self.left: list[str] = []
        self.left_out: list[str] = []
        """The kinds of faults that cannot be done here, and why."""
        self.seconds = 0.0
        self.fault_seconds = 0.0
        """Seconds from the start until the last fault."""

    def run(self, kinds: list[Kind], seconds: float, per_minute: float) -> None:
        """Does faults for so long, lets the jobs end, and looks at what is left."""
        started = time.monotonic()
        for kind in kinds:
            if why := kind.missing(self):
                self.left_out.append(f"{kind.name}: {why}")
        kinds = [kind for kind in kinds if not kind.missing(self)]
        try:
            self._do_faults(kinds, seconds, per_minute)
            self.fault_seconds = time.monotonic() - started
            self._say(
                f"{time.monotonic() - started:8.2f} no more faults; the jobs go on to their ends"
            )
            self._drain()
        finally:
            self._end()
        self.seconds = time.monotonic() - started

    def later(self, seconds: float, name: str, undo: Undo) -> None:
        """Ends a fault after so many seconds; tries again while `undo` returns false."""
        due = time.monotonic() + seconds
        entry = (due, next(self._numbers), due + _UNDO_PATIENCE_SECONDS, name, undo)
        heapq.heappush(self._undo, entry)

    def hold(self, job: Job, seconds: float, name: str, undo: Undo) -> None:
        """Lets the job stand still until `undo` has ended the fault."""
        job.hold()

        def let_go() -> bool:
            if not job.has_ended() and not undo():
                return False
            job.let_go()
            return True

        self.later(seconds, name, let_go)

    def excuse_all(self, seconds: float, excuse: Excuse) -> None:
        """Gives all jobs this excuse for so long, and for `GRACE_SECONDS` after that."""
        self.pool.excuse_all(excuse)

        def no_more() -> bool:
            self.pool.excuse_no_more(excuse)
            return True

        self.later(seconds + GRACE_SECONDS, _EXCUSE, no_more)

    def lose(self, text: str) -> None:
        """Notes that something was lost."""
        self._say(f"LOST: {text.splitlines()[0]}")
        self.problems.append(text)

    def _do_faults(self, kinds: list[Kind], seconds: float, per_minute: float) -> None:
        started = time.monotonic()
        weights = [kind.weight for kind in kinds]
        for number in itertools.count():
            # Each fault has its own generator, so how often one draws changes no other.
            rng = random.Random(f"{self.seed}/{number}")
            kind = rng.choices(kinds, weights)[0]
            due = started + (number + rng.random()) * 60.0 / per_minute
            if due > started + seconds:
                self._attend(started + seconds)
                return
            self._attend(due)
            whom = kind.act(self, rng)
            self._say(
                f"{time.monotonic() - started:8.2f} {number:5} {kind.name}: {whom or 'nobody'}"
            )
            if whom is not None:
                self.done[kind.name] += 1

    def _attend(self, until: float) -> None:
        """Keeps everything going until then, and does so once at least."""
        while True:
            self._tick()
            self.pool.fill()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _TICK_SECONDS))

    def _tick(self) -> None:
        now = time.monotonic()
        while self._undo and self._undo[0][0] <= now:
            _, _, patience_ends, name, undo = heapq.heappop(self._undo)
            if undo():
                continue
            if now > patience_ends:
                self.lose(f"cannot end {name}\n{self._account()}")
                continue
            entry = (now + _RETRY_SECONDS, next(self._numbers), patience_ends, name, undo)
            heapq.heappush(self._undo, entry)
        for problem in self.commands.collect():
            self.lose(problem)
        num_problems = len(self.problems)
        self.pool.collect()
        for number in range(num_problems, len(self.problems)):
            self._say(f"LOST: {self.problems[number].splitlines()[0]}")
            self.problems[number] += f"\n{self._account()}"
        if job := self.pool.silent():
            self.lose(f"{job.name} (pid {job.pid}) stands still\n{self._diagnose(job)}")
            job.kill()
        if now - self._measured > _MEASURE_SECONDS:
            self._measured = now
            self.coordinator.measure()

    def _wait_for_jobs(self) -> None:
        while self.pool.jobs or self.commands.running or any(e[3] != _EXCUSE for e in self._undo):
            self._tick()
            time.sleep(_TICK_SECONDS)

    def _drain(self) -> None:
        self._wait_for_jobs()
        if self.coordinator.pid() is None:
            # The last coordinator left a list of its jobs, which the next one removes.
            self.pool.start()
            self._wait_for_jobs()
        if problem := self.coordinator.end():
            self.lose(problem)
        if self.coordinator.most_descriptors > MOST_DESCRIPTORS:
            self.lose(f"the coordinator had {self.coordinator.most_descriptors} descriptors open")
        if self.coordinator.most_resident_bytes > MOST_RESIDENT_BYTES:
            self.lose(f"the coordinator had {self.coordinator.most_resident_bytes} B resident")
        self.left += cleanliness.left_behind(self.folder, self.runtime, self.disk.folder)
        self.left += (cleanliness.own_memory() - self._own_memory).elements()

    def _end(self) -> None:
        """Ends and removes everything, whatever went wrong before."""
        self.pool.end()
        self.commands.end()
        for pid in cleanliness.coordinators_left(self.runtime, self.coordinator.programs):
            self.coordinator.signal(signal.SIGKILL, pid)
        self.disk.close()
        self.left += [f"mount {line}" for line in cleanliness.mounts_below(self.folder)]
        if not self.problems and not self.left:
            shutil.rmtree(self.folder)

    def _account(self) -> str:
        """The coordinator's status and the end of its log."""
        log = self.runtime / "coordinator.log"
        text = log.read_text(errors="replace") if log.exists() else "there is no log"
        return f"status: {self.coordinator.status(2.0)}\nlog:\n{text[-6000:]}"

    def _diagnose(self, job: Job) -> str:
        """The stacks, system calls and waits of a job that stands still."""
        why = self.commands.gpushare("why", job.name)
        why.reader.join()
        for each in self.pool.jobs:
            each.write_stacks()
        time.sleep(1.0)
        threads = []
        for task in Path(f"/proc/{job.pid}/task").glob("*"):
            words = [(task / name).read_text().strip() for name in ("comm", "wchan", "syscall")]
            threads.append(" ".join(words))
        stacks = "\n".join(f"-- {each.name}\n{each.errors()[-2500:]}" for each in self.pool.jobs)
        return "\n".join([*why.output, *threads, stacks, self._account()])
