"""Run as a process: the device suite's runner on parts that stand in for the real ones.

`python -m tests.python.device_rehearsal OUT all` runs parts that end in all ways there are.
`... OUT standing` has three parts, of which the second never ends: its last test hangs.
"""

from __future__ import annotations

import functools
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.device import outcomes, pytest_parts
from benchmarks.device.runner import Runner

if TYPE_CHECKING:
    from benchmarks.device.outcomes import Part

# Far more than a part takes on a busy machine.
PLENTY = 60.0
# The limit of the part that hangs. It begins when the part says that it hangs.
HANG_SECONDS = 1.0
HANGS = "open(os.path.dirname(sys.argv[1]) + '/it hangs', 'w').close()\ntime.sleep(600)"

TESTS = """
import os, pytest, signal, time
def test_first(): pass
def test_fails(): assert 1 == 2, "one is not two"
@pytest.fixture
def broken_end():
    yield
    raise RuntimeError("the end is broken")
def test_with_a_broken_end(broken_end): pass
def test_skipped(): pytest.skip("no such thing here")
"""
KILLED = "def test_killed(): os.kill(os.getpid(), signal.SIGKILL)\n"
HANGING = "def test_hangs(): time.sleep(600)\n"
# The orphan has a session of its own, as a worker of torchrun has. Its parent has ended, as that of
# a daemon.
ORPHAN = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
print("left an orphan", flush=True)
"""
# A shell script that answers as a program of googletest with four tests would. The driver refuses
# something in the second test.
CPP_PROGRAM = """#!/bin/sh
case "$*" in
  *--gtest_list_tests*)
    echo "CudaOnThisMachine/VmmContract/0.  # TypeParam = gpushare::testing::RealCudaMaker"
    printf '  %s\\n' Backs Aborts Fails Skips DISABLED_Waits ;;
  *Backs) echo "[  PASSED  ] 1 test." ;;
  *Aborts) echo "check failed: refused"; kill -ABRT $$ ;;
  *Skips) printf 'a.h:31: Skipped\\nthere is no such device\\n\\n[  SKIPPED ] 1 test, listed:\\n' ;;
  *) echo "Value of: 2"; exit 1 ;;
esac
"""


class RehearsalRunner(Runner):
    """A runner that begins the limit of the part "hangs" when that part says that it hangs."""

    def _wait(self, part: Part, process: subprocess.Popen[bytes], limit: float) -> int:
        says_it_hangs = self.out / "work" / "it hangs"
        deadline = time.monotonic() + PLENTY
        while part.name == "hangs" and process.poll() is None and not says_it_hangs.exists():
            if time.monotonic() > deadline:
                raise RuntimeError(f"the part did not say in {PLENTY:g} s that it hangs")
            time.sleep(0.01)
        return super()._wait(part, process, limit)


class Rehearsal:
    """The parts, which put what they find into a folder."""

    def __init__(self, runner: Runner, folder: Path) -> None:
        self.runner = runner
        self.folder = folder
        folder.mkdir()

    def program(self, name: str, text: str, seconds: float = PLENTY) -> None:
        """A part that may write a benchmark's report to its argument."""
        path = self.folder / f"{name}.json"
        self.runner.run(
            name,
            [sys.executable, "-c", f"import json, os, signal, sys, time\n{text}", str(path)],
            seconds,
            read=functools.partial(outcomes.read_reports, path),
        )

    def tests(self, name: str, text: str, *arguments: str) -> None:
        """A part of tests, run as the suite's own are."""
        program = self.folder / f"test_{name}.py"
        program.write_text(text)
        options = ["--rootdir", str(self.folder), "-c", "/dev/null"]
        self.pytest(name, [*options, *arguments, str(program)])

    def cpp_tests(self) -> None:
        """Those of a program that is none of ours."""
        program = self.folder / "cpp_tests"
        program.write_text(CPP_PROGRAM)
        program.chmod(0o755)
        self.pytest(
            "C++ tests",
            [*pytest_parts.cpp_arguments(), "-n", "0"],
            DEVICE_SUITE_CPP_TESTS=str(program),
        )

    def pytest(self, name: str, arguments: list[str], **env: str) -> None:
        path = pytest_parts.outcomes_file(self.folder, name)
        self.runner.run(
            name,
            pytest_parts.command(*arguments),
            PLENTY,
            env={
                pytest_parts.OUTCOMES_VARIABLE: str(path),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                **env,
            },
            read=functools.partial(outcomes.read_outcomes, path),
        )

    def all(self) -> None:
        """Each way to end."""
        self.program("first", report("first"))
        self.program("segfaults", f"print('so far', flush=True)\n{kill('SIGSEGV')}")
        self.program("killed", kill("SIGKILL"))
        self.program("hangs", f"{report('early')}\n{ORPHAN}\n{HANGS}", HANG_SECONDS)
        self.program("orphans", f"{report('orphans')}\n{ORPHAN}")
        self.program("writes nothing", "pass")
        self.program("writes rubbish", "open(sys.argv[1], 'w').write('{\"reports\": [3]')")
        self.program("fails", "print(*range(100), sep='\\n')\nsys.exit(3)")
        self.tests("tests", TESTS + KILLED)
        self.tests("killed tests", TESTS + KILLED, "-n", "0")
        self.cpp_tests()
        self.runner.run("unbuilt", ["true"], PLENTY, missing="what it needs was not built")
        self.program("last", report("last"))

    def standing(self) -> None:
        """The runner stands still in the second one."""
        self.program("first", report("first"))
        self.tests("standing", TESTS + ORPHAN_TEST + HANGING, "-n", "0")
        self.program("last", report("last"))


ORPHAN_TEST = "def test_leaves_an_orphan():\n" + ORPHAN.replace("\n", "\n    ").rstrip() + "\n"


def report(name: str) -> str:
    """A program that writes a report of one figure."""
    found = {"name": name, "figures": {"figure": 1.5}, "goals": {}, "notes": []}
    return f"open(sys.argv[1], 'w').write(json.dumps({{'reports': [{found}], 'failures': []}}))"


def kill(signal_name: str) -> str:
    """A program that ends itself by a signal."""
    return f"os.kill(os.getpid(), signal.{signal_name})"


def main() -> None:
    """The exit status is 0 if the runner came to its end."""
    out = Path(sys.argv[1])
    with RehearsalRunner(out, "a rehearsal", 20 * PLENTY) as runner:
        rehearsal = Rehearsal(runner, out / "work")
        {"all": rehearsal.all, "standing": rehearsal.standing}[sys.argv[2]]()


if __name__ == "__main__":
    main()
