"""docs/commands.md has each command and each of its options, and no others."""

from __future__ import annotations

import re

import pytest
import typer

from gpushare.cli.app import COMMANDS, make_app
from gpushare.job import Job
from tests.python.conftest import ROOT

TEXT = (ROOT / "docs" / "commands.md").read_text()
_OPTION = re.compile(r"`(--?[a-z][a-z-]*)`")
EVERYWHERE = {"-h", "--help"}


def _sections() -> dict[str, str]:
    """Text of each section by the commands in its title."""
    parts = re.split(r"^## (.*)$", TEXT, flags=re.MULTILINE)
    return {
        name: text
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
        for name in re.findall(r"`gpushare (\w+)`", title)
    }


def _options(command: object) -> set[str]:
    """What a command takes, and its subcommands."""
    found = {
        word
        for parameter in getattr(command, "params", [])
        if parameter.param_type_name == "option"
        for word in (*parameter.opts, *parameter.secondary_opts)
    }
    for inner in getattr(command, "commands", {}).values():
        found |= _options(inner)
    return found - EVERYWHERE


SECTIONS = _sections()


def test_each_command_has_a_section_and_no_section_is_of_another() -> None:
    assert set(SECTIONS) == set(COMMANDS)


def test_the_list_at_the_top_names_each_command() -> None:
    top = TEXT.split("\n## ")[0]
    assert set(re.findall(r"`gpushare (\w+)`", top)) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_sections_options_are_the_commands(name: str) -> None:
    command = typer.main.get_command(make_app((name,))).commands[name]
    tables = "\n".join(line for line in SECTIONS[name].splitlines() if line.startswith("| `"))
    named = set(_OPTION.findall("\n".join(row.split("|")[1] for row in tables.splitlines())))
    assert named == _options(command)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_section_has_an_example(name: str) -> None:
    assert re.search(rf"^    (sudo )?gpushare {name}\b", SECTIONS[name], flags=re.MULTILINE)


def test_the_text_at_the_top_has_the_options_of_the_program() -> None:
    program = typer.main.get_command(make_app(()))
    found = {word for parameter in program.params for word in parameter.opts}
    assert found - EVERYWHERE <= set(_OPTION.findall(TEXT.split("\n## ")[0]))


def test_the_calls_of_a_job_are_there() -> None:
    named = set(re.findall(r"`(?:with )?job\.(\w+)", TEXT))
    assert named == {name for name in vars(Job) if not name.startswith("_")}
