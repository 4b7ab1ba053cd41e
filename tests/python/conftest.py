"""What the Python tests share. The test process itself stays on stock torch; what needs gpushare's
allocator or a coordinator runs in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ["GPUSHARE_DISABLE"] = "1"  # before anything imports gpushare

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "gpushare"

Run = Callable[..., subprocess.CompletedProcess[str]]


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


@pytest.fixture
def run_python(tmp_path: Path) -> Run:
    """run_python(code, name="value") runs a script with GPUSHARE_NAME=value; it must succeed.

    Without a socket among the settings it has no coordinator.
    """

    def run(code: str, *, fails: bool = False, **settings: str) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(code))
        ended = subprocess.run(
            [sys.executable, str(script)],
            env=clean_environment(**{"socket": "none", "report": "0"} | settings),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert (ended.returncode != 0) == fails, ended.stdout + ended.stderr
        return ended

    return run


@pytest.fixture
def coordinator(tmp_path: Path, module_is_built: None) -> Iterator[dict[str, str]]:
    """Settings of jobs that meet at a coordinator of their own, with 256 MiB."""
    if not (PACKAGE / "bin" / "gpushared").exists():
        pytest.skip("the daemon is not built")
    # Not below pytest's folder: socket paths are short.
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    yield {
        "socket": str(folder / "sock"),
        "capacity": "256MiB",
        "linger": "0.2",
        "min_quantum": "20ms",
    }
    subprocess.run(["rm", "-rf", str(folder)], check=True)
