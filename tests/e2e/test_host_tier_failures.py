"""The host tier fails, or its job is killed as it uses it: an error in one job, none in others."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpushare.demo.kernel_memory import PAGE_BYTES
from tests.e2e.asking import status
from tests.support import small_disk as disk
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]

MIB = 1 << 20
PATIENCE_SECONDS = 60.0
SHORT_TURNS = {"policy": "rr", "min_quantum": "0", "max_wait": "1s"}


def _start(stack: ExitStack, env: dict[str, str], mib: int, iterations: int = 2) -> JobProcess:
    flags = ["--mib", str(mib), "--iterations", str(iterations)]
    job = JobProcess(*flags, env=env, module="tests.e2e.host_tier_job")
    return stack.enter_context(job).wait_ready()


def _wait_until_it_wants_a_lease(env: dict[str, str], job: JobProcess) -> None:
    _wait_for_state(env, job, {"waiting", "running"})


def _wait_for_state(env: dict[str, str], job: JobProcess, states: set[str]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        rows = [row for device in status(env)["devices"] for row in device["jobs"]]
        if any(row["pid"] == job.pid and row["state"] in states for row in rows):
            return
        assert time.monotonic() < end, rows
        time.sleep(0.01)


def _ask_for_memory_of(env: dict[str, str], first: JobProcess, second: JobProcess) -> None:
    """The first has iterated and goes to its gate; the second's first iteration wants its room."""
    assert first.go().say() == {"iteration": 0}
    second.go()
    # A job whose sizes are unknown keeps its lease for a while.
    _wait_for_state(env, first, {"idle"})
    first.go()


def _file_of(job: JobProcess, folder: Path) -> Path:
    """The host tier's file, which has no name."""
    descriptors = Path(f"/proc/{job.pid}/fd").iterdir()
    return next(path for path in descriptors if str(path.readlink()).startswith(str(folder)))


def test_a_file_cut_short_is_an_error_in_its_job_only(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    env = coordinator(capacity="128MiB", spill_dir=str(tmp_path), **SHORT_TURNS)
    with ExitStack() as stack:
        victim, other = (_start(stack, env, 96) for _ in range(2))
        _ask_for_memory_of(env, victim, other)
        assert other.say() == {"iteration": 0}
        os.truncate(_file_of(victim, tmp_path), 9 * MIB)
        other.go()  # into its gate, so that its memory can leave
        outcome = victim.say()
        assert outcome["error"].startswith("GpushareError: ")
        assert f"the file in {tmp_path} was cut short" in outcome["error"]
        assert other.say() == {"iteration": 1}
        outcome = other.go().say()
        assert (outcome["error"], outcome["is_intact"]) == ("", True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with a file system of 100 MiB, of which 64 are left to others."""
    folder = tmp_path / "disk"
    with disk.small_disk(folder, 100 * MIB) as refusal:
        if refusal:
            pytest.skip(f"cannot mount a small disk: {refusal}")
        yield folder


@pytest.mark.parametrize("tier", ["disk", "ram", "ram and disk"])
def test_a_full_host_tier_is_out_of_memory_in_the_job_that_asks(
    tier: str, coordinator: Coordinator, small_disk: Path
) -> None:
    where = {"host_budget": "32MiB"}
    why = "host budget of 32.0 MiB is too small, with 32.0 MiB left (nothing is spilled). Raise"
    if "disk" in tier:
        where = {"spill_dir": str(small_disk)}
        why = f"in the host tier: kHostTierFull: host tier in {small_disk}: "
    if tier == "ram and disk":
        where["host_ram_budget"] = "16MiB"
        why = f"host tier in RAM: 16.0 MiB used of 16.0 MiB; host tier in {small_disk}: "
    env = coordinator(capacity="128MiB", **SHORT_TURNS, memory_wait="1s", **where)
    with ExitStack() as stack:
        first, second = (_start(stack, env, 96) for _ in range(2))
        _ask_for_memory_of(env, first, second)
        outcome = second.say()
        assert outcome["error"].startswith("OutOfMemoryError: ")
        assert why in outcome["error"]
        assert first.say() == {"iteration": 1}
        outcome = first.go().say()
        assert (outcome["error"], outcome["is_intact"]) == ("", True)


def _host_bytes(env: dict[str, str]) -> tuple[int, int]:
    """In the host tier's RAM and in its file, in MiB."""
    device = status(env)["devices"][0]
    in_file = device["host_file_used_bytes"]
    return (device["host_used_bytes"] - in_file) // MIB, in_file // MIB


def test_jobs_share_ram_and_then_a_file_and_a_dead_one_gives_its_part_back(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    where = {"spill_dir": str(tmp_path), "host_ram_budget": "40MiB", "host_budget": "1GiB"}
    env = coordinator(capacity="128MiB", **SHORT_TURNS, linger="600s", **where)
    with ExitStack() as stack:
        first, second = (_start(stack, env, 96) for _ in range(2))
        _ask_for_memory_of(env, first, second)
        assert second.say() == {"iteration": 0}
        # Of the one or the other: the first may have its turn already.
        ram, in_file = _host_bytes(env)
        assert ram <= 40
        assert in_file >= 64 - 40
        first.process.kill()
        first.process.wait()
        assert second.go().say() == {"iteration": 1}
        outcome = second.go().say()
        assert (outcome["error"], outcome["is_intact"]) == ("", True)
        assert _host_bytes(env) == (0, 0)


def _private_bytes(job: JobProcess) -> int:
    """Resident, without shared memory: a host tier in RAM is such."""
    pages = Path(f"/proc/{job.pid}/statm").read_text().split()
    return (int(pages[1]) - int(pages[2])) * PAGE_BYTES


def _stop_amid_its_spill(job: JobProcess, most_bytes: int) -> int:
    """Stops it once part of its memory has left; how much that is."""
    end = time.monotonic() + PATIENCE_SECONDS
    while _private_bytes(job) > most_bytes - 64 * MIB:
        assert time.monotonic() < end, "nothing was spilled"
    os.kill(job.pid, signal.SIGSTOP)
    return most_bytes - _private_bytes(job)


@pytest.mark.parametrize("tier", ["file", "ram"])
def test_a_kill_amid_a_spill_harms_nobody_else(
    tier: str, coordinator: Coordinator, tmp_path: Path
) -> None:
    where = {"spill_dir": str(tmp_path)} if tier == "file" else {}
    env = coordinator(capacity="896MiB", **SHORT_TURNS, linger="600s", **where)
    with ExitStack() as stack:
        other = _start(stack, env, 768, iterations=1)
        victim = _start(stack, env, 768)
        assert victim.go().say() == {"iteration": 0}
        resident = _private_bytes(victim)
        other.go()
        _wait_until_it_wants_a_lease(env, other)
        victim.go()
        spilled = _stop_amid_its_spill(victim, resident)
        victim.process.kill()
        victim.process.wait()
        assert spilled < 600 * MIB, "it was over; the other needs 640 MiB of it"
        assert other.say() == {"iteration": 0}
        outcome = other.go().say()
        assert (outcome["error"], outcome["is_intact"]) == ("", True)
        assert victim.pid not in [row["pid"] for row in status(env)["devices"][0]["jobs"]]
    assert list(tmp_path.iterdir()) == []


def test_devices_of_one_coordinator_have_one_host_tier(coordinator: Coordinator) -> None:
    where = {"devices": "cpu:0=128MiB,cpu:1=128MiB", "host_budget": "80MiB"}
    env = coordinator(**SHORT_TURNS, memory_wait="1s", **where)
    with ExitStack() as stack:
        first, second, third, fourth = (
            _start(stack, env | {"GPUSHARE_DEVICE": device}, 96)
            for device in ("cpu:0", "cpu:0", "cpu:1", "cpu:1")
        )
        _ask_for_memory_of(env, first, second)
        assert second.say() == {"iteration": 0}, "64 MiB were spilled, which is more than half"
        _ask_for_memory_of(env, third, fourth)
        outcome = fourth.say()
        assert outcome["error"].startswith("OutOfMemoryError: ")
        assert "jobs of other devices: " in outcome["error"]
