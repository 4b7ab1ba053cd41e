"""A part of the device suite: what this machine is, as a JSON object in a file.

`python -m benchmarks.device.describe FILE`. The exit status is 1 if there is no device.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.device import machine
from benchmarks.processes import ROOT, job_environment

SECONDS = 60.0
"""For each question: a first import of torch may read gigabytes, and a driver may hang."""

_ASK_TORCH = """
import json, torch
from benchmarks.device import machine
machine.start()
found = torch.cuda.get_device_properties(0)
print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "device": found.name,
    "device_bytes": found.total_memory, "capability": f"{found.major}.{found.minor}"}))
"""


def facts() -> dict[str, Any]:
    """By name. What cannot be found out is "unknown", with the reason."""
    with machine.device() as env:
        said = _output([sys.executable, "-c", _ASK_TORCH], env)
    found: dict[str, Any] = json.loads(said) if said.startswith("{") else {"device": said}
    found["is_fake"] = machine.is_fake()
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
    """What a command says; if it cannot, that."""
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
    """Writes the file, then looks whether there is a device."""
    Path(sys.argv[1]).write_text(json.dumps(facts()) + "\n")
    if missing := machine.missing():
        raise SystemExit(f"no device to test: {missing}")


if __name__ == "__main__":
    main()
