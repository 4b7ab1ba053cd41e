"""The job: this process as the coordinator knows it, and the calls that a training script makes."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gpushare import _native, _registration
from gpushare._coordinator.client import CoordinatorClient
from gpushare._settings import arguments
from gpushare._settings.devices import CPU
from gpushare._torch.blocks import Hold, Iteration
from gpushare._torch.gate import Gate
from gpushare._torch.watcher import Watcher
from gpushare.errors import GpushareError
from gpushare.integrations import ray
from gpushare.stats import JobStats, job_stats

if TYPE_CHECKING:
    import torch

_current: Job | None = None


class Job:
    """One registration of this process. Made by ``register``."""

    def __init__(self, name: str, number: int, watcher: Watcher | None) -> None:
        """Use ``register``."""
        self._name = name
        self._number = number
        self._watcher = watcher
        self._is_closed = False
        self._has_promised = False

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "managed" if self.is_managed else "unmanaged"
        return f"<gpushare.Job {self._number} {self._name!r} {state}>"

    @property
    def name(self) -> str:
        """The name that status shows."""
        return self._name

    @property
    def number(self) -> int:
        """The job's number at its coordinator; 0 if unmanaged."""
        return self._number

    @property
    def is_managed(self) -> bool:
        """Whether a coordinator gives this job its turns; no longer, once none was to be found."""
        return self._number != 0 and job_stats().is_managed

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called, or a later ``register`` took this job's place."""
        return self._is_closed

    def iteration(self) -> Iteration:
        """Returns ``with job.iteration():``, one iteration; waits for a lease where it begins.

        From its first use on only these blocks are iterations, and no hook makes a boundary. On the
        CPU it also promises that memory is hardly used outside them: between two blocks it may move
        to the host tier. Reading a loss there is right all the same, only slower. On CUDA memory
        that has moved cannot be used, so there it stays until the next block, or ``park``.

        Raises:
            GpushareError: The job is closed.
        """
        self._check_open()
        if self._number != 0 and not self._has_promised and _native.device() == CPU:
            self._has_promised = True
            _native.load().promise_iterations()
        return Iteration(self._watcher)

    def hold(self) -> Hold:
        """Returns ``with job.hold():``, in which no memory of the job moves.

        For a thread that works on tensors beside the iterations, an asynchronous checkpoint say,
        and would be slow, or make system calls that write to them. On CUDA such a thread has to
        hold: memory that has moved cannot be used there, and doing so ends the process. What is in
        the host tier is brought back where the block begins, which may take a while. Other jobs may
        have to wait until it ends.

        Raises:
            GpushareError: The job is closed; or, entering it, the memory cannot come back.
        """
        self._check_open()
        return Hold(self._number != 0)

    def park(self) -> None:
        """Gives the lease back; until the next iteration the job's memory may move.

        What ``iteration`` promises, for jobs whose boundaries are automatic: call it before a long
        phase without the device. Memory that has moved can be used, slowly; on CUDA it cannot.

        Raises:
            GpushareError: The job is closed.
        """
        self._check_open()
        if self._watcher is not None:
            self._watcher.watch.park()
        if self._number != 0:
            native = _native.load()
            # A forward that nothing has followed is an iteration still, in which no memory moves.
            native.end_iteration("explicit", False)
            native.park()

    def step(self) -> None:
        """Says that here is a boundary. Call it once a batch, where automatic ones do not fit.

        Raises:
            GpushareError: The job is closed.
        """
        self._check_open()
        if self._watcher is not None:
            self._watcher.watch.step()

    def set(
        self,
        *,
        priority: str | None = None,
        weight: float | None = None,
        memory_limit: str | int | None = None,
        deadline: str | float | None = None,
        share_limit: str | float | None = None,
        elastic_limits: bool | None = None,
    ) -> None:
        """Changes this job while it runs: what is not None, from its next turn on.

        All of it is changed, or nothing. ``gpushare set`` does the same from outside.

        Args:
            priority: guaranteed, interactive, normal or opportunistic.
            weight: The share inside a priority, above 0.
            memory_limit: As "1.5GiB", or bytes; "none" or 0 for no limit.
            deadline: As "50ms", or seconds; "none" or 0 for none.
            share_limit: Most of the device's time, 0.01 to 1; "none" or 0 for no limit.
            elastic_limits: Whether both limits bind only while others want what is beyond them.

        Raises:
            GpushareError: The job is closed or unmanaged, or needs more than that limit to run.
            ValueError: A value is not what it may be, or there is none.
        """
        changes = arguments.job_changes(
            priority=priority,
            weight=weight,
            memory_limit=memory_limit,
            deadline=deadline,
            share_limit=share_limit,
            elastic_limits=elastic_limits,
        )
        self._client().set_job(self.number, changes)

    def pause(self) -> None:
        """Keeps this job from its next lease on out of the device, until somebody resumes it.

        It runs to its boundary, then waits where an iteration begins; Ctrl-C works there. Another
        thread calls ``resume``, or somebody ``gpushare resume``.

        Raises:
            GpushareError: The job is closed or unmanaged.
        """
        self._client().set_job(self.number, arguments.PAUSED)

    def resume(self) -> None:
        """Lets this job take turns again, whoever paused it. Not paused, it goes on as it is.

        Raises:
            GpushareError: The job is closed or unmanaged.
        """
        self._client().set_job(self.number, arguments.RESUMED)

    def set_memory_limit(self, size: str | int | None) -> None:
        """Changes what this job may hold, while it runs; the limit of ``register`` is the first.

        What it holds beyond that (cached memory, mostly) goes back to the others.

        Args:
            size: As "1.5GiB", or bytes; None for no limit.

        Raises:
            GpushareError: The job is closed or unmanaged, or needs more than that to run.
            ValueError: It is no size.
        """
        self.set(memory_limit=arguments.NONE if size is None else size)

    def set_memory_fraction(self, fraction: float) -> None:
        """The same as a part of the device: ``torch.cuda.set_per_process_memory_fraction`` here.

        Args:
            fraction: Above 0, and at most 1, which is no limit but the device's.

        Raises:
            GpushareError: As of ``set_memory_limit``.
            ValueError: It is no such number.
        """
        if not 0 < fraction <= 1:
            raise ValueError(f"fraction is {fraction}, allowed is above 0 and at most 1")
        capacity = next(
            device["capacity_bytes"]
            for device in self._client().status()["devices"]
            if any(row["job"] == self.number for row in device["jobs"])
        )
        self.set(memory_limit=max(1, int(capacity * fraction)))

    def stats(self) -> JobStats:
        """Returns what the job has done and holds; all 0 where gpushare is not installed."""
        return job_stats()

    @property
    def active_seconds(self) -> float:
        """Seconds that this job had a lease: what to hold a time budget against."""
        return job_stats().held_seconds if self._number != 0 else 0.0

    def close(self, *, is_exiting: bool = False) -> None:
        """Gives the lease back and asks for no more; removes all hooks. Later calls do nothing.

        Args:
            is_exiting: The process ends: memory that has moved to the host tier need not come back.
        """
        global _current
        if self._is_closed:
            return
        self._is_closed = True
        if _current is self:
            _current = None
        persistent_bytes = 0
        if self._watcher is not None:
            persistent_bytes = self._watcher.watch.persistent_bytes
            self._watcher.detach()
            self._watcher = None
        if self._number != 0 and not _native.is_forked_child():
            from gpushare import report

            report.note_end(self, persistent_bytes)
            _native.load().unregister_job(is_exiting=is_exiting)

    def watch(self, model: torch.nn.Module) -> None:
        """Takes this module's forwards as the job's, instead of the registered one's."""
        if self._watcher is not None:
            self._watcher.attach_model(model)

    def _client(self) -> CoordinatorClient:
        self._check_open()
        if not self.is_managed:
            raise GpushareError(f"job {self._name!r} is unmanaged: no coordinator can change it")
        return CoordinatorClient(_native.sockets())

    def _check_open(self) -> None:
        if self._is_closed:
            raise GpushareError(
                f"job {self._name!r} is closed; gpushare.register() makes a new one"
            )


def register(
    model: torch.nn.Module | None = None,
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] | None = None,
    *,
    name: str | None = None,
    group: str | None = None,
    gang: str | None = None,
    priority: str | None = None,
    weight: float | None = None,
    memory_limit: str | int | None = None,
    iterations: int | None = None,
    deadline: str | float | None = None,
    share_limit: float | None = None,
    elastic_limits: bool | None = None,
    elastic_threads: bool | None = None,
    profile: str | None = None,
    device: str | None = None,
) -> Job:
    """Makes this process a job: it takes turns on the device with others, from now on.

    A process has one job; a second call closes the first. Where no coordinator can be reached the
    job goes on unmanaged and says so once. Its iterations and holds then wait for nobody; what asks
    the coordinator for a change (``set``, ``pause``, ``resume``) raises GpushareError.

    Args:
        model: Its forward begins an iteration. None: only ``step`` and ``iteration`` do.
        optimizer: Its step ends an iteration; several are allowed. None: any torch optimizer's.
        name: Shown by status; the script's name unless given.
        group: Jobs that belong together.
        gang: A name that several processes of a user give, which wait for each other inside
            iterations. They have their turns at the same time and count as one job. All of them
            must be on this device. Ranks of torch.distributed need no name.
        priority: guaranteed, interactive, normal or opportunistic.
        weight: The share inside a priority, above 0.
        memory_limit: Most device memory of this job, in bytes or as text such as "2GiB".
        iterations: How many iterations there will be, where that is known.
        deadline: How long an iteration may take once it wants a lease, in seconds, or "50ms".
        share_limit: The most of the device's time that this job may have, 0.01 to 1.
        elastic_limits: Whether both limits bind only while others want what is beyond them:
            idle time is this job's then, and memory that it needs, which it gives first.
        elastic_threads: Whether fewer threads may work on each operation while this job runs beside
            others on the CPU (``pack``, or ``num_lanes``): as many as its part of the cores has.
            Sums may then differ in their last bits from those of a run alone.
        profile: Under which name the coordinator remembers how long this job's iterations take and
            what memory they need, for the next job of that name. Unless given, jobs whose models
            have parameters and buffers of the same names, shapes and types are alike; "off" for
            none.
        device: The device to share: auto, any, cpu, cpu:1, cuda, cuda:1 or cuda:UUID; that of the
            settings unless given. It is chosen once a process: on the CPU where torch is imported,
            on CUDA where torch starts it. Asked for another one later, the job goes on unmanaged.

    Raises:
        ValueError: An argument is not what it may be.
        CoordinatorUnreachable: No coordinator, and GPUSHARE_REQUIRE=1.
        GpushareError: gpushare cannot be installed, and GPUSHARE_REQUIRE=1.
    """
    global _current
    config = _native.settings()
    checked_model = arguments.check_model(model)
    optimizers = arguments.check_optimizers(optimizer)
    options = arguments.job_options(
        config,
        name=name,
        group=group,
        gang=gang,
        priority=priority,
        weight=weight,
        memory_limit=memory_limit,
        iterations=iterations,
        deadline=deadline,
        share_limit=share_limit,
        elastic_limits=elastic_limits,
        elastic_threads=elastic_threads,
        profile=profile,
    )
    wish = arguments.check_device(device)
    options["name"] = options["name"] or ray.work_name() or arguments.default_name()
    if _current is not None:
        _current.close()
    number = 0 if config.disable else _registration.register(options, wish, checked_model)
    watcher = None
    force_spill = os.environ.get("GPUSHARE_FORCE_SPILL") == "1"
    if number or (force_spill and _native.is_installed()):
        native = _native.load()
        may_join = number and not options["gang"]
        watcher = Watcher(
            native.mark_late,
            gate=Gate(native) if force_spill else None,
            has_optimizer=bool(optimizers),
            stop=native.safepoint if number and config.safepoints else None,
            join=functools.partial(_join_gang, options) if may_join else None,
        )
        watcher.attach(checked_model, optimizers)
    _current = Job(options["name"], number, watcher)
    if number:
        from gpushare import report
        from gpushare._torch import immovable

        immovable.say_immovable(checked_model, optimizers, _native.load().reserved_range())
        report.arm(_current, current)
    return _current


def current() -> Job | None:
    """Returns this process's job; None before ``register`` and after ``close``."""
    return _current


def _join_gang(options: dict[str, Any]) -> None:
    """Called when torch.distributed was started after ``register``."""
    number = _registration.join_gang(options)
    if _current is not None:
        _current._number = number


def _forget_in_child() -> None:
    """A forked child is no job: it must neither wait in the gate nor speak for its parent."""
    global _current
    job, _current = _current, None
    if job is not None:
        job._is_closed = True
        if job._watcher is not None:
            job._watcher.detach()
            job._watcher = None


os.register_at_fork(after_in_child=_forget_in_child)
