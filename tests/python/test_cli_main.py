"""The command as a whole: help, version, exit codes, and that nothing imports torch at start."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from gpushare._coordinator import identity
from gpushare.cli import main
from gpushare.cli._screen.terminal import take_no_color
from gpushare.cli.app import COMMANDS
from gpushare.version import __version__
from tests.python.conftest import clean_environment


def _gpushare(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpushare", *arguments],
        env=clean_environment(**settings),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_names_each_subcommand() -> None:
    ended = _gpushare("--help")
    assert ended.returncode == 0
    assert all(name in ended.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_subcommand_has_help_without_torch(name: str) -> None:
    code = (
        f"import sys; sys.argv = ['gpushare', {name!r}, '--help']\n"
        "import atexit; atexit.register(lambda: print('torch' in sys.modules))\n"
        "from gpushare.cli.main import main\n"
        "main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "False"


def test_version() -> None:
    assert _gpushare("version").stdout.startswith(f"gpushare {__version__} (Python 3.")
    assert json.loads(_gpushare("version", "--json").stdout)["version"] == __version__


def test_the_option_version_says_the_same() -> None:
    assert _gpushare("--version").stdout == _gpushare("version").stdout


@pytest.mark.parametrize("words", [(), ("why",), ("coordinator",), ("coordinator", "stop")])
def test_h_is_help(words: tuple[str, ...]) -> None:
    short, long = _gpushare(*words, "-h"), _gpushare(*words, "--help")
    assert short.returncode == 0
    assert short.stdout == long.stdout


@pytest.mark.parametrize(
    ("arguments", "left", "is_off"),
    [
        (["--no-color", "status"], ["status"], True),
        (["status", "--no-color", "--json"], ["status", "--json"], True),
        (["--no-color", "run", "--", "x", "--no-color"], ["run", "--", "x", "--no-color"], True),
        (["run", "x", "--no-color"], ["run", "x", "--no-color"], False),
        (["status"], ["status"], False),
    ],
)
def test_no_color_is_taken_wherever_it_is_ours(
    arguments: list[str], left: list[str], is_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    assert take_no_color(arguments) == left
    assert os.environ["NO_COLOR"] == ("1" if is_off else "")


@pytest.mark.parametrize("arguments", [("nonsense",), ("version", "--nonsense"), ("run",)])
def test_wrong_usage_is_exit_2(arguments: tuple[str, ...]) -> None:
    assert _gpushare(*arguments).returncode == 2


def test_bad_setting_is_exit_2_in_one_line() -> None:
    ended = _gpushare("status", weight="heavy")
    assert ended.returncode == 2
    assert ended.stderr.startswith("gpushare: GPUSHARE_WEIGHT: bad value 'heavy'")
    assert ended.stderr.count("\n") == 1


def test_reader_that_has_enough_causes_no_traceback() -> None:
    command = f"{sys.executable} -m gpushare --help | true"
    ended = subprocess.run(
        ["bash", "-c", command],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in ended.stderr


def test_other_project_of_our_name_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpushare", "version"])
    monkeypatch.setitem(sys.modules, "gpushare.cli.app", None)  # overwritten by it
    with pytest.raises(ImportError):
        main.main()
    monkeypatch.setattr(identity, "installed_version", lambda _name: "0.1")
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith('gpushare: this is the PyPI project "gpushare", not')
