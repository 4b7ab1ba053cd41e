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


@pytest.mark.parametrize(
    ("variable", "place", "after"),
    [
        (None, 0, None),
        (None, 2, "2,0,1"),
        ("2,0", 1, "0,2"),
        ("GPU-c,GPU-a,GPU-b", 1, "GPU-a,GPU-b,GPU-c"),
        ("2,0", 0, "2,0"),
    ],
)
def test_one_is_shown_first_in_the_words_that_were_there(
    variable: str | None, place: int, after: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "list_gpus", lambda: [A, B, C])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if variable is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    before = visible_gpus()
    nvml.show_first(place)
    found = os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    assert found == after
    monkeypatch.setattr(os, "environ", {} if found is None else {"CUDA_VISIBLE_DEVICES": found})
    assert visible_gpus()[0] == before[place]


def test_a_machine_without_the_library_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "_LIBRARY", "libno-such-thing.so.1")
    assert nvml.list_gpus() == []
