"""Processes of tests that are forked behave as those that are started."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python.conftest import clean_environment
from tests.support import forked

PIPE = subprocess.PIPE
SAYS = "import os, sys; print(*sys.argv[1:], os.environ['GPUSHARE_NAME'], 'torch' in sys.modules)"


@pytest.fixture
def env() -> dict[str, str]:
    return clean_environment(disable="1", name="mine")


@pytest.mark.parametrize("kind", ["-c", "-m", "file"])
def test_a_program_has_its_words_environment_and_folder(
    kind: str, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(f"{SAYS}; print(os.getcwd(), __name__)")
    code = f"{SAYS}; print(os.getcwd(), __name__)"
    words = {"-c": ["-c", code], "-m": ["-m", "program"], "file": ["program.py"]}[kind]
    ended = forked.run([*words, "one", "two"], env, cwd=tmp_path)
    assert ended.stderr == ""
    assert ended.stdout == f"one two mine True\n{tmp_path} __main__\n"


def test_the_same_is_heard_of_an_end_as_from_a_new_process(env: dict[str, str]) -> None:
    ends = {
        "pass": 0,
        "raise SystemExit(7)": 7,
        "import atexit; atexit.register(print, 'at exit'); 1 / 0": 1,
        "raise KeyboardInterrupt": -signal.SIGINT,
        "import os; os.abort()": -signal.SIGABRT,
    }
    for code, status in ends.items():
        ended = forked.run(["-c", code], env)
        assert ended.returncode == status, code
        assert ("at exit" in ended.stdout) == ("at exit" in code)


def test_both_talk_until_one_is_killed(env: dict[str, str]) -> None:
    code = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"
    with forked.start(["-c", code], env, stdin=PIPE, stdout=PIPE) as process:
        process.stdin.write("hear\n")
        process.stdin.flush()
        assert process.stdout.readline() == "HEAR\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
        process.kill()  # it has ended: nothing happens


def test_all_that_is_said_is_there_however_much_it_is(env: dict[str, str]) -> None:
    code = "import sys; sys.stderr.write('e' * 200_000); print(sys.stdin.read() * 100_000)"
    process = forked.start(["-c", code], env, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    out, errors = process.communicate("xy")
    assert (len(out), len(errors), process.returncode) == (200_001, 200_000, 0)


def test_what_a_library_reads_when_it_is_loaded_needs_a_new_process(env: dict[str, str]) -> None:
    code = "import os, sys; print(os.getppid(), 'torch' in sys.modules)"
    forked.start(["-c", "pass"], env).wait()
    process = forked.start(["-c", code], env | {"OMP_NUM_THREADS": "3"}, stdout=PIPE)
    assert isinstance(process, subprocess.Popen)
    parent, has_torch = process.communicate()[0].split()
    assert (int(parent), has_torch) != (forked.zygote_pid(), "True")
    assert sys.executable in process.args
