"""``gpushare doctor``: each check on made-up machines, and the whole on this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpushare._settings.config import Config
from gpushare.cli.checks import checksum, coordinators, machine, mps
from gpushare.cli.checks.finding import Finding
from gpushare.cli.checks.package import check_identity
from gpushare.version import __version__
from tests.python.conftest import clean_environment
from tests.python.fake_coordinator import FakeCoordinator, make_report


def _machine(root: Path, *, memory_kb: int = 16 << 20, **files: str) -> machine.Machine:
    texts = {
        "proc/meminfo": f"MemTotal: {memory_kb} kB\nMemAvailable: 1024 kB\nSwapTotal: 0 kB\n",
        "proc/self/cgroup": "0::/user.slice/job\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    } | {name.replace("__", "/").replace("DOT", "."): text for name, text in files.items()}
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return machine.Machine(root)


def test_line() -> None:
    assert Finding("swap", "ok", "none").render() == "ok    swap: none"
    assert Finding("x", "fail", "bad", "Do y").render() == "fail  x: bad. Do y"


def test_stranger_of_the_same_name_is_named() -> None:
    finding = check_identity({"gpushare": "0.3"}.get)
    assert finding.level == "fail"
    assert "pip uninstall gpushare; then in torch-gpushare's sources pip install" in finding.advice


def test_own_package_and_source_tree_are_ok() -> None:
    assert check_identity({"torch-gpushare": __version__}.get).level == "ok"
    assert check_identity({}.get).level == "ok"
    assert check_identity({"torch-gpushare": f"{__version__}+torch2.13.cpu"}.get).level == "ok"
    assert check_identity({"torch-gpushare": "0.0.1"}.get).level == "warn"


def test_limit_of_a_control_group_above_counts(tmp_path: Path) -> None:
    limits = {
        "sys__fs__cgroup__user.slice__memory.max": str(4 << 30),
        "sys__fs__cgroup__user.slice__job__memory.max": "max",
    }
    found = _machine(tmp_path, **limits)
    assert found.cgroup_limit() == 4 << 30
    assert found.usable_bytes() == 4 << 30
    assert "limited to 4.0 GiB by the control group" in machine.check_memory(found).text


@pytest.mark.parametrize(
    ("capacity", "cuda_bytes", "says"),
    [
        (0, None, ""),
        (3 << 30, None, ""),
        (5 << 30, None, "5.0 GiB, and the device has 4.0 GiB"),
        (5 << 30, 8 << 30, ""),
        (9 << 30, 8 << 30, "9.0 GiB, and the device has 8.0 GiB"),
    ],
)
def test_the_capacity_is_that_of_the_device_that_is_shared(
    capacity: int, cuda_bytes: int | None, says: str, tmp_path: Path
) -> None:
    limit = {"sys__fs__cgroup__user.slice__job__memory.max": str(4 << 30)}
    found = _machine(tmp_path, **limit)
    # As the variable has it, which is for either device.
    settings = Config(capacity_bytes=capacity, cuda_capacity_bytes=capacity)
    findings = machine.check_capacity(settings, cuda_bytes, found)
    assert [finding.text for finding in findings] == ([says] if says else [])
    kind = "cpu" if cuda_bytes is None else "cuda"
    assert all(finding.level == "fail" for finding in findings)
    assert all(finding.advice.endswith(f"device.{kind}.capacity") for finding in findings)


def test_old_control_groups_without_a_limit(tmp_path: Path) -> None:
    files = {
        "proc__self__cgroup": "9:memory:/docker/1\n",
        "sys__fs__cgroup__memory__docker__1__memory.limit_in_bytes": str((1 << 63) - 4096),
    }
    assert _machine(tmp_path, **files).cgroup_limit() is None


def _mps_folder(folder: Path, pid: str) -> dict[str, str]:
    """A folder as the control daemon makes it, and the variable that names it."""
    os.mkfifo(folder / "control")
    (folder / "nvidia-cuda-mps-control.pid").write_text(f"{pid}\n")
    return {"CUDA_MPS_PIPE_DIRECTORY": str(folder)}


def test_mps_is_named_with_what_it_costs(tmp_path: Path) -> None:
    environment = _mps_folder(tmp_path, str(os.getpid()))
    (finding,) = mps.check_mps(environment)
    assert finding.level == "warn"
    assert finding.text == (
        f"jobs run under it ({tmp_path}): a process that faults on the device ends all others "
        "under it"
    )
    limits = {
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=1G",
    }
    (finding,) = mps.check_mps(environment | limits)
    assert "has a part of its cores (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50)" in finding.text
    assert finding.text.endswith("is free (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G)")
    (tmp_path / "nvidia-cuda-mps-control.pid").unlink()
    assert len(mps.check_mps(environment)) == 1, "an older daemon"


def test_no_mps_is_no_finding(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    (tmp_path / "file/control").touch()
    (tmp_path / "ended").mkdir()
    ended = _mps_folder(tmp_path / "ended", "4000000000")
    for folder in ("none", "file"):
        assert mps.check_mps({"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path / folder)}) == []
    assert mps.check_mps(ended) == []


def test_huge_pages(tmp_path: Path) -> None:
    assert machine.check_huge_pages(_machine(tmp_path)).level == "ok"
    never = {"sys__kernel__mm__transparent_hugepage__enabled": "always madvise [never]\n"}
    assert machine.check_huge_pages(_machine(tmp_path, **never)).level == "warn"


@pytest.mark.parametrize(
    ("wanted", "cores", "level"),
    [(None, 2, "ok"), ("2", 2, "ok"), ("8", 2, "warn"), ("4,1", 2, "warn")],
)
def test_threads(wanted: str | None, cores: int, level: str) -> None:
    assert machine.check_threads(wanted, cores).level == level


def test_spill_folder(tmp_path: Path) -> None:
    assert machine.check_spill_folder(Config(spill_dir=None)).level == "ok"
    missing = Config(spill_dir=str(tmp_path / "none"))
    assert machine.check_spill_folder(missing).level == "fail"
    too_much = Config(spill_dir=str(tmp_path), host_budget_bytes=1 << 60)
    assert machine.check_spill_folder(too_much).level == "warn"
    assert machine.check_spill_folder(Config(spill_dir=str(tmp_path))).level in {"ok", "warn"}
    in_ram = Config(
        spill_dir=str(tmp_path), host_budget_bytes=1 << 60, host_ram_budget_bytes=(1 << 60) - 1
    )
    assert machine.check_spill_folder(in_ram).level == "ok"


def _levels(findings: list[Finding]) -> dict[str, str]:
    return {finding.name: finding.level for finding in findings}


def test_unmanaged_neighbours_and_protocol() -> None:
    assert _levels(coordinators.check_report(make_report(unmanaged=[]))) == {"protocol": "ok"}
    report = make_report()
    report["coordinator"]["protocol"] = 2
    findings = coordinators.check_report(report)
    assert _levels(findings) == {"protocol": "warn", "unmanaged": "warn"}
    assert "pid 4242, 2.1 GiB" in findings[1].text


def test_second_coordinator_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        FakeCoordinator(tmp_path / "one", make_report()) as one,
        FakeCoordinator(tmp_path / "two", make_report()) as two,
    ):
        monkeypatch.setattr(coordinators, "_other_paths", lambda used: [two.path])
        findings = coordinators.check_coordinators(Config(socket=one.path))
    assert _levels(findings)["coordinator"] == "ok"
    second = next(finding for finding in findings if finding.name == "second coordinator")
    assert two.path in second.text


def test_no_coordinator_is_no_fault(tmp_path: Path) -> None:
    assert _levels(coordinators.check_coordinators(Config(socket="none"))) == {
        "coordinator": "warn"
    }
    findings = coordinators.check_coordinators(Config(socket=str(tmp_path / "none")))
    assert findings[0].level == "ok"
    assert "The first job starts one" in findings[0].text


GOOD: dict[str, Any] = {
    "torch": "2.13.0",
    "built_for_torch": "2.13",
    "is_live": True,
    "has_same_address": True,
    "has_same_bytes": True,
    "spilled_bytes": 256 << 20,
    "seconds": 0.5,
    "cuda": None,
}
CUDA = {
    "device": "cuda:GPU-1",
    "name": "H100",
    "driver": 12080,
    "torch_cuda": "13.0",
    "is_intact": True,
    "can_reach_spilled": True,
}


@pytest.mark.parametrize(
    ("change", "levels"),
    [
        ({}, {"torch": "ok", "allocator": "ok", "checksum": "ok"}),
        ({"is_live": False}, {"torch": "ok", "allocator": "fail"}),
        ({"cuda": CUDA}, {"torch": "ok", "cuda": "ok", "allocator": "ok", "checksum": "ok"}),
        ({"has_same_bytes": False}, {"torch": "ok", "allocator": "ok", "checksum": "fail"}),
        ({"has_same_address": False}, {"torch": "ok", "allocator": "ok", "checksum": "fail"}),
        ({"spilled_bytes": 0}, {"torch": "ok", "allocator": "ok", "checksum": "fail"}),
    ],
)
def test_checksum_is_judged(change: dict[str, Any], levels: dict[str, str]) -> None:
    assert _levels(checksum.judge(GOOD | change)) == levels


def test_a_tool_between_torch_and_gpushare_is_a_failure() -> None:
    finding = checksum.judge_cuda(CUDA | {"is_intact": False})
    assert finding.level == "fail"
    assert finding.text == (
        "cuda:GPU-1 (H100), driver of CUDA 12.8, torch 13.0; another tool has replaced torch's "
        "cudaMalloc after gpushare did"
    )


def test_failed_checksum_process_says_its_last_line() -> None:
    text = "Traceback ...\ngpushare.errors.GpushareError: built for torch 2.12, found 2.13: pip\n"
    finding = checksum.judge_failure(1, text)
    assert (finding.level, finding.text) == (
        "fail",
        "exit code 1: built for torch 2.12, found 2.13: pip",
    )


@pytest.mark.usefixtures("module_is_built")
def test_doctor_on_this_machine_with_a_small_capacity(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[device.cpu]\ncapacity = "16MiB"\n')
    ended = subprocess.run(
        [sys.executable, "-m", "gpushare", "doctor", "--json"],
        env=clean_environment(socket=str(tmp_path / "none"), config=str(file)),
        capture_output=True,
        text=True,
        timeout=140,
        check=False,
    )
    report = json.loads(ended.stdout)
    assert report["schema_version"] == 1
    levels = {finding["name"]: finding["level"] for finding in report["findings"]}
    assert levels["checksum"] == levels["allocator"] == levels["torch"] == "ok", ended.stdout
    assert "8.0 MiB out and back" in ended.stdout, "no more than the settings allow a job"
    assert ended.returncode == int("fail" in levels.values())
