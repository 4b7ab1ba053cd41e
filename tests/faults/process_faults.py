"""Faults that end or stop processes: jobs and the coordinator."""

from __future__ import annotations

import contextlib
import random
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faults.campaign import Campaign, Kind

if TYPE_CHECKING:
    from tests.faults.job import Job

_MOST_STOPPED_SECONDS = 3.0
_STARTING_SECONDS = 0.5
_CUT_OFF = 0.5
_DAMAGED_BYTES = 64


def _in_state(campaign: Campaign, rng: random.Random, **wanted: Any) -> Job | None:
    """A job whose row has these values; any job if the coordinator does not answer."""
    rows = campaign.coordinator.rows()
    if not rows:
        return campaign.pool.choose(rng)
    pids = [row["pid"] for row in rows if all(row[name] == wanted[name] for name in wanted)]
    found = [job for pid in pids if (job := campaign.pool.by_pid(pid))]
    return rng.choice(found) if found else None


def _kill(job: Job | None) -> str | None:
    if job is None:
        return None
    job.kill()
    return f"{job.name}, pid {job.pid}"


def kill_holder(campaign: Campaign, rng: random.Random) -> str | None:
    """SIGKILL to the job that has the lease."""
    return _kill(_in_state(campaign, rng, state="running"))


def kill_waiter(campaign: Campaign, rng: random.Random) -> str | None:
    """SIGKILL to a job that waits for the lease."""
    return _kill(_in_state(campaign, rng, state="waiting"))


def kill_any(campaign: Campaign, rng: random.Random) -> str | None:
    """SIGKILL to any job, whatever it does."""
    return _kill(campaign.pool.choose(rng))


def kill_starting(campaign: Campaign, rng: random.Random) -> str | None:
    """SIGKILL to a job that is about to join."""
    job = campaign.pool.start()

    def kill() -> bool:
        job.kill()
        return True

    campaign.later(rng.uniform(0.0, _STARTING_SECONDS), f"the start of {job.name}", kill)
    return f"{job.name}, pid {job.pid}"


def stop_job(campaign: Campaign, rng: random.Random) -> str | None:
    """SIGSTOP to a job, and SIGCONT a while later."""
    seconds = rng.uniform(0.05, _MOST_STOPPED_SECONDS)
    job = campaign.pool.choose(rng)
    if job is None:
        return None
    job.process.send_signal(signal.SIGSTOP)

    def go_on() -> bool:
        job.process.send_signal(signal.SIGCONT)
        return True

    campaign.hold(job, seconds, f"the stop of {job.name}", go_on)
    return f"{job.name}, pid {job.pid}, for {seconds:.2f} s"


def stop_coordinator(campaign: Campaign, rng: random.Random) -> str | None:
    """SIGSTOP to the coordinator, and SIGCONT a while later."""
    seconds = rng.uniform(0.05, _MOST_STOPPED_SECONDS)
    pid = campaign.coordinator.signal(signal.SIGSTOP)
    if pid is None:
        return None

    def go_on() -> bool:
        campaign.coordinator.signal(signal.SIGCONT, pid)
        return True

    campaign.later(seconds, f"the stop of coordinator {pid}", go_on)
    return f"pid {pid}, for {seconds:.2f} s"


def kill_coordinator(campaign: Campaign, _rng: random.Random) -> str | None:
    """SIGKILL to the coordinator."""
    pid = campaign.coordinator.signal(signal.SIGKILL)
    return None if pid is None else f"pid {pid}"


def end_coordinator(campaign: Campaign, _rng: random.Random) -> str | None:
    """SIGTERM to the coordinator."""
    pid = campaign.coordinator.signal(signal.SIGTERM)
    return None if pid is None else f"pid {pid}"


def restart_coordinator(campaign: Campaign, _rng: random.Random) -> str | None:
    """`gpushare coordinator stop --force`; its jobs start the next one."""
    campaign.commands.gpushare("coordinator", "stop", "--force")
    return "by the command line"


def damage_files(campaign: Campaign, rng: random.Random) -> str | None:
    """Cuts off or overwrites a file that a coordinator leaves to the next one, and kills it."""
    file = Path(f"{campaign.coordinator.path}{rng.choice(('.jobs', '.profiles'))}")
    pid = campaign.coordinator.signal(signal.SIGSTOP)  # so that it does not write once more
    if pid is None:
        return None
    with contextlib.suppress(FileNotFoundError):  # before the first job
        data = bytearray(file.read_bytes())
        if rng.random() < _CUT_OFF:
            del data[int(len(data) * rng.random()) :]
        else:
            data[:_DAMAGED_BYTES] = rng.randbytes(_DAMAGED_BYTES)
        file.write_bytes(data)
    campaign.coordinator.signal(signal.SIGKILL, pid)
    return f"{file.name}, and pid {pid}"


def remove_socket(campaign: Campaign, _rng: random.Random) -> str | None:
    """The socket's file is removed under a coordinator that serves."""
    try:
        campaign.coordinator.path.unlink()
    except FileNotFoundError:
        return None
    return str(campaign.coordinator.path)


KINDS = [
    Kind("kill holder", 8, kill_holder),
    Kind("kill waiter", 6, kill_waiter),
    Kind("kill any job", 5, kill_any),
    Kind("kill starting job", 4, kill_starting),
    Kind("stop job", 10, stop_job),
    Kind("kill coordinator", 8, kill_coordinator),
    Kind("end coordinator", 4, end_coordinator),
    Kind("stop coordinator", 6, stop_coordinator),
    Kind("restart coordinator", 4, restart_coordinator),
    Kind("damage coordinator's files", 3, damage_files),
    Kind("remove socket", 2, remove_socket),
]
