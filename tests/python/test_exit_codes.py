"""Every command's exit codes (docs/exit_codes.md), and that each error is one line.

The commands run as processes that are forked from one that has imported the command line
(command_server.py). One test for each command starts a new Python, as a user's shell does.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from gpushare.cli.app import make_app
from gpushare.cli.exit_code import COMMAND_NOT_FOUND, INTERRUPTED, ExitCode
from tests.python.conftest import ROOT, Completed, clean_environment
from tests.python.fake_coordinator import FakeCoordinator, make_report


class Row(NamedTuple):
    """A command: what to call it with, and how it ends then."""

    arguments: tuple[str, ...] = ()
    """Rightly used; "JOB" is a job."""
    wrong_setting: int | None = ExitCode.USAGE
    """None: it reads no settings."""
    alone: int | None = None
    """Without a coordinator. None: it needs none."""
    refused: int | None = None
    """The coordinator says no. None: it is asked for nothing that it could refuse."""


OF_A_JOB = {"alone": ExitCode.UNREACHABLE, "refused": ExitCode.REFUSED}

# One row a command: a new command needs one.
ROWS = {
    "run": Row(("--", sys.executable, "-c", "print('ran')")),
    "status": Row(alone=ExitCode.UNREACHABLE),
    "top": Row(("--once",), alone=ExitCode.UNREACHABLE),
    "ps": Row(alone=ExitCode.UNREACHABLE),
    "why": Row(("JOB",), **OF_A_JOB),
    "history": Row(wrong_setting=None),
    "report": Row(("nobody",), wrong_setting=None),
    "usage": Row(wrong_setting=None),
    "set": Row(("JOB", "--weight", "2"), **OF_A_JOB),
    "pause": Row(("JOB",), **OF_A_JOB),
    "resume": Row(("JOB",), **OF_A_JOB),
    "policy": Row(("rr",), **OF_A_JOB),
    "limit": Row(("JOB", "1GiB"), **OF_A_JOB),
    "coordinator start": Row(),
    "coordinator stop": Row(**OF_A_JOB),
    "coordinator log": Row(alone=ExitCode.ERROR),
    "admin install": Row(wrong_setting=None),
    "admin uninstall": Row(wrong_setting=None),
    "verify": Row(("--", sys.executable, "-c", "")),
    "simulate": Row(("trace.csv",), wrong_setting=None),
    "demo": Row(wrong_setting=None),
    "doctor": Row(wrong_setting=ExitCode.ERROR),
    "exporter": Row(),
    "dashboard": Row(),
    "trace record": Row(("-o", os.devnull), alone=ExitCode.UNREACHABLE),
    "trace merge": Row(("trace.csv", "-o", os.devnull), wrong_setting=None),
    "slurm print-config": Row(("prolog",), wrong_setting=None),
    "k8s device-plugin": Row(wrong_setting=None),
    "k8s coordinators": Row(),
    "k8s print-manifest": Row(wrong_setting=None),
    "ray up": Row(wrong_setting=None),
    "ray status": Row(wrong_setting=None),
    "ray down": Row(wrong_setting=None),
    "version": Row(wrong_setting=None),
}


def commands(group: object = None, prefix: str = "") -> set[str]:
    """The names of all commands that do something."""
    known = getattr(group or typer.main.get_command(make_app()), "commands", None)
    if known is None:
        return {prefix.strip()}
    return set().union(*(commands(each, f"{prefix} {name}") for name, each in known.items()))


def _environment(**settings: str) -> dict[str, str]:
    return clean_environment(**{"config": os.devnull, **settings})


Gpushare = Callable[..., Completed]


@pytest.fixture(scope="module")
def gpushare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gpushare]:
    """gpushare(command, argument, name="value") runs a command with GPUSHARE_NAME=value.

    With stdout=PATH the command writes there, and not to a file that is read afterwards.
    """
    folder = tmp_path_factory.mktemp("said")
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("command_server.py"))],
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    requests, answers = server.stdin, server.stdout

    def run(
        command: str, *arguments: str, stdout: Path | None = None, **settings: str
    ) -> Completed:
        out, errors = stdout or folder / "stdout", folder / "stderr"
        words = [*command.split(), *arguments]
        request = {"words": words, "env": _environment(**settings)}
        files = {"stdout": str(out), "stderr": str(errors)}
        requests.write(json.dumps(request | files) + "\n")
        requests.flush()
        code = int(answers.readline())
        text = "" if stdout else out.read_text()
        return subprocess.CompletedProcess(words, code, text, errors.read_text())

    with server:
        yield run
        requests.close()
    assert server.returncode == 0


def _check(ended: Completed, code: int, said: str = "") -> None:
    assert ended.returncode == code, ended.stdout + ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith("gpushare: ")
    assert said in line


def rows_with(field: str) -> list[str]:
    """The commands whose row says something of this."""
    return [name for name, row in ROWS.items() if getattr(row, field) is not None]


def test_each_command_has_a_row() -> None:
    assert commands() == set(ROWS)


@pytest.mark.parametrize("command", ROWS)
def test_an_unknown_option_is_exit_2(command: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "gpushare", *command.split(), "--nonsense"],
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    _check(ended, ExitCode.USAGE, "No such option: --nonsense")


@pytest.mark.parametrize("command", ["", "coordinator"])
def test_an_unknown_command_is_exit_2(command: str, gpushare: Gpushare) -> None:
    _check(gpushare(command, "nonsense"), ExitCode.USAGE, "No such command 'nonsense'")


@pytest.mark.parametrize("command", ["", "coordinator"])
def test_no_command_is_exit_2_and_shows_which_there_are(command: str, gpushare: Gpushare) -> None:
    ended = gpushare(command)
    assert (ended.returncode, ended.stderr) == (ExitCode.USAGE, "")
    assert f"Usage: gpushare {command}".strip() in ended.stdout


@pytest.mark.parametrize("command", rows_with("wrong_setting"))
def test_a_wrong_setting_is_said(command: str, tmp_path: Path, gpushare: Gpushare) -> None:
    code = ROWS[command].wrong_setting
    assert code is not None
    settings = {"weight": "heavy", "socket": str(tmp_path / "sock")}
    ended = gpushare(command, *ROWS[command].arguments, **settings)
    if command == "doctor":  # its findings are its output
        assert (ended.returncode, ended.stderr) == (code, "")
        assert "fail  settings: GPUSHARE_WEIGHT: bad value 'heavy'" in ended.stdout
    else:
        _check(ended, code, "GPUSHARE_WEIGHT: bad value 'heavy'")
        assert not ended.stdout


@pytest.mark.parametrize(
    ("command", "content"),
    [
        ("run", b"[job"),
        ("run", b"\xff"),
        ("run", None),
        ("status", b"[job"),
        ("coordinator start", b"[job"),
    ],
)
def test_a_file_that_cannot_be_read_is_exit_2(
    command: str, content: bytes | None, tmp_path: Path, gpushare: Gpushare
) -> None:
    file = tmp_path / "c.toml"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    ended = gpushare(command, *ROWS[command].arguments, config=str(file))
    _check(ended, ExitCode.USAGE, str(file))


@pytest.mark.parametrize("command", rows_with("alone"))
def test_without_a_coordinator(command: str, tmp_path: Path, gpushare: Gpushare) -> None:
    code = ROWS[command].alone
    assert code is not None
    ended = gpushare(command, *ROWS[command].arguments, socket=str(tmp_path / "sock"))
    _check(ended, code, str(tmp_path))


@pytest.mark.parametrize("job", ["99", "nosuch"])
@pytest.mark.parametrize("command", [name for name in ROWS if "JOB" in ROWS[name].arguments])
def test_an_unknown_job_is_exit_4(
    command: str, job: str, tmp_path: Path, gpushare: Gpushare
) -> None:
    arguments = [job if word == "JOB" else word for word in ROWS[command].arguments]
    refusal = {"v": 1, "type": "refused", "reason": "there is no job 99. See: gpushare status"}
    with FakeCoordinator(tmp_path / "sock", make_report(), refusal) as fake:
        ended = gpushare(command, *arguments, socket=fake.path)
    _check(ended, ExitCode.REFUSED, "no job")


@pytest.mark.parametrize("command", rows_with("refused"))
def test_what_the_coordinator_refuses(command: str, tmp_path: Path, gpushare: Gpushare) -> None:
    code = ROWS[command].refused
    assert code is not None
    arguments = ["gpt" if word == "JOB" else word for word in ROWS[command].arguments]
    refusal = {"v": 1, "type": "refused", "reason": "you may not"}
    answers = [make_report(), refusal] if "gpt" in arguments else [refusal]
    with FakeCoordinator(tmp_path / "sock", *answers) as fake:
        ended = gpushare(command, *arguments, socket=fake.path)
    _check(ended, code, "you may not")


def test_a_missing_program_is_exit_127(gpushare: Gpushare) -> None:
    for command in ("run", "verify"):
        _check(gpushare(command, "--", "no-such-program"), COMMAND_NOT_FOUND, "command not found")


def test_a_full_disk_is_exit_1_in_one_line(gpushare: Gpushare) -> None:
    ended = gpushare("version", stdout=Path("/dev/full"))
    assert (ended.returncode, ended.stderr) == (1, "gpushare: No space left on device\n")


def _documented(text: str) -> tuple[set[int], dict[str, set[int]]]:
    """The codes of the first table, and those of each command in the second."""
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    of_commands = {
        name: {int(code) for code in re.findall(r"\d+", row)}
        for name, row in re.findall(r"^\| `([a-z0-9 -]+)` \| (.*) \|$", text, re.MULTILINE)
    }
    return codes, of_commands


def test_the_document_has_these_codes() -> None:
    codes, of_commands = _documented((ROOT / "docs" / "exit_codes.md").read_text())
    assert codes == {*map(int, ExitCode), COMMAND_NOT_FOUND, INTERRUPTED}
    assert set(of_commands) == set(ROWS)
    for name, row in ROWS.items():
        tested = {ExitCode.USAGE, row.wrong_setting, row.alone, row.refused} - {None}
        assert tested <= of_commands[name], name
