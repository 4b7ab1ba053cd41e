"""docs/man/gpushare.1 has each command with its options, and is what the commands say now."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from gpushare.cli.app import COMMANDS, make_app
from tests.python.conftest import ROOT

PAGE = ROOT / "docs" / "man" / "gpushare.1"
TEXT = PAGE.read_text().replace("\\-", "-")


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command, or those of a group."""
    inner = getattr(command, "commands", {})
    for name, each in inner.items():
        yield from _commands(f"{path} {name}", each)
    if not inner:
        yield path, command


@pytest.mark.parametrize("name", COMMANDS)
def test_it_has_each_command_and_each_option(name: str) -> None:
    group = typer.main.get_command(make_app((name,))).commands[name]
    for path, command in _commands(f"gpushare {name}", group):
        section = TEXT.split(f"\n.SS {path} [OPTIONS]")[1].split("\n.SS ")[0]
        for parameter in command.params:
            words = [*parameter.opts, *parameter.secondary_opts]
            if parameter.param_type_name == "argument":
                words = [parameter.name.upper()]
            heads = [line for line in section.splitlines() if line.startswith(".B ")]
            assert all(any(word in head for head in heads) for word in words), path


def test_it_is_what_the_commands_say() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "make_man_page.py"))["page"]()
    assert made == PAGE.read_text(), "make it anew: make man"


@pytest.mark.skipif(not shutil.which("groff"), reason="there is no groff")
def test_the_formatter_has_nothing_to_say() -> None:
    ended = subprocess.run(
        ["groff", "-man", "-ww", "-z", str(PAGE)], capture_output=True, text=True, check=True
    )
    assert ended.stderr == ""
