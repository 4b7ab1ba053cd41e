"""Each call of the driver in a spill and a restore fails once: an error, and nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.processes import private_coordinator
from tests.cuda import fake
from tests.cuda.conftest import run_module

MIB = 1 << 20
CREATING = ("cuMemCreate", "cuMemMap", "cuMemSetAccess")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the one process says that meets all these failures."""
    file = tmp_path_factory.mktemp("device") / "memory"
    with private_coordinator(require="1") as coordinator:
        env = fake.environment(capacity_bytes=128 * MIB, device_file=file) | coordinator
        return run_module("tests.cuda.failing_job", env)


def test_each_call_that_fails_is_an_error_and_loses_nothing(result: dict[str, Any]) -> None:
    assert result["wrong"] == []
    assert result["violations"] == []
    assert sum(result["counts"].values()) > 40
    # The rest is put right at once or later: pinning, what was not released, a thread's context.
    assert len(result["messages"]) > result["num_faults"] / 3
    out_of_memory = [text for text in result["messages"].values() if "Memory" in text.split(":")[0]]
    assert 0 < len(out_of_memory) < len(result["messages"]) / 2


def test_the_process_trains_on_to_the_right_results(result: dict[str, Any]) -> None:
    assert result["digest"] == result["alone"]


def test_a_segment_that_the_driver_fails_to_make_is_an_error_of_its_kind(
    result: dict[str, Any],
) -> None:
    errors = result["growth"]
    # Where memory is short for a moment only, torch asks again.
    assert set(errors) == {*(f"{name}:1:999" for name in CREATING), "cuMemCreate:2:999", "full"}
    assert errors.pop("full").startswith("OutOfMemoryError: CUDA out of memory")
    for text in errors.values():
        assert text.startswith("AcceleratorError: CUDA error")
    assert "a segment was refused: allocate 24.0 MiB" in result["stderr"]
    assert "create 8.0 MiB after 16.0 MiB: CUDA_ERROR_UNKNOWN" in result["stderr"]
