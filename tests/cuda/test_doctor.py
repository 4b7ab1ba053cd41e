"""``gpushare doctor`` on a machine with a CUDA device."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.cuda import fake
from tests.cuda.programs import run

MIB = 1 << 20


def _findings(**variables: Any) -> tuple[int, dict[str, dict[str, str]]]:
    env = fake.environment(capacity_bytes=256 * MIB, GPUSHARE_SOCKET="none", **variables)
    ended = run("-m", "gpushare", "doctor", "--json", env=env)
    assert ended.stdout, ended.stderr
    found = json.loads(ended.stdout)["findings"]
    return ended.returncode, {finding["name"]: finding for finding in found}


def test_says_which_device_and_that_its_memory_comes_from_gpushare() -> None:
    code, found = _findings()
    assert code == 0
    cuda = found["cuda"]
    assert cuda["level"] == "ok"
    assert cuda["text"].startswith("cuda:GPU-fafafafa-")
    assert "(Fake CUDA device (host memory)), driver of CUDA 13.0, torch 1" in cuda["text"]
    assert "cudaMalloc is gpushare's, expandable segments are off" in cuda["text"]
    assert cuda["text"].endswith("spilled memory can be reached")
    assert found["allocator"]["text"] == "torch's CUDA tensors come from gpushare's"
    assert found["checksum"]["level"] == "ok"


def test_a_part_of_a_gpu_is_named_as_one() -> None:
    code, found = _findings(FAKECUDA_NAME="NVIDIA H100 80GB HBM3 MIG 1g.10gb")
    assert code == 0
    assert found["cuda"]["text"].startswith("cuda:MIG-fafafafa-")
    assert found["checksum"]["level"] == "ok"


def test_says_where_spilled_memory_is_not_mapped() -> None:
    for switch in ({"FAKECUDA_HOST_NUMA": "0"}, {"GPUSHARE_REACHABLE": "off"}):
        _, found = _findings(**switch)
        assert found["cuda"]["text"].endswith("spilled memory is not mapped"), switch


def test_tries_the_device_that_is_shared() -> None:
    code, found = _findings(num_devices=2, GPUSHARE_DEVICE="cuda:1")
    assert code == 0
    assert found["cuda"]["level"] == "ok"
    assert found["allocator"]["text"] == "torch's CUDA tensors come from gpushare's"
    assert found["checksum"]["level"] == "ok"


def test_the_capacity_is_held_against_the_devices_memory() -> None:
    code, found = _findings(GPUSHARE_CAPACITY="512MiB")
    assert code == 1
    assert found["memory"]["level"] == "ok"
    assert found["capacity"]["text"] == "512.0 MiB, and the device has 256.0 MiB"


def test_mps_is_named_where_cuda_would_find_its_control_daemon(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "control")
    code, found = _findings(CUDA_MPS_PIPE_DIRECTORY=str(tmp_path))
    assert code == 0, "jobs work all the same"
    assert found["mps"]["level"] == "warn"
    assert str(tmp_path) in found["mps"]["text"]
    assert found["checksum"]["level"] == "ok"


def test_says_what_keeps_gpushare_from_the_device() -> None:
    code, found = _findings(PYTORCH_ALLOC_CONF="backend:cudaMallocAsync")
    assert code == 1
    assert "PYTORCH_ALLOC_CONF sets backend:cudaMallocAsync" in found["torch"]["text"]
