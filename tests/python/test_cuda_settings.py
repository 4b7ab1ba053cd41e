"""Which CUDA device a process shares, and with which settings of torch it cannot; without CUDA."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from gpushare import _native
from gpushare._settings.config import Config
from gpushare._torch import cuda
from gpushare.errors import GpushareError
from tests.python.conftest import clean_environment

LOCK = "release_lock_on_cudamalloc:True"
UUIDS = [f"GPU-00000000-0000-0000-0000-00000000000{number}" for number in range(3)]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A CUDA build of torch that sees three devices; the test may change that."""
    seen = SimpleNamespace(uuids=list(UUIDS))
    infos = SimpleNamespace(
        cuda_device_info=lambda index: {"index": index, "uuid": seen.uuids[index]}
    )
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(seen.uuids))
    monkeypatch.setattr(_native, "load", lambda: infos)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    return seen


@pytest.mark.parametrize(
    "conf", ["backend:cudaMallocAsync", "backend: cudaMallocAsync,max_split_size_mb:64"]
)
def test_a_backend_past_cuda_malloc_is_refused(conf: str) -> None:
    with pytest.raises(GpushareError, match=r"^HERE sets backend:cudaMallocAsync, .* Remove it"):
        cuda.refuse_settings(conf, "HERE")


@pytest.mark.parametrize(
    "conf",
    [
        "",
        "expandable_segments:True",
        "backend:native",
        "max_split_size_mb:64,garbage_collection_threshold:0.8",
        "roundup_power2_divisions:[256:1,512:2]",
    ],
)
def test_other_settings_are_torchs_affair(conf: str) -> None:
    cuda.refuse_settings(conf, "HERE")


@pytest.mark.parametrize(
    ("device", "index"),
    [("auto", 0), ("cuda", 0), ("cuda:2", 2), (f"cuda:{UUIDS[1]}", 1)],
)
def test_the_device_is_the_named_one(device: str, index: int, machine: SimpleNamespace) -> None:
    assert cuda.index(Config(device=device)) == index


def test_a_device_that_is_not_here_is_an_error_that_names_those_that_are(
    machine: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.uuids = UUIDS[:2]
    with pytest.raises(GpushareError, match=f"is not here; torch sees {UUIDS[0]}, {UUIDS[1]}$"):
        cuda.index(Config(device=f"cuda:{UUIDS[2]}"))
    with pytest.raises(GpushareError, match='^device "cuda:2": torch sees 2 CUDA devices, from 0$'):
        cuda.index(Config(device="cuda:2"))
    monkeypatch.setenv("GPUSHARE_DEVICE", "cuda:7")
    with pytest.raises(GpushareError, match="^GPUSHARE_DEVICE=cuda:7: torch sees 2 CUDA devices"):
        cuda.index(Config(device="cuda:7"))
    machine.uuids = []
    with pytest.raises(GpushareError, match="torch sees no device$"):
        cuda.index(Config(device=f"cuda:{UUIDS[2]}"))


@pytest.mark.parametrize(("rank", "index"), [("1", 1), ("2", 2), ("3", 0), ("", 0), ("one", 0)])
def test_a_program_of_torchrun_takes_its_local_ranks_device(
    rank: str, index: int, machine: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", rank)
    assert cuda.index(Config()) == index
    # Not if a device is named.
    assert cuda.index(Config(device="cuda:1")) == 1


@pytest.mark.parametrize(
    ("device", "num_devices", "is_wanted"),
    [
        ("auto", 3, True),
        ("auto", 0, False),
        ("cuda", 0, True),
        ("cuda:1", 0, True),
        ("cpu", 3, False),
    ],
)
def test_cuda_is_wanted_where_it_is_asked_for_or_there(
    device: str, num_devices: int, is_wanted: bool, machine: SimpleNamespace
) -> None:
    machine.uuids = UUIDS[:num_devices]
    assert cuda.is_wanted(Config(device=device)) is is_wanted


def test_a_torch_without_cuda_cannot_be_asked_for_it(
    machine: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    assert not cuda.is_wanted(Config())
    with pytest.raises(GpushareError, match=r'^device "cuda": torch .* was built without CUDA$'):
        cuda.is_wanted(Config(device="cuda"))


@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch has CUDA")
@pytest.mark.parametrize(
    ("require", "code", "output", "end"),
    [
        ("0", 0, "on\n", "Training goes on unmanaged. GPUSHARE_REQUIRE=1 makes this fatal\n"),
        ("1", 3, "", "GPUSHARE_REQUIRE=1 makes this fatal\n"),
    ],
)
def test_a_process_with_such_a_torch_says_so_once(
    require: str, code: int, output: str, end: str
) -> None:
    env = clean_environment(device="cuda", require=require)
    program = "import gpushare, torch; gpushare.register(); print('on')"
    ended = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (code, output)
    text = (
        f"gpushare: GPUSHARE_DEVICE=cuda: torch {torch.__version__} was built without CUDA. {end}"
    )
    assert ended.stderr == text


@pytest.mark.parametrize(
    ("setter", "variables", "settings"),
    [
        ("_accelerator_setAllocatorSettings", {"PYTORCH_ALLOC_CONF": "a:1"}, f"a:1,{LOCK}"),
        (
            "_accelerator_setAllocatorSettings",
            {"PYTORCH_ALLOC_CONF": "a:1", "PYTORCH_CUDA_ALLOC_CONF": "b:2"},
            f"b:2,{LOCK}",
        ),
        (
            "_cuda_cudaCachingAllocator_set_allocator_settings",
            {"PYTORCH_ALLOC_CONF": "a:1", "PYTORCH_CUDA_ALLOC_CONF": "b:2"},
            f"b:2,{LOCK}",
        ),
        ("_cuda_cudaCachingAllocator_set_allocator_settings", {"PYTORCH_ALLOC_CONF": "a:1"}, LOCK),
        (
            "_accelerator_setAllocatorSettings",
            {"PYTORCH_ALLOC_CONF": "Expandable_Segments : true, a:1, expandable_segments:True"},
            f"a:1,{LOCK},expandable_segments:False",
        ),
        (
            "_accelerator_setAllocatorSettings",
            {
                "PYTORCH_ALLOC_CONF": "expandable_segments:True",
                "PYTORCH_CUDA_ALLOC_CONF": "b:2",
            },
            f"b:2,{LOCK},expandable_segments:False",
        ),
    ],
)
def test_settings_that_torch_has_read_stay_but_expandable_segments(
    setter: str, variables: dict[str, str], settings: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second setter is torch 2.9's, which reads the older variable alone."""
    seen: list[str] = []
    monkeypatch.delattr(torch._C, "_accelerator_setAllocatorSettings", raising=False)
    monkeypatch.setattr(torch._C, setter, seen.append, raising=False)
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    cuda._adjust_settings()
    assert seen == [settings]
