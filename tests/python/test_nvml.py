"""Which GPUs CUDA will show a process, and which of them it shows first."""

from __future__ import annotations

import os

import pytest

from gpushare._settings import nvml
from gpushare._settings.nvml import Gpu, visible_gpus

A, B, C = (Gpu(f"cuda:GPU-{letter * 8}-1111", 80 << 30, "H100") for letter in "abc")
SLOW = C._replace(model="T400")


@pytest.mark.parametrize(
    ("variable", "seen"),
    [
        (None, [A, B, C]),
        ("2,0", [C, A]),
        (" 1 , 2 ", [B, C]),
        ("GPU-bbbbbbbb-1111", [B]),
        ("GPU-c,GPU-a", [C, A]),
        ("0,0", []),  # CUDA shows none then
        ("0,3", []),
        ("", []),
        ("NoDevFiles", []),
        ("GPU-", []),  # the beginning of all
        ("MIG-aaaaaaaa-1111", []),
    ],
)
def test_words_name_gpus_as_cuda_reads_them(
    variable: str | None, seen: list[Gpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "list_gpus", lambda: [A, B, C])
    env = {} if variable is None else {"CUDA_VISIBLE_DEVICES": variable}
    assert visible_gpus(env) == seen


@pytest.mark.parametrize(
    ("env", "seen"),
    [
        ({}, []),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, []),
        ({"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-c"}, [A, SLOW]),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, [A, SLOW]),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"}, [SLOW]),
    ],
)
def test_numbers_mean_nothing_where_models_differ(
    env: dict[str, str], seen: list[Gpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "list_gpus", lambda: [A, SLOW])
    assert visible_gpus(env) == seen


def test_the_first_takes_the_place_of_the_one_that_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    nvml.show_first(C, [A, B, C])
    assert os.environ["CUDA_VISIBLE_DEVICES"] == f"{C.uuid},{B.uuid},{A.uuid}"
    monkeypatch.setattr(nvml, "list_gpus", lambda: [A, B, C])
    assert visible_gpus() == [C, B, A]
    nvml.show_first(C, visible_gpus())
    assert visible_gpus() == [C, B, A]


def test_a_machine_without_the_library_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "_LIBRARY", "libno-such-thing.so.1")
    assert nvml.list_gpus() == []
