"""The demo's own coordinator: a child process on a socket in a private folder."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpushare._coordinator.client import CoordinatorClient
from gpushare._settings import config
from gpushare.demo.errors import DemoError
from gpushare.demo.scene_runner import job_environment
from gpushare.errors import CoordinatorUnreachable

_START_TIMEOUT_SECONDS = 10.0
_END_TIMEOUT_SECONDS = 5.0
_LINGER_SECONDS = "60"
"""For a demo that was killed and ends nothing: its coordinator outlives its jobs by this."""
_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class PrivateCoordinator:
    """A coordinator that only the demo's jobs know."""

    socket_path: str
    """Where it listens."""
    client: CoordinatorClient
    """For its status."""

    def job_settings(self) -> dict[str, str]:
        """Returns the environment that leads a job to it and nowhere else."""
        return {"GPUSHARE_SOCKET": self.socket_path, "GPUSHARE_REQUIRE": "1"}


@contextlib.contextmanager
def private_coordinator(
    folder: Path, capacity_bytes: int, min_quantum_seconds: float
) -> Iterator[PrivateCoordinator]:
    """Runs a coordinator while the block runs.

    Args:
        folder: For its socket and log; short enough for a socket's path.
        capacity_bytes: Device memory for all jobs.
        min_quantum_seconds: The shortest lease.

    Raises:
        DemoError: It could not be started; the text has the end of its log.
    """
    program = config.daemon_path()
    if not program:
        raise DemoError("gpushared is not installed beside this package nor on PATH")
    socket_path = str(folder / "sock")
    log_path = folder / "coordinator.log"
    command = [program, "--socket", socket_path, "--capacity", str(capacity_bytes)]
    command += ["--min-quantum-ms", f"{min_quantum_seconds * 1e3:g}", "--linger-s", _LINGER_SECONDS]
    command += ["--accounts-folder", "none"]
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=job_environment({})
        )
    client = CoordinatorClient([socket_path])
    try:
        _wait_until_it_answers(process, client, log_path)
        yield PrivateCoordinator(socket_path, client)
    finally:
        _end(process)


def _wait_until_it_answers(
    process: subprocess.Popen[bytes], client: CoordinatorClient, log_path: Path
) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_SECONDS
    while True:
        try:
            client.status()
        except CoordinatorUnreachable as error:
            if process.poll() is not None or time.monotonic() > deadline:
                log = log_path.read_text(errors="replace").strip()
                raise DemoError(
                    f"the demo's coordinator does not answer: {error}. {log}"
                ) from error
            time.sleep(_POLL_SECONDS)
        else:
            return


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
