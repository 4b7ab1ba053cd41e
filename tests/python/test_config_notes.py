"""Keys that nothing reads, variables that are spelled wrongly, and times without a unit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpushare._settings.config_notes import COORDINATORS_KEYS, USER_KEYS, config_notes, user_notes
from gpushare._settings.settings import SETTINGS
from tests.python.conftest import ROOT


def _notes(folder: Path, text: str) -> list[str]:
    path = folder / "c.toml"
    path.write_text(text)
    return [note.removeprefix(f"{path}: ") for note in config_notes({"GPUSHARE_CONFIG": str(path)})]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[coordinator]\npolcy = 1",
            "unknown key coordinator.polcy; did you mean coordinator.policy?",
        ),
        ("[job]\npriorit = 1", "unknown key job.priorit; did you mean job.priority?"),
        ("[job]\nlinger = 1", "unknown key job.linger; did you mean coordinator.linger?"),
        ("deadline = 1", "unknown key deadline; did you mean job.deadline?"),
        ("polcy = 1", "unknown key polcy; did you mean coordinator.policy?"),
        ("[host]\nxyzzy = 1", "unknown key host.xyzzy"),
        ("[coordinator]\nxyzzy = 1", "unknown key coordinator.xyzzy"),
        ("coordinator = 3", "coordinator is a table and no value: write [coordinator]"),
        ('"\\u001b[31mx" = 1', "unknown key ?[31mx"),
        (
            "[coordinator]\nquantum = 1",
            "unknown key coordinator.quantum; did you mean coordinator.min_quantum?",
        ),
        ("[foo]\nx = 1", "unknown table [foo]"),
        ("[jobs]\nname = 'x'", "unknown table [jobs]; did you mean [job]?"),
        ("[device.gpu]\ncapacity = 1", "unknown table [device.gpu]; did you mean [device.cpu]?"),
        ("[user.me]\nweigt = 1", "unknown key user.me.weigt; did you mean user.me.weight?"),
        ("[user]\nweight = 1", "unknown key user.weight; a table [user.NAME] holds what a user"),
    ],
)
def test_what_nothing_reads_is_named_with_the_nearest(tmp_path: Path, text: str, said: str) -> None:
    (note,) = _notes(tmp_path, text)
    assert note.startswith(said)
    assert ("did you mean" in note) == ("did you mean" in said)


def test_each_known_key_passes(tmp_path: Path) -> None:
    keys = {setting.key for setting in SETTINGS} | COORDINATORS_KEYS
    keys |= {f"user.me.{key}" for key in USER_KEYS}
    assert _notes(tmp_path, "\n".join(f"{key} = 1" for key in sorted(keys))) == []


@pytest.mark.parametrize(
    ("source", "pattern", "known"),
    [
        (
            "settings.cpp",
            r'"((?:accounts|coordinator|host|log|device\.\w+)\.\w+)",',
            {setting.key for setting in SETTINGS if not setting.key.startswith("job.")}
            | COORDINATORS_KEYS,
        ),
        ("user_settings.cpp", r'UserSetting\{"(\w+)"', USER_KEYS),
    ],
)
def test_the_coordinators_keys_are_those_that_it_reads(
    source: str, pattern: str, known: frozenset[str]
) -> None:
    text = (ROOT / "csrc" / "daemon" / "config" / source).read_text()
    assert set(re.findall(pattern, text)) == known


def test_tables_of_users_that_the_machine_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("".join(f"[user.{name}]\n" for name in ("default", "root", "4000001", "r0ot")))
    said = user_notes({"GPUSHARE_CONFIG": str(path)})
    assert said == [f"{path}: [user.r0ot]: no user of this machine has that name"]


@pytest.mark.parametrize(
    ("variable", "text", "said"),
    [
        (
            "GPUSHARE_PRORITY",
            "x",
            "nothing reads GPUSHARE_PRORITY; did you mean GPUSHARE_PRIORITY?",
        ),
    ],
)
def test_a_variable_that_may_be_meant_otherwise(variable: str, text: str, said: str) -> None:
    assert config_notes({variable: text, "GPUSHARE_CONFIG": "/dev/null"}) == [said]


@pytest.mark.parametrize("variable", ["GPUSHARE_RUN", "GPUSHARE_RECORD", "GPUSHARE_WEIGHT", "HOME"])
def test_other_variables_are_not_noted(variable: str) -> None:
    assert config_notes({variable: "1", "GPUSHARE_CONFIG": "/dev/null"}) == []
