"""A CUDA tensor handed to another process."""

from __future__ import annotations

from benchmarks.processes import JobProcess, private_coordinator

MODULE = "tests.gpu.sharing_job"


def test_a_tensor_in_a_queue_arrives_and_its_sender_moves_on(device: dict[str, str]) -> None:
    with (
        private_coordinator(require="1") as gpushare_env,
        JobProcess(env=device | gpushare_env, module=MODULE) as job,
    ):
        said = job.say()
    assert said["sender_error"] == ""
    assert said["answer"] == 1 << 20
    assert said["is_equal_after_spill"]
