"""docs/settings.md has each setting, under each of its names, and no others."""

from __future__ import annotations

import inspect
import re
import subprocess
from pathlib import Path

import pytest

from gpushare._settings.config import Config, daemon_path
from gpushare._settings.config_notes import (
    COORDINATORS_KEYS,
    COORDINATORS_VARIABLES,
    USER_KEYS,
)
from gpushare._settings.settings import SETTINGS
from gpushare.job import register
from tests.python.conftest import ROOT

TEXT = (ROOT / "docs" / "settings.md").read_text()
_CODE = re.compile(r"`([^`]+)`")
_VARIABLE = re.compile(r"GPUSHARE_[A-Z_]+")
OWN_OPTIONS = {"--arbiter", "--listen", "--config", "--daemonize", "--version", "--help"}
"""Of ``gpushared``, which it takes beside its settings."""
GPU = "cuda:GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"


def _rows(title: str) -> list[dict[str, str]]:
    """The rows of the first table below a heading, by the column's name."""
    section = TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]
    (first, *_) = re.findall(r"(?:^\|.*\n)+", section, flags=re.MULTILINE)
    table = [line.removeprefix("|").removesuffix("|").split("|") for line in first.splitlines()]
    cells = [[cell.strip() for cell in line] for line in table]
    return [dict(zip(cells[0], line, strict=True)) for line in cells[2:]]


def _code(cell: str) -> str:
    found = _CODE.findall(cell)
    return found[0] if found else ""


def _source(name: str) -> str:
    return (ROOT / "csrc" / name).read_text()


COORDINATORS = _rows("Settings of a coordinator")
JOBS = _rows("Settings of a job")


def test_each_setting_is_there_under_its_variable_and_its_key() -> None:
    named = [(_code(row["variable"]), _code(row["key"])) for row in COORDINATORS + JOBS]
    there = {(each.variable, each.key) for each in SETTINGS}
    variables = {key: variable for variable, key in COORDINATORS_VARIABLES.items()}
    assert set(named) == there | {(variables.get(key, ""), key) for key in COORDINATORS_KEYS}
    assert len(named) == len(set(named))


def test_each_key_of_a_user_is_there() -> None:
    named = {_code(row["key"]) for row in _rows("Settings of users")}
    assert named == {f"user.NAME.{key}" for key in USER_KEYS}


def test_the_coordinators_options_are_those_that_it_takes() -> None:
    taken = set(
        re.findall(
            r'"(--[a-z-]+)"',
            _source("daemon/config/settings.cpp") + _source("daemon/config/settings.h"),
        )
    )
    rows = {_code(row["`gpushared`"]) for row in COORDINATORS}
    others = set(re.findall(r"`(--[a-z-]+)`", TEXT)) - rows
    assert rows <= taken
    assert others == (taken - rows) | OWN_OPTIONS


@pytest.mark.parametrize(
    "variable", sorted({_code(row["variable"]) for row in COORDINATORS} - {""})
)
def test_gpushared_itself_reads_the_variable(variable: str, tmp_path: Path) -> None:
    # A single device that is named beats a list of devices.
    device = [] if variable == "GPUSHARE_DEVICES" else ["--device", GPU]
    env = {"XDG_RUNTIME_DIR": str(tmp_path), "GPUSHARE_CAPACITY": "2GiB", variable: "?"}
    ended = subprocess.run(
        [daemon_path(), *device], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert f'{variable}: bad value "?"; allowed: ' in ended.stderr


def test_the_keywords_are_those_of_register() -> None:
    named = {_code(row["keyword"]) for row in JOBS} - {""}
    assert named <= {each.key.removeprefix("job.") for each in SETTINGS}
    others = set(inspect.signature(register).parameters) - named
    assert others == {"model", "optimizer", "iterations", "gang"}
    assert all(f"`{name}`" in TEXT for name in others)


def test_each_variable_that_is_named_is_read_somewhere() -> None:
    named = set(_VARIABLE.findall(TEXT.replace("GPUSHARE_*", "")))
    known = {each.variable for each in SETTINGS}
    read: set[str] = set()
    folders = (ROOT / "python" / "gpushare", ROOT / "csrc", ROOT / "tools")
    files = [path for folder in folders for path in folder.rglob("*") if _is_source(path)]
    for path in files:
        read |= set(_VARIABLE.findall(path.read_text()))
    assert named >= known
    assert named - known <= read


def _is_source(path: Path) -> bool:
    return path.suffix in {".py", ".cpp", ".h", ".sh"}


def test_the_defaults_of_flags_are_those_of_the_code() -> None:
    fields = {each.key: each.field for each in SETTINGS}
    flags = [row for row in JOBS if row["may be"] == "a flag"]
    said = {fields[_code(row["key"])]: row["default"] for row in flags}
    assert said == {field: str(int(getattr(Config(), field))) for field in said}
    assert set(said) == {each.field for each in SETTINGS if each.allowed == "0 or 1"}


def test_the_defaults_of_times_and_parts_are_those_of_the_code() -> None:
    pattern = r'\b(\w+) = (?:(millis|seconds)\((\d+)\)|(0\.\d+)|"(\w+)");'
    units = {"millis": "ms", "seconds": "s"}
    found = {
        name: f"{amount} {units[unit]}" if unit else number or word
        for file in ("sched/job/coordinator_options.h", "daemon/config/options.h")
        for name, unit, amount, number, word in re.findall(pattern, _source(file))
    }
    said = {
        _code(row["key"]).removeprefix("coordinator."): row["default"].strip("`")
        for row in COORDINATORS
    }
    # The first a job names when it starts a coordinator. The others nobody sets.
    for name in ("device", "iteration_warning", "recovery"):
        del found[name]
    assert found == {name: said[name] for name in found}
    assert {"min_quantum", "max_wait", "memory_wait", "switch_loss", "policy"} <= set(found)
