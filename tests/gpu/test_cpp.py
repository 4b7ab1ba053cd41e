"""The C++ tests of the CUDA driver's memory on this machine, each in a process of its own.

An assertion of the core (GS_CHECK) aborts the process it is in. The device suite names the program
(DEVICE_SUITE_CPP_TESTS) and runs this file without the fixtures of the others, which need torch.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator

import pytest

PROGRAM = os.environ.get("DEVICE_SUITE_CPP_TESTS", "")
FILTER = "*Cuda*"
ON_THIS_MACHINE = "CudaOnThisMachine/"
SECONDS = 50

if not PROGRAM:
    pytest.skip("no program of C++ tests (DEVICE_SUITE_CPP_TESTS)", allow_module_level=True)


def _names() -> Iterator[str]:
    done = subprocess.run(
        [PROGRAM, "--gtest_list_tests", f"--gtest_filter={FILTER}"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    suite = ""
    for line in done.stdout.splitlines():
        name = line.partition("#")[0].rstrip()  # then a parameter, if there is one
        if name.endswith(".") and not name.startswith(" "):
            suite = name
        elif name.startswith("  ") and "DISABLED_" not in suite + name:
            yield suite + name.strip()


def _environment(name: str) -> dict[str, str]:
    environment = dict(os.environ)
    if os.environ.get("DEVICE_SUITE_FAKE") == "1" and name.startswith(ON_THIS_MACHINE):
        environment["LD_LIBRARY_PATH"] = os.environ["FAKECUDA_LIBRARIES"]
    return environment


@pytest.mark.parametrize("name", list(_names()))
def test_cpp(name: str) -> None:
    done = subprocess.run(
        [PROGRAM, f"--gtest_filter={name}"],
        env=_environment(name),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=SECONDS,
        check=False,
    )
    if done.returncode < 0:
        signal_name = signal.Signals(-done.returncode).name
        pytest.fail(f"ended by {signal_name}:\n{done.stdout[-4000:]}", pytrace=False)
    assert done.returncode == 0, done.stdout[-4000:]
    if "[  SKIPPED ] 1 test" in done.stdout:
        said = re.search(r"Skipped\n(.*)\n", done.stdout)
        pytest.skip(said[1] if said else "no reason given")
    assert "[  PASSED  ] 1 test" in done.stdout, "no such test ran"
