"""Jobs that use their memory between iterations, where it may be in the host tier."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.conftest import start_all
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]


@pytest.mark.parametrize("tier", ["ram", "file"])
def test_no_thread_sees_a_wrong_byte_while_memory_moves_in_the_gap(
    tier: str, coordinator: Coordinator, tmp_path: Path
) -> None:
    folder = {"spill_dir": str(tmp_path)} if tier == "file" else {}
    env = coordinator(capacity="96MiB", min_quantum="0", policy="rr", switch_loss="0.5", **folder)
    flags = ["--mib", "64", "--iterations", "24"]
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(
                JobProcess(*flags, "--value", value, env=env, module="tests.e2e.gap_job")
            )
            for value in ("3.5", "-7.25")
        ]
        results = start_all(jobs)
    for result in results:
        assert result["wrong"] == {}
        assert result["num_reads"] > 0
        assert result["stats"]["spilled_total_bytes"] > 0
    assert sum(result["num_away"] for result in results) > 0, "nothing was away in a gap"
