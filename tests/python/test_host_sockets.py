"""Where a job on one of several GPUs finds its coordinator, and which GPU one gets that names none.

The coordinators are real; the GPUs are only names, which is all that a coordinator knows of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpushare import _native
from gpushare._coordinator import host_sockets, placement
from gpushare._coordinator.client import CoordinatorClient
from gpushare._settings import config, nvml
from gpushare._settings.config import Config, daemon_args_of_gpus
from gpushare._settings.nvml import Gpu
from gpushare.errors import CoordinatorUnreachable

A, B, C = (
    Gpu(f"cuda:GPU-00000000-0000-0000-0000-{os.getpid():010d}{place:02d}", 64 << 20, "H100")
    for place in range(3)
)
SETTINGS = Config(linger_seconds=60.0)
_CHILDREN: list[subprocess.Popen[str]] = []


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where this user's coordinators listen; those that are there at the end are ended."""
    with tempfile.TemporaryDirectory(prefix="gpushare-") as name:
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        monkeypatch.setattr(config, "SYSTEM_FOLDER", f"{name}/service")
        Path(name, "service").mkdir()
        yield Path(name, "gpushare")
        for path in Path(name).glob("*/*sock"):
            try:
                CoordinatorClient([str(path)]).stop(force=True)
            except CoordinatorUnreachable:
                continue
    while _CHILDREN:
        _CHILDREN.pop().communicate("")


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """gpus(A, B): the GPUs that this machine has from now on."""

    def have(*found: Gpu) -> None:
        for module in (host_sockets, nvml):
            monkeypatch.setattr(module, "list_gpus", lambda: list(found))

    have(A, B)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return have


def _start(path: Path, *gpus: Gpu) -> str:
    sizes = [(gpu.device, gpu.memory_bytes) for gpu in gpus]
    options = daemon_args_of_gpus(SETTINGS, sizes)
    if path.name not in {"cuda.sock", "mine"}:
        options = ["--device", gpus[0].device, "--capacity", "64MiB"]
    _native.load().start_coordinator(config.daemon_path(), str(path), options, 10.0)
    return str(path)


def _own(folder: Path, gpu: Gpu) -> Path:
    return folder / f"{gpu.uuid}.sock"


@pytest.mark.usefixtures("gpus")
def test_one_coordinator_of_all_gpus_is_started(folder: Path) -> None:
    paths = host_sockets.find_sockets(SETTINGS, A.device)
    assert paths == [f"{folder}/cuda.sock"]
    assert host_sockets.several_gpus(SETTINGS, paths[-1], A.device) == [A, B]
    _start(folder / "cuda.sock", A, B)
    assert host_sockets.find_sockets(SETTINGS, B.device) == paths
    assert host_sockets.find_sockets(replace(SETTINGS, socket="/x/s"), B.device) == ["/x/s"]
    assert host_sockets.find_sockets(replace(SETTINGS, socket="none"), B.device) == []


@pytest.mark.usefixtures("gpus")
def test_at_a_socket_of_ones_own_are_the_gpus_that_one_sees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = replace(SETTINGS, socket="/x/mine")
    assert host_sockets.several_gpus(mine, "/x/mine", A.device) == [A, B]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert host_sockets.several_gpus(mine, "/x/mine", B.device) == []
    assert host_sockets.several_gpus(SETTINGS, "/x/cuda.sock", B.device) == [A, B]


def test_a_device_that_it_lacks_has_its_own(folder: Path, gpus: Callable[..., None]) -> None:
    gpus(A, B, C)
    _start(folder / "cuda.sock", A, B)
    assert host_sockets.find_sockets(SETTINGS, C.device) == [str(_own(folder, C))]
    assert host_sockets.several_gpus(SETTINGS, str(_own(folder, C)), C.device) == []


def test_so_has_the_only_gpu_and_a_part_of_one(folder: Path, gpus: Callable[..., None]) -> None:
    gpus(A)
    assert host_sockets.find_sockets(SETTINGS, A.device) == [str(_own(folder, A))]
    gpus(A, B)
    part = C.device.replace("GPU", "MIG")
    assert host_sockets.find_sockets(SETTINGS, part) == [
        f"{folder}/{part.removeprefix('cuda:')}.sock"
    ]


@pytest.mark.usefixtures("gpus")
def test_a_coordinator_of_one_device_that_answers_is_kept(folder: Path) -> None:
    _start(_own(folder, A), A)
    assert host_sockets.find_sockets(SETTINGS, A.device) == [str(_own(folder, A))]
    assert host_sockets.find_sockets(SETTINGS, B.device) == [f"{folder}/cuda.sock"]


@pytest.mark.usefixtures("gpus")
def test_the_service_comes_first_also_while_it_starts_anew(folder: Path) -> None:
    service = folder.parent / "service"
    path = _start(service / "cuda.sock", A, B)
    both = [path, f"{folder}/cuda.sock"]
    assert host_sockets.find_sockets(SETTINGS, A.device) == both
    CoordinatorClient([path]).stop(force=True)
    Path(path).touch()  # it has gone without removing its socket
    assert host_sockets.find_sockets(SETTINGS, A.device) == both


@pytest.mark.usefixtures("gpus")
def test_a_service_of_single_devices_is_kept(folder: Path) -> None:
    path = _start(_own(folder.parent / "service", A), A)
    assert host_sockets.find_sockets(SETTINGS, A.device) == [path, str(_own(folder, A))]


ANY = replace(SETTINGS, device="any")


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("settings", "env", "is_placed"),
    [
        (ANY, {}, True),
        (ANY, {"CUDA_VISIBLE_DEVICES": "1,0"}, True),
        (ANY, {"SLURM_NTASKS": "1"}, True),
        (ANY, {"RANK": "0", "WORLD_SIZE": "1"}, True),
        (ANY, {"CUDA_VISIBLE_DEVICES": "1"}, False),
        (ANY, {"LOCAL_RANK": "0"}, False),
        (ANY, {"SLURM_NTASKS": "2"}, False),
        (SETTINGS, {}, False),
        (replace(SETTINGS, device="cuda"), {}, False),
        (replace(SETTINGS, device=A.device), {}, False),
        (replace(ANY, socket="none"), {}, False),
    ],
)
def test_only_who_leaves_it_open_is_placed(
    settings: Config,
    env: dict[str, str],
    is_placed: bool,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(_native, "settings", lambda: settings)
    placement.place()
    # Where all are empty the first is chosen, so nothing has to change.
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == env.get("CUDA_VISIBLE_DEVICES")
    assert (folder / "cuda.sock").exists() is is_placed


def test_one_that_is_there_chooses_among_the_visible(
    folder: Path, gpus: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(A, B, C)
    path = _start(folder / "mine", A, B, C)
    monkeypatch.setattr(_native, "settings", lambda: replace(ANY, socket=path))
    assert _places_of_children(path, A.device, C.device) == [A.device, C.device]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,1")
    placement.place()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1,2"


def _places_of_children(path: str, *devices: str) -> list[str]:
    """Where processes are promised a place that live as long as this one."""
    code = (
        "import sys, time; from gpushare._coordinator.client import CoordinatorClient as C;"
        "print(C([sys.argv[1]]).place([sys.argv[2]]), flush=True); sys.stdin.read()"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, path, device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for device in devices
    ]
    _CHILDREN.extend(started)
    return [each.stdout.readline().strip() for each in started if each.stdout]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Config(), ["--device-memory", str(64 << 20)]),
        (Config(cuda_capacity_bytes=1 << 20), ["--reserve", "0"]),
        (Config(cuda_capacity_bytes=1 << 20, cuda_reserve_bytes=4096), ["--reserve", "4096"]),
        (Config(capacity_bytes=1 << 20), ["--device-memory", str(64 << 20)]),
    ],
)
def test_a_capacity_is_that_of_each_device(settings: Config, words: list[str]) -> None:
    size = settings.cuda_capacity_bytes or 64 << 20
    large = min(size, 32 << 20)
    devices = f"{A.device}={size},{B.device}={large}"
    sizes = [(A.device, 64 << 20), (B.device, 32 << 20)]
    assert daemon_args_of_gpus(settings, sizes) == ["--devices", devices, *words]
