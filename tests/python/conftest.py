"""What the Python tests share. The test process itself stays on stock torch; what needs gpushare's
allocator or a coordinator runs in a process of its own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import forked

# A background job of a shell ignores Ctrl-C, and so would what a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["GPUSHARE_DISABLE"] = "1"  # before anything imports gpushare

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "gpushare"
DEFAULTS = {"socket": "none", "report": "0"}

Completed = subprocess.CompletedProcess[str]
Run = Callable[..., Completed]


def clean_environment(**settings: str) -> dict[str, str]:
    """This environment without gpushare's settings, and with these: name="value"."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GPUSHARE_")}
    env["PYTHONPATH"] = str(ROOT / "python")
    env["OMP_NUM_THREADS"] = "1"
    return env | {f"GPUSHARE_{name.upper()}": value for name, value in settings.items()}


@pytest.fixture
def module_is_built() -> None:
    """Skips where the compiled module is missing."""
    if not list(PACKAGE.glob("_C*.so")):
        pytest.skip("the compiled module is not built")


def _write(folder: Path, code: str) -> Path:
    script = folder / "script.py"
    script.write_text(textwrap.dedent(code))
    return script


def _check(ended: subprocess.CompletedProcess[str], *, fails: bool) -> Completed:
    assert (ended.returncode != 0) == fails, ended.stdout + ended.stderr
    return ended


@pytest.fixture
def run_python(tmp_path: Path) -> Run:
    """run_python(code, name="value") runs a script in a new Python, with GPUSHARE_NAME=value.

    It must succeed, or fail if ``fails``. Without a socket setting it has no coordinator.
    """

    def run(code: str, *, fails: bool = False, **settings: str) -> Completed:
        ended = subprocess.run(
            [sys.executable, str(_write(tmp_path, code))],
            env=clean_environment(**DEFAULTS | settings),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return _check(ended, fails=fails)

    return run


@pytest.fixture
def run_forked(tmp_path: Path) -> Run:
    """As ``run_python``, in a hundredth of the time, for scripts that do not mind torch loaded."""

    def run(code: str, *, fails: bool = False, **settings: str) -> Completed:
        words = [str(_write(tmp_path, code))]
        ended = forked.run(words, clean_environment(**DEFAULTS | settings))
        return _check(ended, fails=fails)

    return run


@pytest.fixture
def coordinator(module_is_built: None) -> Iterator[dict[str, str]]:
    """Settings of jobs that meet at a coordinator of their own, with 256 MiB."""
    if not (PACKAGE / "bin" / "gpushared").exists():
        pytest.skip("the daemon is not built")
    # Not below pytest's folder: socket paths are short.
    folder = Path(tempfile.mkdtemp(prefix="gpushare-"))
    socket = folder / "sock"
    yield {"socket": str(socket), "capacity": "256MiB", "linger": "200ms", "min_quantum": "20ms"}
    its_files = (socket, folder / "sock.jobs")
    deadline = time.monotonic() + 30
    while any(file.exists() for file in its_files) and time.monotonic() < deadline:
        time.sleep(0.01)  # the coordinator lingers, and then takes its files away itself
    assert not any(file.exists() for file in its_files), "the coordinator outlives its jobs"
    shutil.rmtree(folder)


@pytest.fixture
def watch():
    """watch(model, *optimizers) -> a Watched, whose hooks are gone after the test."""
    from tests.python.watched import Watched

    watched = []

    def start(model, *optimizers):
        watched.append(Watched(model, optimizers))
        return watched[-1]

    yield start
    for one in reversed(watched):
        one.watcher.detach()
