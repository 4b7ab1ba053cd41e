"""Another user's process listens where a job looks for its coordinator: it is told nothing."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpushare._coordinator.client import CoordinatorClient
from gpushare.errors import CoordinatorUnreachable
from tests.hostile.shared_box import STRANGER, StrangerProcess

PATIENCE_SECONDS = 30.0

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users"),
    pytest.mark.usefixtures("module_is_built"),
]


class Stranger:
    """A process of another user that accepts whoever comes and keeps all that it is sent."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "sock")
        self._heard = folder / "heard"
        ready_in, ready_out = os.pipe()
        self._process = StrangerProcess(lambda: self._listen(ready_out))
        os.close(ready_out)
        assert os.read(ready_in, 1) == b"x"
        os.close(ready_in)

    def heard(self) -> bytes:
        """All that anybody has sent, with a ``+`` for each connection. Waits for the first one."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not (heard := self._heard.read_bytes()):
            assert time.monotonic() < end, "nobody came"
            time.sleep(0.005)
        return heard

    def end(self) -> None:
        self._process.kill()

    def _listen(self, ready: int) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(self.path)
        Path(self.path).chmod(0o666)
        listener.listen()
        with self._heard.open("wb", buffering=0) as heard:
            os.write(ready, b"x")
            while True:
                connection, _ = listener.accept()
                heard.write(b"+")
                with connection:
                    while sent := connection.recv(1 << 16):
                        heard.write(sent)


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    # Anybody can make /tmp/gpushare-UID first, as here. pytest's folder lets nobody else in.
    folder = Path(tempfile.mkdtemp(prefix="gpushare-"))
    os.chown(folder, STRANGER, STRANGER)
    process = Stranger(folder)
    yield process
    process.end()
    shutil.rmtree(folder)


def test_a_job_goes_on_unmanaged_and_says_who_listens(run_forked, stranger: Stranger) -> None:
    ended = run_forked(
        """
import gpushare, torch
job = gpushare.register(torch.nn.Linear(4, 4))
assert not job.is_managed
""",
        socket=stranger.path,
    )
    assert stranger.heard() == b"+"
    first, second = ended.stderr.splitlines()
    assert f"who listens at {stranger.path} is user nobody ({STRANGER}), neither you" in first
    assert f"Have {Path(stranger.path).parent} removed" in first
    assert second.startswith("gpushare: Training goes on unmanaged.")


def test_the_command_line_says_who_listens(stranger: Stranger) -> None:
    with pytest.raises(CoordinatorUnreachable) as caught:
        CoordinatorClient([stranger.path]).status()
    assert f"{stranger.path} (who listens there is user nobody ({STRANGER})" in str(caught.value)
    assert stranger.heard() == b"+"
