"""Memory, host tier, cores: what the machine gives."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from gpushare._settings.devices import CPU, CUDA
from gpushare.cli.checks.finding import Finding
from gpushare.cli.units import GIB, format_bytes

if TYPE_CHECKING:
    from gpushare._settings.config import Config

_HUGE_PAGES = "sys/kernel/mm/transparent_hugepage/enabled"


class Machine:
    """The machine as /proc and /sys show it."""

    def __init__(self, root: Path = Path("/")) -> None:
        """Reads nothing yet.

        Args:
            root: What stands before proc and sys; another folder in tests.
        """
        self._root = root

    def memory(self) -> dict[str, int]:
        """Returns the figures of /proc/meminfo in bytes."""
        lines = (self._root / "proc/meminfo").read_text().splitlines()
        pairs = (line.split(":", 1) for line in lines)
        return {name: int(text.split()[0]) * 1024 for name, text in pairs}

    def cgroup_limit(self) -> int | None:
        """Returns the memory limit of this process's control groups; None if there is none."""
        limits = []
        for line in self._read("proc/self/cgroup").splitlines():
            _, controllers, path = line.split(":", 2)
            folder, file = self._cgroup_folder(controllers)
            for parent in (Path(path), *Path(path).parents):
                text = self._read(f"{folder}/{str(parent).lstrip('/')}/{file}").strip()
                if text.isdigit():
                    limits.append(int(text))
        # The first version of control groups spells "none" as a number beyond any memory.
        return min((limit for limit in limits if limit < 1 << 60), default=None)

    def usable_bytes(self) -> int:
        """Returns the memory that this process may use: all, or its control groups' limit."""
        total = self.memory()["MemTotal"]
        return min(total, self.cgroup_limit() or total)

    def huge_pages(self) -> str:
        """Returns the setting of transparent huge pages; "" if the kernel has none."""
        text = self._read(_HUGE_PAGES)
        return text.partition("[")[2].partition("]")[0]

    def _cgroup_folder(self, controllers: str) -> tuple[str, str]:
        if controllers == "":
            return "sys/fs/cgroup", "memory.max"
        return f"sys/fs/cgroup/{controllers}", "memory.limit_in_bytes"

    def _read(self, path: str) -> str:
        try:
            return (self._root / path).read_text()
        except OSError:
            return ""


def check_machine(settings: Config, machine: Machine) -> list[Finding]:
    """Judges memory, spill folder, cores and huge pages."""
    return [
        check_memory(machine),
        _check_swap(machine),
        check_spill_folder(settings),
        check_threads(os.environ.get("OMP_NUM_THREADS"), len(os.sched_getaffinity(0))),
        check_huge_pages(machine),
    ]


def check_memory(machine: Machine) -> Finding:
    """Says what memory this machine or container has."""
    memory = machine.memory()
    limit = machine.cgroup_limit()
    text = f"{format_bytes(memory['MemTotal'])}, {format_bytes(memory['MemAvailable'])} available"
    if limit is not None and limit < memory["MemTotal"]:
        text += f", limited to {format_bytes(limit)} by the control group"
    return Finding("memory", "ok", text)


def check_capacity(settings: Config, cuda_bytes: int | None, machine: Machine) -> list[Finding]:
    """Compares the capacity that is set with the memory of the device that is shared.

    Args:
        settings: Of this process.
        cuda_bytes: All memory of the CUDA device that is shared; None if it is the CPU.
        machine: Has the CPU's memory.
    """
    if cuda_bytes is None:
        kind, capacity, device_bytes = CPU, settings.capacity_bytes, machine.usable_bytes()
    else:
        kind, capacity, device_bytes = CUDA, settings.cuda_capacity_bytes, cuda_bytes
    # Unset, the coordinator takes half of the CPU's, the limit included, or a CUDA device's but for
    # a reserve.
    if capacity <= device_bytes:
        return []
    return [
        Finding(
            "capacity",
            "fail",
            f"{format_bytes(capacity)}, and the device has {format_bytes(device_bytes)}",
            f"Lower GPUSHARE_CAPACITY or device.{kind}.capacity",
        )
    ]


def _check_swap(machine: Machine) -> Finding:
    total = machine.memory()["SwapTotal"]
    if not total:
        return Finding("swap", "ok", "none: what is resident is in memory")
    return Finding(
        "swap",
        "warn",
        f"{format_bytes(total)}: the kernel may move what the coordinator counts as resident",
        "Keep the capacity below the memory that is available",
    )


def check_spill_folder(settings: Config) -> Finding:
    """Looks at where spilled memory goes."""
    folder = settings.spill_dir
    if not folder:
        return Finding("host tier", "ok", "memory beside the device's")
    if not Path(folder).is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return Finding(
            "host tier", "fail", f"{folder} is no folder to write to", "Set host.spill_dir"
        )
    free = shutil.disk_usage(folder).free
    in_ram = settings.host_ram_budget_bytes or 0
    wanted = (settings.host_budget_bytes or in_ram + GIB) - in_ram
    if free < wanted:
        return Finding(
            "host tier",
            "warn",
            f"{folder} has {format_bytes(free)} free, of {format_bytes(wanted)} wanted",
            "Free some space, or lower host.budget",
        )
    first = f"{format_bytes(in_ram)} of memory, then " if in_ram else ""
    return Finding("host tier", "ok", f"{first}{folder}, {format_bytes(free)} free")


def check_threads(wanted: str | None, num_cores: int) -> Finding:
    """Compares the threads that OpenMP is told to use with the cores of this process."""
    first = (wanted or "").split(",")[0]
    if first.isdigit() and int(first) > num_cores:
        return Finding(
            "threads",
            "warn",
            f"OMP_NUM_THREADS={wanted} on {num_cores} cores",
            "Unset it, or lower it to the number of cores",
        )
    return Finding("threads", "ok", f"{first or 'as many as cores'}, {num_cores} cores")


def check_huge_pages(machine: Machine) -> Finding:
    """Looks at whether memory can be backed in large pieces."""
    setting = machine.huge_pages()
    if setting in {"always", "madvise"}:
        return Finding("huge pages", "ok", setting)
    return Finding(
        "huge pages",
        "warn",
        f"transparent huge pages: {setting or 'not in this kernel'}; backing memory is slower",
        f"As root: echo madvise > /{_HUGE_PAGES}",
    )
