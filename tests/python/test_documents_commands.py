"""What the documents tell people to type is what the programs take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer

from benchmarks.run import NAMES
from gpushare._settings.settings import SETTINGS
from gpushare.cli.app import COMMANDS, make_app
from tests.support.documents import ROOT, calls, command_lines, documents, inline_commands

APP = typer.main.get_command(make_app())
OPTIONS = {"--" + each.argument.replace("_", "-"): each for each in SETTINGS}
NO_LIMIT = "none"
EARLIER = {"CHANGELOG.md"}
"""Documents of earlier versions, too."""


def _calls(
    *programs: str, read: Callable[[str], Iterator[str]] = command_lines
) -> Iterator[tuple[str, list[str]]]:
    for path in documents():
        if path.name not in EARLIER:
            for line in read(path.read_text()):
                for words in calls(line, *programs):
                    yield f"{path.relative_to(ROOT)}: {line.strip()}", words


def parse(arguments: list[str]) -> None:
    """Parses a command line and runs nothing.

    Raises:
        Exception: It is none that gpushare takes.
    """
    command: Any = APP
    context = typer.Context(APP, info_name="gpushare")
    while arguments and arguments[0] in getattr(command, "commands", ()):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    if not arguments and hasattr(command, "commands"):
        return  # a group, which is named as such
    if command is APP:
        assert arguments[0] in {"--version", "-h", "--help"}, f"no command {arguments[0]}"
        return
    context = command.make_context(command.name, list(arguments), parent=context)
    if command.name == "simulate":  # takes several policies
        return
    for parameter in command.params:
        value = context.params[parameter.name]
        setting = OPTIONS.get(parameter.opts[0])
        if setting is not None and isinstance(value, str) and value not in {"", NO_LIMIT}:
            setting.parse(value)


def _problem(arguments: list[str]) -> Exception | None:
    try:
        parse(arguments)
    except typer.Exit:  # --help
        return None
    except Exception as error:  # typer's copy of click exports no errors
        return error
    return None


def test_each_command_line_is_one_that_gpushare_takes() -> None:
    found = {where: arguments for where, (_, *arguments) in _calls("gpushare")}
    problems = {where: _problem(arguments) for where, arguments in found.items()}
    assert {where: error for where, error in problems.items() if error} == {}
    named = {arguments[0] for arguments in found.values()}
    assert named >= set(COMMANDS), "the pattern finds some no more"


def test_each_command_in_a_sentence_is_one_that_gpushare_takes() -> None:
    """There an argument may be left out, as in "`gpushare run` starts a program"."""
    problems = {}
    for where, (_, *arguments) in _calls("gpushare", read=inline_commands):
        if arguments[0] == "COMMAND":
            continue
        error = _problem(arguments)
        may_be = type(error).__name__ == "MissingParameter" or "requires an argument" in str(error)
        if error is not None and not may_be:
            problems[where] = error
    assert problems == {}


@pytest.mark.parametrize(
    "line",
    [
        "gpushare nosuch",
        "gpushare run --nosuch -- python x.py",
        "gpushare run --deadline 50 -- python x.py",
        "gpushare set JOB --priority urgent",
        "gpushare why",
        "GPUSHARE_LOG=debug sudo gpushare status --watch often",
    ],
)
def test_a_command_line_that_gpushare_does_not_take_is_found(line: str) -> None:
    ((_, *arguments),) = calls(line, "gpushare")
    with pytest.raises(Exception, match=r"\w"):  # of typer's copy of click, or an assertion
        parse(arguments)


def test_the_coordinators_options_are_there() -> None:
    source = "".join(
        (ROOT / "csrc/daemon/config" / name).read_text() for name in ("settings.cpp", "settings.h")
    )
    own = {"--arbiter", "--listen", "--config", "--daemonize", "--version"}
    known = set(re.findall(r'"(--[a-z-]+)"', source)) | own
    named = {
        word.partition("=")[0]
        for _, words in (*_calls("gpushared"), *_calls("gpushared", read=inline_commands))
        for word in words
        if word.startswith("--")
    }
    assert named
    assert named <= known


def test_each_target_of_make_is_there() -> None:
    known = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        word
        for _, words in (*_calls("make"), *_calls("make", read=inline_commands))
        for word in words[1:]
        if "=" not in word and not word.startswith("-")
    }
    assert {"demo", "test"} <= named
    assert named <= known


def test_each_benchmark_is_there() -> None:
    text = "\n".join(path.read_text() for path in documents())
    named = set(re.findall(r"-m benchmarks\.run ([a-z_]+)", text))
    assert named
    assert named <= set(NAMES)
