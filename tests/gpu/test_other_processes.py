"""A CUDA tensor handed to another process."""

from __future__ import annotations

import pytest

from benchmarks.processes import JobProcess, private_coordinator

MODULE = "tests.gpu.sharing_job"


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason='seen: "CUDA error: invalid argument" in the sender, by cudaIpcGetMemHandle, which '
    "knows no memory of cuMemCreate; nothing names gpushare, or says what to do",
)
def test_a_tensor_in_a_queue_arrives_or_its_sender_hears_why(device: dict[str, str]) -> None:
    with (
        private_coordinator(require="1") as gpushare_env,
        JobProcess(env=device | gpushare_env, module=MODULE) as job,
    ):
        said = job.say()
    assert said["answer"] == 1 << 20 or "gpushare" in said["sender_error"], said
