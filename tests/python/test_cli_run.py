"""``gpushare run``: the environment it makes, the commands it takes, and its sitecustomize."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpushare.cli._options.environment import add_inject_folder, inject_folder, make_environment
from gpushare.cli.run import ignores_environment
from tests.python.conftest import clean_environment


def test_options_become_settings() -> None:
    environment = make_environment(
        {
            "name": "mine",
            "weight": 2.5,
            "memory_limit_bytes": "1GiB",
            "require": False,
            "group": None,
        },
        {"GPUSHARE_GROUP": "theirs", "GPUSHARE_NAME": "old", "HOME": "/h"},
    )
    assert environment == {
        "HOME": "/h",
        "GPUSHARE_NAME": "mine",
        "GPUSHARE_WEIGHT": "2.5",
        "GPUSHARE_MEMORY_LIMIT": "1GiB",
        "GPUSHARE_REQUIRE": "0",
        "GPUSHARE_GROUP": "theirs",
        "GPUSHARE_RUN": "1",
        "PYTHONPATH": inject_folder(),
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weight": 0.0}, "--weight 0.0: allowed"),
        ({"priority": "urgent"}, "--priority urgent: allowed: guaranteed"),
        ({"memory_limit_bytes": "lots"}, "--memory-limit lots: allowed"),
        ({"deadline_seconds": "soon"}, "--deadline soon: allowed"),
        ({"deadline_seconds": "50"}, "--deadline 50: say 50ms or 50s"),
        ({"capacity_bytes": "1"}, "--capacity 1: say 1GiB or 1MiB"),
        ({"capacity_bytes": "1MiB"}, "--capacity 1MiB: allowed"),
        ({"name": "x" * 129}, "--name"),
        ({"name": "3"}, "--name 3: allowed: .* that is not a number"),
        ({"device": "tpu"}, "--device tpu"),
    ],
)
def test_bad_options_are_named(options: dict[str, str | float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_environment(options, {})


def test_pythonpath_keeps_its_entries_once() -> None:
    environment = {"PYTHONPATH": os.pathsep.join(["/a", "", inject_folder()])}
    add_inject_folder(environment)
    assert environment["PYTHONPATH"].split(os.pathsep) == [inject_folder(), "/a", ""]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["train.py", "-I"], False),
        (["-I", "train.py"], True),
        (["-uS", "train.py"], True),
        (["-m", "E"], False),
        (["-X", "importtime", "x.py"], False),
        (["-Ximporttime", "-E"], True),
        (["-X", "dev", "-W", "ignore", "-I", "x.py"], True),
        ([], False),
    ],
)
def test_pythons_that_cannot_be_started_in(arguments: list[str], expected: bool) -> None:
    assert ignores_environment(arguments) == expected


def _run(*words: str, cwd: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpushare", "run", *words],
        env=clean_environment(**settings),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_python_that_cannot_be_a_job_does_not_run_where_one_is_required(tmp_path: Path) -> None:
    command = ("--", sys.executable, "-I", "-c", "print(1)")
    ended = _run(*command, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "1\n")
    assert "runs unmanaged" in ended.stderr
    ended = _run("--require", *command, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "leave the option out" in ended.stderr


def test_arguments_and_exit_code_are_the_programs(tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1:]); sys.exit(7)"
    ended = _run("--name", "x", "--", sys.executable, "-c", code, "--name", "y", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (7, "['--name', 'y']\n")


def test_separator_may_be_left_out(tmp_path: Path) -> None:
    ended = _run("--name", "x", sys.executable, "-c", "print(1)", "--help", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "1\n")


def test_signals_are_the_programs(tmp_path: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    ended = _run(sys.executable, "-c", code, cwd=tmp_path)
    assert ended.returncode == -signal.SIGTERM


def test_command_that_is_not_there(tmp_path: Path) -> None:
    ended = _run("--", "no-such-program", cwd=tmp_path)
    assert ended.returncode == 127
    assert ended.stderr == "gpushare: no-such-program: command not found\n"


def test_script_without_its_python(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    ended = _run("train.py", "--lr", "1", cwd=tmp_path)
    assert ended.returncode == 127
    assert "gpushare run -- python train.py --lr 1" in ended.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#!/gone/python\n", "the interpreter that its first line names is not there"),
        ("text", "it is no program for this machine, and no script that names its interpreter"),
    ],
)
def test_a_program_that_cannot_start(tmp_path: Path, text: str, why: str) -> None:
    """A script whose environment was removed: the kernel says that the script is not there."""
    program = tmp_path / "train"
    program.write_text(text)
    program.chmod(0o700)
    ended = _run("--", str(program), cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (1, f"gpushare: cannot run {program}: {why}\n")


def test_bad_option_is_exit_2_before_the_program_starts(tmp_path: Path) -> None:
    ended = _run("--priority", "urgent", "--", sys.executable, "-c", "print(1)", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")


def _start_with_inject_folder(
    code: str, *path: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    environment = clean_environment(**settings)
    environment["PYTHONPATH"] = os.pathsep.join([inject_folder(), *path])
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


PACKAGE_PATH = clean_environment()["PYTHONPATH"]


def test_hidden_sitecustomize_still_runs_and_ours_leaves_the_path(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.was_here = True")
    code = (
        "import json, sys, sitecustomize\n"
        "print(json.dumps([sys.was_here, sitecustomize.__file__, sys.path]))"
    )
    ended = _start_with_inject_folder(code, str(tmp_path), PACKAGE_PATH, disable="1", run="1")
    was_here, file, path = json.loads(ended.stdout)
    assert was_here is True
    assert file == str(tmp_path / "sitecustomize.py")
    assert inject_folder() not in path


def test_automatic_mode_is_on_without_importing_torch() -> None:
    code = "import sys; print('gpushare.auto' in sys.modules, 'torch' in sys.modules)"
    ended = _start_with_inject_folder(code, PACKAGE_PATH, run="1")
    assert ended.stdout == "True False\n"


def test_python_without_gpushare_goes_on_and_says_so() -> None:
    if _start_with_inject_folder("import gpushare").returncode == 0:
        pytest.skip("gpushare is installed in this Python")
    ended = _start_with_inject_folder("print('trained')", run="1")
    assert (ended.returncode, ended.stdout) == (0, "trained\n")
    assert "it goes on unmanaged" in ended.stderr
    ended = _start_with_inject_folder("print('trained')", run="1", require="1")
    assert (ended.returncode, ended.stdout) == (3, "")
