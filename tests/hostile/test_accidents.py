"""Accidents of whoever starts a coordinator: it goes on, or ends with one line."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from pathlib import Path

from tests.hostile.shared_box import DAEMON, PATIENCE_SECONDS, shared_box


def test_a_configuration_without_end_is_refused(tmp_path: Path) -> None:
    """The daemon read /dev/zero until the machine had no memory left."""

    def bound_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    ended = subprocess.run(
        [str(DAEMON), "--socket", str(tmp_path / "s")],
        env={"GPUSHARE_CONFIG": "/dev/zero"},
        preexec_fn=bound_memory,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert (ended.returncode, ended.stderr) == (
        2,
        "gpushared: /dev/zero has more than 1 MiB, so it is no file of settings\n",
    )


def test_a_soft_limit_of_processor_time_ends_no_coordinator() -> None:
    """`ulimit -St` of the shell whose job started the coordinator. The kernel sends this signal."""
    with shared_box() as box:
        os.kill(box.pid, signal.SIGXCPU)
        assert box.answers()
