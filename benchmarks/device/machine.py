"""The machine that the device suite runs on, and its device: a GPU, or the fake one in its place.

DEVICE_SUITE_FAKE=1 chooses the fake CUDA device of tests/fakecuda: everything runs there, with tiny
sizes, and no figure means anything. The parent of a measurement takes its children's environment
from `device()`; a child calls `start()` after `import torch`. DEVICE_SUITE_DEVICE=1 says that the
suite has seen the device already: looking for it takes seconds of each process that does.

`python -m benchmarks.device.machine FILE` is a part of the suite. It writes what this machine is to
the file, as a JSON object. Its exit status is 1 if there is no device.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT, job_environment

FAKE_BYTES = 2 << 30
MIB = 1 << 20
SECONDS = 60.0
"""The limit of each question: a first import of torch may read gigabytes, and a driver may hang."""

_ASK_TORCH = """
import json, torch
from benchmarks.device import machine
machine.start()
found = torch.cuda.get_device_properties(0)
print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "device": found.name,
    "device_bytes": found.total_memory, "capability": f"{found.major}.{found.minor}"}))
"""


def is_fake() -> bool:
    """Returns whether the fake device was asked for."""
    return os.environ.get("DEVICE_SUITE_FAKE") == "1"


def missing() -> str:
    """Returns why nothing can run here, or "" if it can. Makes no CUDA context."""
    if is_fake() or os.environ.get("DEVICE_SUITE_DEVICE") == "1":
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's warnings about itself are no test's business
        import torch

    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA"
    if not torch.cuda.is_available():
        return "torch sees no CUDA device (DEVICE_SUITE_FAKE=1: the fake one)"
    return ""


@contextlib.contextmanager
def device(**fake_settings: object) -> Iterator[dict[str, str]]:
    """Yields the environment of processes that share the device.

    Args:
        fake_settings: Settings of the fake device, as `fake.environment` takes them.
    """
    if not is_fake():
        yield {"GPUSHARE_ANY_TORCH": "1"}
        return
    from tests.cuda import fake

    shm = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="fakecuda-", dir=shm) as folder:
        settings = {"capacity_bytes": FAKE_BYTES, **fake_settings}
        yield fake.environment(device_file=Path(folder) / "device", **settings) | {
            "GPUSHARE_ANY_TORCH": "1"
        }


def start() -> None:
    """Lets operators run on the device, in a process that has imported torch."""
    if is_fake():
        from tests.cuda import fake

        fake.install_ops()


def size(real: int, fake: int) -> int:
    """Returns the size for a GPU's figures, or the small one that shows that the code works."""
    return fake if is_fake() else real


def facts() -> dict[str, Any]:
    """Returns the facts by name. A fact that cannot be found out is "unknown", with the reason."""
    with device() as env:
        said = _output([sys.executable, "-c", _ASK_TORCH], env)
    found: dict[str, Any] = json.loads(said) if said.startswith("{") else {"device": said}
    found["is_fake"] = is_fake()
    found["driver"] = _output(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], {}
    )
    found["cores"] = len(os.sched_getaffinity(0))
    found["memory_bytes"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found["python"] = platform.python_version()
    found["kernel"] = platform.release()
    found["compiler"] = _output(["c++", "--version"], {}).partition("\n")[0]
    found["commit"] = _output(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"], {})
    return found


def _output(command: list[str], env: dict[str, str]) -> str:
    """Returns a command's output, or "unknown" and why there is none."""
    try:
        done = subprocess.run(
            command,
            env=job_environment(env),
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    except OSError as error:
        return f"unknown ({error.strerror}: {command[0]})"
    except subprocess.TimeoutExpired:
        return f"unknown ({command[0]} said nothing in {SECONDS:g} s)"
    if done.returncode != 0:
        return f"unknown ({(done.stderr.strip() or 'no reason given').splitlines()[-1]})"
    return done.stdout.strip()


def main() -> None:
    """Writes the facts to the file, then looks whether there is a device."""
    Path(sys.argv[1]).write_text(json.dumps(facts()) + "\n")
    if why := missing():
        raise SystemExit(f"no device to test: {why}")


if __name__ == "__main__":
    main()
